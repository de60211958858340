//! Times and limits in Slurm's formats.

use crate::model::Limit;

/// Parses a time limit into seconds: `1-00:00:00`, `12:30:00`, `30:00`, `60` (minutes), `infinite`, `UNLIMITED`.
#[must_use]
pub fn limit(text: &str) -> Option<Limit> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("infinite") || text.eq_ignore_ascii_case("unlimited") {
        return Some(Limit::Unlimited);
    }
    let (days, rest, has_days) = match text.split_once('-') {
        Some((days, rest)) => (days.parse::<u64>().ok()?, rest, true),
        None => (0, text, false),
    };
    let parts: Vec<u64> = rest.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let seconds = match (parts.as_slice(), has_days) {
        ([hours], true) => hours.checked_mul(3600)?,
        ([hours, minutes], true) => hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?,
        ([minutes], false) => minutes.checked_mul(60)?,
        ([minutes, seconds], false) => minutes.checked_mul(60)?.checked_add(*seconds)?,
        ([hours, minutes, seconds], _) => {
            hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?.checked_add(*seconds)?
        }
        _ => return None,
    };
    days.checked_mul(86400)?.checked_add(seconds).map(Limit::Max)
}

/// Parses a count such as `16` or `UNLIMITED`.
#[must_use]
pub fn count(text: &str) -> Option<Limit> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("infinite") || text.eq_ignore_ascii_case("unlimited") {
        return Some(Limit::Unlimited);
    }
    text.parse().ok().map(Limit::Max)
}

/// Formats a duration in seconds: `2 d`, `12 h`, `1 d 6 h`, `30 min`.
#[must_use]
pub fn format_duration(seconds: u64) -> String {
    let parts =
        [(seconds / 86400, "d"), (seconds % 86400 / 3600, "h"), (seconds % 3600 / 60, "min"), (seconds % 60, "s")];
    let written: Vec<String> =
        parts.iter().filter(|(value, _)| *value > 0).map(|(value, unit)| format!("{value} {unit}")).collect();
    if written.is_empty() { "0 s".to_owned() } else { written.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_time_limit_is_read() {
        for (text, seconds) in [
            ("1-00:00:00", 86400),
            ("2-12", 216_000),
            ("1-01:30", 91800),
            ("12:30:00", 45000),
            ("30:00", 1800),
            ("60", 3600),
        ] {
            assert_eq!(limit(text), Some(Limit::Max(seconds)), "{text}");
        }
        assert_eq!(limit("infinite"), Some(Limit::Unlimited));
        for text in ["", "n/a", "NONE", "1-", "1:2:3:4", "99999999999999999999-0"] {
            assert_eq!(limit(text), None, "{text}");
        }
    }

    #[test]
    fn seconds_are_formatted_as_days_hours_and_minutes() {
        assert_eq!(format_duration(86400), "1 d");
        assert_eq!(format_duration(91800), "1 d 1 h 30 min");
        assert_eq!(format_duration(0), "0 s");
    }
}
