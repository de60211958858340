//! Timers of training tools, gathered over the steps of a run.

use std::collections::BTreeMap;

use atlas_ingest::observation::Timer;

use super::track::Track;

/// Timers kept apart.
const MOST: usize = 64;

/// What a timer measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Network,
    Device,
    Host,
}

/// What a timer measures, by its name; `None` for sums of others.
pub(super) fn kind(name: &str) -> Option<Kind> {
    let name = name.to_ascii_lowercase();
    let any = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if any(&["all-reduce", "allreduce", "all-gather", "allgather", "grads-sync", "reduce-scatter", "send", "recv"]) {
        Some(Kind::Network)
    } else if any(&["batch-generator", "dataloader", "data-", "checkpoint", "load"]) {
        Some(Kind::Host)
    } else if any(&["forward-compute", "backward-compute", "fwd_microstep", "bwd_inner"])
        || name == "optimizer-inner-step"
    {
        Some(Kind::Device)
    } else {
        None
    }
}

/// One timer over time: the fastest rank and the slowest.
#[derive(Debug, Clone, Default, PartialEq)]
struct Tracks {
    least: Track,
    most: Track,
    ranks: bool,
}

/// All timers of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timers {
    tracks: BTreeMap<String, Tracks>,
    /// The slowest rank of the last report on stragglers, and how often it was the slowest in a row.
    pub slowest: Option<(u64, u32)>,
}

/// What timers say about a change, in seconds a step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Said {
    /// Collectives grew on the rank that waits least.
    pub(super) network: f64,
    /// Computing grew on the fastest rank.
    pub(super) device: f64,
    /// The slowest rank's computing grew more than the fastest's.
    pub(super) gap: f64,
    /// The host grew.
    pub(super) host: f64,
    /// Whether fastest and slowest ranks are described apart.
    pub(super) ranks: bool,
    /// Whether there were any timers on both sides.
    pub(super) any: bool,
}

impl Timers {
    /// Takes a timer behind a step.
    pub(super) fn push(&mut self, step: u64, timer: Timer) {
        if let Some(rank) = timer.slowest {
            let row = self.slowest.filter(|(known, _)| *known == rank).map_or(1, |(_, row)| row.saturating_add(1));
            self.slowest = Some((rank, row));
        }
        if self.tracks.len() >= MOST && !self.tracks.contains_key(&timer.name) {
            return;
        }
        let tracks = self.tracks.entry(timer.name).or_default();
        tracks.least.push(step, timer.least);
        tracks.most.push(step, timer.most);
        tracks.ranks |= timer.most > timer.least;
    }

    /// What changed at a step.
    pub(super) fn around(&self, since: u64) -> Said {
        let mut said = Said::default();
        for (name, tracks) in &self.tracks {
            let report = name == "straggler-report";
            let Some(kind) = kind(name).or(report.then_some(Kind::Device)) else { continue };
            let (Some([least, least_now]), Some([most, most_now])) =
                (tracks.least.around(since), tracks.most.around(since))
            else {
                continue;
            };
            said.any = true;
            said.ranks |= tracks.ranks;
            let grown = least_now - least;
            match kind {
                Kind::Network => said.network += grown,
                Kind::Host => said.host += grown,
                Kind::Device => {
                    said.device += if report { 0.0 } else { grown };
                    said.gap += (most_now - least_now) - (most - least);
                }
            }
        }
        said
    }
}
