//! Causes of a deviation, and how they are weighed against each other.

use atlas_core::math;
use atlas_core::sort;
use serde_json::{Value, json};

/// Why a run is slower than predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Collectives take longer: congestion, a slow link, another route.
    Network,
    /// One accelerator or node is slower than the others.
    Straggler,
    /// All accelerators run at lower clocks: heat, power limit.
    Clocks,
    /// The host: data loading, checkpoints, garbage collection, launches.
    Host,
    /// Room for keys and values is short: requests wait or are preempted.
    KvCache,
    /// More or longer requests than planned.
    Load,
    /// The plan: the job runs with other settings, or the estimate is off.
    Plan,
}

impl Cause {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cause::Network => "network",
            Cause::Straggler => "straggler",
            Cause::Clocks => "clocks",
            Cause::Host => "host",
            Cause::KvCache => "KV cache",
            Cause::Load => "load",
            Cause::Plan => "plan",
        }
    }

    /// What would tell more.
    #[must_use]
    pub fn check(self) -> &'static str {
        match self {
            Cause::Network => "run nccl-tests on the same nodes; check link errors and which jobs share the switches",
            Cause::Straggler => {
                "compare ranks with --log-straggler or per-rank timers in Megatron-LM; check clocks and errors of every node"
            }
            Cause::Clocks => "check clocks, temperatures and throttle reasons; pass samples to the watch with --power",
            Cause::Host => "check data loading, checkpoints, page cache and CPU load of the nodes",
            Cause::KvCache => "reduce concurrency or context length, or increase the KV cache",
            Cause::Load => "compare arrival rate and lengths with the plan",
            Cause::Plan => "compare the job's settings with the plan: atlas import SCRIPT",
        }
    }
}

/// One cause with what speaks for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    /// The cause.
    pub cause: Cause,
    /// How likely, from 0 to 1; all suspects together 1.
    pub weight: f64,
    /// What speaks for it, in words.
    pub evidence: Vec<String>,
}

/// Suspects, the likeliest first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnosis {
    /// All that were weighed.
    pub suspects: Vec<Suspect>,
}

impl Diagnosis {
    /// The likeliest cause.
    #[must_use]
    pub fn first(&self) -> Option<&Suspect> {
        self.suspects.first()
    }

    /// Whether the likeliest cause is clearly ahead of the next.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        match self.suspects.as_slice() {
            [] => false,
            [_] => true,
            [first, second, ..] => first.weight >= 0.5 && first.weight >= 1.5 * second.weight,
        }
    }

    /// The suspects as a list.
    pub(super) fn json(&self) -> Value {
        let one = |suspect: &Suspect| json!({"cause": suspect.cause.name(), "weight": suspect.weight, "evidence": suspect.evidence});
        self.suspects.iter().map(one).collect()
    }
}

/// Collects evidence as logarithms of odds.
#[derive(Debug, Default)]
pub(super) struct Scale {
    entries: Vec<(Cause, f64, Vec<String>)>,
}

impl Scale {
    /// Adds a cause with how often it is one, before anything is known.
    pub(super) fn prior(&mut self, cause: Cause, share: f64) {
        self.entries.push((cause, math::ln(share.max(1e-6)), Vec::new()));
    }

    /// Shifts the odds of a cause; a cause that was ruled out stays out.
    pub(super) fn add(&mut self, cause: Cause, log_odds: f64) {
        if let Some((_, score, _)) = self.entries.iter_mut().find(|(known, ..)| *known == cause)
            && log_odds.is_finite()
        {
            *score += log_odds;
        }
    }

    /// Shifts the odds, and says why.
    pub(super) fn because(&mut self, cause: Cause, log_odds: f64, evidence: impl Into<String>) {
        self.add(cause, log_odds);
        if let Some((.., list)) = self.entries.iter_mut().find(|(known, ..)| *known == cause) {
            list.push(evidence.into());
        }
    }

    /// The suspects, weights summing to 1.
    pub(super) fn weigh(self) -> Diagnosis {
        let most = self.entries.iter().map(|(_, score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = self.entries.iter().map(|(_, score, _)| math::exp(score - most)).sum();
        let suspect = |(cause, score, evidence): (Cause, f64, _)| Suspect {
            cause,
            weight: math::exp(score - most) / total,
            evidence,
        };
        let mut suspects: Vec<Suspect> = self.entries.into_iter().map(suspect).collect();
        sort::by(&mut suspects, |a, b| b.weight.total_cmp(&a.weight));
        Diagnosis { suspects }
    }
}
