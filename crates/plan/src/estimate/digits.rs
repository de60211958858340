//! As many digits as are known: a value and its interval as text.

use super::Estimate;
use super::metric::{BRIEF, Metric, Section};
use super::scale::ends;
use crate::scenario::Scenario;
use atlas_core::math;
use atlas_core::units::{self, DIGITS};

/// Half the width of an interval, as a share of the value, from which on a fourth digit means nothing.
const LIMITED: f64 = 0.05;

/// A metric's value as text, in three digits where it is known no better.
#[must_use]
pub fn shown(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> String {
    metric.show_in((metric.get)(estimate, scenario), digits(metric, scenario, estimate))
}

fn digits(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> i32 {
    if are_three(metric, scenario, estimate) { BRIEF } else { DIGITS }
}

/// Whether a metric's interval is wider than five percent to either side. A latency or throughput without an interval of its
/// own is known no better than the key figures.
#[must_use]
pub fn are_three(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> bool {
    let wide = |metric: &Metric| {
        let value = (metric.get)(estimate, scenario);
        metric.interval(estimate, scenario).map(|(low, high)| high - low > 2.0 * LIMITED * value.abs())
    };
    let follows = matches!(metric.section, Section::Throughput | Section::Latency);
    let key = || follows && Metric::headlines(scenario.mode()).any(|metric| wide(metric) == Some(true));
    wide(metric).unwrap_or_else(key)
}

/// A metric's value as the number that [`shown`] writes: what it is divided by, and its decimals.
fn written(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> (f64, usize) {
    let (value, digits) = ((metric.get)(estimate, scenario), digits(metric, scenario, estimate));
    let text = metric.show_in(value, digits);
    let number = text.split(' ').next().unwrap_or_default();
    let decimals = number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    (metric.format.scale(value, digits), decimals)
}

/// The ends of a metric's interval in the unit in which [`shown`] writes its value; `None` if it has none.
#[must_use]
pub fn interval(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> Option<[String; 2]> {
    let (low, high) = metric.interval(estimate, scenario)?;
    if !(low.is_finite() && high.is_finite()) || low == high || (metric.get)(estimate, scenario) == 0.0 {
        return None;
    }
    let (scale, decimals) = written(metric, scenario, estimate);
    Some(ends(low / scale, high / scale, decimals))
}

/// A metric's change from another value, with its sign, in the unit in which [`shown`] writes the value: no more decimals
/// than that has, unless the change were nought.
#[must_use]
pub fn difference(metric: &Metric, scenario: &Scenario, estimate: &Estimate, before: f64) -> String {
    let change = (metric.get)(estimate, scenario) - before;
    let sign = if change < 0.0 { "-" } else { "+" };
    let (scale, decimals) = written(metric, scenario, estimate);
    let number = (change / scale).abs();
    let order = math::log10(number).floor();
    let text = match order {
        _ if !order.is_finite() => "0".to_owned(),
        // Hours that became milliseconds: in the unit that suits the change.
        4.0.. => metric.brief(change.abs()),
        ..-6.0 => units::significant(number, 2),
        _ => {
            let first = usize::try_from(-(order as i32)).unwrap_or_default();
            let most = usize::try_from(BRIEF - 1 - order as i32).unwrap_or_default();
            match decimals.min(most).max(first) {
                0 => units::rounded(number, BRIEF),
                decimals => format!("{number:.decimals$}"),
            }
        }
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::estimate::Format;

    #[test]
    fn the_number_written_is_the_value_divided_by_its_scale() {
        let formats = [Format::Si, Format::Percent, Format::Usd, Format::Duration, Format::Hours, Format::Energy];
        for format in formats.into_iter().chain([Format::Mass, Format::Count]) {
            for digits in [BRIEF, DIGITS] {
                for value in (-30..60).map(|power| 1.2345 * 10f64.powf(f64::from(power) / 5.0)) {
                    let text = format.show_in(value, digits);
                    let number: f64 = text.trim_start_matches('$').split(' ').next().unwrap().parse().unwrap();
                    let scaled = value / format.scale(value, digits);
                    let fits = (number - scaled).abs() <= 0.006 * scaled || (number - scaled).abs() <= 0.5;
                    assert!(fits, "{format:?} {value}: {text} is not {scaled}");
                }
            }
        }
    }
}
