//! Causes of deviations from a prediction, and their likelihoods.

use atlas_core::math;
use atlas_core::sort;
use serde_json::{Value, json};

/// Possible reason why a run is slower than predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Collectives take longer: congestion, a slow link, a different route.
    Network,
    /// One accelerator or node is slower than the others.
    Straggler,
    /// All accelerators run at lower clocks: temperature, power limit.
    Clocks,
    /// The host is slow: data loading, checkpoints, garbage collection, kernel launches.
    Host,
    /// The KV cache is full: requests wait or are preempted.
    KvCache,
    /// There are more or longer requests than planned.
    Load,
    /// The job runs with different settings than planned, or the estimate is wrong.
    Plan,
}

impl Cause {
    /// Name in text.
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

    /// What to check to confirm the cause.
    #[must_use]
    pub fn check(self) -> &'static str {
        match self {
            Cause::Network => "run nccl-tests on the same nodes; check link errors and which jobs share the switches",
            Cause::Straggler => {
                "compare ranks with --log-straggler or per-rank timers in Megatron-LM; check clocks and errors of every node"
            }
            Cause::Clocks => "check clocks, temperatures and throttle reasons; pass device samples with --power",
            Cause::Host => "check data loading, checkpoints, page cache and CPU load of the nodes",
            Cause::KvCache => "reduce concurrency or context length, or increase the KV cache",
            Cause::Load => "compare request rate and lengths with the plan",
            Cause::Plan => "compare the job's settings with the plan: atlas import SCRIPT",
        }
    }
}

/// A possible cause with its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct PossibleCause {
    /// The cause.
    pub cause: Cause,
    /// Probability, from 0 to 1; the sum over all suspects is 1.
    pub weight: f64,
    /// The evidence, as text.
    pub evidence: Vec<String>,
}

/// The possible causes, most likely first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Diagnosis {
    /// All causes that were considered.
    pub suspects: Vec<PossibleCause>,
}

impl Diagnosis {
    /// The most likely cause.
    #[must_use]
    pub fn first(&self) -> Option<&PossibleCause> {
        self.suspects.first()
    }

    /// Whether the most likely cause is clearly ahead of the second.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        match self.suspects.as_slice() {
            [] => false,
            [_] => true,
            [first, second, ..] => first.weight >= 0.5 && first.weight >= 1.5 * second.weight,
        }
    }

    /// The causes as a JSON list.
    pub(super) fn json(&self) -> Value {
        let one = |cause: &PossibleCause| json!({"cause": cause.cause.name(), "weight": cause.weight, "evidence": cause.evidence});
        self.suspects.iter().map(one).collect()
    }
}

/// Accumulates evidence as log-odds.
#[derive(Debug, Default)]
pub(super) struct Scale {
    entries: Vec<(Cause, f64, Vec<String>)>,
}

impl Scale {
    /// Adds a cause with its prior probability.
    pub(super) fn prior(&mut self, cause: Cause, share: f64) {
        self.entries.push((cause, math::ln(share.max(1e-6)), Vec::new()));
    }

    /// Shifts the log-odds of a cause. A cause that was not added remains excluded.
    pub(super) fn add(&mut self, cause: Cause, log_odds: f64) {
        if let Some((_, score, _)) = self.entries.iter_mut().find(|(known, ..)| *known == cause)
            && log_odds.is_finite()
        {
            *score += log_odds;
        }
    }

    /// Shifts the log-odds of a cause and records the evidence.
    pub(super) fn add_evidence(&mut self, cause: Cause, log_odds: f64, evidence: impl Into<String>) {
        self.add(cause, log_odds);
        if let Some((.., list)) = self.entries.iter_mut().find(|(known, ..)| *known == cause) {
            list.push(evidence.into());
        }
    }

    /// Normalizes the weights to a sum of 1.
    pub(super) fn normalize(self) -> Diagnosis {
        let highest = self.entries.iter().map(|(_, score, _)| *score).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = self.entries.iter().map(|(_, score, _)| math::exp(score - highest)).sum();
        let suspect = |(cause, score, evidence): (Cause, f64, _)| PossibleCause {
            cause,
            weight: math::exp(score - highest) / total,
            evidence,
        };
        let mut suspects: Vec<PossibleCause> = self.entries.into_iter().map(suspect).collect();
        sort::by(&mut suspects, |a, b| b.weight.total_cmp(&a.weight));
        Diagnosis { suspects }
    }
}
