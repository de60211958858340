//! Numeric bounds.

/// Bounds of a number, inclusive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Smallest value allowed.
    pub min: f64,
    /// Largest value allowed.
    pub max: f64,
    /// Whether it must be an integer.
    pub whole: bool,
}

impl Bounds {
    /// An integer from 1.
    pub const COUNT: Bounds = Bounds { min: 1.0, max: 1e9, whole: true };
    /// An integer from 0.
    pub const NATURAL: Bounds = Bounds { min: 0.0, max: 1e15, whole: true };
    /// A finite number from 0.
    pub const POSITIVE: Bounds = Bounds { min: 0.0, max: 1e30, whole: false };
    /// A share from 0 to 1.
    pub const SHARE: Bounds = Bounds { min: 0.0, max: 1.0, whole: false };
    /// Any finite number.
    pub const FINITE: Bounds = Bounds { min: -1e30, max: 1e30, whole: false };

    /// Description of the bounds: `a whole number from 1 to 1000000000`.
    #[must_use]
    pub fn describe(&self) -> String {
        let kind = if self.whole { "a whole number" } else { "a number" };
        match (self.min > -1e29, self.max < 1e15) {
            (true, true) => format!("{kind} from {} to {}", self.min, self.max),
            (true, false) => format!("{kind} from {}", self.min),
            _ => kind.to_owned(),
        }
    }

    /// Whether `value` is finite and within the bounds.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        value.is_finite() && value >= self.min && value <= self.max && (!self.whole || value.fract() == 0.0)
    }
}
