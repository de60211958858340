//! How quantities are shown: one place for prefixes, significant digits and deltas.
//!
//! Every figure keeps its width while it changes, so that nothing jumps: four significant digits, a decimal point
//! only where it is significant, thousands as `k`, `M`, `G` … after the number.

use crate::math;

/// Significant digits of a figure, unless it is known no better than in fewer.
pub const DIGITS: i32 = 4;

/// A number with four significant digits and an SI prefix: `2642` → `2642`, `36215.7` → `36.22 k`.
#[must_use]
pub fn si(value: f64) -> String {
    si_in(value, DIGITS)
}

/// The same in so many digits.
#[must_use]
pub fn si_in(value: f64, digits: i32) -> String {
    let (scale, prefix) = prefix(value, digits);
    with_unit(&rounded(value / scale, digits), prefix).trim_end().to_owned()
}

/// What a number in so many digits is divided by for its SI prefix, and the prefix.
#[must_use]
pub fn prefix(value: f64, digits: i32) -> (f64, &'static str) {
    const PREFIXES: [(f64, &str); 6] = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let bump = bump(digits);
    // Four digits before the point need no prefix.
    if !value.is_finite() || value.abs() < 1e4 * bump {
        return (1.0, "");
    }
    PREFIXES.into_iter().find(|(scale, _)| value.abs() >= scale * bump).unwrap_or((1.0, ""))
}

/// The share of a round number from which rounding to so many digits reaches it: 9999.5 would read 10000.
fn bump(digits: i32) -> f64 {
    1.0 - 0.5 * 10f64.powi(-digits)
}

/// A number rounded to so many significant digits, those before the point too: `6536` in three is `6540`.
#[must_use]
pub fn rounded(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return significant(value, digits);
    }
    let step = 10f64.powi(magnitude_after_rounding(value, digits) - digits + 1);
    significant(if step > 1.0 { (value / step).round() * step } else { value }, digits)
}

/// Bytes of a GB of memory. Memory comes in powers of two, and data sheets and tools call 2^30 bytes a GB: an "80 GB" device
/// has 80 of them.
pub const MEMORY_GB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Bytes of memory in the units of data sheets: 85,899,345,920 B are `80.00 GB`.
#[must_use]
pub fn memory(bytes: f64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(1024.0 * MEMORY_GB, "TB"), (MEMORY_GB, "GB"), (MEMORY_GB / 1024.0, "MB"), (1024.0, "kB")];
    let unit = UNITS.iter().find(|(scale, _)| bytes.abs() >= 0.9999 * scale);
    unit.map_or_else(
        || format!("{} B", significant(bytes, 4)),
        |(scale, unit)| format!("{} {unit}", significant(bytes / scale, 4)),
    )
}

/// A number rounded to `digits` significant digits, trailing zeros kept so that columns align; very small numbers
/// in scientific notation.
#[must_use]
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return "–".to_owned();
    }
    let magnitude = magnitude_after_rounding(value, digits);
    if magnitude < -6 {
        let places = usize::try_from(digits - 1).unwrap_or_default();
        return format!("{value:.places$e}");
    }
    let places = usize::try_from(digits - 1 - magnitude).unwrap_or_default();
    format!("{value:.places$}")
}

/// A number in its shortest form: `160`, `7.5`, `0.25`.
#[must_use]
pub fn significant_short(value: f64) -> String {
    let rounded = (value * 1000.0).round() / 1000.0;
    if value.abs() < 1e5 { rounded.to_string() } else { si(value) }
}

/// The power of ten of the first digit once `value` is rounded to `digits` digits (999.96 → 3).
fn magnitude_after_rounding(value: f64, digits: i32) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "a float's decimal exponent is below 400")]
    let magnitude = math::log10(value.abs()).floor() as i32;
    let unit = 10f64.powi(magnitude - digits + 1);
    if (value.abs() / unit).round() * unit >= 10f64.powi(magnitude + 1) { magnitude + 1 } else { magnitude }
}

/// US dollars: cents from one dollar up, four significant digits below.
#[must_use]
pub fn usd(value: f64) -> String {
    usd_in(value, DIGITS)
}

/// The same in so many digits; prices from one to a hundred dollars keep their cents.
#[must_use]
pub fn usd_in(value: f64, digits: i32) -> String {
    let cents = if digits < DIGITS { 1.0..99.995 } else { 1.0..1e4 * bump(digits) };
    match value.abs() {
        _ if !value.is_finite() => "–".to_owned(),
        size if cents.contains(&size) => format!("${value:.2}"),
        _ => format!("${}", si_in(value, digits)),
    }
}

/// A share as per cent with one decimal: `0.7021` → `70.2 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    percent_in(share, DIGITS)
}

/// The same in so many digits, but no more than one decimal.
#[must_use]
pub fn percent_in(share: f64, digits: i32) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        _ if !share.is_finite() => "–".to_owned(),
        size if digits < DIGITS && size >= 100.0 * bump(digits) => format!("{} %", rounded(percent, digits)),
        _ => format!("{percent:.1} %"),
    }
}

/// Milliseconds in a readable unit: `4.171 ms`, `383.6 s`, `6.4 min`.
#[must_use]
pub fn duration_ms(ms: f64) -> String {
    duration_in(ms, DIGITS)
}

/// The same in so many digits.
#[must_use]
pub fn duration_in(ms: f64, digits: i32) -> String {
    let (scale, unit) = time_unit(ms, digits);
    match ms.abs() {
        _ if !ms.is_finite() => "–".to_owned(),
        // Shorter than a nanosecond does not matter to a user.
        m if m < 1e-6 => "0 ms".to_owned(),
        _ => format!("{} {unit}", rounded(ms / scale, digits)),
    }
}

/// What milliseconds in so many digits are divided by for a readable unit, and the unit.
#[must_use]
pub fn time_unit(ms: f64, digits: i32) -> (f64, &'static str) {
    const DAY: f64 = 86_400_000.0;
    // Leap days counted.
    const YEAR: f64 = 365.25 * DAY;
    let from = |least: f64| ms.abs() >= least * bump(digits);
    match () {
        () if !ms.is_finite() => (1.0, "ms"),
        () if from(1e4 * DAY) => (YEAR, "y"),
        () if from(1e3 * 3.6e6) => (DAY, "d"),
        () if from(100.0 * 6e4) => (3.6e6, "h"),
        () if from(1e6) => (6e4, "min"),
        () if from(1e4) => (1e3, "s"),
        () if ms.abs() >= 0.1 || ms.abs() < 1e-6 => (1.0, "ms"),
        () => (1e-3, "µs"),
    }
}

/// Times in the unit and the decimals of the longest, as a range or an axis shows them: `0.00 s`, `5.00 s`, `10.00 s`.
#[must_use]
pub fn durations_ms<const N: usize>(ms: [f64; N]) -> [String; N] {
    let longest = ms.into_iter().filter(|ms| ms.is_finite()).fold(0.0_f64, |longest, ms| longest.max(ms.abs()));
    let (size, unit) = time_unit(longest, DIGITS);
    let decimals = rounded(longest / size, DIGITS).split_once('.').map_or(0, |(_, decimals)| decimals.len());
    ms.map(|ms| if ms.is_finite() { format!("{:.decimals$} {unit}", ms / size) } else { "–".to_owned() })
}

/// Appends a unit to a number written by [`si`]: the prefix belongs to the unit (`36.22 ktok/s`, `10.20 kW`).
#[must_use]
pub fn with_unit(number: &str, unit: &str) -> String {
    if number.contains(' ') { format!("{number}{unit}") } else { format!("{number} {unit}") }
}

/// A relative change with its sign: `+12.3 %`, `-4.0 %`, `±0 %`.
#[must_use]
pub fn relative(before: f64, after: f64) -> String {
    if before == after {
        return "±0 %".to_owned();
    }
    if before == 0.0 || !before.is_finite() || !after.is_finite() {
        return "new".to_owned();
    }
    let change = (after - before) / before.abs() * 100.0;
    if change.abs() >= 999.5 {
        return format!("×{}", significant(after / before, 3));
    }
    match change.abs() {
        // Three digits, and four columns at most before the sign of per cent.
        size if size >= 99.95 => format!("{change:+.0} %"),
        size if size < 0.05 => format!("{change:+.3} %"),
        _ => format!("{change:+.1} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_range_have_the_unit_of_the_longest() {
        assert_eq!(durations_ms([0.0, 5000.0, 15_000.0]), ["0.00 s", "5.00 s", "15.00 s"]);
        assert_eq!(durations_ms([0.0, 79_050.0, 158_100.0]), ["0.0 s", "79.0 s", "158.1 s"]);
        assert_eq!(durations_ms([0.0, 0.0]), ["0 ms", "0 ms"]);
        assert_eq!(durations_ms([f64::INFINITY, 2.0]), ["–", "2.000 ms"]);
    }

    #[test]
    fn si_keeps_four_digits() {
        assert_eq!(si(0.0), "0");
        assert_eq!(si(2_641.820_2), "2642");
        assert_eq!(si(9_999.4), "9999");
        assert_eq!(si(9_999.6), "10.00 k");
        assert_eq!(si(36_215.7), "36.22 k");
        assert_eq!(si(999_960.0), "1.000 M");
        assert_eq!(si(1.5e12), "1.500 T");
        assert_eq!(si(-36_215.7), "-36.22 k");
        assert_eq!(si(f64::NAN), "–");
        assert_eq!(si(0.012_345_6), "0.01235");
    }

    #[test]
    fn significant_survives_rounding_up() {
        assert_eq!(significant(999.96, 4), "1000");
        assert_eq!(significant(0.999_96, 4), "1.000");
        assert_eq!(significant(1.0e-9, 4), "1.000e-9");
    }

    #[test]
    fn money_time_and_shares() {
        assert_eq!(usd(98.32), "$98.32");
        assert_eq!(memory(80.0 * MEMORY_GB), "80.00 GB");
        assert_eq!(memory(0.5 * MEMORY_GB), "512.0 MB");
        assert_eq!(memory(3.0), "3.000 B");
        assert_eq!(usd(0.010_469_26), "$0.01047");
        assert_eq!(usd(12_345_678.0), "$12.35 M");
        assert_eq!(percent(0.702_075), "70.2 %");
        assert_eq!(duration_ms(4.171_455), "4.171 ms");
        assert_eq!(duration_ms(383_555.9), "383.6 s");
        assert_eq!(duration_ms(0.0), "0 ms");
        assert_eq!(duration_ms(2e-118), "0 ms");
        assert_eq!(duration_ms(0.0421), "42.10 µs");
        assert_eq!(duration_ms(3_600_000.0 * 30.0), "30.00 h");
    }

    #[test]
    fn fewer_digits_are_rounded_from_the_value_itself() {
        // By way of four digits they would be 322, 74.3 and 12.9.
        assert_eq!(
            [duration_in(322.523, 3), duration_in(74.351, 3), si_in(12_951.0, 3)],
            ["323 ms", "74.4 ms", "13.0 k"]
        );
        assert_eq!([duration_in(9996.0, 3), si_in(9996.0, 3), usd_in(9996.0, 3)], ["10.0 s", "10.0 k", "$10.0 k"]);
        assert_eq!([rounded(6536.0, 3), rounded(-6536.0, 3), rounded(0.0, 3)], ["6540", "-6540", "0"]);
        assert_eq!(
            [2.341, 115.01, 0.002_339, 99.999].map(|price| usd_in(price, 3)),
            ["$2.34", "$115", "$0.00234", "$100"]
        );
        assert_eq!([0.1942, 1.0, 12.345].map(|share| percent_in(share, 3)), ["19.4 %", "100 %", "1230 %"]);
    }

    #[test]
    fn changes_carry_their_sign() {
        assert_eq!(relative(100.0, 112.34), "+12.3 %");
        assert_eq!(relative(100.0, 96.0), "-4.0 %");
        assert_eq!(relative(100.0, 100.0), "±0 %");
        assert_eq!(relative(0.0, 5.0), "new");
        assert_eq!(relative(1.0, 30.0), "×30.0");
        assert_eq!((relative(1.0, 2.411), relative(1.0, 0.0)), ("+141 %".to_owned(), "-100 %".to_owned()));
    }
}
