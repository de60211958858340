//! Search space: one axis per knob, with the values that the knob may take.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::knob::{Knob, KnobError, KnobValues as _, Setting, Step, ValueType};
use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::{math, sort};

/// Maximum number of values on one axis.
pub const MAX_VALUES: usize = 1_000_000;

/// A knob and the values it may take, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The knob.
    pub knob: Knob,
    /// Values, never empty and without duplicates.
    pub values: Vec<Setting>,
}

/// Error of parsing axes or building a space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpaceError {
    /// A knob is unknown or does not accept one of the values.
    #[error(transparent)]
    Knob(#[from] KnobError),
    /// The text is not an axis.
    #[error("found \"{0}\", expected knob=VALUES, where VALUES are 1,2,4 or 1..16 or 0..1:0.25 or divisors(64) or all")]
    Form(String),
    /// `all` of a knob without a list of values.
    #[error(
        "{0}=all: only switches, words, fabrics and degrees of parallelism (tp, pp, cp, dp, ep, attention_dp) have a list \
         of all values; state them as 1,2,4 or 1..16 or 0..1:0.25 or divisors(64)"
    )]
    Unlisted(&'static str),
    /// The range is empty.
    #[error("{knob}: the range \"{found}\" is empty: {why}")]
    Range {
        /// Name of the knob.
        knob: &'static str,
        /// The given range.
        found: String,
        /// Reason.
        why: &'static str,
    },
    /// The axis has more than [`MAX_VALUES`] values.
    #[error("{knob}: more than {MAX_VALUES} values")]
    TooMany {
        /// Name of the knob.
        knob: &'static str,
    },
    /// Two axes have the same knob.
    #[error("{0}: specified twice; list all values in one axis")]
    Twice(&'static str),
}

impl Axis {
    /// Creates an axis of numbers.
    #[must_use]
    pub fn of(knob: Knob, values: impl IntoIterator<Item = f64>) -> Axis {
        Axis { knob, values: values.into_iter().map(Setting::Number).collect() }
    }

    /// Whether the axis has a value other than that of the knob in `scenario`, and the knob can have an effect there.
    #[must_use]
    pub fn turns(&self, scenario: &Scenario) -> bool {
        scenario.offers(self.knob) && self.values.iter().any(|value| *value != scenario.get(self.knob))
    }

    /// Parses `tp=1,2,4,8`, `micro=1..16` (doubling if that is the step of the knob), `pue=1..1.5:0.1`,
    /// `pp=divisors(layers)`, `virt=all`. The numbers of heads, layers, experts and accelerators are those of
    /// `scenario`, which also determine all degrees of parallelism (`tp=all`).
    ///
    /// # Errors
    ///
    /// If the knob is unknown or does not accept a value, or a range is empty.
    pub fn parse(text: &str, scenario: &Scenario, fabrics: &[(Arc<str>, f64)]) -> Result<Axis, SpaceError> {
        let (name, list) = text.split_once('=').ok_or_else(|| SpaceError::Form(text.to_owned()))?;
        let knob = Knob::named(name)?;
        let mut axis = Axis { knob, values: Vec::new() };
        for item in list.split(',').map(str::trim) {
            if item.is_empty() {
                return Err(SpaceError::Form(text.to_owned()));
            }
            if item.eq_ignore_ascii_case("all") {
                axis.extend(all(knob, scenario, fabrics).ok_or(SpaceError::Unlisted(knob.name()))?)?;
            } else if let Some(of) = item.strip_prefix("divisors(").and_then(|rest| rest.strip_suffix(')')) {
                axis.extend(divisors(count(of, knob, scenario, fabrics)?).map(Setting::Number))?;
            } else if let Some((from, to)) = item.split_once("..") {
                axis.range(item, from, to, fabrics)?;
            } else {
                axis.extend([knob.parse(item, fabrics)?])?;
            }
            if axis.values.len() > MAX_VALUES {
                axis.distinct();
                if axis.values.len() > MAX_VALUES {
                    return Err(SpaceError::TooMany { knob: knob.name() });
                }
            }
        }
        axis.distinct();
        Ok(axis)
    }

    fn range(&mut self, item: &str, from: &str, to: &str, fabrics: &[(Arc<str>, f64)]) -> Result<(), SpaceError> {
        let knob = self.knob;
        let refuse = |why| SpaceError::Range { knob: knob.name(), found: item.to_owned(), why };
        let ValueType::Number { step, bounds } = knob.spec().kind else {
            return Err(refuse("this knob does not take numbers"));
        };
        let (to, by) = to.trim_start_matches('=').split_once(':').map_or((to, None), |(to, by)| (to, Some(by)));
        let number = |text: &str| match knob.parse(text, fabrics)? {
            Setting::Number(value) => Ok(value),
            _ => Err(SpaceError::Form(item.to_owned())),
        };
        let (from, to) = (number(from)?, number(to.trim_start_matches('='))?);
        if from > to {
            return Err(refuse("the end is below the start"));
        }
        let stated = by.map(|by| by.trim().parse::<f64>().ok().filter(|by| *by > 0.0 && by.is_finite()));
        let next: Box<dyn Fn(usize, f64) -> f64> = match (stated, step) {
            (Some(None), _) => return Err(refuse("the step must be positive")),
            (Some(Some(by)), _) | (None, Step::Add(by)) => {
                #[expect(clippy::cast_precision_loss, reason = "an axis has few values")]
                let at = move |i: usize, _| round(from + by * i as f64);
                Box::new(at)
            }
            (None, Step::Double) => Box::new(|_, now| if now < 1.0 { 1.0 } else { now * 2.0 }),
        };
        let mut value = from;
        // Relative tolerance, so that steps of 0.1 reach an end that has no exact binary representation.
        let end = to + 1e-9 * to.abs();
        for i in 1..=MAX_VALUES + 1 {
            if value > end {
                return Ok(());
            }
            if !bounds.contains(value) {
                let expected = bounds.describe();
                return Err(KnobError::Value { knob: knob.name(), found: value.to_string(), expected }.into());
            }
            self.values.push(Setting::Number(value));
            value = next(i, value);
        }
        Err(SpaceError::TooMany { knob: knob.name() })
    }

    fn extend(&mut self, values: impl IntoIterator<Item = Setting>) -> Result<(), SpaceError> {
        for value in values {
            if let (ValueType::Number { bounds, .. }, Setting::Number(number)) = (self.knob.spec().kind, &value)
                && !bounds.contains(*number)
            {
                let (knob, found, expected) = (self.knob.name(), number.to_string(), bounds.describe());
                return Err(KnobError::Value { knob, found, expected }.into());
            }
            self.values.push(value);
        }
        Ok(())
    }

    /// Removes duplicate values; keeps the first occurrence of each.
    fn distinct(&mut self) {
        let rises = |a: &Setting, b: &Setting| matches!((a, b), (Setting::Number(a), Setting::Number(b)) if a < b);
        // Strictly ascending values, such as those of long ranges, contain no duplicates.
        if !self.values.is_sorted_by(rises) {
            let mut seen = BTreeSet::new();
            self.values.retain(|value| seen.insert(value.to_string()));
        }
    }
}

/// All values of a switch, of words or of fabrics, and all values of [`degrees`].
fn all(knob: Knob, scenario: &Scenario, fabrics: &[(Arc<str>, f64)]) -> Option<Vec<Setting>> {
    match knob.spec().kind {
        ValueType::Toggle => Some(vec![Setting::Toggle(false), Setting::Toggle(true)]),
        ValueType::Choice(words) => Some(words.iter().map(|word| Setting::Choice((*word).into())).collect()),
        ValueType::Fabric => Some(fabrics.iter().map(|(name, _)| Setting::Choice(Arc::clone(name))).collect()),
        ValueType::Number { .. } => Some(degrees(knob, scenario)?.into_iter().map(Setting::Number).collect()),
        ValueType::Software | ValueType::Seed => None,
    }
}

/// Degrees of a kind of parallelism that the target and the model allow; `None` for other knobs.
#[must_use]
pub fn degrees(knob: Knob, scenario: &Scenario) -> Option<Vec<f64>> {
    let model = scenario.model.unwrap_or_default();
    let devices = scenario.devices();
    // Without a model, only the number of accelerators limits the layout.
    let shares = |count: f64| divisors_within(count, if count > 0.0 { count.min(devices) } else { devices });
    match knob {
        Knob::Tp => Some(shares(model.heads.into())),
        Knob::Pp => Some(stages(model.depth(), devices, scenario.mode())),
        Knob::Cp => Some(doubling(16.0_f64.min(devices)).collect()),
        Knob::Dp => Some(divisors(devices.max(1.0).floor()).collect()),
        Knob::Ep if !model.is_moe() => Some(vec![1.0]),
        Knob::Ep if scenario.mode() == Mode::Training => Some(shares(model.experts.into())),
        Knob::Ep => Some(shares(model.experts + scenario.base.decode_layout().redundant)),
        Knob::AttentionDp => {
            let groups = model.is_moe() && scenario.active_software.serving.attention_dp;
            Some(doubling(if groups { devices } else { 1.0 }).collect())
        }
        _ => None,
    }
}

/// Powers of two up to `limit`.
pub(super) fn doubling(limit: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(1.0), |value| Some(value * 2.0)).take_while(move |value| *value <= limit)
}

/// Divisors of a count up to `limit`; powers of two if the count is 0.
pub(super) fn divisors_within(count: f64, limit: f64) -> Vec<f64> {
    let count = if count >= 1.0 { count } else { math::exp2(math::log2(limit.max(1.0)).floor()) };
    divisors(count).filter(|divisor| *divisor <= limit).collect()
}

/// Argument of `divisors(…)`: a number, or the name of a count in the scenario.
fn count(text: &str, knob: Knob, scenario: &Scenario, fabrics: &[(Arc<str>, f64)]) -> Result<f64, SpaceError> {
    let model = scenario.model.unwrap_or_default();
    let value = match text.trim() {
        "heads" => model.heads.into(),
        "layers" => model.layers.into(),
        "experts" => model.experts.into(),
        "accelerators" => scenario.accelerators(),
        "global" => scenario.global(&scenario.base),
        number => match knob.parse(number, fabrics)? {
            Setting::Number(value) => value,
            _ => 0.0,
        },
    };
    if value >= 1.0 && value.fract() == 0.0 && value <= 1e12 {
        return Ok(value);
    }
    let found = format!("divisors({text})");
    Err(SpaceError::Range { knob: knob.name(), found, why: "it contains no valid whole number" })
}

/// Numbers of pipeline stages for a model with `layers` layers on `devices` devices: the divisors of both. In training,
/// the first and last stage may have no layers.
#[must_use]
pub fn stages(layers: f64, devices: f64, mode: Mode) -> Vec<f64> {
    let max_stages = if layers < 1.0 {
        devices
    } else if mode == Mode::Training {
        layers + 2.0
    } else {
        layers
    };
    let mut all: Vec<f64> = divisors(devices.max(1.0).floor()).chain(divisors(layers.max(1.0))).collect();
    all.retain(|stages| *stages <= max_stages.min(devices));
    sort::numbers(&mut all);
    all.dedup();
    all
}

/// Divisors of a whole number, ascending.
pub fn divisors(of: f64) -> impl Iterator<Item = f64> {
    let mut low = Vec::new();
    let mut high = Vec::new();
    let mut divisor = 1.0;
    while divisor * divisor <= of {
        if (of / divisor).fract() == 0.0 {
            low.push(divisor);
            if divisor * divisor < of {
                high.push(of / divisor);
            }
        }
        divisor += 1.0;
    }
    low.into_iter().chain(high.into_iter().rev())
}

/// `from` and its doublings, up to `to`; always contains `from`.
pub(super) fn doublings(from: f64, to: f64) -> Vec<f64> {
    let next = |value: &f64| Some(value * 2.0).filter(|next| *next <= to);
    std::iter::successors(Some(from), next).take(64).collect()
}

/// Removes binary rounding errors.
fn round(value: f64) -> f64 {
    (value * 1e9).round() / 1e9
}

/// Axes, and the points that they span. The last axis varies fastest.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Space {
    axes: Vec<Axis>,
}

impl Space {
    /// Creates a space.
    ///
    /// # Errors
    ///
    /// If two axes have the same knob.
    pub fn of(axes: Vec<Axis>) -> Result<Space, SpaceError> {
        for (i, axis) in axes.iter().enumerate() {
            if axes.iter().take(i).any(|before| before.knob == axis.knob) {
                return Err(SpaceError::Twice(axis.knob.name()));
            }
        }
        Ok(Space { axes })
    }

    /// Its axes.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Whether there is an axis for the knob.
    #[must_use]
    pub fn turns(&self, knob: Knob) -> bool {
        self.axes.iter().any(|axis| axis.knob == knob)
    }

    /// Number of points; 1 without axes.
    #[must_use]
    pub fn size(&self) -> u128 {
        self.axes.iter().fold(1, |size: u128, axis| size.saturating_mul(axis.values.len() as u128))
    }

    /// Number of points that share the values of all axes before `depth`.
    #[must_use]
    pub(super) fn size_below(&self, depth: usize) -> u128 {
        self.axes.iter().skip(depth).fold(1, |size: u128, axis| size.saturating_mul(axis.values.len() as u128))
    }

    /// Knobs and values of a point.
    pub fn settings(&self, point: u128) -> impl Iterator<Item = (Knob, &Setting)> {
        self.axes.iter().enumerate().filter_map(move |(i, axis)| {
            let digit = point / self.size_below(i + 1) % (axis.values.len() as u128).max(1);
            Some((axis.knob, axis.values.get(usize::try_from(digit).ok()?)?))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use crate::testing;

    fn numbers(text: &str) -> Result<Vec<f64>, SpaceError> {
        let (parts, scenario) = testing::scenario("NVIDIA_H100_8x_NVLink", "gpt5_1t_inference", &[]);
        let axis = Axis::parse(text, &scenario, parts.fabrics())?;
        Ok(axis
            .values
            .iter()
            .map(|value| match value {
                Setting::Number(value) => *value,
                _ => -1.0,
            })
            .collect())
    }

    #[test]
    fn axis_values_parse_lists_ranges_divisors_and_all() {
        assert_eq!(numbers("tp=1,2, 4,8,2").unwrap(), [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(numbers("micro=1..16").unwrap(), [1.0, 2.0, 4.0, 8.0, 16.0]);
        assert_eq!(numbers("micro=3..13").unwrap(), [3.0, 6.0, 12.0]);
        assert_eq!(numbers("shard=0..4").unwrap(), [0.0, 1.0, 2.0, 4.0]);
        assert_eq!(numbers("micro=1..6:2").unwrap(), [1.0, 3.0, 5.0]);
        assert_eq!(numbers("prefix_hit=0..0.3").unwrap(), [0.0, 0.1, 0.2, 0.3]);
        assert_eq!(numbers("pp=divisors(12)").unwrap(), [1.0, 2.0, 3.0, 4.0, 6.0, 12.0]);
        assert_eq!(numbers("pp=divisors(accelerators)").unwrap(), [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(numbers("micro=1..5000:1,1..6000:1").unwrap().len(), 6000);
        assert_eq!(numbers("noise=all").unwrap().len(), 2);
        assert!(numbers("fabric=all").unwrap().len() > 1);
        assert_eq!(numbers("tp=all").unwrap(), [1.0, 2.0, 3.0, 4.0, 6.0, 8.0]);
        assert_eq!(numbers("dp=all").unwrap(), [1.0, 2.0, 4.0, 8.0]);
    }

    #[test]
    fn invalid_axis_is_refused_with_a_reason() {
        for (text, part) in [
            ("tp", "expected knob=VALUES"),
            ("tp=", "expected knob=VALUES"),
            ("tp=8..1", "the end is below the start"),
            ("tp=1..8:0", "the step must be positive"),
            ("tp=1..8:nan", "the step must be positive"),
            ("tp=1..8:0.5", "whole number"),
            ("micro=all", "state them as"),
            ("seed=all", "state them as"),
            ("noise=1..2", "does not take numbers"),
            ("pp=divisors(layer)", "found"),
            ("tpp=1", "did you mean"),
            ("hourly_usd=0..1e9:0.001", "more than"),
        ] {
            let described = numbers(text).unwrap_err().to_string();
            assert!(described.contains(part), "{text}: {described}");
        }
    }

    #[test]
    fn sweep_points_are_numbered_with_the_last_axis_fastest() {
        let space = Space::of(vec![Axis::of(Knob::Tp, [1.0, 2.0]), Axis::of(Knob::Pp, [1.0, 2.0, 4.0])]).unwrap();
        assert_eq!(space.size(), 6);
        let at = |point| space.settings(point).map(|(_, value)| value.to_string()).collect::<Vec<_>>();
        assert_eq!(at(0), ["1", "1"]);
        assert_eq!(at(1), ["1", "2"]);
        assert_eq!(at(5), ["2", "4"]);
        assert!(Space::of(vec![Axis::of(Knob::Tp, [1.0]), Axis::of(Knob::Tp, [2.0])]).is_err());
    }
}
