//! Release numbers and dates, and their order.

use std::cmp::Ordering;
use std::fmt;

/// A calendar day, month or year.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Day {
    /// Year, four digits.
    pub year: u16,
    /// Month, 1 to 12, if it is known.
    pub month: Option<u8>,
    /// Day, 1 to 31, if it is known.
    pub day: Option<u8>,
}

impl Day {
    /// Parses `2026-03-12`, `2026-03` or `2026`, ignoring a time after the date. Returns `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Day> {
        let date = text.trim().split(['T', ' ']).next()?;
        let mut parts = date.split('-');
        let number = |text: &str, digits: usize| -> Option<u16> {
            let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| text.parse().ok()).flatten()
        };
        let year = number(parts.next()?, 4).filter(|year| (1990..2200).contains(year))?;
        // `Some(None)` if the part is missing, `None` if it is invalid.
        let mut part = |last: u8| match parts.next() {
            None => Some(None),
            Some(text) => {
                let value = u8::try_from(number(text, 2)?).ok()?;
                (1..=last).contains(&value).then_some(Some(value))
            }
        };
        let day = Day { year, month: part(12)?, day: part(31)? };
        parts.next().is_none().then_some(day)
    }

    /// Year, month and day of the first possible day.
    fn begin(self) -> (u16, u8, u8) {
        (self.year, self.month.unwrap_or(1), self.day.unwrap_or(1))
    }

    /// Year, month and day of the last possible day.
    fn end(self) -> (u16, u8, u8) {
        (self.year, self.month.unwrap_or(12), self.day.unwrap_or(31))
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
            (None, _) => write!(f, "{:04}", self.year),
            (Some(month), None) => write!(f, "{:04}-{month:02}", self.year),
            (Some(month), Some(day)) => write!(f, "{:04}-{month:02}-{day:02}", self.year),
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
        self.is_calendar().then_some(Day { year, month: Some(month), day: None })
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
        for invalid in ["2024-13", "2024-00", "2024-00-12", "2024-07-00", "2024-07-32", "2024-07-01-01"] {
            assert_eq!(Day::parse(invalid), None, "{invalid}");
        }
        assert_eq!(Day::parse("24-07-01"), None);
    }

    proptest! {
        #[test]
        fn parsing_arbitrary_text_does_not_panic(text in ".{0,40}") {
            let _ = (Version::parse(&text), Day::parse(&text));
        }
    }
}
