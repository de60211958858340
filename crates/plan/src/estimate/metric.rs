//! The registry of metrics: every figure of an estimate, described once for panes, tables, demos and reports.

mod table;

use std::sync::OnceLock;

use serde::{Serialize, Serializer};

use super::Estimate;
use super::detail::Interval;
pub use table::{FIGURES, METRICS, MetricId};

use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::units::{self, DIGITS};

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
        self.show_in(value, DIGITS)
    }

    /// The same in three digits, for values that are known no better.
    #[must_use]
    pub fn brief(self, value: f64) -> String {
        self.show_in(value, BRIEF)
    }

    /// The same in so many digits.
    pub(super) fn show_in(self, value: f64, digits: i32) -> String {
        match self {
            Format::Si => units::si_in(value, digits),
            Format::Percent => units::percent_in(value, digits),
            Format::Usd => units::usd_in(value, digits),
            Format::Duration => units::duration_in(value, digits),
            Format::Hours => units::duration_in(value * 3.6e6, digits),
            Format::Energy => units::with_unit(&units::si_in(value * 1e3, digits), "Wh"),
            Format::Mass if value.abs() >= TON => units::with_unit(&units::si_in(value * 1e-3, digits), "t"),
            Format::Mass => units::with_unit(&units::si_in(value, digits), "kg"),
            Format::Count if digits < DIGITS && value.abs() >= 999.5 => units::rounded(value, digits),
            Format::Count => format!("{value:.0}"),
        }
    }

    /// What a value is divided by to be the number that [`Format::show_in`] writes.
    pub(super) fn scale(self, value: f64, digits: i32) -> f64 {
        match self {
            Format::Si | Format::Usd => units::prefix(value, digits).0,
            Format::Percent => 1e-2,
            Format::Duration => units::time_unit(value, digits).0,
            Format::Hours => units::time_unit(value * 3.6e6, digits).0 / 3.6e6,
            Format::Energy => units::prefix(value * 1e3, digits).0 * 1e-3,
            Format::Mass if value.abs() >= TON => units::prefix(value * 1e-3, digits).0 * 1e3,
            Format::Mass => units::prefix(value, digits).0,
            Format::Count => 1.0,
        }
    }
}

/// Significant digits of values that are known no better.
pub(super) const BRIEF: i32 = 3;
/// Kilograms from which a mass is in tons.
const TON: f64 = 999.95;
/// Least change that is shown in digits; smaller ones are negligible.
pub const LEAST: f64 = 0.000_5;

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
    /// What code names it by.
    pub id: MetricId,
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

impl MetricId {
    /// What is known of it.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "every id has a row of the table")]
    pub const fn metric(self) -> &'static Metric {
        &FIGURES[self as usize]
    }
}

/// As its name.
impl Serialize for MetricId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.metric().name)
    }
}

impl PartialEq for Metric {
    fn eq(&self, other: &Metric) -> bool {
        self.id == other.id
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

/// The figures in which scenarios are compared by default, of training and of serving.
pub const COMPARED: [MetricId; 6] = [
    MetricId::TokensPerSec,
    MetricId::DollarPer1mTokens,
    MetricId::StepTimeMs,
    MetricId::TtftMs,
    MetricId::TpotMs,
    MetricId::P99Ms,
];

/// What users ask first of serving, in the order in which it is shown.
const SERVING_FIRST: [&Metric; 7] = [
    MetricId::TpotMs.metric(),
    MetricId::TtftMs.metric(),
    MetricId::TokensPerSecPerUser.metric(),
    MetricId::TokensPerSecPerAccel.metric(),
    MetricId::DollarPer1mTokens.metric(),
    MetricId::TokensPerSec.metric(),
    MetricId::MemoryFill.metric(),
];

/// The same of training.
const TRAINING_FIRST: [&Metric; 8] = [
    MetricId::TimeToTrainH.metric(),
    MetricId::StepTimeMs.metric(),
    MetricId::MfuCausal.metric(),
    MetricId::TokensPerSecPerAccel.metric(),
    MetricId::DollarPer1mTokens.metric(),
    MetricId::TokensPerSec.metric(),
    MetricId::UsdPerRun.metric(),
    MetricId::MemoryFill.metric(),
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

    /// The metric of a name that a user or a file states.
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
        if self.lacks_price(scenario) {
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

    /// Whether it is a cost that cannot be computed, and targets cannot be ranked by it, because no price is stated.
    #[must_use]
    pub fn lacks_price(&self, scenario: &Scenario) -> bool {
        let unpriced = scenario.engine.reasons() && scenario.usd_node_hour() <= 0.0;
        unpriced && self.section == Section::Cost && self.applies != Applies::Owned
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
        self.show_in(value, DIGITS)
    }

    /// Its value with its unit in three digits, for values that are known no better.
    #[must_use]
    pub fn brief(&self, value: f64) -> String {
        self.show_in(value, BRIEF)
    }

    pub(super) fn show_in(&self, value: f64, digits: i32) -> String {
        let text = self.format.show_in(value, digits);
        if self.unit.is_empty() { text } else { units::with_unit(&text, self.unit) }
    }

    /// Whether a change is too small for digits: below 0.05 points between shares, below 0.05 % otherwise.
    #[must_use]
    pub fn is_same(&self, before: f64, after: f64) -> bool {
        let whole = if self.format == Format::Percent { 1.0 } else { before.abs() };
        (after - before).abs() < LEAST * whole
    }

    /// A change with its sign: in points between shares, of which a percentage is easily misread, and in per cent otherwise.
    #[must_use]
    pub fn change(&self, before: f64, after: f64) -> String {
        match (self.format, self.is_same(before, after)) {
            (Format::Percent, _) if !(before.is_finite() && after.is_finite()) => "new".to_owned(),
            (Format::Percent, _) if before == after => "±0 pt".to_owned(),
            (Format::Percent, true) => "<0.1 pt".to_owned(),
            (Format::Percent, false) => {
                let points = 100.0 * (after - before);
                format!("{points:+.*} pt", usize::from(points.abs() < 99.95))
            }
            (_, true) if before != after => "<0.1 %".to_owned(),
            _ => units::relative(before, after),
        }
    }
}
