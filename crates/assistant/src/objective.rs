//! Objective of a question.

use atlas_config::Mode;
use atlas_plan::estimate::{Metric, MetricId};

/// What a question optimizes for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Objective {
    /// The lowest cost per token.
    Cheapest,
    /// The highest throughput.
    Fastest,
    /// The lowest latency: of a request when serving, of a step in training.
    LowestLatency,
    /// The least energy per token.
    Greenest,
    /// The shortest training run.
    Soonest,
    /// The fewest accelerators.
    Smallest,
}

impl Objective {
    /// All objectives, in the order in which they are listed.
    pub const ALL: [Objective; 6] = [
        Objective::Cheapest,
        Objective::Fastest,
        Objective::LowestLatency,
        Objective::Greenest,
        Objective::Soonest,
        Objective::Smallest,
    ];

    /// Word for the objective in printed questions.
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

    /// Parses the word for an objective.
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

    /// Metric to optimize.
    #[must_use]
    pub fn metric(self, mode: Mode) -> &'static Metric {
        let id = match (self, mode) {
            (Objective::Cheapest, _) => MetricId::DollarPer1mTokens,
            (Objective::Fastest, _) => MetricId::TokensPerSec,
            (Objective::LowestLatency, Mode::Inference) => MetricId::P99Ms,
            (Objective::LowestLatency, Mode::Training) => MetricId::StepTimeMs,
            (Objective::Greenest, _) => MetricId::JoulesPerToken,
            (Objective::Soonest, Mode::Training) => MetricId::TimeToTrainH,
            // Serving has no end, so the soonest event is the first token.
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
    fn objective_words_round_trip_and_smallest_maps_to_accelerators() {
        for objective in Objective::ALL {
            assert_eq!(Objective::named(objective.word()), Some(objective));
            for mode in [Mode::Training, Mode::Inference] {
                let metric = objective.metric(mode);
                assert_eq!(metric.id == MetricId::Accelerators, objective == Objective::Smallest, "{}", metric.name);
            }
        }
    }
}
