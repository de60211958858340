//! Derivation of a metric: a tree from the metric to its inputs. Each term has an equation in symbols and numbers, its
//! unit, and its origin: file and line, catalog, knob, or a constant with its source.
//!
//! Engines return the terms of which their metrics are sums and products; this module adds names, units and origins.
//! Every equation that is shown evaluates to the engine's value. A metric without an equation lists what it depends on.

mod benchboard;
mod event;
mod expression;
mod money;
mod operators;
mod origin;
mod semi_empirical;
mod serving;
mod training;

use std::borrow::Cow;
use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

pub use expression::{Expression, Written};
pub use origin::{Origin, Place};

use crate::estimate::{Estimate, METRICS, Metric, MetricId, Metrics, Part, Queue};
use crate::scenario::{Parts, Scenario};
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_document::suggestion::{clause, nearest};
use expression::sum;
use origin::Inputs;

/// Maximum relative difference between an equation and the engine's value that counts as rounding.
const ROUNDING: f64 = 1e-9;

/// Term of a derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Symbol in equations: `T_step`.
    pub symbol: Cow<'static, str>,
    /// Description.
    pub name: Cow<'static, str>,
    /// Numeric value.
    pub value: f64,
    /// Value as text, if the input is a choice or a switch.
    pub text: Option<Arc<str>>,
    /// Unit; empty for plain numbers.
    pub unit: &'static str,
    /// Equation over [`Term::terms`]; `None` for inputs.
    pub equation: Option<Expression>,
    /// Terms of the equation.
    pub terms: Vec<Term>,
    /// Further dependencies outside the equation: constants and inputs of the engine.
    pub dependencies: Vec<Term>,
    /// Origin of an input.
    pub origin: Option<Origin>,
}

impl Term {
    /// Creates an input, or a value that the engine returns.
    pub fn input(
        symbol: impl Into<Cow<'static, str>>,
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        value: f64,
    ) -> Term {
        Term {
            symbol: symbol.into(),
            name: name.into(),
            value,
            text: None,
            unit,
            equation: None,
            terms: Vec::new(),
            dependencies: Vec::new(),
            origin: None,
        }
    }

    /// Creates the term of a part of a total; its symbol begins with `quantity`.
    pub fn part(quantity: &str, part: impl Part, unit: &'static str, value: f64) -> Term {
        Term::input(format!("{quantity}_{}", part.name().replace(' ', "_")), part.name(), unit, value)
    }

    /// Creates a term whose value is that of an equation.
    pub fn derived(
        symbol: impl Into<Cow<'static, str>>,
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        written: impl Into<Written>,
    ) -> Term {
        let written = written.into();
        let value = written.value();
        Term { equation: Some(written.expression), terms: written.terms, ..Term::input(symbol, name, unit, value) }
    }

    /// Creates a term with the engine's value and its equation. If the equation does not evaluate to that value, its
    /// terms are listed as dependencies, without an equation.
    pub fn stated(
        symbol: impl Into<Cow<'static, str>>,
        name: impl Into<Cow<'static, str>>,
        unit: &'static str,
        value: f64,
        written: impl Into<Written>,
    ) -> Term {
        let written = written.into();
        let computed = written.value();
        if computed == value || (computed - value).abs() <= ROUNDING * value.abs() {
            return Term { value, ..Term::derived(symbol, name, unit, written) };
        }
        Term::input(symbol, name, unit, value)
            .from(Origin::Engine("computed by the engine"))
            .depending_on(written.terms)
    }

    /// Sets the origin.
    pub fn from(self, origin: Origin) -> Term {
        Term { origin: Some(origin), ..self }
    }

    /// Sets the dependencies outside the equation.
    pub fn depending_on(self, bearing: Vec<Term>) -> Term {
        Term { dependencies: bearing, ..self }
    }

    /// Formats the equation with symbols: `X = D / T`.
    #[must_use]
    pub fn in_symbols(&self) -> Option<String> {
        let equation = self.equation.as_ref()?;
        Some(format!("{} = {}", self.symbol, equation.symbols(&self.terms)))
    }

    /// Formats the right-hand side of the equation with numbers: `1048576 / 14.06`.
    #[must_use]
    pub fn in_numbers(&self) -> Option<String> {
        Some(self.equation.as_ref()?.numbers(&self.terms))
    }

    /// Formats the value with its unit, or the word in effect.
    #[must_use]
    pub fn shown(&self) -> String {
        self.text.as_ref().map_or_else(|| origin::shown(self.value, self.unit), |word| word.to_string())
    }

    /// Returns this term and, recursively, the terms of its equation, depth first.
    pub fn walk(&self) -> Vec<&Term> {
        let mut all = vec![self];
        for term in &self.terms {
            all.extend(term.walk());
        }
        all
    }
}

impl Serialize for Term {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("symbol", &self.symbol)?;
        map.serialize_entry("name", &self.name)?;
        match &self.text {
            Some(word) => map.serialize_entry("value", &**word)?,
            // JSON cannot represent infinity.
            None => map.serialize_entry("value", &self.value.is_finite().then_some(self.value))?,
        }
        map.serialize_entry("unit", self.unit)?;
        if let (Some(symbols), Some(numbers)) = (self.in_symbols(), self.in_numbers()) {
            map.serialize_entry("equation", &symbols)?;
            map.serialize_entry("numbers", &numbers)?;
        }
        if let Some(origin) = &self.origin {
            map.serialize_entry("origin", &origin.to_string())?;
        }
        if !self.terms.is_empty() {
            map.serialize_entry("terms", &self.terms)?;
        }
        if !self.dependencies.is_empty() {
            map.serialize_entry("bearing", &self.dependencies)?;
        }
        map.end()
    }
}

/// Error of a request for a derivation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// No metric has that name.
    #[error("no metric `{found}`{}; known metrics: {}", clause(*near), known.join(", "))]
    Unknown {
        /// The given name.
        found: String,
        /// The nearest known name, if one is close.
        near: Option<&'static str>,
        /// The metrics that apply to the scenario.
        known: Vec<&'static str>,
    },
    /// The metric does not apply to this scenario.
    #[error("{why}; known metrics: {}", known.join(", "))]
    Silent {
        /// Why the metric has no value.
        why: String,
        /// Metrics that apply to the scenario.
        known: Vec<&'static str>,
    },
}

/// Finds a metric by name or label, if it applies to the scenario.
///
/// # Errors
///
/// If the name is unknown, with the nearest known one, or the metric does not apply to the mode or engine.
pub fn metric(name: &str, scenario: &Scenario) -> Result<&'static Metric, ExplainError> {
    let wanted = name.trim().replace('-', "_").to_lowercase();
    let known = || METRICS.iter().filter(|metric| metric.applies_to(scenario)).map(|metric| metric.name).collect();
    // The user interface shows labels, so they are accepted as well.
    let found = METRICS.iter().find(|metric| metric.name == wanted || metric.label.eq_ignore_ascii_case(name.trim()));
    match found {
        Some(metric) if metric.applies_to(scenario) => Ok(metric),
        Some(metric) => Err(ExplainError::Silent { why: metric.inapplicable(scenario), known: known() }),
        None => {
            let near = nearest(&wanted, METRICS.iter().map(|metric| metric.name));
            Err(ExplainError::Unknown { found: name.to_owned(), near, known: known() })
        }
    }
}

/// Derivation of a metric of an estimate of `scenario`; `None` if the estimate does not have the metric.
#[must_use]
pub fn explain(scenario: &Scenario, parts: &Parts, estimate: &Estimate, metric: &Metric) -> Option<Term> {
    let inputs = Inputs::of(scenario, parts);
    let whole = Context { inputs: &inputs, scenario, estimate, total: &estimate.total };
    derive(&whole, metric)
}

/// Like [`explain`], for existing [`Inputs`].
fn derive(whole: &Context<'_>, metric: &Metric) -> Option<Term> {
    let Context { scenario, estimate, .. } = *whole;
    let value = metric.value(estimate, scenario)?;
    let own = match scenario.engine {
        Engine::Benchboard => benchboard::explain(whole, metric.id, value),
        _ => None,
    };
    let described = own.or_else(|| money::explain(whole, metric.id, value)).or_else(|| match scenario.engine {
        Engine::Benchboard => None,
        Engine::SemiEmpirical => semi_empirical::explain(whole, metric.id, value),
        Engine::Analytical | Engine::Event if !scenario.phases.is_empty() => scheduled(whole, metric.id, value),
        Engine::Event => event::explain(whole, metric.id, value),
        Engine::Analytical => match scenario.mode() {
            Mode::Training => training::explain(whole, metric.id, value),
            Mode::Inference => serving::explain(whole, metric.id, value),
        },
    });
    let unit = unit(metric);
    let mut described = described.unwrap_or_else(|| {
        Term::input(metric.name, metric.help, unit, value).from(Origin::Engine("computed by the engine"))
    });
    if described.name.is_empty() {
        described.name = metric.help.into();
    }
    Some(described)
}

/// Unit in which the value of a metric is stored.
fn unit(metric: &Metric) -> &'static str {
    use crate::estimate::Format;
    match metric.format {
        Format::Duration => "ms",
        Format::Hours => "h",
        Format::Energy => "kWh",
        Format::Mass => "kg",
        Format::Usd => "USD",
        _ => metric.unit,
    }
}

/// Context of a derivation.
pub struct Context<'a> {
    /// Inputs with their origins.
    pub inputs: &'a Inputs<'a>,
    /// The resolved scenario.
    pub scenario: &'a Scenario,
    /// Estimate by the engine.
    pub estimate: &'a Estimate,
    /// Metrics of the whole run.
    pub total: &'a Metrics,
}

/// Metric of a scheduled workload: mean over its phases, weighted by their minutes.
pub fn mean_over_phases(
    whole: &Context<'_>,
    value: f64,
    unit: &'static str,
    mut of: impl FnMut(usize, &Metrics) -> Option<Term>,
) -> Option<Term> {
    let mut products = Vec::new();
    let mut minutes = Vec::new();
    for (i, phase) in whole.estimate.phases.iter().enumerate() {
        let name = whole.inputs.phase_name(i);
        let lasts =
            Term::input(format!("min_{i}"), format!("duration of phase {name} in minutes"), "min", phase.minutes)
                .from(whole.inputs.phase_minutes(i));
        let mut term = of(i, phase)?;
        if !term.symbol.ends_with(&format!("_{i}")) {
            term.symbol = format!("{}_{i}", term.symbol).into();
        }
        products.push(term * lasts.clone());
        minutes.push(lasts);
    }
    let weighted = products.into_iter().reduce(|a, b| a + b)?;
    Some(Term::stated("mean", "", unit, value, weighted / sum(minutes)))
}

/// Latency of all requests of a schedule: the mean over the requests, or their percentile, interpolated between those of
/// the phases.
fn over_requests(whole: &Context<'_>, id: MetricId, value: f64, get: fn(&Queue) -> f64) -> Term {
    let unit = unit(id.metric());
    let phases = whole.estimate.phases.iter().enumerate();
    let served = phases.filter_map(|(i, phase)| Some((i, phase.queue?, phase.minutes)));
    let terms: Vec<(Term, Term)> = served
        .map(|(i, queue, minutes)| {
            let name = whole.inputs.phase_name(i);
            let requests = Term::input(
                format!("n_{i}"),
                format!("requests of phase {name}: arrival rate × duration"),
                "",
                queue.arrival_rate * 60.0 * minutes,
            );
            let own = Term::input(format!("phase_{i}"), format!("the metric in phase {name}"), unit, get(&queue));
            let origin = Origin::Engine("estimate of the phase");
            (own.from(origin.clone()), requests.from(origin))
        })
        .collect();
    if id == MetricId::TtftMs {
        let weighted = terms.iter().map(|(own, requests)| own.clone() * requests.clone()).reduce(|a, b| a + b);
        let all = sum(terms.iter().map(|(_, requests)| requests.clone()));
        return weighted.map_or_else(
            || Term::input("mean", "", unit, value),
            |weighted| Term::stated("mean", "", unit, value, weighted / all),
        );
    }
    Term::input("percentile", "", unit, value)
        .from(Origin::Engine("percentile of the requests of all phases together, interpolated between those of each"))
        .depending_on(terms.into_iter().flat_map(|(own, requests)| [own, requests]).collect())
}

/// Metric of a workload whose phases the analytical engine estimates under their own loads.
fn scheduled(whole: &Context<'_>, id: MetricId, value: f64) -> Option<Term> {
    // A phase without the metric counts as 0, as in the mean.
    let get: fn(&Metrics) -> f64 = match id {
        MetricId::TokensPerSec => |f| f.tokens_per_sec,
        MetricId::FlopUtilization => |f| f.flop_utilization,
        MetricId::HbmBwUtil => |f| f.hbm_bw_util,
        MetricId::CommComputeRatio => |f| f.comm_compute_ratio,
        MetricId::StepTimeMs => |f| f.step_time_ms.unwrap_or(0.0),
        MetricId::NodePowerW => |f| f.node_power_w,
        MetricId::P50Ms => return Some(over_requests(whole, id, value, |q| q.latency.p50)),
        MetricId::P95Ms => return Some(over_requests(whole, id, value, |q| q.latency.p95)),
        MetricId::P99Ms => return Some(over_requests(whole, id, value, |q| q.latency.p99)),
        MetricId::TtftMs => return Some(over_requests(whole, id, value, |q| q.latency.ttft)),
        MetricId::QueueWaitP99Ms => return Some(over_requests(whole, id, value, |q| q.wait.p99)),
        MetricId::QueueUtilization => |f| f.queue.map_or(0.0, |q| q.utilization),
        _ => return None,
    };
    let unit = unit(id.metric());
    mean_over_phases(whole, value, unit, |i, metrics| {
        let symbol = format!("phase_{i}");
        let name = format!("the metric in phase {}, under the load of that phase", whole.inputs.phase_name(i));
        Some(Term::input(symbol, name, unit, get(metrics)).from(Origin::Engine("estimate of the phase")))
    })
}
