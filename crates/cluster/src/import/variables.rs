//! Numbers of nodes and devices in environment variables.

use super::fields::ReadFields;
use super::shell::{Command, Text};
use super::value::parse_int;
use crate::import::Field;

/// Reads nodes and processes per node, for launchers that read them from variables.
pub(crate) fn processes(name: &str, value: &Text, out: &mut ReadFields) {
    const READERS: &[&str] = &["llama-factory", "ms-swift", "primus-megatron", "primus-torchtitan", "primus-maxtext"];
    if !out.fields.str(Field::Framework).is_some_and(|f| READERS.contains(&f)) {
        return;
    }
    let key = match name {
        "NNODES" => Field::Nodes,
        "NPROC_PER_NODE" | "GPUS_PER_NODE" => Field::AcceleratorsPerNode,
        _ => return,
    };
    if let Some(n) = parse_int(value.as_str()).filter(|n| *n > 0) {
        out.fields.set_implied(key, n, value.line());
    }
}

/// Counts the visible devices in variables that are set before the command or passed to its container.
pub(crate) fn visible_devices(cmd: &Command, out: &mut ReadFields) {
    for (k, v) in &cmd.env {
        count_visible(k, v, out);
    }
    // Forms such as `docker run -e VAR=…` and `env VAR=… cmd`.
    for w in &cmd.words {
        if let Some((k, v)) = w.as_str().split_once('=') {
            count_visible(k, &Text::new(v, w.line()), out);
        }
    }
}

/// Counts the devices in a variable with a list of visible devices.
pub(crate) fn count_visible(name: &str, value: &Text, out: &mut ReadFields) {
    if !matches!(name, "CUDA_VISIBLE_DEVICES" | "HIP_VISIBLE_DEVICES" | "ROCR_VISIBLE_DEVICES" | "ZE_AFFINITY_MASK") {
        return;
    }
    let ids: Vec<&str> = value.as_str().split(',').map(str::trim).filter(|s| !s.is_empty()).collect();
    if !ids.is_empty() && ids.iter().all(|i| i.parse::<u32>().is_ok()) {
        out.fields.set(Field::NumAccelerators, ids.len() as i64, value.line());
        // Distinguishes servers on different devices from a server that is started twice. Removed when the job is
        // complete.
        out.fields.set(Field::VisibleDevices, ids.join(","), value.line());
    }
}
