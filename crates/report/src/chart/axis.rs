//! Axes: value ranges and tick positions.

use atlas_core::math;
use atlas_core::units;

/// Mapping of values to positions on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scale {
    /// Linear.
    #[default]
    Linear,
    /// Logarithmic, base ten.
    Log,
}

impl Scale {
    /// Whether the value can be placed on the axis: it is finite and, on a logarithmic axis, positive.
    #[must_use]
    pub fn shows(self, value: f64) -> bool {
        value.is_finite() && (self == Scale::Linear || value > 0.0)
    }

    fn place(self, value: f64) -> f64 {
        if self == Scale::Log { math::log10(value) } else { value }
    }

    fn value(self, place: f64) -> f64 {
        if self == Scale::Log { math::powf(10f64, place) } else { place }
    }
}

/// Number of decades below which a logarithmic axis also has ticks within the decades.
const MINOR_TICK_DECADES: f64 = 2.5;

/// One axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Label: the quantity and its unit.
    pub label: String,
    /// Linear or logarithmic scale.
    pub scale: Scale,
    /// Whether the range always includes zero, which lengths of bars require.
    pub from_zero: bool,
}

impl Axis {
    /// A linear axis that includes zero.
    #[must_use]
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, from_zero: true }
    }

    /// A logarithmic axis.
    #[must_use]
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log, from_zero: false }
    }

    /// Range that holds all values, widened to round ticks. `None` if there are no values.
    #[must_use]
    pub fn range(&self, values: impl Iterator<Item = f64>) -> Option<Range> {
        let (mut low, mut high) = values
            .map(|value| self.scale.place(value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), place| (low.min(place), high.max(place)));
        if low > high {
            return None;
        }
        if self.from_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if high - low < 1e-12 * high.abs().max(1e-300) {
            // A single value gets a margin on both sides.
            let room = if self.scale == Scale::Log { 0.5 } else { (0.1 * high.abs()).max(1e-9) };
            (low, high) = (low - room, high + room);
        }
        let step = if self.scale == Scale::Log { ((high - low) / 6.0).ceil().max(1.0) } else { round_step(high - low) };
        // Whole decades would waste most of a narrow range.
        let (low, high) = if self.scale == Scale::Log && high - low < MINOR_TICK_DECADES {
            (low - 0.05, high + 0.05)
        } else {
            ((low / step + 1e-9).floor() * step, (high / step - 1e-9).ceil() * step)
        };
        Some(Range { scale: self.scale, low, high, step })
    }
}

/// Round step between ticks (1, 2, 2.5, 5 or 10 times a power of ten) that divides the span into about five.
fn round_step(span: f64) -> f64 {
    let rough = span / 5.0;
    let power = math::powf(10f64, math::log10(rough).floor());
    let times = [1.0, 2.0, 2.5, 5.0, 10.0];
    power * times.into_iter().find(|times| times * power >= rough * (1.0 - 1e-9)).unwrap_or(10.0)
}

/// Range of an axis in units of its scale: decades on a logarithmic axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    scale: Scale,
    low: f64,
    high: f64,
    step: f64,
}

impl Range {
    /// Position of a value within the range: 0 at the low end, 1 at the high end.
    #[must_use]
    pub fn share(&self, value: f64) -> f64 {
        (self.scale.place(value) - self.low) / (self.high - self.low)
    }

    /// Values of the ticks, with their labels.
    #[must_use]
    pub fn ticks(&self) -> Vec<(f64, String)> {
        let tick = |place: f64| {
            let value = self.scale.value(place);
            // Rounding errors of summed steps would otherwise be shown instead of zero.
            let value = if value.abs() < 1e-9 * self.step { 0.0 } else { value };
            (value, label(value))
        };
        if self.scale == Scale::Log && self.high - self.low < MINOR_TICK_DECADES + 0.1 {
            // The range spans too few decades: ticks at 1, 2 and 5 times each power of ten.
            #[expect(clippy::cast_possible_truncation, reason = "decades are few")]
            let decades = self.low.floor() as i32..=self.high.ceil() as i32;
            let fine = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|times| times * 10f64.powi(decade)));
            let inside = |value: &f64| (-1e-9..=1.0 + 1e-9).contains(&self.share(*value));
            return fine.filter(inside).map(|value| (value, label(value))).collect();
        }
        let mut ticks = Vec::new();
        let mut place = (self.low / self.step - 1e-9).ceil() * self.step;
        while place <= self.high + 1e-9 * self.step && ticks.len() < 32 {
            ticks.push(tick(place));
            place += self.step;
        }
        ticks
    }
}

/// Shortest label of a tick value.
fn label(value: f64) -> String {
    let text = units::si(value);
    let (number, prefix) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}{prefix}")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        axis.range(values.iter().copied()).unwrap().ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn axis_ticks_are_round_numbers_that_enclose_the_values() {
        assert_eq!(labels(&Axis::linear(""), &[3.0, 97.0]), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(&Axis::linear(""), &[1300.0]), ["0", "500", "1000", "1500"]);
        assert_eq!(labels(&Axis::log(""), &[12.0, 90_000.0]), ["10", "100", "1000", "10k", "100k"]);
        assert_eq!(labels(&Axis::log(""), &[2.0, 9.0]), ["2", "5", "10"]);
        assert!(Axis::linear("").range(std::iter::empty()).is_none());
    }

    #[test]
    fn every_value_lies_within_its_range() {
        for values in [[1.0, 1.0], [0.0, 0.0], [-3.0, 8.0], [1e-9, 1e9]] {
            let range = Axis::linear("").range(values.into_iter()).unwrap();
            assert!(values.iter().all(|value| (-1e-9..=1.0 + 1e-9).contains(&range.share(*value))), "{values:?}");
        }
    }
}
