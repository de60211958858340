//! `squeue`: jobs that wait, by partition.

use std::collections::BTreeMap;

use crate::text::clean;

/// Partitions and nodes of a waiting job.
pub const FORMAT: &str = "%P|%D";

/// Jobs that wait in one partition.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Jobs.
    pub jobs: u32,
    /// Nodes they ask for together.
    pub nodes: u64,
}

/// Waiting jobs of `squeue -h -t PD -o` with [`FORMAT`], by partition. A job that names several partitions counts in
/// each.
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
