//! Common unit and number of decimals for the values of a table row or column, which makes them easy to compare.

use super::metric::{BRIEF_DIGITS, Format, Metric, TON_THRESHOLD_KG};
use atlas_core::math;
use atlas_core::time_unit::TimeUnit;
use atlas_core::units::DIGITS;
use atlas_core::{sort, units};

/// Common unit and number of decimals for several values of a metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    factor: f64,
    unit: String,
    decimals: usize,
}

/// Time units above the smallest, milliseconds, longest first.
const TIMES: [TimeUnit; 4] = [TimeUnit::Day, TimeUnit::Hour, TimeUnit::Minute, TimeUnit::Second];
/// Maximum number of decimals; [`SMALLEST`] is the smallest value that is not rounded to zero.
const DECIMALS: usize = 6;
const SMALLEST: f64 = 5e-7;
const PREFIXES: [(f64, &str); 5] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (0.0, "")];

impl Scale {
    /// Selects the unit that suits the median value and enough decimals for three digits of it, or four if that shows
    /// two digits of the smallest value.
    #[must_use]
    pub fn of(metric: &Metric, values: impl Iterator<Item = f64>) -> Scale {
        let mut sizes: Vec<f64> = values.map(f64::abs).filter(|value| value.is_finite() && *value > 0.0).collect();
        sort::numbers(&mut sizes);
        let middle = sizes.get(sizes.len().saturating_sub(1) / 2).copied().unwrap_or(1.0);
        let smallest = sizes.first().copied().unwrap_or(1.0);
        let (factor, unit) = unit_of(metric, middle);
        let decimals = match metric.format {
            Format::Count => 0,
            Format::Percent => 1,
            _ => {
                let order = |value: f64| math::log10(value * factor).floor() as i32;
                let wanted = (2 - order(middle)).max((1 - order(smallest)).min(3 - order(middle)));
                // If all values would be rounded to zero, show a plain 0.
                let largest = sizes.last().copied().unwrap_or(1.0) * factor;
                if largest < SMALLEST { 0 } else { usize::try_from(wanted).unwrap_or_default().min(DECIMALS) }
            }
        };
        Scale { factor, unit, decimals }
    }

    /// Selects the unit and four digits that suit a total, so that its parts visibly add up.
    #[must_use]
    pub fn of_whole(metric: &Metric, whole: f64) -> Scale {
        let (factor, unit) = match metric.format {
            // Seconds up to a few minutes, because fractions of a minute are hard to read.
            Format::Duration | Format::Hours => {
                let (factor, unit) = metric.axis_unit(whole.abs());
                (factor, unit.to_owned())
            }
            _ => unit_of(metric, whole.abs()),
        };
        let order = math::log10(whole.abs() * factor).floor();
        let decimals =
            if order.is_finite() { usize::try_from(3 - order as i32).unwrap_or_default().min(DECIMALS) } else { 0 };
        Scale { factor, unit, decimals }
    }

    /// The unit in which [`Metric::show`] formats a value, for an interval beside it.
    #[must_use]
    pub fn of_shown(metric: &Metric, value: f64) -> Scale {
        let prefixed = |scale: f64, unit: &str| {
            let (size, prefix) = units::prefix(value * scale, DIGITS);
            (scale / size, format!("{prefix}{unit}"))
        };
        let time = |scale: f64| {
            let (size, unit) = units::time_unit(value * scale, DIGITS);
            (scale / size, unit.to_owned())
        };
        let (factor, unit) = match metric.format {
            Format::Percent => (100.0, "%".to_owned()),
            Format::Duration => time(1.0),
            Format::Hours => time(3.6e6),
            Format::Energy => prefixed(1e3, "Wh"),
            Format::Mass if value.abs() >= TON_THRESHOLD_KG => prefixed(1e-3, "t"),
            Format::Mass => prefixed(1.0, "kg"),
            Format::Usd => prefixed(1.0, "$"),
            Format::Count => (1.0, metric.unit.to_owned()),
            Format::Si => prefixed(1.0, metric.unit),
        };
        Scale { factor, unit, decimals: DECIMALS }
    }

    /// Common unit: `ms`, `k tok/s`, `$`.
    #[must_use]
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// Formats a value without the unit.
    #[must_use]
    pub fn show(&self, value: f64) -> String {
        format!("{:.*}", self.decimals, value * self.factor)
    }

    /// Formats a value without the unit, in at most three digits.
    #[must_use]
    pub fn brief(&self, value: f64) -> String {
        let text = self.show(value);
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        if digits <= 3 { text } else { units::rounded(value * self.factor, BRIEF_DIGITS) }
    }

    /// Formats a value with the unit: `19.5 ms`, `$2.35`.
    #[must_use]
    pub fn with_unit(&self, value: f64) -> String {
        match self.unit.strip_suffix('$') {
            Some(prefix) => format!("${}{}{prefix}", self.show(value), if prefix.is_empty() { "" } else { " " }),
            None => format!("{} {}", self.show(value), self.unit).trim_end().to_owned(),
        }
    }

    /// Formats an interval without the unit, with as many digits as its width justifies.
    #[must_use]
    pub fn interval(&self, low: f64, high: f64) -> String {
        let [low, high] = ends(low * self.factor, high * self.factor, self.decimals);
        format!("{low}–{high}")
    }

    /// Formats an interval as text with the unit: `12 to 27 ms`, `$1.2 to $7.0`.
    #[must_use]
    pub fn interval_in_words(&self, low: f64, high: f64) -> String {
        let [low, high] = ends(low * self.factor, high * self.factor, DECIMALS);
        match self.unit.strip_suffix('$') {
            Some("") => format!("${low} to ${high}"),
            Some(prefix) => format!("${low} to ${high} {prefix}"),
            None => format!("{low} to {high} {}", self.unit).trim_end().to_owned(),
        }
    }
}

/// Formats the ends of an interval with two significant digits of its width and of its lower end, and at most `max_decimals`
/// decimals.
#[must_use]
pub fn ends(low: f64, high: f64, max_decimals: usize) -> [String; 2] {
    if low == high {
        return [low, high].map(|end| format!("{end:.max_decimals$}"));
    }
    let order = |value: f64| math::log10(value.abs()).floor();
    let lowest = [order(high - low), order(low)].into_iter().filter(|order| order.is_finite()).reduce(f64::min);
    let last = lowest.map_or(0, |order| order as i32 - 1);
    // Only tens and above are rounded here; decimals are rounded by the format string.
    let (step, decimals) = (10_f64.powi(last.max(0)), usize::try_from(-last).unwrap_or_default().min(max_decimals));
    let rounded = |end: f64| if last > 0 { (end / step).round() * step } else { end };
    [low, high].map(|end| format!("{:.decimals$}", rounded(end)))
}

fn unit_of(metric: &Metric, middle: f64) -> (f64, String) {
    let time = |ms: f64, to_ms: f64| {
        let unit = TIMES.into_iter().find(|unit| ms >= 2.0 * unit.milliseconds()).unwrap_or(TimeUnit::Millisecond);
        (to_ms / unit.milliseconds(), unit.symbol().to_owned())
    };
    let prefixed = |scale: f64, unit: &str| {
        let (size, prefix) = PREFIXES.iter().find(|(size, _)| middle * scale >= *size).unwrap_or(&PREFIXES[4]);
        (scale / size.max(1.0), format!("{prefix}{unit}"))
    };
    match metric.format {
        Format::Percent => (100.0, "%".to_owned()),
        Format::Duration => time(middle, 1.0),
        Format::Hours => time(middle * 3.6e6, 3.6e6),
        Format::Energy => prefixed(1e3, "Wh"),
        Format::Mass if middle >= 1e3 => (1e-3, "t".to_owned()),
        Format::Mass => (1.0, "kg".to_owned()),
        Format::Usd if middle >= 1e6 => (1e-6, "M$".to_owned()),
        Format::Usd if middle >= 1e4 => (1e-3, "k$".to_owned()),
        Format::Usd => (1.0, "$".to_owned()),
        Format::Count => (1.0, metric.unit.to_owned()),
        Format::Si => prefixed(1.0, metric.unit),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn shown(name: &str, values: &[f64]) -> (Vec<String>, String) {
        let metric = Metric::named(name).unwrap();
        let scale = Scale::of(metric, values.iter().copied());
        (values.iter().map(|value| scale.show(*value)).collect(), scale.unit().to_owned())
    }

    #[test]
    fn all_values_of_a_row_have_one_unit_and_the_same_decimals() {
        let (times, unit) = shown("step_time_ms", &[2152.0, 83_220.0, 144_200.0, 1_643_400.0]);
        assert_eq!((times, unit.as_str()), (vec!["2.2".into(), "83.2".into(), "144.2".into(), "1643.4".into()], "s"));
        let (rates, unit) = shown("tokens_per_sec", &[4967.0, 5500.0, 8664.0, 4267.0]);
        assert_eq!(
            (rates, unit.as_str()),
            (vec!["4.97".into(), "5.50".into(), "8.66".into(), "4.27".into()], "ktok/s")
        );
        let (costs, unit) = shown("dollar_per_1m_tokens", &[3.124, 3.238, 0.0312]);
        assert_eq!((costs, unit.as_str()), (vec!["3.124".into(), "3.238".into(), "0.031".into()], "$"));
        assert_eq!(shown("mfu", &[0.479, 0.5]).0, ["47.9", "50.0"]);
        assert_eq!(shown("tpot_ms", &[]).1, "ms");
    }

    #[test]
    fn the_parts_of_a_whole_have_its_unit() {
        let scale = Scale::of_whole(Metric::named("step_time_ms").unwrap(), 128_289.0);
        assert_eq!((scale.with_unit(103_093.0), scale.with_unit(39.0)), ("103.1 s".to_owned(), "0.0 s".to_owned()));
        let scale = Scale::of_whole(Metric::named("step_time_ms").unwrap(), 172_840.0);
        assert_eq!(scale.with_unit(96_288.0), "96.3 s");
        let scale = Scale::of_whole(Metric::named("step_time_ms").unwrap(), 19.68);
        assert_eq!(scale.with_unit(0.82), "0.82 ms");
        assert_eq!(Scale::of_whole(Metric::named("usd_per_run").unwrap(), 2.3e6).with_unit(2.3e6), "$2.300 M");
        assert_eq!(Scale::of_whole(Metric::named("step_time_ms").unwrap(), 0.0).with_unit(0.0), "0 ms");
    }

    #[test]
    fn interval_decimals_follow_its_width() {
        let scale = |name: &str, value: f64| Scale::of(Metric::named(name).unwrap(), std::iter::once(value));
        assert_eq!(scale("dollar_per_1m_tokens", 0.0312).interval(0.0271, 0.0422), "0.027–0.042");
        assert_eq!(scale("tokens_per_sec", 5500.0).interval(4120.0, 6930.0), "4.1–6.9");
        assert_eq!(scale("tokens_per_sec", 55.0).interval(41.2, 693.0), "41–693");
        assert_eq!(ends(2268.0, 12_953.0, 0), ["2300", "13000"]);
        assert_eq!(ends(0.0, 0.031, 4), ["0.000", "0.031"]);
        assert_eq!(scale("tpot_ms", 20.22).interval_in_words(12.4, 27.35), "12 to 27 ms");
        assert_eq!(scale("dollar_per_1m_tokens", 2.44).interval_in_words(1.23, 7.034), "$1.2 to $7.0");
        assert_eq!(scale("mfu", 0.479).interval(0.4788, 0.4791), "47.9–47.9");
        assert_eq!(scale("mfu", 0.479).interval(0.479, 0.479), "47.9–47.9");
    }
}
