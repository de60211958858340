//! What a question wants the best of.

use atlas_config::Mode;
use atlas_plan::estimate::Metric;
use atlas_plan::search::figure;

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
        let name = match (self, mode) {
            (Objective::Cheapest, _) => "dollar_per_1m_tokens",
            (Objective::Fastest, _) => "tokens_per_sec",
            (Objective::LowestLatency, Mode::Inference) => "p99_ms",
            (Objective::LowestLatency, Mode::Training) => "step_time_ms",
            (Objective::Greenest, _) => "joules_per_token",
            (Objective::Soonest, Mode::Training) => "time_to_train_h",
            // Serving never ends: what comes soonest is the first token.
            (Objective::Soonest, Mode::Inference) => "ttft_ms",
            (Objective::Smallest, _) => figure::ACCELERATORS.name,
        };
        figure::named(name).unwrap_or(&figure::ACCELERATORS)
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
                assert_eq!(metric == &figure::ACCELERATORS, objective == Objective::Smallest, "{}", metric.name);
            }
        }
    }
}
