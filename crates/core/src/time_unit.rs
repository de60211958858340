//! Units of time: symbols, spellings and lengths.

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeUnit {
    /// 1e-9 s.
    Nanosecond,
    /// 1e-6 s.
    Microsecond,
    /// 1e-3 s.
    Millisecond,
    /// 1 s.
    Second,
    /// 60 s.
    Minute,
    /// 3600 s.
    Hour,
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// 30 days.
    Month,
    /// 365 days.
    Year,
}

impl TimeUnit {
    /// All units, shortest first.
    const ALL: [TimeUnit; 10] = [
        TimeUnit::Nanosecond,
        TimeUnit::Microsecond,
        TimeUnit::Millisecond,
        TimeUnit::Second,
        TimeUnit::Minute,
        TimeUnit::Hour,
        TimeUnit::Day,
        TimeUnit::Week,
        TimeUnit::Month,
        TimeUnit::Year,
    ];

    /// Length in seconds, symbol, and other spellings.
    const fn entry(self) -> (f64, &'static str, &'static [&'static str]) {
        match self {
            TimeUnit::Nanosecond => (1e-9, "ns", &["nsec", "nanosecond", "nanoseconds"]),
            TimeUnit::Microsecond => {
                (1e-6, "µs", &["us", "μs", "usec", "usecs", "µsec", "microsecond", "microseconds"])
            }
            TimeUnit::Millisecond => (1e-3, "ms", &["msec", "msecs", "millisecond", "milliseconds"]),
            TimeUnit::Second => (1.0, "s", &["sec", "secs", "second", "seconds"]),
            TimeUnit::Minute => (60.0, "min", &["mins", "minute", "minutes"]),
            TimeUnit::Hour => (3600.0, "h", &["hr", "hrs", "hour", "hours"]),
            TimeUnit::Day => (86_400.0, "d", &["day", "days"]),
            TimeUnit::Week => (7.0 * 86_400.0, "w", &["week", "weeks"]),
            TimeUnit::Month => (30.0 * 86_400.0, "month", &["months"]),
            TimeUnit::Year => (365.0 * 86_400.0, "y", &["year", "years"]),
        }
    }

    /// Length in seconds.
    #[must_use]
    pub const fn seconds(self) -> f64 {
        self.entry().0
    }

    /// Length in milliseconds.
    #[must_use]
    pub const fn milliseconds(self) -> f64 {
        1e3 * self.seconds()
    }

    /// Length in hours.
    #[must_use]
    pub const fn hours(self) -> f64 {
        self.seconds() / 3600.0
    }

    /// Symbol after a number: `ms`, `h`.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        self.entry().1
    }

    /// Finds a unit by its symbol or another spelling.
    #[must_use]
    pub fn named(word: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.into_iter().find(|unit| {
            let (_, symbol, names) = unit.entry();
            symbol == word || names.contains(&word)
        })
    }

    /// Splits a text such as `1.5h` into the number and the unit at its end, if there is one.
    #[must_use]
    pub fn split(text: &str) -> (&str, Option<TimeUnit>) {
        let digits = text.trim_end_matches(char::is_alphabetic);
        match text.strip_prefix(digits).and_then(TimeUnit::named) {
            Some(unit) => (digits, Some(unit)),
            None => (text, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_split_from_its_number() {
        assert_eq!(TimeUnit::split("500ms"), ("500", Some(TimeUnit::Millisecond)));
        assert_eq!(TimeUnit::split("1.5 hours"), ("1.5 ", Some(TimeUnit::Hour)));
        assert_eq!(TimeUnit::split("20µs"), ("20", Some(TimeUnit::Microsecond)));
        assert_eq!(TimeUnit::split("90"), ("90", None));
        assert_eq!(TimeUnit::split("5x"), ("5x", None));
    }
}
