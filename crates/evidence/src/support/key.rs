//! Properties that determine the similarity of two scenarios, and their distance.
//!
//! The distance of two scenarios is the sum of the points of their fields: a fixed number if a text differs, and a
//! number per factor of two if a number differs. [`FIELDS`] is the complete definition.

use atlas_config::Mode;
use atlas_core::math;
use atlas_perf::serving::Load;
use atlas_plan::scenario::{Parts, Scenario};

use crate::validate::case::Input;
use crate::validate::family;
use DistanceRule::{Differs, Doubling};

/// Numbers below this are treated as equal, such as lengths of zero.
const MIN_NUMBER: f64 = 1e-3;
/// Difference in powers of two that rounding in the index can cause.
const ROUNDING: f64 = 1e-4;

/// Significant digits of measured and predicted values in the index.
pub(super) const FIGURE_DIGITS: usize = 6;

/// Contribution of a field to the distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DistanceRule {
    /// Points if the texts differ.
    Differs(f64),
    /// Points per factor of two between the numbers.
    Doubling(f64),
}

/// Identifier of a field, in the order of [`FIELDS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "`FIELDS` describes each")]
pub enum FieldId {
    Accelerator,
    Generation,
    Vendor,
    Model,
    Mixture,
    TotalParameters,
    ActiveParameters,
    Software,
    Release,
    Format,
    Accelerators,
    Prompt,
    Generate,
    Load,
    InFlight,
}

/// A field by which scenarios are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Field {
    /// Identifier.
    pub id: FieldId,
    /// Name, which is also a column of `workload/measurements/evidence.csv`.
    pub name: &'static str,
    /// Its contribution to the distance.
    pub points: DistanceRule,
    /// Description of the field.
    pub help: &'static str,
}

const fn field(id: FieldId, name: &'static str, points: DistanceRule, help: &'static str) -> Field {
    Field { id, name, points, help }
}

/// All fields, in the order of [`Key::values`].
pub const FIELDS: [Field; 15] = [
    field(FieldId::Accelerator, "accelerator", Differs(0.5), "product, by its name in the catalog"),
    field(FieldId::Generation, "generation", Differs(1.5), "architecture of the accelerator"),
    field(FieldId::Vendor, "vendor", Differs(2.0), "vendor of the accelerator"),
    field(FieldId::Model, "model", Differs(0.25), "model, by its name in the catalog"),
    field(FieldId::Mixture, "mixture", Differs(2.0), "mixture of experts, or dense"),
    field(FieldId::TotalParameters, "total_b", Doubling(0.25), "parameters, billions"),
    field(FieldId::ActiveParameters, "active_b", Doubling(0.75), "active parameters per token, billions"),
    field(FieldId::Software, "software", Differs(1.0), "family of the software"),
    field(FieldId::Release, "release", Differs(0.25), "release of the software"),
    field(FieldId::Format, "format", Differs(1.0), "number format of the weights"),
    field(FieldId::Accelerators, "accelerators", Doubling(0.5), "accelerators of the run"),
    field(FieldId::Prompt, "prompt", Doubling(0.5), "prompt length; in training the sequence length, tokens"),
    field(FieldId::Generate, "generate", Doubling(0.5), "output length, tokens; 0 in training"),
    field(FieldId::Load, "load", Differs(1.0), "kind of load: closed loop, open loop, burst, static batch, ..."),
    field(
        FieldId::InFlight,
        "in_flight",
        Doubling(0.5),
        "sequences in flight, or requests/s of an open loop; in training the global batch",
    ),
];

/// Distance beyond which a measured row is hardly informative about a scenario: another generation of the same vendor
/// (2 points) plus two points.
pub const COMPARABLE: f64 = 4.0;

/// Text or number of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A text.
    Word(String),
    /// A number, if the field applies.
    Number(Option<f64>),
}

impl Value {
    /// Returns the value as a cell of the index: numbers with five significant digits.
    #[must_use]
    pub fn cell(&self) -> String {
        match self {
            Value::Word(word) => word.clone(),
            Value::Number(number) => number.map_or_else(String::new, |number| rounded(number, 5)),
        }
    }

    /// Returns the points between this value and a cell of the index. `other` is the cell as a number, if it is one.
    #[must_use]
    pub fn distance(&self, points: DistanceRule, cell: &str, other: Option<f64>) -> f64 {
        match (self, points) {
            (Value::Word(word), DistanceRule::Differs(points)) if word != cell => points,
            (Value::Number(Some(number)), DistanceRule::Doubling(points)) => {
                let doublings = |other: f64| math::log2(number.max(MIN_NUMBER) / other.max(MIN_NUMBER)).abs();
                other
                    .map(doublings)
                    .filter(|doublings| *doublings > ROUNDING)
                    .map_or(0.0, |doublings| points * doublings)
            }
            _ => 0.0,
        }
    }
}

/// Rounds a value of the index, which removes the digits added by its 32-bit representation.
pub(super) fn figure(figure: f64) -> f64 {
    rounded(figure, FIGURE_DIGITS).parse().unwrap_or(figure)
}

/// Formats a number with the given number of significant digits, as short as possible.
#[must_use]
pub(super) fn rounded(value: f64, digits: usize) -> String {
    let text = format!("{value:.*e}", digits.saturating_sub(1));
    text.parse::<f64>().map_or(text, |value| value.to_string())
}

/// The properties that determine the similarity of two scenarios.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Values of [`FIELDS`].
    pub values: [Value; FIELDS.len()],
    /// Input of the engine.
    pub input: Input,
}

impl Key {
    /// Returns the key of a scenario, or `None` if its accelerator or model is not known.
    #[must_use]
    pub fn of(parts: &Parts, scenario: &Scenario) -> Option<Key> {
        let sheet = parts.accelerator.as_ref()?;
        let input = Input::of_scenario(scenario)?;
        let arch = scenario.model?;
        let phase = &scenario.base;
        let release = scenario.active_software.name.split_once('@').map_or("", |(_, release)| release);
        let (prompt, generate, load, in_flight) = match input {
            Input::Training(input) => (input.seq, 0.0, "training", Some(input.global)),
            Input::Serving(input) => {
                let (load, in_flight) = load_size(input.load);
                (input.isl, input.osl, load, in_flight)
            }
        };
        debug_assert_eq!(matches!(input, Input::Training(_)), scenario.mode() == Mode::Training);
        let word = |text: &str| Value::Word(text.to_owned());
        let number = |value: f64| Value::Number(Some(value));
        let values = [
            word(&sheet.id),
            word(&sheet.generation),
            word(&sheet.vendor),
            word(parts.model.as_ref().map_or("", |model| &model.id)),
            word(if arch.is_moe() { "yes" } else { "no" }),
            number(arch.params() * 1e-9),
            number(arch.active_params() * 1e-9),
            word(family(&scenario.active_software.name)),
            word(release),
            word(scenario.format(phase).name()),
            number(scenario.accelerators()),
            number(prompt),
            number(generate),
            word(load),
            Value::Number(in_flight),
        ];
        Some(Key { values, input })
    }

    /// Replaces the name of the model.
    pub(super) fn set_model(&mut self, name: &str) {
        if let Some(value) = self.values.get_mut(FieldId::Model as usize) {
            *value = Value::Word(name.to_owned());
        }
    }

    /// Returns the value of a field as a cell of the index.
    #[must_use]
    pub fn cell(&self, field: FieldId) -> String {
        self.values.get(field as usize).map_or_else(String::new, Value::cell)
    }
}

/// Returns the kind of a load and its size: concurrent sequences, or requests per second.
fn load_size(load: Load) -> (&'static str, Option<f64>) {
    let finite = |value: f64| Some(value).filter(|value| value.is_finite());
    match load {
        Load::Static { batch } => ("static", finite(batch)),
        Load::DecodeOnly { batch } => ("decode only", finite(batch)),
        Load::PrefillOnly { batch } => ("prefill only", finite(batch)),
        Load::Closed { concurrency, .. } => ("closed loop", finite(concurrency)),
        Load::Burst { requests } => ("burst", finite(requests)),
        Load::Open { rate } => ("open loop", finite(rate)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_positions_of_fields() {
        for (position, field) in FIELDS.iter().enumerate() {
            assert_eq!(field.id as usize, position, "{}", field.name);
        }
    }

    #[test]
    fn distance_grows_with_each_doubling_and_ignores_blanks() {
        let number = Value::Number(Some(8.0));
        assert!((number.distance(Doubling(0.5), "32", Some(32.0)) - 1.0).abs() < 1e-12);
        assert!((number.distance(Doubling(0.5), "2", Some(2.0)) - 1.0).abs() < 1e-12);
        assert_eq!(number.distance(Doubling(0.5), "", None), 0.0);
        assert_eq!(Value::Number(None).distance(Doubling(0.5), "4", Some(4.0)), 0.0);
        assert_eq!(Value::Word("fp8".into()).distance(Differs(1.0), "bf16", None), 1.0);
        assert_eq!(Value::Word("fp8".into()).distance(Differs(1.0), "fp8", None), 0.0);
    }

    #[test]
    fn numbers_are_rounded_to_significant_digits() {
        assert_eq!(rounded(70.553_706, 5), "70.554");
        assert_eq!(rounded(123_456.7, 5), "123460");
        assert_eq!(rounded(0.001_234_567, 5), "0.0012346");
        assert_eq!(rounded(8.0, 5), "8");
    }
}
