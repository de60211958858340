//! Runs commands on this machine.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Command, Output, RunError, Runner};

/// Maximum number of bytes of standard error that are kept.
const STDERR_LIMIT: usize = 16 << 10;

/// Directories searched after `PATH`, since vendor tools are often installed there.
const TOOL_DIRECTORIES: [&str; 6] =
    ["/usr/sbin", "/sbin", "/opt/rocm/bin", "/opt/aws/neuron/bin", "/usr/lib/wsl/lib", "/opt/slurm/bin"];

/// Variables that change what `sinfo`, `squeue` and `scontrol` list or how they print it.
const DROPPED_VARIABLES: [&str; 22] = [
    "SINFO_ALL",
    "SINFO_FORMAT",
    "SINFO_PARTITION",
    "SINFO_SORT",
    "SLURM_TIME_FORMAT",
    "SLURM_JSON",
    "SLURM_YAML",
    "SQUEUE_ACCOUNT",
    "SQUEUE_ALL",
    "SQUEUE_ARRAY",
    "SQUEUE_ARRAY_UNIQUE",
    "SQUEUE_FORMAT",
    "SQUEUE_FORMAT2",
    "SQUEUE_LICENSES",
    "SQUEUE_NAMES",
    "SQUEUE_PARTITION",
    "SQUEUE_PRIORITY",
    "SQUEUE_QOS",
    "SQUEUE_SORT",
    "SQUEUE_STATES",
    "SQUEUE_USERS",
    "SCONTROL_ALL",
];

/// Runs processes, each in its own process group and without standard input, and kills them at their timeout.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

/// Finds the executable `name` in the absolute directories of `PATH` and the usual directories of vendor tools.
///
/// Relative directories of `PATH` are skipped, so that a file in the working directory is never run.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(TOOL_DIRECTORIES.iter().map(PathBuf::from))
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

impl Runner for System {
    fn run(&self, command: &Command) -> Result<Output, RunError> {
        let program =
            find_program(&command.program).ok_or_else(|| RunError::NotFound { program: command.program.clone() })?;
        run_file(&program, command)
    }
}

fn run_file(program: &Path, command: &Command) -> Result<Output, RunError> {
    let failed =
        |reason: std::io::Error| RunError::Failed { program: command.program.clone(), reason: reason.to_string() };
    let deadline = Instant::now() + command.timeout;
    let mut process = std::process::Command::new(program);
    process.args(&command.arguments).env("LC_ALL", "C");
    for variable in DROPPED_VARIABLES {
        process.env_remove(variable);
    }
    let mut child = process
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let stdout = child.stdout.take().and_then(|pipe| collect(pipe, command.limit));
    let stderr = child.stderr.take().and_then(|pipe| collect(pipe, STDERR_LIMIT));
    let timed_out = |mut child: Child| {
        kill_group(&mut child);
        wait_in_background(child);
        RunError::TimedOut { program: command.program.clone(), after: command.timeout }
    };
    let (Some(stdout), Some(stderr)) = (stdout, stderr) else {
        kill_group(&mut child);
        wait_in_background(child);
        return Err(RunError::Failed {
            program: command.program.clone(),
            reason: "cannot start a thread that reads its output".to_owned(),
        });
    };
    let Some((out, truncated)) = receive(&stdout, deadline) else { return Err(timed_out(child)) };
    if truncated {
        kill_group(&mut child);
    }
    let Some((err, _)) = receive(&stderr, deadline) else { return Err(timed_out(child)) };
    let mut pause = Duration::from_millis(1);
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if Instant::now() >= deadline => return Err(timed_out(child)),
            None => thread::sleep(pause),
        }
        pause = (pause * 2).min(Duration::from_millis(20));
    };
    Ok(Output {
        stdout: String::from_utf8_lossy(&out).into_owned(),
        stderr: String::from_utf8_lossy(&err).into_owned(),
        status: status.code(),
        truncated,
    })
}

type Collected = (Vec<u8>, bool);

/// Reads at most `limit` bytes from a pipe on a separate thread. Closing the pipe early stops a process that keeps
/// writing. Returns `None` if no thread can be started.
fn collect(mut pipe: impl Read + Send + 'static, limit: usize) -> Option<mpsc::Receiver<Collected>> {
    let (send, receive) = mpsc::sync_channel(1);
    let reader = thread::Builder::new().spawn(move || {
        let mut kept = Vec::new();
        let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
        let read = pipe.by_ref().take(most).read_to_end(&mut kept);
        let truncated = kept.len() > limit || read.is_err();
        kept.truncate(limit);
        // Sending fails if the command timed out, since the receiver is then dropped.
        let _ = send.send((kept, truncated));
    });
    reader.is_ok().then_some(receive)
}

fn receive(from: &mpsc::Receiver<Collected>, deadline: Instant) -> Option<Collected> {
    from.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
}

/// Kills the command and all processes of its group.
fn kill_group(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    // Killing fails if the group has already exited; the error is ignored.
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
}

/// Waits for a killed command on a separate thread, since a process that hangs in a driver does not exit before the
/// driver returns.
fn wait_in_background(mut child: Child) {
    // If no thread can be started, the child remains a zombie until this program exits.
    let _ = thread::Builder::new().spawn(move || child.wait());
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
    use super::*;

    fn shell(script: &str) -> Command {
        Command::new("sh", &["-c", script])
    }

    #[test]
    fn missing_program_is_reported_as_absent() {
        let error = System.run(&Command::new("atlas-no-such-program", &[])).unwrap_err();
        assert!(error.is_absent(), "{error}");
        assert_eq!(find_program("../sh"), None);
    }

    #[test]
    fn output_status_and_error_message_are_returned() {
        let output = System.run(&shell("echo out; echo problem >&2; exit 3")).unwrap();
        assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.status), ("out\n", "problem\n", Some(3)));
        assert_eq!(output.unreliability().unwrap(), "exit status 3: problem");
    }

    #[test]
    fn command_and_its_children_are_killed_at_the_timeout() {
        let begun = Instant::now();
        let error = System.run(&shell("sleep 30 & sleep 30").with_timeout(Duration::from_millis(200))).unwrap_err();
        assert!(matches!(error, RunError::TimedOut { .. }), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn an_orphaned_process_with_an_open_pipe_does_not_block() {
        let begun = Instant::now();
        let command = shell("setsid sleep 3 & echo done").with_timeout(Duration::from_millis(300));
        assert!(matches!(System.run(&command), Err(RunError::TimedOut { .. })));
        assert!(begun.elapsed() < Duration::from_millis(2500));
    }

    #[test]
    fn output_beyond_the_limit_is_cut_and_the_command_ends() {
        let output = System.run(&shell("yes").with_output_limit(1000)).unwrap();
        assert!(output.truncated);
        assert_eq!(output.stdout.len(), 1000);
        assert!(output.unreliability().unwrap().contains("limit"));
    }

    #[test]
    fn arguments_are_not_interpreted_by_a_shell() {
        let output = System.run(&Command::new("printf", &["%s", "$(id) `id` ; id"])).unwrap();
        assert_eq!(output.stdout, "$(id) `id` ; id");
    }
}
