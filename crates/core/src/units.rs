//! Formatting of quantities: prefixes, significant digits, relative changes.
//!
//! Formatted numbers keep their width while they change, so that the layout stays stable: four significant digits, a
//! decimal point only if digits follow, thousands as `k`, `M`, `G` … after the number.

use crate::math;

/// Default number of significant digits.
pub const DIGITS: i32 = 4;

/// A number with four significant digits and an SI prefix: `2642` → `2642`, `36215.7` → `36.22 k`.
#[must_use]
pub fn si(value: f64) -> String {
    si_in(value, DIGITS)
}

/// Like [`si`], with `digits` significant digits.
#[must_use]
pub fn si_in(value: f64, digits: i32) -> String {
    let (scale, prefix) = prefix(value, digits);
    with_unit(&rounded(value / scale, digits), prefix).trim_end().to_owned()
}

/// A number as it is written, but in scientific notation if it would have many digits: `1e300`.
#[must_use]
pub fn written(value: f64) -> String {
    let size = value.abs();
    if size >= 1e21 || size > 0.0 && size < 1e-9 { format!("{value:e}") } else { value.to_string() }
}

/// Divisor and SI prefix for formatting `value` with `digits` significant digits.
#[must_use]
pub fn prefix(value: f64, digits: i32) -> (f64, &'static str) {
    const PREFIXES: [(f64, &str); 6] = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let bump = round_up_share(digits);
    // Four digits before the decimal point need no prefix. No prefix shortens numbers beyond the last one.
    if !value.is_finite() || value.abs() < 1e4 * bump || value.abs() >= 1e22 {
        return (1.0, "");
    }
    PREFIXES.into_iter().find(|(scale, _)| value.abs() >= scale * bump).unwrap_or((1.0, ""))
}

/// Share of a power of ten from which rounding to `digits` digits reaches it: 9999.5 would be shown as 10000.
fn round_up_share(digits: i32) -> f64 {
    1.0 - 0.5 * 10f64.powi(-digits)
}

/// Rounds to `digits` significant digits, including those before the decimal point: `6536` with three is `6540`.
#[must_use]
pub fn rounded(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return significant(value, digits);
    }
    let step = 10f64.powi(magnitude_after_rounding(value, digits) - digits + 1);
    significant(if step > 1.0 { (value / step).round() * step } else { value }, digits)
}

/// Bytes of a GB of memory. Memory sizes are powers of two, and datasheets and tools call 2^30 bytes a GB: an "80 GB"
/// device has 80 × 2^30 bytes.
pub const BYTES_PER_GB: f64 = 1024.0 * 1024.0 * 1024.0;

/// Formats bytes of memory in datasheet units: 85,899,345,920 B are `80.00 GB`.
#[must_use]
pub fn memory(bytes: f64) -> String {
    const UNITS: [(f64, &str); 4] =
        [(1024.0 * BYTES_PER_GB, "TB"), (BYTES_PER_GB, "GB"), (BYTES_PER_GB / 1024.0, "MB"), (1024.0, "kB")];
    let unit = UNITS.iter().find(|(scale, _)| bytes.abs() >= 0.9999 * scale);
    unit.map_or_else(
        || format!("{} B", significant(bytes, 4)),
        |(scale, unit)| format!("{} {unit}", significant(bytes / scale, 4)),
    )
}

/// Formats a number with `digits` significant digits. Trailing zeros are kept so that columns align. Very small and very
/// large numbers use scientific notation.
#[must_use]
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !value.is_finite() {
        return "–".to_owned();
    }
    let magnitude = magnitude_after_rounding(value, digits);
    if !(-6..=21).contains(&magnitude) {
        let places = usize::try_from(digits - 1).unwrap_or_default();
        return format!("{value:.places$e}");
    }
    let places = usize::try_from(digits - 1 - magnitude).unwrap_or_default();
    format!("{value:.places$}")
}

/// Formats a number in its shortest form: `160`, `7.5`, `0.25`.
#[must_use]
pub fn significant_short(value: f64) -> String {
    let rounded = (value * 1000.0).round() / 1000.0;
    if value.abs() < 1e5 { rounded.to_string() } else { si(value) }
}

/// Decimal exponent of `value` after rounding to `digits` digits (999.96 → 3).
fn magnitude_after_rounding(value: f64, digits: i32) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "a float's decimal exponent is below 400")]
    let magnitude = math::log10(value.abs()).floor() as i32;
    let unit = 10f64.powi(magnitude - digits + 1);
    if (value.abs() / unit).round() * unit >= 10f64.powi(magnitude + 1) { magnitude + 1 } else { magnitude }
}

/// Formats US dollars: with cents from one dollar, with four significant digits below.
#[must_use]
pub fn usd(value: f64) -> String {
    usd_in(value, DIGITS)
}

/// Like [`usd`], with `digits` significant digits; amounts from 1 to 100 dollars always have cents.
#[must_use]
pub fn usd_in(value: f64, digits: i32) -> String {
    let cents = if digits < DIGITS { 1.0..99.995 } else { 1.0..1e4 * round_up_share(digits) };
    match value.abs() {
        _ if !value.is_finite() => "–".to_owned(),
        size if cents.contains(&size) => format!("${value:.2}"),
        _ => format!("${}", si_in(value, digits)),
    }
}

/// Formats a share as a percentage with one decimal: `0.7021` → `70.2 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    percent_in(share, DIGITS)
}

/// Like [`percent`], with `digits` significant digits and at most one decimal.
#[must_use]
pub fn percent_in(share: f64, digits: i32) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        _ if !share.is_finite() => "–".to_owned(),
        size if digits < DIGITS && size >= 100.0 * round_up_share(digits) => format!("{} %", rounded(percent, digits)),
        _ => format!("{percent:.1} %"),
    }
}

/// Formats seconds in a readable unit: `4.171 ms`, `383.6 s`, `6.4 min`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    duration_ms(1e3 * seconds)
}

/// Formats milliseconds in a readable unit: `4.171 ms`, `383.6 s`, `6.4 min`.
#[must_use]
pub fn duration_ms(ms: f64) -> String {
    duration_in(ms, DIGITS)
}

/// Like [`duration_ms`], with `digits` significant digits.
#[must_use]
pub fn duration_in(ms: f64, digits: i32) -> String {
    let (scale, unit) = time_unit(ms, digits);
    match ms.abs() {
        _ if !ms.is_finite() => "–".to_owned(),
        // Times below a nanosecond are shown as zero.
        m if m < 1e-6 => "0 ms".to_owned(),
        _ => format!("{} {unit}", rounded(ms / scale, digits)),
    }
}

/// Divisor and unit for formatting `ms` milliseconds with `digits` significant digits.
#[must_use]
pub fn time_unit(ms: f64, digits: i32) -> (f64, &'static str) {
    const DAY: f64 = 86_400_000.0;
    // Includes leap days.
    const YEAR: f64 = 365.25 * DAY;
    let from = |least: f64| ms.abs() >= least * round_up_share(digits);
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

/// Formats times with the unit and decimals of the longest, for ranges and axes: `0.00 s`, `5.00 s`, `10.00 s`.
#[must_use]
pub fn durations_ms<const N: usize>(ms: [f64; N]) -> [String; N] {
    let longest = ms.into_iter().filter(|ms| ms.is_finite()).fold(0.0_f64, |longest, ms| longest.max(ms.abs()));
    let (size, unit) = time_unit(longest, DIGITS);
    let decimals = rounded(longest / size, DIGITS).split_once('.').map_or(0, |(_, decimals)| decimals.len());
    ms.map(|ms| if ms.is_finite() { format!("{:.decimals$} {unit}", ms / size) } else { "–".to_owned() })
}

/// Appends a unit to a number formatted by [`si`]; an SI prefix is joined with the unit (`36.22 ktok/s`, `10.20 kW`).
#[must_use]
pub fn with_unit(number: &str, unit: &str) -> String {
    if number.contains(' ') { format!("{number}{unit}") } else { format!("{number} {unit}") }
}

/// Formats a relative change with its sign: `+12.3 %`, `-4.0 %`, `±0 %`.
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
        // Three digits, and at most four columns before the percent sign.
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
    fn money_memory_percentages_and_durations_are_formatted() {
        assert_eq!(usd(98.32), "$98.32");
        assert_eq!(memory(80.0 * BYTES_PER_GB), "80.00 GB");
        assert_eq!(memory(0.5 * BYTES_PER_GB), "512.0 MB");
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
    fn values_with_fewer_digits_are_rounded_from_the_original_value() {
        // Rounding to four digits first would give 322, 74.3 and 12.9.
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
    fn relative_changes_are_formatted_with_their_sign() {
        assert_eq!(relative(100.0, 112.34), "+12.3 %");
        assert_eq!(relative(100.0, 96.0), "-4.0 %");
        assert_eq!(relative(100.0, 100.0), "±0 %");
        assert_eq!(relative(0.0, 5.0), "new");
        assert_eq!(relative(1.0, 30.0), "×30.0");
        assert_eq!((relative(1.0, 2.411), relative(1.0, 0.0)), ("+141 %".to_owned(), "-100 %".to_owned()));
    }

    #[test]
    fn numbers_of_many_digits_are_written_in_scientific_notation() {
        for (value, text) in [
            (1e300, "1e300"),
            (-1.5e21, "-1.5e21"),
            (1e-300, "1e-300"),
            (0.0, "0"),
            (0.25, "0.25"),
            (1e15, "1000000000000000"),
        ] {
            assert_eq!(written(value), text);
            assert_eq!(written(value).parse(), Ok(value));
        }
        assert_eq!((si(1e308), significant(1e300, 4)), ("1.000e308".to_owned(), "1.000e300".to_owned()));
    }
}
