//! Simulated time: integer picoseconds.
//!
//! Integers, because equal instants must be equal however they were reached: the order of ties affects the result.
//! Picoseconds rather than nanoseconds, because the shortest simulated durations need them: 64 bytes take 36 ps on a
//! 1.8 TB/s link, and a rounding of half a nanosecond on each of a thousand hops would be visible. 64 bits of
//! picoseconds cover 213 days.

/// An instant, or the distance between two instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// Picoseconds per second.
const PER_SECOND: f64 = 1e12;

impl Time {
    /// Zero.
    pub const ZERO: Time = Time(0);
    /// The last representable instant, 213 days after the first.
    pub const MAX: Time = Time(u64::MAX);

    /// Converts from whole picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Converts from seconds, to the nearest picosecond. Negative values and NaN give zero, values beyond the range
    /// give [`Time::MAX`].
    pub fn from_seconds(seconds: f64) -> Time {
        // A float-to-integer cast saturates, and maps NaN to 0.
        Time((seconds * PER_SECOND + 0.5) as u64)
    }

    /// Converts to whole picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Converts to seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / PER_SECOND
    }

    /// Adds `other`, saturating at [`Time::MAX`].
    #[must_use]
    pub const fn plus(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }

    /// Distance since `earlier`; zero if `earlier` is later.
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
