//! Named facts of a reading.

use serde::Serialize;
use serde::ser::SerializeMap as _;
use serde_json::{Map, Value};

/// Named facts, in the order in which they were found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts(Vec<(String, Value)>);

impl Facts {
    /// Sets a fact, replacing an earlier one of the same name.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// Sets a fact if `value` is `Some`.
    pub fn set_optional<T: Into<Value>>(&mut self, name: impl Into<String>, value: Option<T>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Returns the fact of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the fact of this name as a number.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<f64> {
        self.get(name)?.as_f64()
    }

    /// Whether there are no facts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over all facts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl Serialize for Facts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl From<Facts> for Value {
    fn from(facts: Facts) -> Value {
        Value::Object(object(facts.0))
    }
}

/// Builds a JSON object. Unlike `collect`, `extend` does not instantiate a sort for every iterator type.
pub(crate) fn object(entries: impl IntoIterator<Item = (String, Value)>) -> Map<String, Value> {
    let mut out = Map::new();
    out.extend(entries);
    out
}

/// Converts a number to JSON, as an integer if it is whole.
#[must_use]
pub fn number_to_json(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { Value::from(value as i64) } else { Value::from(value) }
}
