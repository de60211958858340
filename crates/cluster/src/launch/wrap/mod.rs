//! Wraps commands for the environment in which they run.

pub(crate) mod kubernetes;
pub(crate) mod plain;
pub(crate) mod slurm;

use super::File;
use super::job::Job;
use super::tools::{Draft, Launcher};
use super::words::Word;

/// Variables and exports of a script, followed by the arguments as an array.
fn setup(draft: &Draft) -> String {
    let mut out = String::new();
    for (name, default) in &draft.variables {
        let plain = default.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '.'));
        debug_assert!(plain, "defaults of variables are written by this program");
        out.push_str(&format!("{name}=\"${{{name}:-{default}}}\"\n"));
    }
    for (name, value) in &draft.exports {
        out.push_str(&format!("export {name}={}\n", value.shell()));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    if !draft.arguments.lines.is_empty() {
        out.push_str(&draft.arguments.array("args"));
        out.push('\n');
    }
    out
}

/// Reference to the arguments, after the command.
fn arguments(draft: &Draft) -> &'static str {
    if draft.arguments.lines.is_empty() { "" } else { " \"${args[@]}\"" }
}

/// Words that start the program on a node, without its arguments.
fn command(job: &Job<'_>, draft: &Draft) -> String {
    let program = draft.program.iter().map(Word::shell).collect::<Vec<_>>().join(" ");
    let (nodes, devices) = (job.nodes, job.per_node);
    match draft.start {
        Launcher::Torchrun if nodes == 1 => format!("torchrun --standalone --nproc-per-node {devices} \\\n  {program}"),
        Launcher::Torchrun => format!(
            "torchrun --nnodes {nodes} --nproc-per-node {devices} \\\n  --rdzv-backend c10d --rdzv-endpoint \
             \"$HEAD_NODE:29500\" --rdzv-id {} \\\n  {program}",
            job.name
        ),
        Launcher::Accelerate(config) if nodes == 1 => {
            format!("accelerate launch --config_file ./{config} \\\n  {program}")
        }
        Launcher::Accelerate(config) => format!(
            "accelerate launch --config_file ./{config} --rdzv_backend c10d \\\n  --main_process_ip \"$HEAD_NODE\" \
             --main_process_port 29500 \\\n  {program}"
        ),
        Launcher::Direct => program,
    }
}

/// Further files in the directory of the script: configurations, and the client that generates the load.
fn additional_files(job: &Job<'_>, draft: &Draft, header: &str) -> Vec<File> {
    let configs = draft.configs.iter();
    let mut files: Vec<File> = configs
        .map(|config| File { name: config.name.to_owned(), text: config.text.clone(), executable: false })
        .collect();
    if let Some(client) = &draft.client {
        let text = format!(
            "#!/usr/bin/env bash\n{header}# Sends the planned load to a server, or to a load balancer in front \
             of several servers.\n\
             # Requires vLLM {} or later, which may differ from the server's release.\n\
             set -euo pipefail\n\nBASE_URL=\"${{BASE_URL:-http://localhost:8000}}\"\n\n{}\nvllm bench serve --base-url \
             \"$BASE_URL\" \"${{load[@]}}\"\n",
            client.since,
            client.arguments.array("load")
        );
        files.push(File { name: format!("{}-load.sh", job.name), text, executable: true });
    }
    files
}

/// Name of the variable that selects devices.
fn visible_devices_variable(vendor: &str) -> &'static str {
    match vendor {
        "AMD" => "HIP_VISIBLE_DEVICES",
        _ => "CUDA_VISIBLE_DEVICES",
    }
}
