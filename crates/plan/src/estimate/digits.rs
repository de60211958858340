//! Formatting of metric values and intervals with as many digits as their confidence intervals justify.

use super::Estimate;
use super::metric::{BRIEF_DIGITS, Metric, Section};
use super::scale::ends;
use crate::scenario::Scenario;
use atlas_core::math;
use atlas_core::units::{self, DIGITS};

/// Half-width of an interval, relative to the value, above which a fourth digit is not significant.
const WIDE_INTERVAL: f64 = 0.05;

/// Formats a metric's value, with three digits instead of four if [`has_wide_interval`]; a dash if it has none.
#[must_use]
pub fn shown(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> String {
    let value = metric.value(estimate, scenario);
    value.map_or_else(|| "–".to_owned(), |value| metric.show_in(value, digits(metric, scenario, estimate)))
}

fn digits(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> i32 {
    if has_wide_interval(metric, scenario, estimate) { BRIEF_DIGITS } else { DIGITS }
}

/// Whether the interval of `metric` is wider than ±5 %. A latency or throughput without an interval of its own counts
/// as wide if that of any headline metric is.
#[must_use]
pub fn has_wide_interval(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> bool {
    let wide = |metric: &Metric| {
        let (low, high) = metric.interval(estimate, scenario)?;
        let value = metric.value(estimate, scenario)?;
        Some(high - low > 2.0 * WIDE_INTERVAL * value.abs())
    };
    let follows = matches!(metric.section, Section::Throughput | Section::Latency);
    let key = || follows && Metric::headlines(scenario.mode()).any(|metric| wide(metric) == Some(true));
    wide(metric).unwrap_or_else(key)
}

/// Divisor and number of decimals that [`shown`] uses for a metric's value.
fn written(metric: &Metric, scenario: &Scenario, estimate: &Estimate, value: f64) -> (f64, usize) {
    let digits = digits(metric, scenario, estimate);
    let text = metric.show_in(value, digits);
    let number = text.split(' ').next().unwrap_or_default();
    let decimals = number.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    (metric.format.scale(value, digits), decimals)
}

/// Ends of a metric's interval in the unit that [`shown`] uses for its value; `None` if it has no interval.
#[must_use]
pub fn interval(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> Option<[String; 2]> {
    let (low, high) = metric.interval(estimate, scenario)?;
    let value = metric.value(estimate, scenario)?;
    if !(low.is_finite() && high.is_finite()) || low == high || value == 0.0 {
        return None;
    }
    let (scale, decimals) = written(metric, scenario, estimate, value);
    Some(ends(low / scale, high / scale, decimals))
}

/// Formats the change of a metric since `before`, with its sign, in the unit that [`shown`] uses for the value. It has
/// at most as many decimals as the value, unless the change would then be shown as zero. `None` without a value.
#[must_use]
pub fn difference(metric: &Metric, scenario: &Scenario, estimate: &Estimate, before: f64) -> Option<String> {
    let value = metric.value(estimate, scenario)?;
    let change = value - before;
    let sign = if change < 0.0 { "-" } else { "+" };
    let (scale, decimals) = written(metric, scenario, estimate, value);
    let number = (change / scale).abs();
    let order = math::log10(number).floor();
    let text = match order {
        _ if !order.is_finite() => "0".to_owned(),
        // The change is orders of magnitude larger than the value (hours became milliseconds): use the unit that suits
        // the change.
        4.0.. => metric.brief(change.abs()),
        ..-6.0 => units::significant(number, 2),
        _ => {
            let first = usize::try_from(-(order as i32)).unwrap_or_default();
            let limit = usize::try_from(BRIEF_DIGITS - 1 - order as i32).unwrap_or_default();
            match decimals.min(limit).max(first) {
                0 => units::rounded(number, BRIEF_DIGITS),
                decimals => format!("{number:.decimals$}"),
            }
        }
    };
    Some(format!("{sign}{text}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::estimate::Format;

    #[test]
    fn formatted_number_is_the_value_divided_by_its_scale() {
        let formats = [Format::Si, Format::Percent, Format::Usd, Format::Duration, Format::Hours, Format::Energy];
        for format in formats.into_iter().chain([Format::Mass, Format::Count]) {
            for digits in [BRIEF_DIGITS, DIGITS] {
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
