//! A shell script that is started on every node.

use super::{additional_files, arguments, command, setup, visible_devices_variable};
use crate::launch::File;
use crate::launch::job::Job;
use crate::launch::tools::{Draft, Launcher};
use crate::launch::trains;

/// The script and the files in its directory.
pub(crate) fn files(job: &Job<'_>, draft: &Draft, header: &str) -> Vec<File> {
    let mut text = format!("#!/usr/bin/env bash\n{header}");
    let together = draft.spread.as_ref().map_or(1, |spread| spread.nodes);
    if job.nodes > 1 {
        text.push_str(&format!("# Run this script on each of {} nodes.\n", job.nodes));
    }
    text.push_str("set -euo pipefail\ncd \"$(dirname \"${BASH_SOURCE[0]}\")\"\n\n");
    if trains(job) && job.nodes > 1 || together > 1 {
        text.push_str("HEAD_NODE=\"${HEAD_NODE:?set it to the name of the first node}\"\n");
    } else {
        text.push_str("HEAD_NODE=\"${HEAD_NODE:-localhost}\"\n");
    }
    if together > 1 || trains(job) && draft.start == Launcher::Direct && job.nodes > 1 {
        text.push_str("export NODE_RANK=\"${NODE_RANK:?set it to 0 on the first node, 1 on the next}\"\n");
        text.push_str(&format!("NODES={}\n", if together > 1 { together } else { job.nodes }));
    }
    text.push('\n');
    text.push_str(&setup(draft));
    text.push_str(list_gpu_processes(&job.vendor));
    let (command, args) = (command(job, draft), arguments(draft));
    match (draft.port, &draft.spread) {
        (Some(port), Some(spread)) => {
            text.push_str(&format!("{command}{args} --port {port} {}\n", spread.flags));
        }
        (Some(port), None) => servers(job, draft, &command, port, &mut text),
        (None, _) => text.push_str(&format!("{command}{args}\n")),
    }
    let script = File { name: format!("{}.sh", job.name), text, executable: true };
    std::iter::once(script).chain(additional_files(job, draft, header)).collect()
}

/// Shell code that lists other processes on the accelerators. Without a scheduler, processes left by earlier runs may
/// occupy memory.
fn list_gpu_processes(vendor: &str) -> &'static str {
    match vendor {
        "NVIDIA" => {
            "# List other processes that use accelerator memory; they are not terminated.\n\
             if command -v nvidia-smi > /dev/null; then\n  \
             held=\"$(nvidia-smi --query-compute-apps=pid,used_memory,process_name --format=csv,noheader || true)\"\n  \
             if [ -n \"$held\" ]; then\n    \
             printf 'Accelerator memory is in use by (PID, memory, program):\\n%s\\nTo end your own: kill PID\\n' \
             \"$held\" >&2\n  fi\nfi\n\n"
        }
        "AMD" => {
            "# List other processes that use accelerator memory; they are not terminated.\n\
             held=\"$(ls /sys/class/kfd/kfd/proc 2> /dev/null || true)\"\n\
             if [ -n \"$held\" ]; then\n  \
             printf 'Accelerators are in use by PID:\\n%s\\nTo end your own: kill PID\\n' \"$held\" >&2\nfi\n\n"
        }
        _ => "",
    }
}

/// Starts the servers of one node, each on its own devices and port.
fn servers(job: &Job<'_>, draft: &Draft, command: &str, port: u64, text: &mut String) {
    let args = arguments(draft);
    let local = (job.per_node / draft.devices.max(1)).clamp(1, draft.servers);
    if local == 1 {
        text.push_str(&format!("{command}{args} --port {port}\n"));
        return;
    }
    for server in 0..local {
        let devices: Vec<String> =
            (server * draft.devices..(server + 1) * draft.devices).map(|device| device.to_string()).collect();
        text.push_str(&format!(
            "{}={} {command}{args} --port {} &\n",
            visible_devices_variable(&job.vendor),
            devices.join(","),
            port + server
        ));
    }
    text.push_str("wait\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of the script if `nvidia-smi` prints `answer`.
    fn complaint(answer: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let smi = dir.path().join("nvidia-smi");
        std::fs::write(&smi, format!("#!/bin/sh\nprintf '{answer}'\n")).unwrap();
        let script = format!(
            "chmod +x {0}/nvidia-smi; PATH={0}:$PATH\nset -euo pipefail\n{1}",
            dir.path().display(),
            list_gpu_processes("NVIDIA")
        );
        let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }

    #[test]
    fn processes_using_accelerator_memory_are_listed_before_a_run() {
        assert_eq!(complaint(""), "");
        let text = complaint("4711, 61034 MiB, python3\\n");
        assert!(text.contains("4711, 61034 MiB, python3") && text.contains("kill PID"), "{text}");
    }
}
