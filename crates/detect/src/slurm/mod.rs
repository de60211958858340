//! The partitions of a Slurm cluster.

mod group;

use std::collections::BTreeMap;

use crate::catalog::CatalogEntry;
use crate::model::{Detected, Undetermined};
use crate::probe::{Probe, non_empty};
use crate::read::slurm_json;
use crate::read::slurm_scontrol::{self, Partition};
use crate::read::slurm_sinfo::{self, Row};

/// Output limit of commands whose output grows with the cluster, in bytes.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// Output limit of the other commands, in bytes.
const SMALL: usize = 16 << 20;

/// Reads the partitions. The result is empty if Slurm is not installed.
pub(crate) fn detect(probe: &mut Probe<'_>, catalog: &[CatalogEntry]) -> Detected {
    let mut detected = Detected::default();
    let Some(rows) = rows(probe, &mut detected.undetermined) else { return detected };
    let read = |text: &str| non_empty(slurm_scontrol::partitions(text));
    let partitions: BTreeMap<String, Partition> = probe
        .read("scontrol", &["show", "partition", "-o"], SMALL, read)
        .unwrap_or_default()
        .into_iter()
        .map(|partition| (partition.name.clone(), partition))
        .collect();
    let cluster = probe.try_read("scontrol", &["show", "config"], SMALL, slurm_scontrol::cluster_name);
    group::machines(&rows, &partitions, cluster.as_deref(), catalog, &mut detected);
    detected
}

/// Rows of nodes by partition and state, from the cheapest command that gives an answer.
fn rows(probe: &mut Probe<'_>, open: &mut Vec<Undetermined>) -> Option<Vec<Row>> {
    let failures = probe.failures.len();
    let mut skipped = 0;
    let output = probe.output("sinfo", &["-h", "-e", "-o", slurm_sinfo::FORMAT], SMALL);
    let existed = output.is_some();
    if probe.timed_out("sinfo") {
        // The controller does not answer, so the other tools would also wait for it.
        return None;
    }
    let mut rows = Vec::new();
    if let Some(output) = output
        && output.complete()
    {
        (rows, skipped) = slurm_sinfo::parse(&output.stdout);
        if rows.is_empty() && skipped == 0 {
            let remedy = "ask the administrators which partitions you may use";
            open.push(Undetermined::new("partitions", "sinfo lists no partitions", remedy));
            return None;
        }
    }
    let untyped =
        |rows: &[Row]| rows.iter().flat_map(|row| &row.gres).any(|gres| gres.is_accelerator() && gres.kind.is_none());
    if rows.is_empty() {
        // `sinfo` was run with options that every release supports. If it failed, other commands are tried.
        let nodes = probe
            .read("scontrol", &["show", "node", "-o"], MAX_OUTPUT_BYTES, |text| non_empty(slurm_scontrol::nodes(text)));
        rows = nodes.map(|nodes| slurm_scontrol::rows(&nodes)).unwrap_or_default();
        if rows.is_empty() && existed {
            rows = probe
                .read("sinfo", &["--json"], MAX_OUTPUT_BYTES, |text| non_empty(slurm_json::rows(text)))
                .unwrap_or_default();
        }
        if !rows.is_empty() {
            probe.discard_failures(failures);
        }
    } else if untyped(&rows) {
        // The type may be stated only in `CfgTRES`.
        let nodes = probe.try_read("scontrol", &["show", "node", "-o"], MAX_OUTPUT_BYTES, |text| {
            non_empty(slurm_scontrol::nodes(text))
        });
        if let Some(nodes) = nodes {
            let detailed = slurm_scontrol::rows(&nodes);
            if !detailed.is_empty() && !untyped(&detailed) {
                rows = detailed;
            }
        }
    }
    if skipped > 0 {
        open.push(Undetermined::new(
            "partitions",
            format!("{skipped} lines of the output of sinfo could not be parsed"),
            format!("check the output of `sinfo -h -e -o '{}'`", slurm_sinfo::FORMAT),
        ));
    }
    non_empty(rows)
}
