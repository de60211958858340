//! Simulated time: integer picoseconds.
//!
//! Integers, because equal instants must be equal however they were reached: the order of ties is part of the answer.
//! Picoseconds rather than nanoseconds, because the fastest thing simulated is short: 64 bytes on a 1.8 TB/s link last
//! 36 ps, and a rounding of half a nanosecond on each of a thousand hops would be seen. 64 bits of them last 213 days.

/// An instant, or the distance between two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// Picoseconds of a second.
const PER_SECOND: f64 = 1e12;

impl Time {
    /// Zero.
    pub const ZERO: Time = Time(0);
    /// The last instant that can be described, 213 days after the first.
    pub const MAX: Time = Time(u64::MAX);

    /// From whole picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// From seconds, to the nearest picosecond. Negative values and NaN give zero, values beyond the range
    /// [`Time::MAX`].
    pub fn from_seconds(seconds: f64) -> Time {
        // A float-to-integer cast saturates, and maps NaN to 0.
        Time((seconds * PER_SECOND + 0.5) as u64)
    }

    /// Whole picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / PER_SECOND
    }

    /// Later by `other`, at most [`Time::MAX`].
    #[must_use]
    pub const fn plus(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }

    /// The distance since `earlier`; zero where that is later.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest_picosecond_and_saturate() {
        assert_eq!(Time::from_seconds(1e-12), Time::from_ps(1));
        assert_eq!(Time::from_seconds(1.6e-12), Time::from_ps(2));
        assert_eq!(Time::from_seconds(-1.0), Time::ZERO);
        assert_eq!(Time::from_seconds(f64::NAN), Time::ZERO);
        assert_eq!(Time::from_seconds(f64::INFINITY), Time::MAX);
        assert_eq!(Time::MAX.plus(Time::from_ps(1)), Time::MAX);
        assert_eq!(Time::ZERO.since(Time::MAX), Time::ZERO);
        assert_eq!(Time::from_seconds(2.5).seconds(), 2.5);
    }
}
