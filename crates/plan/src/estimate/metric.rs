//! The registry of metrics: every figure of an estimate, described once for panes, tables, demos and reports.

mod table;

use std::sync::OnceLock;

use super::Estimate;
use super::detail::Interval;
pub use table::METRICS;

use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::units;

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither.
    Neutral,
}

/// How a metric is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// SI prefix, four digits.
    Si,
    /// Per cent.
    Percent,
    /// Dollars.
    Usd,
    /// A duration given in milliseconds.
    Duration,
    /// A duration given in hours.
    Hours,
    /// Energy given in kilowatt-hours.
    Energy,
    /// Mass given in kilograms.
    Mass,
    /// A whole number.
    Count,
}

impl Format {
    /// Writes a value without its unit.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        match self {
            Format::Si => units::si(value),
            Format::Percent => units::percent(value),
            Format::Usd => units::usd(value),
            Format::Duration => units::duration_ms(value),
            Format::Hours => units::duration_ms(value * 3.6e6),
            Format::Energy => units::with_unit(&units::si(value * 1e3), "Wh"),
            Format::Mass if value.abs() >= 999.95 => units::with_unit(&units::si(value * 1e-3), "t"),
            Format::Mass => units::with_unit(&units::si(value), "kg"),
            Format::Count => format!("{value:.0}"),
        }
    }
}

/// When a metric says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// Always.
    Always,
    /// In training.
    Training,
    /// In inference.
    Inference,
    /// In inference with a schedule.
    Queueing,
    /// In training, of engines that know the model.
    AnalyticalTraining,
    /// In inference, of engines that know the model.
    AnalyticalServing,
    /// Of engines that know the model.
    Analytical,
    /// In training, of engines that simulate.
    SimulatedTraining,
    /// In inference, of engines that simulate.
    SimulatedServing,
    /// As [`Applies::Analytical`], where a purchase price is known.
    Owned,
    /// As [`Applies::AnalyticalTraining`], where the makers of the model say what they trained it on.
    Published,
}

/// Which measured error applies to a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// None was measured.
    Unknown,
    /// The throughput's.
    Throughput,
    /// The throughput's, upside down: times and prices of a given work.
    Inverse,
    /// The time to first token's.
    Ttft,
    /// The time per output token's.
    Tpot,
}

/// The section that shows a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// How fast.
    Throughput,
    /// How soon.
    Latency,
    /// Cost.
    Cost,
    /// How hungry.
    Power,
    /// How full.
    Utilization,
}

impl Section {
    /// All of them, in their order.
    pub const ALL: [Section; 5] =
        [Section::Throughput, Section::Latency, Section::Cost, Section::Power, Section::Utilization];

    /// The section of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Section> {
        Section::ALL.into_iter().find(|section| section.name() == name)
    }

    /// Its heading.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Section::Throughput => "throughput",
            Section::Latency => "latency",
            Section::Cost => "cost",
            Section::Power => "power",
            Section::Utilization => "utilization",
        }
    }
}

/// One figure of an estimate, described once for panes, tables, demos and reports.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name in files, flags and JSON.
    pub name: &'static str,
    /// Its label on screens.
    pub label: &'static str,
    /// Its unit, where the format does not write one.
    pub unit: &'static str,
    /// The section that shows it.
    pub section: Section,
    /// Which way is better.
    pub better: Better,
    /// How it is written.
    pub format: Format,
    /// When it says something.
    pub applies: Applies,
    /// What is known of its error.
    pub trust: Trust,
    /// One line of explanation.
    pub help: &'static str,
    /// Reads it.
    pub get: fn(&Estimate, &Scenario) -> f64,
}

impl PartialEq for Metric {
    fn eq(&self, other: &Metric) -> bool {
        self.name == other.name
    }
}

/// The unit that suits times up to this many milliseconds, and what milliseconds are multiplied by for it.
fn time_unit(high: f64) -> (f64, &'static str) {
    const SECOND: f64 = 1e3;
    const MINUTE: f64 = 60.0 * SECOND;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    match high.abs() {
        high if high < 2.0 * SECOND => (1.0, "ms"),
        high if high < 10.0 * MINUTE => (1.0 / SECOND, "s"),
        high if high < 5.0 * HOUR => (1.0 / MINUTE, "min"),
        high if high < 5.0 * DAY => (1.0 / HOUR, "h"),
        _ => (1.0 / DAY, "d"),
    }
}

/// What users ask first of serving, in the order in which it is shown.
const SERVING_FIRST: [&Metric; 7] = [
    Metric::known("tpot_ms"),
    Metric::known("ttft_ms"),
    Metric::known("tokens_per_sec_per_user"),
    Metric::known("tokens_per_sec_per_accel"),
    Metric::known("dollar_per_1m_tokens"),
    Metric::known("tokens_per_sec"),
    Metric::known("memory_fill"),
];

/// The same of training.
const TRAINING_FIRST: [&Metric; 8] = [
    Metric::known("time_to_train_h"),
    Metric::known("step_time_ms"),
    Metric::known("mfu_causal"),
    Metric::known("tokens_per_sec_per_accel"),
    Metric::known("dollar_per_1m_tokens"),
    Metric::known("tokens_per_sec"),
    Metric::known("usd_per_run"),
    Metric::known("memory_fill"),
];

/// All metrics in their order, worked out once, since every frame lists its figures so.
struct Ranking {
    headlines: &'static [&'static Metric],
    all: Vec<&'static Metric>,
}

impl Ranking {
    fn of(mode: Mode) -> &'static Ranking {
        static TRAINING: OnceLock<Ranking> = OnceLock::new();
        static INFERENCE: OnceLock<Ranking> = OnceLock::new();
        let (known, headlines): (_, &[&'static Metric]) = match mode {
            Mode::Training => (&TRAINING, &TRAINING_FIRST),
            Mode::Inference => (&INFERENCE, &SERVING_FIRST),
        };
        known.get_or_init(|| {
            let rest = METRICS.iter().filter(|metric| !headlines.contains(metric));
            let all = headlines.iter().copied().chain(rest).collect();
            Ranking { headlines, all }
        })
    }
}

impl Metric {
    /// The metrics that answer what users ask first of training or serving, most important first.
    pub fn headlines(mode: Mode) -> impl Iterator<Item = &'static Metric> {
        Ranking::of(mode).headlines.iter().copied()
    }

    /// Every metric, those that answer what users ask first before the others.
    pub fn by_importance(mode: Mode) -> impl Iterator<Item = &'static Metric> {
        Ranking::of(mode).all.iter().copied()
    }

    /// The metric of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Whether it says something about this scenario.
    #[must_use]
    pub fn applies_to(&self, scenario: &Scenario) -> bool {
        let inference = scenario.mode() == Mode::Inference;
        // The dashboard's estimator answers everything as a training step: it knows no latency.
        let dashboard = scenario.engine == Engine::Benchboard;
        // Without a price there is no cost to show, and no cheapest.
        let unpriced = scenario.engine.reasons() && scenario.usd_node_hour() <= 0.0;
        if unpriced && self.section == Section::Cost && self.applies != Applies::Owned {
            return false;
        }
        match self.applies {
            Applies::Always => true,
            Applies::Training => !inference || dashboard,
            Applies::Inference => inference && !dashboard,
            Applies::Queueing => inference && !dashboard && !scenario.phases.is_empty(),
            Applies::AnalyticalTraining => !inference && scenario.engine.reasons(),
            Applies::AnalyticalServing => inference && scenario.engine.reasons(),
            Applies::Analytical => scenario.engine.reasons(),
            Applies::SimulatedTraining => !inference && scenario.engine.simulates(),
            Applies::SimulatedServing => inference && scenario.engine.simulates(),
            Applies::Owned => scenario.engine.reasons() && scenario.capex_usd_node.is_some(),
            Applies::Published => !inference && scenario.engine.reasons() && scenario.published_tokens.is_some(),
        }
    }

    /// The ends between which nine measurements of ten lie, where that is known.
    #[must_use]
    pub fn interval(&self, estimate: &Estimate, scenario: &Scenario) -> Option<(f64, f64)> {
        let detail = estimate.detail.as_ref().filter(|_| scenario.engine != Engine::Benchboard)?;
        let factors: Option<Interval> = match self.trust {
            Trust::Unknown => None,
            Trust::Throughput => Some(detail.throughput_interval),
            Trust::Inverse => Some(detail.throughput_interval.inverse()),
            Trust::Ttft => detail.serving.map(|serving| serving.ttft_interval),
            Trust::Tpot => detail.serving.map(|serving| serving.tpot_interval),
        };
        factors.map(|factors| factors.around((self.get)(estimate, scenario)))
    }

    /// The unit in which an axis for values up to this one is labeled, and what values are multiplied by for it.
    #[must_use]
    pub fn axis_unit(&self, high: f64) -> (f64, &'static str) {
        match self.format {
            Format::Percent => (100.0, "%"),
            Format::Duration => time_unit(high),
            Format::Hours => {
                let (factor, unit) = time_unit(high * 3.6e6);
                (factor * 3.6e6, unit)
            }
            Format::Energy => (1e3, "Wh"),
            Format::Mass if high.abs() >= 999.95 => (1e-3, "t"),
            Format::Mass => (1.0, "kg"),
            // The label says the currency.
            Format::Usd => (1.0, if self.label.contains('$') { "" } else { "USD" }),
            Format::Si | Format::Count => (1.0, self.unit),
        }
    }

    /// Its value with its unit.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        let text = self.format.show(value);
        if self.unit.is_empty() { text } else { units::with_unit(&text, self.unit) }
    }
}
