//! Registry of metrics: describes every metric of an estimate once for panes, tables, demos and reports.

mod table;

use std::sync::OnceLock;

use serde::{Serialize, Serializer};

use super::Estimate;
use super::detail::Interval;
pub use table::{METRICS, MetricId, SEARCH_METRICS};

use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::units::{self, DIGITS};

/// Whether larger or smaller values of a metric are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Larger is better.
    Higher,
    /// Smaller is better.
    Lower,
    /// Neither.
    Neutral,
}

impl Direction {
    /// Key that sorts better values first; smaller values if neither direction is better.
    #[must_use]
    pub fn sort_key(self, value: f64) -> f64 {
        if self == Direction::Higher { -value } else { value }
    }

    /// Whether `value` is better than `other`; smaller is better if neither direction is.
    #[must_use]
    pub fn is_better(self, value: f64, other: f64) -> bool {
        self.sort_key(value) < self.sort_key(other)
    }

    /// The item with the best value; that with the largest if neither direction is better.
    pub fn best<T>(self, items: impl Iterator<Item = (T, f64)>) -> Option<(T, f64)> {
        match self {
            Direction::Lower => items.min_by(|a, b| a.1.total_cmp(&b.1)),
            Direction::Higher | Direction::Neutral => items.max_by(|a, b| a.1.total_cmp(&b.1)),
        }
    }
}

/// How a metric is formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// SI prefix, four digits.
    Si,
    /// Percentage.
    Percent,
    /// US dollars.
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
    /// Formats a value without its unit.
    #[must_use]
    pub fn show(self, value: f64) -> String {
        self.show_in(value, DIGITS)
    }

    /// Formats a value without its unit in three digits, for values with a wide confidence interval.
    #[must_use]
    pub fn brief(self, value: f64) -> String {
        self.show_in(value, BRIEF_DIGITS)
    }

    /// Formats a value without its unit in `digits` significant digits.
    pub(super) fn show_in(self, value: f64, digits: i32) -> String {
        match self {
            Format::Si => units::si_in(value, digits),
            Format::Percent => units::percent_in(value, digits),
            Format::Usd => units::usd_in(value, digits),
            Format::Duration => units::duration_in(value, digits),
            Format::Hours => units::duration_in(value * 3.6e6, digits),
            Format::Energy => units::with_unit(&units::si_in(value * 1e3, digits), "Wh"),
            Format::Mass if value.abs() >= TON_THRESHOLD_KG => {
                units::with_unit(&units::si_in(value * 1e-3, digits), "t")
            }
            Format::Mass => units::with_unit(&units::si_in(value, digits), "kg"),
            Format::Count if digits < DIGITS && value.abs() >= 999.5 => units::rounded(value, digits),
            Format::Count => format!("{value:.0}"),
        }
    }

    /// Divisor of a value in the output of [`Format::show_in`].
    pub(super) fn scale(self, value: f64, digits: i32) -> f64 {
        match self {
            Format::Si | Format::Usd => units::prefix(value, digits).0,
            Format::Percent => 1e-2,
            Format::Duration => units::time_unit(value, digits).0,
            Format::Hours => units::time_unit(value * 3.6e6, digits).0 / 3.6e6,
            Format::Energy => units::prefix(value * 1e3, digits).0 * 1e-3,
            Format::Mass if value.abs() >= TON_THRESHOLD_KG => units::prefix(value * 1e-3, digits).0 * 1e3,
            Format::Mass => units::prefix(value, digits).0,
            Format::Count => 1.0,
        }
    }
}

/// Significant digits of values with a wide confidence interval.
pub(super) const BRIEF_DIGITS: i32 = 3;
/// Kilograms above which a mass is given in tons.
pub(super) const TON_THRESHOLD_KG: f64 = 999.95;
/// Smallest relative change that is shown as a number; smaller ones are negligible.
pub const MIN_RELATIVE_CHANGE: f64 = 0.000_5;

/// When a metric is applicable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applicability {
    /// Always.
    Always,
    /// In training.
    Training,
    /// In inference.
    Inference,
    /// In inference with a schedule.
    Queueing,
    /// In training, for engines that model the hardware.
    AnalyticalTraining,
    /// In inference, for engines that model the hardware.
    AnalyticalServing,
    /// Like [`Applicability::AnalyticalServing`], of models that generate tokens.
    Generation,
    /// For engines that model the hardware.
    Analytical,
    /// In training, for engines that simulate.
    SimulatedTraining,
    /// In inference, for engines that simulate.
    SimulatedServing,
    /// Like [`Applicability::Analytical`], if a purchase price is known.
    Owned,
    /// Like [`Applicability::AnalyticalTraining`], if the number of tokens that the model was trained on is published.
    Published,
}

/// Which measured error applies to a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorSource {
    /// No error was measured.
    Unknown,
    /// The error of the throughput.
    Throughput,
    /// The reciprocal of the error of the throughput: for time and cost of a given amount of work.
    Inverse,
    /// The error of TTFT.
    Ttft,
    /// The error of TPOT.
    Tpot,
}

/// Section of the user interface that shows a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// Throughput and related rates.
    Throughput,
    /// Latency.
    Latency,
    /// Cost.
    Cost,
    /// Power, energy and emissions.
    Power,
    /// Utilization of compute, memory and network.
    Utilization,
}

impl Section {
    /// All sections in display order.
    pub const ALL: [Section; 5] =
        [Section::Throughput, Section::Latency, Section::Cost, Section::Power, Section::Utilization];

    /// The section with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Section> {
        Section::ALL.into_iter().find(|section| section.name() == name)
    }

    /// Name of the section, used as its heading.
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

/// Description of one metric of an estimate, shared by panes, tables, demos and reports.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Identifier in code.
    pub id: MetricId,
    /// Name in files, flags and JSON.
    pub name: &'static str,
    /// Label in the user interface.
    pub label: &'static str,
    /// Unit, if the format does not include one.
    pub unit: &'static str,
    /// Section that shows the metric.
    pub section: Section,
    /// Whether larger or smaller values are better.
    pub better: Direction,
    /// How values are formatted.
    pub format: Format,
    /// When the metric is applicable.
    pub applies: Applicability,
    /// Which measured error applies.
    pub trust: ErrorSource,
    /// One-line help text.
    pub help: &'static str,
    /// Computes the value from an estimate.
    get: fn(&Estimate, &Scenario) -> Option<f64>,
}

impl MetricId {
    /// Description of the metric.
    #[must_use]
    #[expect(clippy::indexing_slicing, reason = "every id has a row of the table")]
    pub const fn metric(self) -> &'static Metric {
        &SEARCH_METRICS[self as usize]
    }
}

/// Serializes the metric as its name.
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

/// Unit for axis values up to `high` milliseconds, and the factor that converts milliseconds to it.
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

/// Metrics in which scenarios are compared by default, in training and serving.
pub const COMPARED: [MetricId; 6] = [
    MetricId::TokensPerSec,
    MetricId::DollarPer1mTokens,
    MetricId::StepTimeMs,
    MetricId::TtftMs,
    MetricId::TpotMs,
    MetricId::P99Ms,
];

/// Headline metrics of serving, in display order.
const SERVING_FIRST: [&Metric; 7] = [
    MetricId::TpotMs.metric(),
    MetricId::TtftMs.metric(),
    MetricId::TokensPerSecPerUser.metric(),
    MetricId::TokensPerSecPerAccel.metric(),
    MetricId::DollarPer1mTokens.metric(),
    MetricId::TokensPerSec.metric(),
    MetricId::MemoryFill.metric(),
];

/// Headline metrics of training, in display order.
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

/// All metrics in display order. Cached, because every frame lists them.
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
    /// Headline metrics of training or serving, most important first.
    pub fn headlines(mode: Mode) -> impl Iterator<Item = &'static Metric> {
        Ranking::of(mode).headlines.iter().copied()
    }

    /// All metrics: headline metrics first, then the others in the order of the table.
    pub fn by_importance(mode: Mode) -> impl Iterator<Item = &'static Metric> {
        Ranking::of(mode).all.iter().copied()
    }

    /// The metric with this name, if there is one.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Metric> {
        METRICS.iter().find(|metric| metric.name == name)
    }

    /// Whether the metric is applicable to `scenario`.
    #[must_use]
    pub fn applies_to(&self, scenario: &Scenario) -> bool {
        let inference = scenario.mode() == Mode::Inference;
        // The dashboard's estimator treats every workload as training and yields no latency.
        let dashboard = scenario.engine == Engine::Benchboard;
        if self.lacks_price(scenario) {
            return false;
        }
        match self.applies {
            Applicability::Always => true,
            Applicability::Training => !inference || dashboard,
            Applicability::Inference => inference && !dashboard,
            Applicability::Queueing => inference && !dashboard && !scenario.phases.is_empty(),
            Applicability::AnalyticalTraining => !inference && scenario.engine.models_hardware(),
            Applicability::AnalyticalServing => inference && scenario.engine.models_hardware(),
            Applicability::Generation => {
                let generates = scenario.model.is_none_or(|model| model.causal);
                inference && scenario.engine.models_hardware() && generates
            }
            Applicability::Analytical => scenario.engine.models_hardware(),
            Applicability::SimulatedTraining => !inference && scenario.engine.simulates(),
            Applicability::SimulatedServing => inference && scenario.engine.simulates(),
            Applicability::Owned => scenario.engine.models_hardware() && scenario.capex_usd_node.is_some(),
            Applicability::Published => {
                !inference && scenario.engine.models_hardware() && scenario.published_tokens.is_some()
            }
        }
    }

    /// Whether the metric is a cost that cannot be computed, or used to rank targets, because no price is stated.
    #[must_use]
    pub fn lacks_price(&self, scenario: &Scenario) -> bool {
        let unpriced = scenario.engine.models_hardware() && scenario.usd_node_hour().is_none();
        unpriced && self.section == Section::Cost && self.applies != Applicability::Owned
    }

    /// Why the metric has no value for `scenario`, for metrics that do not apply to it.
    #[must_use]
    pub fn inapplicable(&self, scenario: &Scenario) -> String {
        match scenario.missing_price().filter(|_| self.lacks_price(scenario)) {
            Some(price) => format!("{}: {price}", self.name),
            None => {
                let (mode, engine) = (scenario.mode().name(), scenario.engine.name());
                format!("{} does not apply to {mode} with the {engine} engine", self.name)
            }
        }
    }

    /// Value in an estimate of `scenario`; `None` if the estimate has none.
    #[must_use]
    pub fn value(&self, estimate: &Estimate, scenario: &Scenario) -> Option<f64> {
        (self.get)(estimate, scenario)
    }

    /// Value for `scenario`, if the metric applies.
    #[must_use]
    pub fn applicable_value(&self, estimate: &Estimate, scenario: &Scenario) -> Option<f64> {
        if self.applies_to(scenario) { self.value(estimate, scenario) } else { None }
    }

    /// Ends of the interval that contains 90 % of measurements, if known.
    #[must_use]
    pub fn interval(&self, estimate: &Estimate, scenario: &Scenario) -> Option<(f64, f64)> {
        let factors = self.factors(estimate, scenario)?;
        Some(self.around(self.value(estimate, scenario)?, factors))
    }

    /// Ends of the interval around a value. That of a share ends at 100 %, unless the value itself is above: by
    /// convention, the MFU of long sequences may be.
    pub(super) fn around(&self, value: f64, factors: Interval) -> (f64, f64) {
        let (low, high) = factors.around(value);
        let limit = if self.format == Format::Percent { value.max(1.0) } else { f64::INFINITY };
        (low, high.min(limit))
    }

    /// The interval as factors on the value.
    pub(super) fn factors(&self, estimate: &Estimate, scenario: &Scenario) -> Option<Interval> {
        let detail = estimate.detail.as_ref().filter(|_| scenario.engine != Engine::Benchboard)?;
        match self.trust {
            ErrorSource::Unknown => None,
            ErrorSource::Throughput => Some(detail.throughput_interval),
            ErrorSource::Inverse => Some(detail.throughput_interval.inverse()),
            ErrorSource::Ttft => detail.serving.map(|serving| serving.ttft_interval),
            ErrorSource::Tpot => detail.serving.map(|serving| serving.tpot_interval),
        }
    }

    /// Unit of an axis for values up to `high`, and the factor by which values are multiplied.
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
            // The label contains the currency.
            Format::Usd => (1.0, if self.label.contains('$') { "" } else { "USD" }),
            Format::Si | Format::Count => (1.0, self.unit),
        }
    }

    /// Formats a value with its unit.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        self.show_in(value, DIGITS)
    }

    /// Formats a value with its unit in three digits, for values with a wide confidence interval.
    #[must_use]
    pub fn brief(&self, value: f64) -> String {
        self.show_in(value, BRIEF_DIGITS)
    }

    pub(super) fn show_in(&self, value: f64, digits: i32) -> String {
        let text = self.format.show_in(value, digits);
        if self.unit.is_empty() { text } else { units::with_unit(&text, self.unit) }
    }

    /// Whether a change is too small to be shown as a number: below 0.05 percentage points for percentages, below 0.05
    /// % otherwise.
    #[must_use]
    pub fn is_same(&self, before: f64, after: f64) -> bool {
        let whole = if self.format == Format::Percent { 1.0 } else { before.abs() };
        (after - before).abs() < MIN_RELATIVE_CHANGE * whole
    }

    /// Formats a change with its sign: in percentage points for percentages (a relative change would be ambiguous), in
    /// percent otherwise.
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
