//! What a question wants the best of.

use atlas_config::Mode;
use atlas_plan::estimate::{Metric, MetricId};

/// What a question wants the best of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Objective {
    /// The lowest cost per token.
    Cheapest,
    /// The highest throughput.
    Fastest,
    /// The lowest latency: of a request in serving, of a step in training.
    LowestLatency,
    /// The least energy per token.
    Greenest,
    /// The shortest training run.
    Soonest,
    /// The fewest accelerators.
    Smallest,
}

impl Objective {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Objective; 6] = [
        Objective::Cheapest,
        Objective::Fastest,
        Objective::LowestLatency,
        Objective::Greenest,
        Objective::Soonest,
        Objective::Smallest,
    ];

    /// The word that a printed question has.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Objective::Cheapest => "cheapest",
            Objective::Fastest => "fastest",
            Objective::LowestLatency => "lowest-latency",
            Objective::Greenest => "greenest",
            Objective::Soonest => "soonest",
            Objective::Smallest => "smallest",
        }
    }

    /// The objective of a word.
    #[must_use]
    pub fn named(word: &str) -> Option<Objective> {
        Some(match word {
            "cheapest" | "cheap" | "cheaply" | "cost" => Objective::Cheapest,
            "fastest" | "fast" | "throughput" => Objective::Fastest,
            "lowest-latency" | "latency" | "quickest" => Objective::LowestLatency,
            "greenest" | "energy" | "efficient" => Objective::Greenest,
            "soonest" => Objective::Soonest,
            "smallest" | "fewest" => Objective::Smallest,
            _ => return None,
        })
    }

    /// The metric that is improved.
    #[must_use]
    pub fn metric(self, mode: Mode) -> &'static Metric {
        let id = match (self, mode) {
            (Objective::Cheapest, _) => MetricId::DollarPer1mTokens,
            (Objective::Fastest, _) => MetricId::TokensPerSec,
            (Objective::LowestLatency, Mode::Inference) => MetricId::P99Ms,
            (Objective::LowestLatency, Mode::Training) => MetricId::StepTimeMs,
            (Objective::Greenest, _) => MetricId::JoulesPerToken,
            (Objective::Soonest, Mode::Training) => MetricId::TimeToTrainH,
            // Serving never ends: what comes soonest is the first token.
            (Objective::Soonest, Mode::Inference) => MetricId::TtftMs,
            (Objective::Smallest, _) => MetricId::Accelerators,
        };
        id.metric()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_objective_is_read_from_its_own_word_and_has_a_metric() {
        for objective in Objective::ALL {
            assert_eq!(Objective::named(objective.word()), Some(objective));
            for mode in [Mode::Training, Mode::Inference] {
                let metric = objective.metric(mode);
                assert_eq!(metric.id == MetricId::Accelerators, objective == Objective::Smallest, "{}", metric.name);
            }
        }
    }
}
