//! Release numbers and dates, and their order.

use std::cmp::Ordering;
use std::fmt;

/// A calendar day, month or year. Unknown parts are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Day {
    /// Year, four digits.
    pub year: u16,
    /// Month, 1 to 12, or 0 if only the year is known.
    pub month: u8,
    /// Day, 1 to 31, or 0 if only the month is known.
    pub day: u8,
}

impl Day {
    /// Parses `2026-03-12`, `2026-03` or `2026`, ignoring a time after the date. Returns `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Day> {
        let date = text.trim().split(['T', ' ']).next()?;
        let mut parts = date.split('-');
        let part = |text: Option<&str>, digits: usize| match text {
            None => Some(0),
            Some(text) => {
                let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
                plain.then(|| text.parse::<u16>().ok()).flatten()
            }
        };
        let year = part(Some(parts.next()?), 4)?;
        let month = part(parts.next(), 2)?;
        let day = part(parts.next(), 2)?;
        let known = parts.next().is_none() && (1990..2200).contains(&year) && month <= 12 && day <= 31;
        known.then(|| Some(Day { year, month: u8::try_from(month).ok()?, day: u8::try_from(day).ok()? }))?
    }

    /// Year, month and day of the first possible day.
    fn begin(self) -> (u16, u8, u8) {
        (self.year, self.month.max(1), self.day.max(1))
    }

    /// Year, month and day of the last possible day.
    fn end(self) -> (u16, u8, u8) {
        let or = |value: u8, last: u8| if value == 0 { last } else { value };
        (self.year, or(self.month, 12), or(self.day, 31))
    }

    /// Whether the first possible day is not after the last possible day of `other`.
    #[must_use]
    pub fn may_precede_or_equal(self, other: Day) -> bool {
        self.begin() <= other.end()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.month, self.day) {
            (0, _) => write!(f, "{:04}", self.year),
            (month, 0) => write!(f, "{:04}-{month:02}", self.year),
            (month, day) => write!(f, "{:04}-{month:02}-{day:02}", self.year),
        }
    }
}

/// Numeric parts of a release number. Suffixes (`rc1`, `.post2`, `.dev339`, `+cu130`) are ignored: such builds are
/// treated as the release that they precede or follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Version {
    parts: [u32; 4],
}

impl Version {
    /// Parses `0.11.0`, `v0.6.3.post1`, `core_v0.12.0`, `b6918`, `24.07`. Returns `None` if there is no number.
    #[must_use]
    pub fn parse(text: &str) -> Option<Version> {
        let text = text.trim();
        let begin = text.find(|c: char| c.is_ascii_digit())?;
        let lead = text.get(..begin)?.trim_end_matches(['_', '-', ' ']).to_ascii_lowercase();
        let known = matches!(lead.as_str(), "" | "v" | "b" | "r" | "core_v" | "core_r" | "build" | "release" | "jax");
        if !known {
            return None;
        }
        let mut parts = [0; 4];
        let mut rest = text.get(begin..)?;
        for part in &mut parts {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                break;
            }
            *part = rest.get(..digits)?.parse().ok()?;
            rest = rest.get(digits..)?;
            match rest.strip_prefix('.') {
                Some(next) => rest = next,
                None => break,
            }
        }
        Some(Version { parts })
    }

    /// The first number.
    #[must_use]
    pub fn major(self) -> u32 {
        let [major, ..] = self.parts;
        major
    }

    /// Whether the number is a year and month (`24.07`).
    #[must_use]
    pub fn is_calendar(self) -> bool {
        let [year, month, ..] = self.parts;
        (15..60).contains(&year) && (1..=12).contains(&month)
    }

    /// Month of a calendar release.
    #[must_use]
    pub fn month(self) -> Option<Day> {
        let [year, month, ..] = self.parts;
        let (year, month) = (u16::try_from(2000 + year).ok()?, u8::try_from(month).ok()?);
        self.is_calendar().then_some(Day { year, month, day: 0 })
    }

    /// Compares two releases. Returns `None` if only one of them is a calendar release.
    #[must_use]
    pub fn partial_compare(self, other: Version) -> Option<Ordering> {
        (self.is_calendar() == other.is_calendar()).then(|| self.parts.cmp(&other.parts))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap()
    }

    #[test]
    fn version_prefixes_and_suffixes_are_ignored() {
        for (text, plain) in [
            ("v0.6.3.post1", "0.6.3"),
            ("0.19.1rc1.dev339+gedc364896", "0.19.1"),
            ("core_v0.12.0", "0.12"),
            ("0.9.0.2.", "0.9.0.2"),
            ("0.7a", "0.7"),
            ("b6918", "6918"),
            ("build 6918 (2f68ce7cf)", "6918"),
            ("25.04.rc2", "25.04"),
        ] {
            assert_eq!(version(text), version(plain), "{text}");
        }
        assert_eq!(Version::parse("nightly"), None);
        assert_eq!(Version::parse("main 43124cdd"), None);
        assert_eq!(Version::parse("glm5-hopper"), None);
    }

    #[test]
    fn calendar_and_numbered_releases_are_not_compared() {
        assert_eq!(version("24.07").partial_compare(version("2.3.0")), None);
        assert_eq!(version("24.07").partial_compare(version("24.09")), Some(Ordering::Less));
        assert_eq!(version("0.10.0").partial_compare(version("0.9.2")), Some(Ordering::Greater));
    }

    #[test]
    fn a_month_includes_its_days() {
        let day = |text| Day::parse(text).unwrap();
        assert!(day("2024-07-24").may_precede_or_equal(day("2024-07")));
        assert!(day("2024-07").may_precede_or_equal(day("2024-07-01")));
        assert!(!day("2024-08-01").may_precede_or_equal(day("2024-07")));
        assert_eq!(day("2026").to_string(), "2026");
        assert_eq!(Day::parse("2024-13"), None);
        assert_eq!(Day::parse("24-07-01"), None);
    }

    proptest! {
        #[test]
        fn parsing_arbitrary_text_does_not_panic(text in ".{0,40}") {
            let _ = (Version::parse(&text), Day::parse(&text));
        }
    }
}
