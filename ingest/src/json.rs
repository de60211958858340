//! JSON, and what Python prints that is nearly JSON.

use serde_json::Value;

use crate::text::number;

/// Reads a Python literal of dictionaries, lists, strings, numbers and constants, as `print(dict)` writes it.
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

/// Parses JSON, and what Python writes and calls JSON: bare `NaN` and `Infinity` become the words `nan` and `inf`.
///
/// # Errors
///
/// Where and how it is none.
pub(crate) fn json(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).or_else(|error| match words_for_numbers(text) {
        Some(mended) => serde_json::from_slice(&mended),
        None => Err(error),
    })
}

/// The text with bare `NaN` and `Infinity` quoted, or nothing where there are none.
fn words_for_numbers(text: &[u8]) -> Option<Vec<u8>> {
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

/// A number in JSON, also where it is written as a string.
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
    fn python_prints_become_json() {
        let value = python_literal("{'loss': 2.5e-03, 'a': None, \"b\": 'it\\'s', 'c': (1, True), 'd': nan}").unwrap();
        assert_eq!(value.to_string(), r#"{"a":null,"b":"it's","c":[1,true],"d":null,"loss":0.0025}"#);
        assert_eq!(
            json(br#"{"a": Infinity, "b": "NaN", "c": -Infinity}"#).unwrap().to_string(),
            r#"{"a":"inf","b":"NaN","c":"-inf"}"#
        );
    }
}
