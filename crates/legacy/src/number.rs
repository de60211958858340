//! The numeric trait of the engines. It is implemented for plain numbers and for equations that record how a value was
//! computed, so that an engine that is generic over [`Number`] can explain its results.

use std::ops::{Add, Div, Mul, Sub};

/// A number with the arithmetic that the engines of this crate need.
pub trait Number:
    Clone + From<f64> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// Creates a constant of the engine, with its symbol, meaning, unit, value and origin.
    fn given(symbol: &'static str, name: &'static str, unit: &'static str, value: f64, origin: &'static str) -> Self;

    /// Names an intermediate result for the equations that use it. Does nothing for plain numbers.
    #[must_use]
    fn named(self, symbol: &'static str, name: &'static str, unit: &'static str) -> Self;

    /// Returns the value.
    fn value(&self) -> f64;

    /// Returns the larger of `self` and `least`.
    #[must_use]
    fn at_least(self, least: Self) -> Self;

    /// Returns the smaller of `self` and `most`.
    #[must_use]
    fn at_most(self, most: Self) -> Self;
}

impl Number for f64 {
    fn given(_: &'static str, _: &'static str, _: &'static str, value: f64, _: &'static str) -> f64 {
        value
    }

    fn named(self, _: &'static str, _: &'static str, _: &'static str) -> f64 {
        self
    }

    fn value(&self) -> f64 {
        *self
    }

    fn at_least(self, least: f64) -> f64 {
        self.max(least)
    }

    fn at_most(self, most: f64) -> f64 {
        self.min(most)
    }
}
