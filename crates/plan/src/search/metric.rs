//! Metrics that can be goals and constraints of searches: all metrics, under full and short names, and those that are
//! available only to searches.

use crate::estimate::{Estimate, Metric, MetricId, SEARCH_METRICS};
use crate::scenario::Scenario;
use atlas_document::suggestion::{clause, nearest};

/// Short names of metrics.
const SHORT: [(&str, MetricId); 22] = [
    ("throughput", MetricId::TokensPerSec),
    ("tokens", MetricId::TokensPerSec),
    ("interactivity", MetricId::TokensPerSecPerUser),
    ("tokens_per_user", MetricId::TokensPerSecPerUser),
    ("p50", MetricId::P50Ms),
    ("p95", MetricId::P95Ms),
    ("p99", MetricId::P99Ms),
    ("latency", MetricId::P99Ms),
    ("ttft", MetricId::TtftMs),
    ("ttft_p99", MetricId::TtftP99Ms),
    ("tpot", MetricId::TpotMs),
    ("itl_p99", MetricId::ItlP99Ms),
    ("step_time", MetricId::StepTimeMs),
    ("cost", MetricId::DollarPer1mTokens),
    ("usd_per_token", MetricId::DollarPer1mTokens),
    ("usd_per_1m_tokens", MetricId::DollarPer1mTokens),
    ("budget", MetricId::UsdPerHour),
    ("power", MetricId::PowerW),
    ("energy", MetricId::TokensPerJoule),
    ("time", MetricId::TimeToTrainH),
    ("time_to_train", MetricId::TimeToTrainH),
    ("memory", MetricId::PeakMemGb),
];

/// Metric with a full or short name; hyphens count as underscores.
#[must_use]
pub fn named(name: &str) -> Option<&'static Metric> {
    let wanted = name.trim().replace('-', "_").to_lowercase();
    let short = SHORT.iter().find(|(short, _)| *short == wanted).map(|(_, id)| id.metric());
    short.or_else(|| SEARCH_METRICS.iter().find(|metric| metric.name == wanted))
}

/// All names that [`named`] accepts.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    let full = SEARCH_METRICS.iter().map(|metric| metric.name);
    full.chain(SHORT.iter().map(|(short, _)| *short))
}

/// Nearest name that [`named`] accepts, if one is close.
#[must_use]
pub fn near(name: &str) -> Option<&'static str> {
    nearest(name, names())
}

/// Error message for a name that [`named`] does not accept.
#[must_use]
pub fn unknown(name: &str) -> String {
    format!("unknown metric `{name}`{}", clause(near(name)))
}

/// Score of a metric: smaller is better; infinite without a finite value.
#[must_use]
pub fn score(metric: &Metric, estimate: &Estimate, scenario: &Scenario) -> f64 {
    let value = metric.value(estimate, scenario).filter(|value| value.is_finite());
    value.map_or(f64::INFINITY, |value| metric.better.sort_key(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_name_is_unique_and_resolves_to_a_metric() {
        let mut seen = std::collections::BTreeSet::new();
        for name in names() {
            assert!(named(name).is_some(), "{name}");
            assert!(seen.insert(name), "{name} twice");
        }
        assert_eq!(named("TTFT-p99").map(|metric| metric.name), Some("ttft_p99_ms"));
        assert_eq!(near("througput"), Some("throughput"));
    }
}
