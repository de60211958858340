//! Constraints on metrics and knobs, in the syntax of `--where`: `tpot <= 50ms`, `headroom >= 10%`, `tp <= 8`, `fits`.

use atlas_core::time_unit::TimeUnit;
use atlas_document::suggestion::clause;
use std::fmt;

use super::metric;
use crate::estimate::metric::Format;
use crate::estimate::{Estimate, Metric, MetricId};
use crate::knob::{Knob, KnobError, KnobValues as _, Setting};
use crate::scenario::Scenario;

/// Relation of a value to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// At most.
    AtMost,
    /// At least.
    AtLeast,
    /// Less than.
    Below,
    /// More than.
    Above,
    /// Equal.
    Equal,
    /// Not equal.
    Different,
}

impl Relation {
    /// Signs of the relations, longest first so that `<=` is not parsed as `<`.
    const SIGNS: [(&'static str, Relation); 7] = [
        ("<=", Relation::AtMost),
        (">=", Relation::AtLeast),
        ("!=", Relation::Different),
        ("==", Relation::Equal),
        ("<", Relation::Below),
        (">", Relation::Above),
        ("=", Relation::Equal),
    ];

    /// Splits the relation that a text begins with from the rest.
    fn read(text: &str) -> Option<(Relation, &str)> {
        Relation::SIGNS.iter().find_map(|(sign, relation)| Some((*relation, text.strip_prefix(sign)?)))
    }

    fn sign(self) -> &'static str {
        Relation::SIGNS.iter().find(|(_, relation)| *relation == self).map_or("", |(sign, _)| sign)
    }

    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Relation::AtMost => value <= bound,
            Relation::AtLeast => value >= bound,
            Relation::Below => value < bound,
            Relation::Above => value > bound,
            Relation::Equal => value == bound,
            Relation::Different => value != bound,
        }
    }
}

/// Constraint on a scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// The scenario can run, according to the engine's verdict.
    Fits,
    /// Constraint on a metric.
    Metric(&'static Metric, Relation, f64),
    /// Constraint on a knob.
    Knob(Knob, Relation, Setting),
}

/// Error of parsing a constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// The text contains no relation.
    #[error("found \"{0}\", expected METRIC<=NUMBER, METRIC>=NUMBER, KNOB<=VALUE or fits")]
    Form(String),
    /// No metric or knob has that name.
    #[error("unknown metric or knob `{found}`{}", clause(*near))]
    Unknown {
        /// The given name.
        found: String,
        /// The nearest known name, if one is close.
        near: Option<&'static str>,
    },
    /// The bound is not a quantity in a unit of the metric.
    #[error("{metric}: found \"{found}\", expected {expected}")]
    Bound {
        /// Name of the metric.
        metric: &'static str,
        /// The given bound.
        found: String,
        /// Description of valid bounds.
        expected: &'static str,
    },
    /// The knob does not accept the value.
    #[error(transparent)]
    Knob(#[from] KnobError),
}

impl Condition {
    /// Parses a constraint.
    ///
    /// # Errors
    ///
    /// If the name is unknown or the bound is invalid.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        if text.trim().eq_ignore_ascii_case("fits") {
            return Ok(Condition::Fits);
        }
        let at = text.find(['<', '>', '=', '!']).ok_or_else(|| ConditionError::Form(text.to_owned()))?;
        let (name, rest) = text.split_at(at);
        let (relation, bound) = Relation::read(rest).ok_or_else(|| ConditionError::Form(text.to_owned()))?;
        if let Some(metric) = metric::named(name) {
            return Ok(Condition::Metric(metric, relation, quantity(metric, bound)?));
        }
        let Some(knob) = Knob::find(name) else {
            return Err(ConditionError::Unknown { found: name.trim().to_owned(), near: metric::near(name) });
        };
        let value = knob.parse(bound, &[])?;
        let ordered = matches!(value, Setting::Number(_));
        if !ordered && !matches!(relation, Relation::Equal | Relation::Different) {
            return Err(ConditionError::Form(text.to_owned()));
        }
        Ok(Condition::Knob(knob, relation, value))
    }

    /// Parses a relation and a bound for a metric: `<=50 ms`.
    ///
    /// # Errors
    ///
    /// If there is no relation, or the bound is invalid.
    pub fn on(metric: &'static Metric, text: &str) -> Result<Condition, ConditionError> {
        let (relation, bound) = Relation::read(text).ok_or_else(|| ConditionError::Form(text.to_owned()))?;
        Ok(Condition::Metric(metric, relation, quantity(metric, bound)?))
    }

    /// Constraint that a metric is at most `bound`.
    #[must_use]
    pub fn at_most(metric: &'static Metric, bound: f64) -> Condition {
        Condition::Metric(metric, Relation::AtMost, bound)
    }

    /// Formats the bound in its unit, such that it can be parsed again: `50 ms`, `10 %`.
    #[must_use]
    pub fn bound_text(&self) -> String {
        match self {
            Condition::Fits => String::new(),
            Condition::Metric(metric, _, bound) => {
                let text = metric.show(*bound);
                let (number, unit) = text.split_at(text.find(' ').unwrap_or(text.len()));
                match number.contains('.') && !number.contains('e') {
                    true => format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.')),
                    false => text,
                }
            }
            Condition::Knob(_, _, bound) => bound.to_string(),
        }
    }

    /// Whether the constraint is met. A metric that is NaN, or that the estimate does not have, meets none.
    #[must_use]
    pub fn holds(&self, estimate: &Estimate, scenario: &Scenario) -> bool {
        match self {
            Condition::Fits => fits(estimate),
            Condition::Metric(metric, relation, bound) => {
                metric.value(estimate, scenario).is_some_and(|value| relation.holds(value, *bound))
            }
            Condition::Knob(knob, relation, bound) => match (scenario.get(*knob), bound) {
                (Setting::Number(value), Setting::Number(bound)) => relation.holds(value, *bound),
                (value, bound) => (value == *bound) == (*relation == Relation::Equal),
            },
        }
    }
}

/// Whether the scenario can run, according to the engine's verdict. With the calibrated model every scenario can.
#[must_use]
pub fn fits(estimate: &Estimate) -> bool {
    estimate.detail.as_ref().is_none_or(|detail| detail.verdict.fits())
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Fits => f.write_str("fits in memory and can run"),
            Condition::Metric(metric, relation, bound) => {
                write!(f, "{} {} {}", metric.label, relation.sign(), metric.show(*bound))
            }
            Condition::Knob(knob, relation, bound) => write!(f, "{} {} {bound}", knob.name(), relation.sign()),
        }
    }
}

const HEADROOM: &str = "a share from 0 to 1, or percent with its sign, such as 20%";

/// Parses a bound in a unit of the metric: `50ms`, `2 s`, `30d`, `10%`, `$1.5`, `20kW`, `1.5M`.
fn quantity(metric: &'static Metric, text: &str) -> Result<f64, ConditionError> {
    let (expected, units): (_, &[(&str, f64)]) = match metric.format {
        Format::Duration => ("a time: milliseconds, or a number with us, ms, s, min, h or d", &[]),
        Format::Hours => ("a time: hours, or a number with s, min, h or d", &[]),
        Format::Energy => (
            "an energy: kilowatt-hours, or a number with kWh, MWh or GWh",
            &[("kWh", 1.0), ("MWh", 1e3), ("GWh", 1e6), ("", 1.0)],
        ),
        Format::Mass => ("a mass: kilograms, or a number with kg or t", &[("kg", 1.0), ("t", 1e3), ("", 1.0)]),
        Format::Percent => ("a share from 0 to 1, or percent", &[("%", 0.01), ("", 1.0)]),
        Format::Usd => ("US dollars", &[("k", 1e3), ("M", 1e6), ("", 1.0)]),
        Format::Si | Format::Count => ("a number", &[("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("", 1.0)]),
    };
    let refuse = || ConditionError::Bound { metric: metric.name, found: text.trim().to_owned(), expected };
    let clean = text.trim().trim_start_matches('$').replace('_', "");
    let bare = without_unit(&clean, metric.unit).unwrap_or(&clean);
    let in_unit = |unit: &str, scale: f64| {
        let digits = without_unit(bare, unit)?.trim();
        digits.parse::<f64>().ok().map(|value| value * scale)
    };
    let time = |scale: fn(TimeUnit) -> f64| {
        let lower = bare.to_ascii_lowercase();
        let (digits, unit) = TimeUnit::split(&lower);
        digits.trim().parse::<f64>().ok().map(|value| value * unit.map_or(1.0, scale))
    };
    let read = match metric.format {
        Format::Duration => time(TimeUnit::milliseconds),
        Format::Hours => time(TimeUnit::hours),
        _ => units.iter().find_map(|(unit, scale)| in_unit(unit, *scale)),
    };
    let value = read.filter(|value| value.is_finite()).ok_or_else(refuse)?;
    // Free memory is a share of the capacity, so a larger bound is a number of percent without its sign.
    if metric.id == MetricId::Headroom && value > 1.0 {
        return Err(ConditionError::Bound { metric: metric.name, found: text.trim().to_owned(), expected: HEADROOM });
    }
    Ok(value)
}

/// Removes a unit from the end, ignoring case.
fn without_unit<'t>(text: &'t str, unit: &str) -> Option<&'t str> {
    let (digits, end) = text.split_at_checked(text.len().checked_sub(unit.len())?)?;
    end.eq_ignore_ascii_case(unit).then_some(digits)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn condition_parse_accepts_units_and_scales() {
        let bound = |text: &str| match Condition::parse(text).unwrap() {
            Condition::Metric(metric, relation, bound) => (metric.name, relation, bound),
            other => ("none", Relation::Equal, format!("{other}").len() as f64),
        };
        assert_eq!(bound("tpot<=50"), ("tpot_ms", Relation::AtMost, 50.0));
        assert_eq!(bound("ttft < 2 s"), ("ttft_ms", Relation::Below, 2000.0));
        assert_eq!(bound("time_to_train<=30d"), ("time_to_train_h", Relation::AtMost, 720.0));
        assert_eq!(bound("headroom >= 10%"), ("headroom", Relation::AtLeast, 0.1));
        assert_eq!(bound("usd_per_hour<=$1.5k"), ("usd_per_hour", Relation::AtMost, 1500.0));
        assert_eq!(bound("power<=20kW"), ("power_w", Relation::AtMost, 20_000.0));
        assert_eq!(bound("power<=20kw"), ("power_w", Relation::AtMost, 20_000.0));
        assert_eq!(bound("memory<40gb"), ("peak_mem_gb", Relation::Below, 40.0));
        assert_eq!(bound("throughput>=1.5M"), ("tokens_per_sec", Relation::AtLeast, 1.5e6));
        assert_eq!(
            Condition::parse("tp<=8").unwrap(),
            Condition::Knob(Knob::Tp, Relation::AtMost, Setting::Number(8.0))
        );
        assert!(matches!(Condition::parse("recompute!=full").unwrap(), Condition::Knob(_, Relation::Different, _)));
        assert_eq!(Condition::parse(" FITS").unwrap(), Condition::Fits);
    }

    #[test]
    fn condition_bound_text_parses_back_to_the_same_condition() {
        for text in ["tpot<=50", "ttft<=2s", "time_to_train<=30d", "headroom>=10%", "usd_per_hour<=1500", "power<=20kW"]
        {
            let condition = Condition::parse(text).unwrap();
            let (name, sign) = text.split_at(text.find(['<', '>']).unwrap());
            let again = Condition::parse(&format!("{name}{}{}", sign.get(..2).unwrap(), condition.bound_text()));
            assert_eq!(again, Ok(condition), "{text}");
        }
    }

    #[test]
    fn invalid_condition_is_refused_with_a_reason() {
        for (text, part) in [
            ("tpot", "expected METRIC<=NUMBER"),
            ("tpott<=5", "did you mean `tpot`?"),
            ("tpot<=fast", "expected a time"),
            ("headroom>=x%", "percent"),
            ("headroom>=20", "such as 20%"),
            ("headroom>=200%", "such as 20%"),
            ("recompute<=full", "expected METRIC"),
            ("tp<=0", "whole number"),
            ("power<=nan", "a number"),
        ] {
            let described = Condition::parse(text).unwrap_err().to_string();
            assert!(described.contains(part), "{text}: {described}");
        }
    }

    #[test]
    fn nan_satisfies_no_relation() {
        for relation in [Relation::AtMost, Relation::AtLeast, Relation::Below, Relation::Above, Relation::Equal] {
            assert!(!relation.holds(f64::NAN, 1.0));
        }
    }
}
