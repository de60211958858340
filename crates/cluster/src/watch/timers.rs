//! Timers of training tools over the steps of a run.

use std::collections::BTreeMap;

use atlas_ingest::observation::Timer;

use super::track::Track;

/// Maximum number of timers.
const MAX_TIMERS: usize = 64;

/// What a timer measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Network,
    Device,
    Host,
}

/// What a timer measures, by its name; `None` for sums of other timers.
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

/// History of one timer on the fastest and the slowest rank.
#[derive(Debug, Clone, Default, PartialEq)]
struct Tracks {
    fastest: Track,
    slowest: Track,
    ranks: bool,
}

/// All timers of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timers {
    tracks: BTreeMap<String, Tracks>,
    /// The slowest rank of the last straggler report, and the number of consecutive reports in which it was the
    /// slowest.
    pub slowest: Option<(u64, u32)>,
}

/// Changes of the timers, in seconds per step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TimerChanges {
    /// Increase of collectives on the rank that waits least.
    pub(super) network: f64,
    /// Increase of computation on the fastest rank.
    pub(super) device: f64,
    /// Increase of computation on the slowest rank, beyond that of the fastest rank.
    pub(super) gap: f64,
    /// Increase of host work.
    pub(super) host: f64,
    /// Whether fastest and slowest ranks are logged separately.
    pub(super) ranks: bool,
    /// Whether any timer has values before and after the change.
    pub(super) any: bool,
}

impl Timers {
    /// Adds the value of a timer for a step.
    pub(super) fn push(&mut self, step: u64, timer: Timer) {
        if let Some(rank) = timer.slowest {
            let row = self.slowest.filter(|(known, _)| *known == rank).map_or(1, |(_, row)| row.saturating_add(1));
            self.slowest = Some((rank, row));
        }
        if self.tracks.len() >= MAX_TIMERS && !self.tracks.contains_key(&timer.name) {
            return;
        }
        let tracks = self.tracks.entry(timer.name).or_default();
        tracks.fastest.push(step, timer.min_seconds);
        tracks.slowest.push(step, timer.max_seconds);
        tracks.ranks |= timer.max_seconds > timer.min_seconds;
    }

    /// Changes of the timers at a step.
    pub(super) fn changes_at(&self, since: u64) -> TimerChanges {
        let mut changes = TimerChanges::default();
        for (name, tracks) in &self.tracks {
            let report = name == "straggler-report";
            let Some(kind) = kind(name).or(report.then_some(Kind::Device)) else { continue };
            let (Some([fastest, fastest_after]), Some([slowest, slowest_after])) =
                (tracks.fastest.medians_around(since), tracks.slowest.medians_around(since))
            else {
                continue;
            };
            changes.any = true;
            changes.ranks |= tracks.ranks;
            let grown = fastest_after - fastest;
            match kind {
                Kind::Network => changes.network += grown,
                Kind::Host => changes.host += grown,
                Kind::Device => {
                    changes.device += if report { 0.0 } else { grown };
                    changes.gap += (slowest_after - fastest_after) - (slowest - fastest);
                }
            }
        }
        changes
    }
}
