//! Names of metrics as they occur in questions.

use atlas_config::Mode;
use atlas_plan::estimate::{METRICS, Metric, MetricId};
use atlas_plan::search::metric;

use super::words::Words;

/// Phrases, with the metrics they stand for in training and in serving; longer phrases first.
const PHRASES: [(&str, MetricId, MetricId); 82] = [
    ("tokens per second per user", MetricId::TokensPerSec, MetricId::TokensPerSecPerUser),
    ("tokens per second per gpu", MetricId::TokensPerSecPerAccel, MetricId::TokensPerSecPerAccel),
    ("cost per million tokens", MetricId::DollarPer1mTokens, MetricId::DollarPer1mTokens),
    ("price per million tokens", MetricId::DollarPer1mTokens, MetricId::DollarPer1mTokens),
    ("cost of a million tokens", MetricId::DollarPer1mTokens, MetricId::DollarPer1mTokens),
    ("dollars per million tokens", MetricId::DollarPer1mTokens, MetricId::DollarPer1mTokens),
    ("time per output token", MetricId::TpotMs, MetricId::TpotMs),
    ("time to first token", MetricId::TtftMs, MetricId::TtftMs),
    ("inter token latency", MetricId::ItlP99Ms, MetricId::ItlP99Ms),
    ("cost per token", MetricId::DollarPer1mTokens, MetricId::DollarPer1mTokens),
    ("cost per hour", MetricId::UsdPerHour, MetricId::UsdPerHour),
    ("price per hour", MetricId::UsdPerHour, MetricId::UsdPerHour),
    ("tokens per second", MetricId::TokensPerSec, MetricId::TokensPerSec),
    ("tokens per dollar", MetricId::TokensPerDollar, MetricId::TokensPerDollar),
    ("tokens per joule", MetricId::TokensPerJoule, MetricId::TokensPerJoule),
    ("energy per token", MetricId::JoulesPerToken, MetricId::JoulesPerToken),
    ("time per token", MetricId::StepTimeMs, MetricId::TpotMs),
    ("time to train", MetricId::TimeToTrainH, MetricId::TimeToTrainH),
    ("time per step", MetricId::StepTimeMs, MetricId::TpotMs),
    ("inter-token latency", MetricId::ItlP99Ms, MetricId::ItlP99Ms),
    ("model flops utilization", MetricId::Mfu, MetricId::FlopUtilization),
    ("memory bandwidth utilization", MetricId::HbmBwUtil, MetricId::HbmBwUtil),
    ("first token", MetricId::TtftMs, MetricId::TtftMs),
    ("output token", MetricId::TpotMs, MetricId::TpotMs),
    ("training time", MetricId::TimeToTrainH, MetricId::TimeToTrainH),
    ("training cost", MetricId::UsdPerRun, MetricId::UsdPerRun),
    ("training run", MetricId::TimeToTrainH, MetricId::TimeToTrainH),
    ("step time", MetricId::StepTimeMs, MetricId::TpotMs),
    ("memory use", MetricId::PeakMemGb, MetricId::PeakMemGb),
    ("power draw", MetricId::PowerW, MetricId::PowerW),
    ("power consumption", MetricId::PowerW, MetricId::PowerW),
    ("energy consumption", MetricId::KwhPerRun, MetricId::KwhPer1mTokens),
    ("electricity", MetricId::KwhPerRun, MetricId::KwhPer1mTokens),
    ("carbon footprint", MetricId::KgCo2ePerRun, MetricId::KgCo2ePer1mTokens),
    ("hours per run", MetricId::TimeToTrainH, MetricId::TimeToTrainH),
    ("break-even utilization", MetricId::BreakEvenMonths, MetricId::BreakEvenMonths),
    ("break even utilization", MetricId::BreakEvenMonths, MetricId::BreakEvenMonths),
    ("break even", MetricId::BreakEvenMonths, MetricId::BreakEvenMonths),
    ("rent or buy", MetricId::BreakEvenMonths, MetricId::BreakEvenMonths),
    ("rent or own", MetricId::BreakEvenMonths, MetricId::BreakEvenMonths),
    ("buy or rent", MetricId::BreakEvenMonths, MetricId::BreakEvenMonths),
    ("own or rent", MetricId::BreakEvenMonths, MetricId::BreakEvenMonths),
    ("buying pays off", MetricId::BreakEvenMonths, MetricId::BreakEvenMonths),
    ("pays off", MetricId::BreakEvenMonths, MetricId::BreakEvenMonths),
    ("how many days", MetricId::TimeToTrainH, MetricId::P99Ms),
    ("how many hours", MetricId::TimeToTrainH, MetricId::P99Ms),
    ("how many weeks", MetricId::TimeToTrainH, MetricId::P99Ms),
    ("how many months", MetricId::TimeToTrainH, MetricId::P99Ms),
    ("tok/s per user", MetricId::TokensPerSec, MetricId::TokensPerSecPerUser),
    ("tok/s per gpu", MetricId::TokensPerSecPerAccel, MetricId::TokensPerSecPerAccel),
    ("tok/s", MetricId::TokensPerSec, MetricId::TokensPerSec),
    ("number of concurrent requests", MetricId::TokensPerSec, MetricId::MaxConcurrency),
    ("number of users", MetricId::TokensPerSec, MetricId::MaxConcurrency),
    ("concurrent requests", MetricId::TokensPerSec, MetricId::MaxConcurrency),
    ("how long", MetricId::TimeToTrainH, MetricId::P99Ms),
    ("how expensive", MetricId::UsdPerRun, MetricId::DollarPer1mTokens),
    ("how fast", MetricId::TokensPerSec, MetricId::TokensPerSec),
    ("interactivity", MetricId::TokensPerSec, MetricId::TokensPerSecPerUser),
    ("throughput", MetricId::TokensPerSec, MetricId::TokensPerSec),
    ("utilization", MetricId::Mfu, MetricId::FlopUtilization),
    ("expensive", MetricId::DollarPer1mTokens, MetricId::DollarPer1mTokens),
    ("cheaper", MetricId::DollarPer1mTokens, MetricId::DollarPer1mTokens),
    ("cheap", MetricId::DollarPer1mTokens, MetricId::DollarPer1mTokens),
    ("faster", MetricId::TokensPerSec, MetricId::TokensPerSec),
    ("emissions", MetricId::KgCo2ePerRun, MetricId::KgCo2ePer1mTokens),
    ("emission", MetricId::KgCo2ePerRun, MetricId::KgCo2ePer1mTokens),
    ("latency", MetricId::StepTimeMs, MetricId::P99Ms),
    ("carbon", MetricId::KgCo2ePerRun, MetricId::KgCo2ePer1mTokens),
    ("energy", MetricId::KwhPerRun, MetricId::KwhPer1mTokens),
    ("memory", MetricId::PeakMemGb, MetricId::PeakMemGb),
    ("costs", MetricId::UsdPerRun, MetricId::DollarPer1mTokens),
    ("cost", MetricId::UsdPerRun, MetricId::DollarPer1mTokens),
    ("co2e", MetricId::KgCo2ePerRun, MetricId::KgCo2ePer1mTokens),
    ("co2", MetricId::KgCo2ePerRun, MetricId::KgCo2ePer1mTokens),
    ("costly", MetricId::DollarPer1mTokens, MetricId::DollarPer1mTokens),
    ("power", MetricId::PowerW, MetricId::PowerW),
    ("speed", MetricId::TokensPerSec, MetricId::TokensPerSec),
    ("slow", MetricId::TokensPerSec, MetricId::TokensPerSec),
    ("price", MetricId::UsdPerHour, MetricId::UsdPerHour),
    ("prices", MetricId::UsdPerHour, MetricId::UsdPerHour),
    ("fast", MetricId::TokensPerSec, MetricId::TokensPerSec),
    ("mfu", MetricId::Mfu, MetricId::FlopUtilization),
];

/// Words that this module recognizes.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    PHRASES.iter().flat_map(|(phrase, ..)| phrase.split(' '))
}

/// A metric named in a question. Which metric it is depends on whether the workload is training or serving.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NamedMetric {
    training: &'static Metric,
    serving: &'static Metric,
}

impl NamedMetric {
    pub(super) fn from_metric(metric: &'static Metric) -> NamedMetric {
        NamedMetric { training: metric, serving: metric }
    }

    pub(super) fn metric(self, mode: Mode) -> &'static Metric {
        match mode {
            Mode::Training => self.training,
            Mode::Inference => self.serving,
        }
    }

    /// Mode to which the metric is limited, if it applies in one only.
    pub(super) fn mode(self) -> Option<Mode> {
        use atlas_plan::estimate::Applicability;
        if self.training != self.serving {
            return None;
        }
        match self.training.applies {
            Applicability::Training
            | Applicability::AnalyticalTraining
            | Applicability::SimulatedTraining
            | Applicability::Published => Some(Mode::Training),
            Applicability::Inference
            | Applicability::Queueing
            | Applicability::AnalyticalServing
            | Applicability::Generation
            | Applicability::SimulatedServing => Some(Mode::Inference),
            Applicability::Always | Applicability::Analytical | Applicability::Owned => None,
        }
    }
}

/// Takes the first named metric from a question. A metric followed by a bound is a constraint and is not taken.
pub(super) fn take(words: &mut Words) -> Option<NamedMetric> {
    for (phrase, training, serving) in PHRASES {
        if words.has(phrase) && !has_bound(words, phrase) && words.take(phrase) {
            return Some(NamedMetric { training: training.metric(), serving: serving.metric() });
        }
    }
    let found = words.all().iter().find_map(|word| Some((word.clone(), of_word(word)?)));
    let (word, metric) = found?;
    (!has_bound(words, &word) && words.take(&word)).then_some(NamedMetric::from_metric(metric))
}

/// Metric of a single word: its name, or its label in the TUI.
pub(super) fn of_word(word: &str) -> Option<&'static Metric> {
    let label = |metric: &&Metric| metric.label.eq_ignore_ascii_case(word);
    metric::named(word).or_else(|| METRICS.iter().find(label))
}

/// Replaces phrases that a bound follows by the name of the metric, as constraints require: `step time under 10 s`.
pub(super) fn name_bounded(words: &mut Words) {
    const RELATIONS: [&str; 10] = ["under", "below", "over", "above", "within", "<", "<=", ">", ">=", "less"];
    for (phrase, training, serving) in PHRASES.into_iter().filter(|(phrase, ..)| phrase.contains(' ')) {
        // A step of training and a step of decoding are different metrics; only the former has this name.
        let steps = phrase.contains("step");
        if (training != serving && !steps) || !words.has(phrase) {
            continue;
        }
        let length = phrase.split(' ').count();
        let at = words.all().windows(length).position(|window| window.join(" ") == phrase);
        let rest = at.and_then(|at| words.all().get(at + length..)).unwrap_or_default();
        let number =
            |word: &String| word.trim_start_matches(['<', '>', '=', '$']).starts_with(|c: char| c.is_ascii_digit());
        let bounded = match rest {
            [relation, ..] if relation.starts_with(['<', '>']) && number(relation) => true,
            [relation, more @ ..] => RELATIONS.contains(&relation.as_str()) && more.iter().take(2).any(number),
            [] => false,
        };
        if bounded {
            words.replace(phrase, &[training.metric().name]);
        }
    }
}

/// Whether a relation or a quantity follows a phrase.
fn has_bound(words: &Words, phrase: &str) -> bool {
    const RELATIONS: [&str; 16] = [
        "under", "below", "over", "above", "within", "<", "<=", ">", ">=", "=", "==", "at", "max", "min", "less",
        "more",
    ];
    let length = phrase.split(' ').count();
    let all = words.all();
    let at = all.windows(length).position(|window| window.join(" ") == phrase);
    let Some(next) = at.and_then(|at| all.get(at + length)) else { return false };
    let relation = RELATIONS.contains(&next.as_str()) || next.starts_with(['<', '>', '=', '≤', '≥']);
    relation || next.starts_with(|c: char| c.is_ascii_digit() || c == '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_metric_phrase_is_taken_and_bounds_are_kept() {
        let mut words = Words::of("why is the time to first token high");
        assert_eq!(take(&mut words).map(|figure| figure.metric(Mode::Inference).name), Some("ttft_ms"));
        assert_eq!(words.line(), "why is the high");
        let mut words = Words::of("how many h100 with ttft under 2s");
        assert_eq!(take(&mut words), None);
    }
}
