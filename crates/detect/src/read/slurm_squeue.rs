//! `squeue`: pending jobs by partition.

use std::collections::BTreeMap;

use crate::text::clean;

/// The columns: partitions and number of nodes of a pending job.
pub const FORMAT: &str = "%P|%D";

/// Pending jobs of one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Number of jobs.
    pub jobs: u32,
    /// Number of nodes that the jobs request in total.
    pub nodes: u64,
}

/// Parses the output of `squeue -h -t PD -o` with [`FORMAT`]. A job that lists several partitions is counted in each.
#[must_use]
pub fn waiting(text: &str) -> BTreeMap<String, Waiting> {
    let mut found: BTreeMap<String, Waiting> = BTreeMap::new();
    for line in text.lines().take(1_000_000) {
        let Some((partitions, nodes)) = line.split_once('|') else { continue };
        let Ok(nodes) = nodes.trim().parse::<u64>() else { continue };
        for partition in partitions.split(',').map(clean).filter(|name| !name.is_empty()).take(64) {
            if found.len() >= 10_000 && !found.contains_key(&partition) {
                continue;
            }
            let entry = found.entry(partition).or_default();
            entry.jobs = entry.jobs.saturating_add(1);
            entry.nodes = entry.nodes.saturating_add(nodes);
        }
    }
    found
}
