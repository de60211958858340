//! Idle nodes of the partitions. Cheap enough to query every few seconds: it runs two commands whose output does not
//! grow with the number of nodes.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::model::{Machine, Nodes, Origin};
use crate::read::slurm_sinfo::State;
use crate::read::slurm_squeue::{self, Waiting};
use crate::runner::{Command, RunError, Runner};
use crate::text::clean;

/// Partition, GRES, state and number of nodes.
const FORMAT: &str = "%R|%G|%T|%D";

/// Nodes of the partitions by state, and pending jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterLoad {
    /// Nodes by partition and GRES.
    nodes: BTreeMap<(String, String), Nodes>,
    /// Pending jobs by partition; `None` if `squeue` gave no answer.
    waiting: Option<BTreeMap<String, Waiting>>,
}

/// Why the load is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// `sinfo` could not be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// sinfo failed.
    #[error("sinfo: {0}")]
    Failed(String),
}

/// Runs `sinfo` and `squeue`, each with the timeout.
///
/// # Errors
/// If `sinfo` is not installed, does not finish in time, or fails. If `squeue` fails, only the pending jobs are left
/// out.
pub fn query(runner: &dyn Runner, timeout: Duration) -> Result<ClusterLoad, LoadError> {
    let command = Command::new("sinfo", &["-h", "-o", FORMAT]).with_timeout(timeout).with_output_limit(1 << 20);
    let output = runner.run(&command)?;
    if let Some(complaint) = output.unreliability() {
        return Err(LoadError::Failed(complaint));
    }
    let mut load = ClusterLoad { nodes: parse(&output.stdout), waiting: None };
    let command = Command::new("squeue", &["-h", "-t", "PD", "-o", slurm_squeue::FORMAT]).with_timeout(timeout);
    load.waiting = runner
        .run(&command)
        .ok()
        .filter(|output| output.unreliability().is_none())
        .map(|output| slurm_squeue::waiting(&output.stdout));
    Ok(load)
}

fn parse(text: &str) -> BTreeMap<(String, String), Nodes> {
    let mut found: BTreeMap<(String, String), Nodes> = BTreeMap::new();
    for line in text.lines().take(100_000) {
        let fields: Vec<&str> = line.split('|').collect();
        let [partition, gres, state, count] = fields.as_slice() else { continue };
        let Ok(count) = count.trim().parse::<u32>() else { continue };
        let key = (clean(partition.trim().trim_end_matches('*')), gres.trim().to_owned());
        let nodes = found.entry(key).or_insert(Nodes {
            total: Some(0),
            idle: Some(0),
            mixed: Some(0),
            allocated: Some(0),
            planned: Some(0),
            unavailable: Some(0),
        });
        let slot = match State::parse(state) {
            State::Idle => &mut nodes.idle,
            State::Mixed => &mut nodes.mixed,
            State::Allocated => &mut nodes.allocated,
            State::Planned => &mut nodes.planned,
            State::Unavailable => &mut nodes.unavailable,
        };
        add(slot, count);
        add(&mut nodes.total, count);
    }
    found
}

fn add(slot: &mut Option<u32>, count: u32) {
    *slot = Some(slot.unwrap_or(0).saturating_add(count));
}

impl ClusterLoad {
    /// Nodes of a machine by state; `None` if the machine is not a partition, or if the partition no longer exists.
    #[must_use]
    pub fn nodes(&self, machine: &Machine) -> Option<Nodes> {
        let Origin::Slurm { partition, gres, .. } = &machine.origin else { return None };
        let mut sum: Option<Nodes> = None;
        for ((own, resources), nodes) in &self.nodes {
            let has = gres.as_ref().is_none_or(|gres| {
                crate::read::slurm_gres::parse(resources).iter().any(|one| {
                    let written = one.kind.as_ref().map_or_else(
                        || format!("{}:{}", one.name, one.count),
                        |kind| format!("{}:{kind}:{}", one.name, one.count),
                    );
                    written == *gres
                })
            });
            if own != partition || !has {
                continue;
            }
            let sum = sum.get_or_insert_default();
            for (slot, more) in [
                (&mut sum.total, nodes.total),
                (&mut sum.idle, nodes.idle),
                (&mut sum.mixed, nodes.mixed),
                (&mut sum.allocated, nodes.allocated),
                (&mut sum.planned, nodes.planned),
                (&mut sum.unavailable, nodes.unavailable),
            ] {
                add(slot, more.unwrap_or(0));
            }
        }
        sum
    }

    /// Pending jobs of a machine's partition; `None` if `squeue` gave no answer.
    #[must_use]
    pub fn waiting(&self, machine: &Machine) -> Option<Waiting> {
        let Origin::Slurm { partition, .. } = &machine.origin else { return None };
        Some(self.waiting.as_ref()?.get(partition).copied().unwrap_or_default())
    }
}
