//! Parsing of JSON, and of Python output that resembles JSON.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::text::number;

/// Converts a Python literal of dictionaries, lists, strings, numbers and constants, as written by `print(dict)`, to
/// JSON.
pub(crate) fn python_literal(text: &str) -> Option<Value> {
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                out.push('"');
                while let Some(inner) = chars.next() {
                    match inner {
                        end if end == c => break,
                        '\\' => match chars.next()? {
                            '\'' => out.push('\''),
                            other => {
                                out.push('\\');
                                out.push(other);
                            }
                        },
                        '"' => out.push_str("\\\""),
                        control if control.is_control() => out.push(' '),
                        other => out.push(other),
                    }
                }
                out.push('"');
            }
            '(' => out.push('['),
            ')' => out.push(']'),
            letter if letter.is_ascii_alphabetic() && !out.ends_with(|before: char| before.is_ascii_digit()) => {
                let mut word = String::from(letter);
                while let Some(next) = chars.next_if(char::is_ascii_alphanumeric) {
                    word.push(next);
                }
                match word.as_str() {
                    "True" | "true" => out.push_str("true"),
                    "False" | "false" => out.push_str("false"),
                    "None" | "null" | "nan" | "inf" | "NaN" | "Infinity" => out.push_str("null"),
                    _ => return None,
                }
            }
            other => out.push(other),
        }
    }
    serde_json::from_str(&out).ok()
}

/// Maximum number of values in a document. Without a limit, a small file could exhaust the memory.
const MAX_VALUES: usize = 4 << 20;

/// Parses JSON, including bare `NaN` and `Infinity` as written by Python, which become the strings `nan` and `inf`.
///
/// # Errors
///
/// If the text is not JSON, with position and reason, or if it has too many values.
pub(crate) fn json(text: &[u8]) -> Result<Value, serde_json::Error> {
    // Quoting `NaN` and `Infinity` does not help if there are too many values.
    let mend = |error: &serde_json::Error| if error.is_data() { None } else { quote_non_finite(text) };
    parsed(text).or_else(|error| match mend(&error) {
        Some(mended) => parsed(&mended),
        None => Err(error),
    })
}

fn parsed(text: &[u8]) -> Result<Value, serde_json::Error> {
    let mut left = MAX_VALUES;
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let value = CountingVisitor(&mut left).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Parses one document, or several in sequence.
///
/// # Errors
///
/// Those of [`json`].
pub(crate) fn documents(text: &[u8]) -> Result<Vec<Value>, serde_json::Error> {
    let error = match json(text) {
        Ok(document) => return Ok(vec![document]),
        Err(error) => error,
    };
    let mut left = MAX_VALUES;
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let mut out = Vec::new();
    while deserializer.end().is_err() {
        match CountingVisitor(&mut left).deserialize(&mut deserializer) {
            Ok(document) => out.push(document),
            Err(_) => return Err(error),
        }
    }
    Ok(out)
}

/// Builds a value while counting its elements.
struct CountingVisitor<'a>(&'a mut usize);

impl CountingVisitor<'_> {
    fn count<E: serde::de::Error>(&mut self) -> Result<(), E> {
        *self.0 = self.0.checked_sub(1).ok_or_else(|| E::custom(format!("more than {MAX_VALUES} values")))?;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for CountingVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CountingVisitor<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_bool<E: serde::de::Error>(mut self, value: bool) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_i64<E: serde::de::Error>(mut self, value: i64) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_u64<E: serde::de::Error>(mut self, value: u64) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(mut self, value: f64) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: serde::de::Error>(mut self, value: String) -> Result<Value, E> {
        self.count()?;
        Ok(value.into())
    }

    fn visit_unit<E: serde::de::Error>(mut self) -> Result<Value, E> {
        self.count()?;
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut sequence: A) -> Result<Value, A::Error> {
        self.count()?;
        let mut out = Vec::new();
        while let Some(value) = sequence.next_element_seed(CountingVisitor(&mut *self.0))? {
            out.push(value);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        self.count()?;
        let mut out = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            out.insert(name, map.next_value_seed(CountingVisitor(&mut *self.0))?);
        }
        Ok(Value::Object(out))
    }
}

/// The text with bare `NaN` and `Infinity` quoted, or `None` if it has none.
fn quote_non_finite(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() + 64);
    let (mut quoted, mut escaped, mut changed, mut at) = (false, false, false, 0);
    while let Some(&byte) = text.get(at) {
        if quoted {
            (quoted, escaped) = (byte != b'"' || escaped, byte == b'\\' && !escaped);
        } else {
            let rest = text.get(at..).unwrap_or_default();
            let words: [(&[u8], &[u8]); 3] =
                [(b"-Infinity", b"\"-inf\""), (b"Infinity", b"\"inf\""), (b"NaN", b"\"nan\"")];
            if let Some((word, with)) = words.iter().find(|(word, _)| rest.starts_with(word)) {
                out.extend_from_slice(with);
                changed = true;
                at += word.len();
                continue;
            }
            quoted = byte == b'"';
        }
        out.push(byte);
        at += 1;
    }
    changed.then_some(out)
}

/// Converts a JSON number, or a string that contains a number.
pub(crate) fn json_number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn python_literals_convert_to_json() {
        let value = python_literal("{'loss': 2.5e-03, 'a': None, \"b\": 'it\\'s', 'c': (1, True), 'd': nan}").unwrap();
        assert_eq!(value.to_string(), r#"{"a":null,"b":"it's","c":[1,true],"d":null,"loss":0.0025}"#);
        assert_eq!(
            json(br#"{"a": Infinity, "b": "NaN", "c": -Infinity}"#).unwrap().to_string(),
            r#"{"a":"inf","b":"NaN","c":"-inf"}"#
        );
    }
}
