//! Integer counts of layers, heads, ranks and nodes.

use std::cmp::Ordering;
use std::fmt;
use std::ops::{Add, Div, Mul, Rem, Sub};

/// A non-negative integer. Arithmetic returns `f64`, since the product of ranks can overflow integers, and formulas
/// that mix counts with bytes and seconds need no conversions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Count(u32);

impl Count {
    /// Zero.
    pub const ZERO: Count = Count(0);
    /// One.
    pub const ONE: Count = Count(1);
    /// The largest count.
    pub const MAX: Count = Count(u32::MAX);

    /// Creates a count.
    #[must_use]
    #[inline]
    pub const fn new(value: u32) -> Count {
        Count(value)
    }

    /// Value as an integer.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Creates a count from a float; `None` if it is not an integer or out of range.
    #[must_use]
    #[inline]
    pub fn from_exact(value: f64) -> Option<Count> {
        let count = Count::floor(value);
        (count == value).then_some(count)
    }

    /// The largest count not above `value`; [`Count::ZERO`] for negative numbers and NaN.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
    #[inline]
    pub const fn floor(value: f64) -> Count {
        Count(value as u32)
    }

    /// Returns `None` for zero.
    #[must_use]
    #[inline]
    pub fn nonzero(self) -> Option<Count> {
        (self.0 > 0).then_some(self)
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl serde::Serialize for Count {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl From<u32> for Count {
    #[inline]
    fn from(value: u32) -> Count {
        Count(value)
    }
}

impl From<Count> for f64 {
    #[inline]
    fn from(count: Count) -> f64 {
        f64::from(count.0)
    }
}

impl PartialEq<f64> for Count {
    #[inline]
    fn eq(&self, other: &f64) -> bool {
        f64::from(*self) == *other
    }
}

impl PartialOrd<f64> for Count {
    #[inline]
    fn partial_cmp(&self, other: &f64) -> Option<Ordering> {
        f64::from(*self).partial_cmp(other)
    }
}

impl PartialEq<Count> for f64 {
    #[inline]
    fn eq(&self, other: &Count) -> bool {
        *self == f64::from(*other)
    }
}

impl PartialOrd<Count> for f64 {
    #[inline]
    fn partial_cmp(&self, other: &Count) -> Option<Ordering> {
        self.partial_cmp(&f64::from(*other))
    }
}

macro_rules! arithmetic {
    ($($operation:ident $method:ident),+) => {$(
        impl $operation for Count {
            type Output = f64;
            #[inline]
            fn $method(self, other: Count) -> f64 {
                f64::from(self).$method(f64::from(other))
            }
        }
        impl $operation<f64> for Count {
            type Output = f64;
            #[inline]
            fn $method(self, other: f64) -> f64 {
                f64::from(self).$method(other)
            }
        }
        impl $operation<Count> for f64 {
            type Output = f64;
            #[inline]
            fn $method(self, other: Count) -> f64 {
                self.$method(f64::from(other))
            }
        }
    )+};
}
arithmetic!(Add add, Sub sub, Mul mul, Div div, Rem rem);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_numbers_within_range_are_counts() {
        assert_eq!(Count::from_exact(8.0), Some(Count::new(8)));
        assert_eq!(Count::from_exact(f64::from(u32::MAX)), Some(Count::MAX));
        for refused in [2.5, -1.0, f64::NAN, f64::INFINITY, f64::from(u32::MAX) + 1.0] {
            assert_eq!(Count::from_exact(refused), None, "{refused}");
        }
    }

    #[test]
    fn count_arithmetic_does_not_overflow() {
        assert_eq!(Count::MAX * Count::MAX, f64::from(u32::MAX) * f64::from(u32::MAX));
        assert_eq!(Count::ONE - Count::new(3), -2.0);
    }
}
