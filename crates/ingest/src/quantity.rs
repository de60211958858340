//! Numbers with units, converted to seconds, gigabytes or watts.

use crate::text::{parse_leading_number, text_after, trim_start_ascii};
use atlas_core::time_unit::TimeUnit;

/// Target unit of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Measure {
    /// Seconds.
    Time,
    /// Gigabytes, 1e9 bytes.
    Memory,
    /// Watts.
    Power,
}

const MEMORY: [(&str, f64); 12] = [
    ("B", 1e-9),
    ("bytes", 1e-9),
    ("KB", 1e-6),
    ("kB", 1e-6),
    ("KiB", 1.024e-6),
    ("MB", 1e-3),
    ("MiB", 1.048_576e-3),
    ("GB", 1.0),
    ("GiB", 1.073_741_824),
    ("TB", 1e3),
    ("TiB", 1.099_511_627_776e3),
    ("Gb", 1.0),
];
const POWER: [(&str, f64); 6] = [("mW", 1e-3), ("W", 1.0), ("watts", 1.0), ("Watts", 1.0), ("kW", 1e3), ("MW", 1e6)];

impl Measure {
    /// Returns the conversion factor of a unit. Parentheses and brackets are ignored: `ms`, `(ms)` and `[ms]` are
    /// equal.
    pub(crate) fn factor(self, unit: &str) -> Option<f64> {
        let unit = unit.trim().trim_matches(['(', ')', '[', ']', '.']);
        let units: &[(&str, f64)] = match self {
            Measure::Time => return TimeUnit::named(unit).map(TimeUnit::seconds),
            Measure::Memory => &MEMORY,
            Measure::Power => &POWER,
        };
        units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
    }
}

/// Returns the leading letters of `text`.
fn unit_word(text: &str) -> &str {
    let text = trim_start_ascii(text);
    let end = text.find(|c: char| !c.is_alphabetic()).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// Parses a finite number with its unit, and converts it. `default` is the factor if no known unit follows.
pub(crate) fn quantity(text: &str, measure: Measure, default: f64) -> Option<f64> {
    let (value, rest) = parse_leading_number(text).filter(|(value, _)| value.is_finite())?;
    let word = unit_word(rest.trim_start_matches(['(', '[']));
    Some(value * measure.factor(word).unwrap_or(default))
}

/// Parses the seconds after `key` like [`quantity`]. A colon, an equals sign and blanks may precede the number.
pub(crate) fn seconds_after(line: &str, key: &str, default: f64) -> Option<f64> {
    let value = text_after(line, key)?;
    quantity(value.trim_start_matches([':', '=', ' ', '\t']), Measure::Time, default)
}

/// Parses the milliseconds at the start of `text`. Without a unit, `default` is the factor to seconds.
pub(crate) fn milliseconds(text: &str, default: f64) -> Option<f64> {
    let (value, rest) = parse_leading_number(text).filter(|(value, _)| value.is_finite())?;
    let word = unit_word(rest.trim_start_matches(['(', '[']));
    // Multiply the factors first, so that `708 usec` gives 0.708 and not 0.7079999 ms.
    Some(value * (Measure::Time.factor(word).unwrap_or(default) * 1e3))
}

/// Parses the milliseconds after `key`, like [`seconds_after`].
pub(crate) fn milliseconds_after(line: &str, key: &str, default: f64) -> Option<f64> {
    milliseconds(text_after(line, key)?.trim_start_matches([':', '=', ' ', '\t']), default)
}

/// Parses the gigabytes at the start of `text`. `default` is the factor if there is no unit.
pub(crate) fn gigabytes(text: &str, default: f64) -> Option<f64> {
    quantity(text, Measure::Memory, default)
}

/// Parses a clock time or a number with a unit: `01:23:45`, `12:34`, `1 day, 0:10:23.4`, `23.4s`.
pub(crate) fn duration(text: &str) -> Option<f64> {
    let text = text.trim();
    let (days, clock) = match text.split_once("day") {
        Some((days, clock)) => (parse_leading_number(days)?.0, clock.trim_start_matches(['s', ',', ' '])),
        None => (0.0, text),
    };
    if !clock.contains(':') {
        return quantity(clock, Measure::Time, 1.0);
    }
    let end = clock.find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '.')).unwrap_or(clock.len());
    let parts = clock.get(..end)?.split(':');
    let seconds = parts.clone().try_fold(0.0, |sum, part| Some(sum * 60.0 + part.parse::<f64>().ok()?))?;
    (parts.count() <= 3 && seconds.is_finite()).then_some(days * 86_400.0 + seconds)
}

/// Units after which a number counts as complete. Some are prefixes of other units (`W` of `Wh`, `GB` of `GB/s`);
/// without them, the last value of complete files without a final line break would be lost.
const COMPLETE_UNITS: [&str; 30] = [
    "ms",
    "us",
    "ns",
    "sec",
    "secs",
    "usec",
    "msec",
    "µs",
    "seconds",
    "W",
    "%",
    "GB",
    "MB",
    "KB",
    "GiB",
    "MiB",
    "KiB",
    "°C",
    "J",
    "kWh",
    "Wh",
    "GB/s",
    "tok/s",
    "tokens/s",
    "tokens/sec",
    "t/s",
    "req/s",
    "it/s",
    "s/it",
    "infer/sec",
];

/// Returns the reliable part of an incomplete line. A truncated file may end within a number, or between a number and
/// its unit; such a number is removed.
pub(crate) fn reliable_part(text: &str) -> &str {
    let line = text.trim_end();
    if line.ends_with(['|', '}', ']', ')', '"', '\'', ';', '│', '┃', '>']) {
        return text;
    }
    let starts = line
        .rfind(char::is_whitespace)
        .map_or(0, |at| at + line.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8));
    let (front, word) = line.split_at_checked(starts).unwrap_or((line, ""));
    if let Some(digit) = word.rfind(|c: char| c.is_ascii_digit()) {
        let unit = word.get(digit + 1..).unwrap_or_default();
        let complete = COMPLETE_UNITS.contains(&unit) || unit == "s";
        // The truncated part may have been the unit of a plain number.
        return if complete { text } else { front };
    }
    // The last word may be part of the unit of the number before it.
    let front = front.trim_end();
    if !front.ends_with(|c: char| c.is_ascii_digit()) || COMPLETE_UNITS.contains(&word) {
        return text;
    }
    let number = front.rfind(char::is_whitespace).unwrap_or(0);
    front.get(..number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_after_a_number_determines_the_quantity() {
        for (text, seconds) in [
            ("708 usec", 708e-6),
            ("708usec (standard deviation 12 usec)", 708e-6),
            ("3.25 seconds", 3.25),
            ("12.5", 12.5),
            ("1,234.5 ms", 1.2345),
            ("2.2s/it", 2.2),
            ("2 min", 120.0),
            ("5 µs", 5e-6),
        ] {
            let got = quantity(text, Measure::Time, 1.0).unwrap_or(f64::NAN);
            assert!((got / seconds - 1.0).abs() < 1e-12, "{text}: {got}");
        }
        assert_eq!(quantity("12 W", Measure::Power, 1.0), Some(12.0));
        assert_eq!(quantity("12500 mW", Measure::Power, 1.0), Some(12.5));
        assert_eq!(gigabytes("2 GiB", 1.0), Some(2.147_483_648));
        assert_eq!(gigabytes("2048", 1e-3), Some(2.048));
        assert_eq!(quantity("none", Measure::Time, 1.0), None);
    }

    #[test]
    fn clock_times_are_parsed_as_durations() {
        for (text, seconds) in
            [("01:23:45", 5025.0), ("12:34<05:00", 754.0), ("1 day, 0:00:10", 86_410.0), ("23.4s", 23.4), ("90", 90.0)]
        {
            assert_eq!(duration(text), Some(seconds), "{text}");
        }
        assert_eq!(duration("a:b"), None);
    }

    #[test]
    fn number_truncated_at_the_end_of_a_file_is_dropped() {
        for (text, kept) in [
            ("loss: 7.5", "loss: "),
            ("loss: 7.5 grad: 1.2 ", "loss: 7.5 grad: "),
            ("latency 708", "latency "),
            ("latency 708 u", "latency"),
            ("latency 708 usec", "latency 708 usec"),
            ("time: 12.5 |", "time: 12.5 |"),
            ("1, 70.10 W, 35", "1, 70.10 W, "),
            ("1, 70.10 W, 35,", "1, 70.10 W, "),
            ("E2E latency=7.99s", "E2E latency=7.99s"),
            ("Running: 1 reqs, Waiting", "Running: 1 reqs, Waiting"),
            ("Scenario : Offline", "Scenario : Offline"),
            ("12", ""),
            ("", ""),
        ] {
            assert_eq!(reliable_part(text), kept, "{text}");
        }
    }
}
