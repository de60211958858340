//! As many digits as are known: a value and its interval as text.

use super::Estimate;
use super::metric::{Metric, Section};
use super::scale::ends;
use crate::scenario::Scenario;
use atlas_core::units;

/// Half the width of an interval, as a share of the value, from which on a fourth digit means nothing.
const LIMITED: f64 = 0.05;

/// A metric's value as text, in three digits where it is known no better.
#[must_use]
pub fn shown(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> String {
    let text = metric.show((metric.get)(estimate, scenario));
    if are_three(metric, scenario, estimate) { three_digits(&text) } else { text }
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

/// The ends of a metric's interval in the unit of its value as it was written; `None` if it has none.
#[must_use]
pub fn interval(metric: &Metric, scenario: &Scenario, estimate: &Estimate, shown: &str) -> Option<[String; 2]> {
    let (low, high) = metric.interval(estimate, scenario)?;
    let value = (metric.get)(estimate, scenario);
    if !(low.is_finite() && high.is_finite()) || low == high || value == 0.0 {
        return None;
    }
    let text = shown.split(' ').next()?.trim_start_matches('$');
    let number: f64 = text.parse().ok()?;
    let decimals = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    Some(ends(low / value * number, high / value * number, decimals))
}

/// A number as it was written, `6536 tok/s` or `$0.002339`, with three significant digits: for values that are known no
/// better. Prices from one to a hundred dollars keep their cents.
#[must_use]
pub fn three_digits(shown: &str) -> String {
    let (sign, rest) = shown.strip_prefix('$').map_or(("", shown), |rest| ("$", rest));
    let (number, unit) = rest.split_once(' ').unwrap_or((rest, ""));
    let Ok(value) = number.parse::<f64>() else { return shown.to_owned() };
    let cents = sign == "$" && unit.is_empty() && (1.0..100.0).contains(&value.abs());
    if value == 0.0 || !value.is_finite() || cents || number.bytes().filter(u8::is_ascii_digit).count() <= 3 {
        return shown.to_owned();
    }
    let step = 10f64.powf(value.abs().log10().floor() - 2.0);
    let rounded = if step > 1.0 { (value / step).round() * step } else { value };
    let space = if unit.is_empty() { "" } else { " " };
    format!("{sign}{}{space}{unit}", units::significant(rounded, 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_keep_the_unit_and_the_cents_of_small_prices() {
        let shown = [
            "6536 tok/s",
            "12.95 ktok/s",
            "173.9 ms",
            "9996 ms",
            "19.4 %",
            "$2.34",
            "$115.01",
            "$0.002339",
            "–",
            "0 W",
        ];
        let kept =
            ["6540 tok/s", "12.9 ktok/s", "174 ms", "10000 ms", "19.4 %", "$2.34", "$115", "$0.00234", "–", "0 W"];
        assert_eq!(shown.map(three_digits), kept);
    }
}
