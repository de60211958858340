//! Range checks of input numbers. Violations are collected so that all are reported at once.

use thiserror::Error;

/// A number that is out of range.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
#[error("{what} is {found}, expected {}", expected(*.least, *.most))]
pub struct OutOfRange {
    /// Which number.
    pub what: &'static str,
    /// What was found.
    pub found: f64,
    /// Smallest valid number.
    pub least: f64,
    /// Largest valid number.
    pub most: f64,
}

fn expected(least: f64, most: f64) -> String {
    let positive = least == f64::MIN_POSITIVE;
    match (positive, most >= f64::MAX) {
        (true, true) => "a positive number".to_owned(),
        (true, false) => format!("more than 0, at most {most}"),
        (false, true) => format!("at least {least}"),
        (false, false) => format!("{least} to {most}"),
    }
}

/// Numbers found to be out of range so far.
#[derive(Debug, Default)]
pub(super) struct Ranges(pub(super) Vec<OutOfRange>);

impl Ranges {
    /// Records `found` if it is not a number from `least` to `most`.
    pub(super) fn check(&mut self, what: &'static str, found: f64, least: f64, most: f64) {
        if !(least..=most).contains(&found) {
            self.0.push(OutOfRange { what, found, least, most });
        }
    }

    /// Records `found` if it is not positive and finite.
    pub(super) fn positive(&mut self, what: &'static str, found: f64) {
        self.check(what, found, f64::MIN_POSITIVE, f64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_errors_state_value_and_expected_range() {
        let mut ranges = Ranges::default();
        ranges.positive("rate", f64::NAN);
        ranges.check("share", 2.0, 0.0, 1.0);
        ranges.check("steps", 0.0, 1.0, f64::INFINITY);
        ranges.check("good", 1.0, 0.0, 1.0);
        let described: Vec<String> = ranges.0.iter().map(ToString::to_string).collect();
        assert_eq!(
            described,
            [
                "rate is NaN, expected a positive number",
                "share is 2, expected 0 to 1",
                "steps is 0, expected at least 1"
            ]
        );
    }
}
