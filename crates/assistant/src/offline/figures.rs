//! Figures as people call them.

use atlas_config::Mode;
use atlas_plan::estimate::Metric;
use atlas_plan::search::figure;

use super::words::Words;

/// Phrases, and the metrics that they mean in training and in serving; longer phrases first.
const PHRASES: [(&str, &str, &str); 80] = [
    ("tokens per second per user", "tokens_per_sec", "tokens_per_sec_per_user"),
    ("tokens per second per gpu", "tokens_per_sec_per_accel", "tokens_per_sec_per_accel"),
    ("cost per million tokens", "dollar_per_1m_tokens", "dollar_per_1m_tokens"),
    ("price per million tokens", "dollar_per_1m_tokens", "dollar_per_1m_tokens"),
    ("cost of a million tokens", "dollar_per_1m_tokens", "dollar_per_1m_tokens"),
    ("dollars per million tokens", "dollar_per_1m_tokens", "dollar_per_1m_tokens"),
    ("time per output token", "tpot_ms", "tpot_ms"),
    ("time to first token", "ttft_ms", "ttft_ms"),
    ("inter token latency", "itl_p99_ms", "itl_p99_ms"),
    ("cost per token", "dollar_per_1m_tokens", "dollar_per_1m_tokens"),
    ("cost per hour", "usd_per_hour", "usd_per_hour"),
    ("price per hour", "usd_per_hour", "usd_per_hour"),
    ("tokens per second", "tokens_per_sec", "tokens_per_sec"),
    ("tokens per dollar", "tokens_per_dollar", "tokens_per_dollar"),
    ("tokens per joule", "tokens_per_joule", "tokens_per_joule"),
    ("energy per token", "joules_per_token", "joules_per_token"),
    ("time per token", "step_time_ms", "tpot_ms"),
    ("time to train", "time_to_train_h", "time_to_train_h"),
    ("time per step", "step_time_ms", "tpot_ms"),
    ("inter-token latency", "itl_p99_ms", "itl_p99_ms"),
    ("model flops utilization", "mfu", "flop_utilization"),
    ("memory bandwidth utilization", "hbm_bw_util", "hbm_bw_util"),
    ("first token", "ttft_ms", "ttft_ms"),
    ("output token", "tpot_ms", "tpot_ms"),
    ("training time", "time_to_train_h", "time_to_train_h"),
    ("training cost", "usd_per_run", "usd_per_run"),
    ("training run", "time_to_train_h", "time_to_train_h"),
    ("step time", "step_time_ms", "tpot_ms"),
    ("memory use", "peak_mem_gb", "peak_mem_gb"),
    ("power draw", "power_w", "power_w"),
    ("power consumption", "power_w", "power_w"),
    ("energy consumption", "kwh_per_run", "kwh_per_1m_tokens"),
    ("electricity", "kwh_per_run", "kwh_per_1m_tokens"),
    ("carbon footprint", "kg_co2e_per_run", "kg_co2e_per_1m_tokens"),
    ("hours per run", "time_to_train_h", "time_to_train_h"),
    ("break even", "break_even_months", "break_even_months"),
    ("rent or buy", "break_even_months", "break_even_months"),
    ("rent or own", "break_even_months", "break_even_months"),
    ("buy or rent", "break_even_months", "break_even_months"),
    ("own or rent", "break_even_months", "break_even_months"),
    ("buying pays off", "break_even_months", "break_even_months"),
    ("pays off", "break_even_months", "break_even_months"),
    ("how many days", "time_to_train_h", "p99_ms"),
    ("how many hours", "time_to_train_h", "p99_ms"),
    ("how many weeks", "time_to_train_h", "p99_ms"),
    ("how many months", "time_to_train_h", "p99_ms"),
    ("tok/s per user", "tokens_per_sec", "tokens_per_sec_per_user"),
    ("tok/s per gpu", "tokens_per_sec_per_accel", "tokens_per_sec_per_accel"),
    ("tok/s", "tokens_per_sec", "tokens_per_sec"),
    ("number of concurrent requests", "tokens_per_sec", "max_concurrency"),
    ("number of users", "tokens_per_sec", "max_concurrency"),
    ("concurrent requests", "tokens_per_sec", "max_concurrency"),
    ("how long", "time_to_train_h", "p99_ms"),
    ("how expensive", "usd_per_run", "dollar_per_1m_tokens"),
    ("how fast", "tokens_per_sec", "tokens_per_sec"),
    ("interactivity", "tokens_per_sec", "tokens_per_sec_per_user"),
    ("throughput", "tokens_per_sec", "tokens_per_sec"),
    ("utilization", "mfu", "flop_utilization"),
    ("expensive", "dollar_per_1m_tokens", "dollar_per_1m_tokens"),
    ("cheaper", "dollar_per_1m_tokens", "dollar_per_1m_tokens"),
    ("cheap", "dollar_per_1m_tokens", "dollar_per_1m_tokens"),
    ("faster", "tokens_per_sec", "tokens_per_sec"),
    ("emissions", "kg_co2e_per_run", "kg_co2e_per_1m_tokens"),
    ("emission", "kg_co2e_per_run", "kg_co2e_per_1m_tokens"),
    ("latency", "step_time_ms", "p99_ms"),
    ("carbon", "kg_co2e_per_run", "kg_co2e_per_1m_tokens"),
    ("energy", "kwh_per_run", "kwh_per_1m_tokens"),
    ("memory", "peak_mem_gb", "peak_mem_gb"),
    ("costs", "usd_per_run", "dollar_per_1m_tokens"),
    ("cost", "usd_per_run", "dollar_per_1m_tokens"),
    ("co2e", "kg_co2e_per_run", "kg_co2e_per_1m_tokens"),
    ("co2", "kg_co2e_per_run", "kg_co2e_per_1m_tokens"),
    ("dear", "dollar_per_1m_tokens", "dollar_per_1m_tokens"),
    ("power", "power_w", "power_w"),
    ("speed", "tokens_per_sec", "tokens_per_sec"),
    ("slow", "tokens_per_sec", "tokens_per_sec"),
    ("price", "usd_per_hour", "usd_per_hour"),
    ("prices", "usd_per_hour", "usd_per_hour"),
    ("fast", "tokens_per_sec", "tokens_per_sec"),
    ("mfu", "mfu", "flop_utilization"),
];

/// Words that are known here.
pub(super) fn vocabulary() -> impl Iterator<Item = &'static str> {
    PHRASES.iter().flat_map(|(phrase, ..)| phrase.split(' '))
}

/// A figure as a question names it: what it is depends on whether the workload trains or serves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct NamedFigure {
    training: &'static Metric,
    serving: &'static Metric,
}

impl NamedFigure {
    pub(super) fn one(metric: &'static Metric) -> NamedFigure {
        NamedFigure { training: metric, serving: metric }
    }

    pub(super) fn metric(self, mode: Mode) -> &'static Metric {
        match mode {
            Mode::Training => self.training,
            Mode::Inference => self.serving,
        }
    }

    /// The only mode in which it says something.
    pub(super) fn mode(self) -> Option<Mode> {
        use atlas_plan::estimate::Applies;
        if self.training != self.serving {
            return None;
        }
        match self.training.applies {
            Applies::Training | Applies::AnalyticalTraining | Applies::SimulatedTraining | Applies::Published => {
                Some(Mode::Training)
            }
            Applies::Inference | Applies::Queueing | Applies::AnalyticalServing | Applies::SimulatedServing => {
                Some(Mode::Inference)
            }
            Applies::Always | Applies::Analytical | Applies::Owned => None,
        }
    }
}

/// Takes the first figure that is named out of a question. A figure with a bound behind it is a constraint and stays.
pub(super) fn take(words: &mut Words) -> Option<NamedFigure> {
    for (phrase, training, serving) in PHRASES {
        if words.has(phrase) && !bounded(words, phrase) && words.take(phrase) {
            return Some(NamedFigure { training: figure::named(training)?, serving: figure::named(serving)? });
        }
    }
    let found = words.all().iter().find_map(|word| Some((word.clone(), of_word(word)?)));
    let (word, metric) = found?;
    (!bounded(words, &word) && words.take(&word)).then_some(NamedFigure::one(metric))
}

/// The metric of a single word: its name, or the label on the screen.
pub(super) fn of_word(word: &str) -> Option<&'static Metric> {
    let label = |metric: &&Metric| metric.label.eq_ignore_ascii_case(word);
    figure::named(word).or_else(|| atlas_plan::estimate::METRICS.iter().find(label))
}

/// Whether a relation or a quantity follows a phrase.
fn bounded(words: &Words, phrase: &str) -> bool {
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
    fn every_phrase_means_a_metric() {
        for (phrase, training, serving) in PHRASES {
            assert!(figure::named(training).is_some() && figure::named(serving).is_some(), "{phrase}");
        }
    }

    #[test]
    fn the_longest_phrase_is_taken_and_a_constraint_stays() {
        let mut words = Words::of("why is the time to first token high");
        assert_eq!(take(&mut words).map(|figure| figure.metric(Mode::Inference).name), Some("ttft_ms"));
        assert_eq!(words.line(), "why is the high");
        let mut words = Words::of("how many h100 with ttft under 2s");
        assert_eq!(take(&mut words), None);
    }
}
