//! What a search may aim at or bound: every metric, under the short names people type, and the figures that only
//! searches request.

use crate::estimate::metric::{Format, Trust};
use crate::estimate::{Applies, Better, Estimate, METRICS, Metric, Section};
use crate::scenario::Scenario;
use atlas_document::decode::nearest;

/// Accelerators that the layout puts to work: tp × pp × cp × dp (× attention groups in serving), over the devices that software sees of each.
pub static ACCELERATORS: Metric = Metric {
    name: "accelerators",
    label: "accelerators",
    unit: "",
    section: Section::Cost,
    better: Better::Lower,
    format: Format::Count,
    applies: Applies::Always,
    trust: Trust::Unknown,
    help: "accelerators used by the layout",
    get: |_, scenario| working(scenario) / scenario.machine.map_or(1.0, |machine| machine.dies),
};

/// Share of the memory that stays free on the fullest device, by the upper bound that decides what fits.
pub static HEADROOM: Metric = Metric {
    name: "headroom",
    label: "headroom",
    unit: "",
    section: Section::Utilization,
    better: Better::Higher,
    format: Format::Percent,
    applies: Applies::Always,
    trust: Trust::Unknown,
    help: "share of memory left free on the fullest device, by the upper bound that decides whether it fits",
    get: headroom,
};

/// Devices that the layout puts to work.
pub(super) fn working(scenario: &Scenario) -> f64 {
    let phase = &scenario.base;
    // Accelerators of a pool are part of the whole, or separate from those that decode.
    phase.shape.tp * phase.shape.pp * phase.groups() * phase.shape.dp + phase.set_apart()
}

fn headroom(estimate: &Estimate, scenario: &Scenario) -> f64 {
    match &estimate.detail {
        Some(detail) => detail.memory.free(),
        None => 1.0 - estimate.total.peak_mem_gb / scenario.memory_gb_per_accel.max(1e-9),
    }
}

/// Short names of metrics.
const SHORT: [(&str, &str); 22] = [
    ("throughput", "tokens_per_sec"),
    ("tokens", "tokens_per_sec"),
    ("interactivity", "tokens_per_sec_per_user"),
    ("tokens_per_user", "tokens_per_sec_per_user"),
    ("p50", "p50_ms"),
    ("p95", "p95_ms"),
    ("p99", "p99_ms"),
    ("latency", "p99_ms"),
    ("ttft", "ttft_ms"),
    ("ttft_p99", "ttft_p99_ms"),
    ("tpot", "tpot_ms"),
    ("itl_p99", "itl_p99_ms"),
    ("step_time", "step_time_ms"),
    ("cost", "dollar_per_1m_tokens"),
    ("usd_per_token", "dollar_per_1m_tokens"),
    ("usd_per_1m_tokens", "dollar_per_1m_tokens"),
    ("budget", "usd_per_hour"),
    ("power", "power_w"),
    ("energy", "tokens_per_joule"),
    ("time", "time_to_train_h"),
    ("time_to_train", "time_to_train_h"),
    ("memory", "peak_mem_gb"),
];

/// The metric of that name, full or short; hyphens count as underscores.
#[must_use]
pub fn named(name: &str) -> Option<&'static Metric> {
    let wanted = name.trim().replace('-', "_").to_lowercase();
    let wanted = SHORT.iter().find(|(short, _)| *short == wanted).map_or(wanted.as_str(), |(_, full)| full);
    [&ACCELERATORS, &HEADROOM].into_iter().find(|metric| metric.name == wanted).or_else(|| Metric::named(wanted))
}

/// Every name that [`named`] knows.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    let full = METRICS.iter().map(|metric| metric.name).chain([ACCELERATORS.name, HEADROOM.name]);
    full.chain(SHORT.iter().map(|(short, _)| *short))
}

/// A name that is nearly this one.
#[must_use]
pub fn near(name: &str) -> Option<&'static str> {
    nearest(name, names())
}

/// A figure as a number that is the smaller the better; infinite where it has no value.
#[must_use]
pub fn score(metric: &Metric, estimate: &Estimate, scenario: &Scenario) -> f64 {
    let value = (metric.get)(estimate, scenario);
    match metric.better {
        _ if !value.is_finite() => f64::INFINITY,
        Better::Higher => -value,
        Better::Lower | Better::Neutral => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_a_metric_and_none_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for name in names() {
            assert!(named(name).is_some(), "{name}");
            assert!(seen.insert(name), "{name} twice");
        }
        assert_eq!(named("TTFT-p99").map(|metric| metric.name), Some("ttft_p99_ms"));
        assert_eq!(near("througput"), Some("throughput"));
    }
}
