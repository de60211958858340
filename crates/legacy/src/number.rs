//! The numbers that engines compute with: plain ones, or equations that record how a figure was computed. An engine that is written
//! over [`Number`] explains its own figures.

use std::ops::{Add, Div, Mul, Sub};

/// A number with the arithmetic that the engines of this crate need.
pub trait Number:
    Clone + From<f64> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// A rule or constant of the engine: its symbol, meaning, unit and origin.
    fn given(symbol: &'static str, name: &'static str, unit: &'static str, value: f64, origin: &'static str) -> Self;

    /// Names a result in equations that use it. Plain numbers have no names.
    #[must_use]
    fn named(self, symbol: &'static str, name: &'static str, unit: &'static str) -> Self;

    /// Its value.
    fn value(&self) -> f64;

    /// The larger of two.
    #[must_use]
    fn at_least(self, least: Self) -> Self;

    /// The smaller of two.
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
