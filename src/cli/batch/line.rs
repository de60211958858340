//! One line of the input; its parts remain JSON text.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Keys of a line.
pub(super) const KEYS: [&str; 6] = ["id", "target", "workload", "profile", "knobs", "seed"];

/// Parts of a line, in the order of [`KEYS`]; `null` counts as absent, except for the id.
#[derive(Debug, Default)]
pub(super) struct Line<'a> {
    parts: [Option<&'a RawValue>; 6],
    /// Unknown keys.
    pub(super) unknown: Vec<String>,
}

impl<'a> Line<'a> {
    /// The id, or `null`.
    pub(super) fn id(&self) -> &'a RawValue {
        self.parts[0].unwrap_or(RawValue::NULL)
    }

    /// JSON text of a part; `key` is one of [`KEYS`].
    pub(super) fn part(&self, key: &str) -> Option<&'a str> {
        let at = KEYS.iter().position(|known| *known == key)?;
        self.parts.get(at).copied().flatten().map(RawValue::get).filter(|text| *text != "null")
    }
}

/// Column and description of the error of a line that is not a valid JSON object.
pub(super) fn describe(text: &str, error: &serde_json::Error) -> (usize, String) {
    if !text.starts_with('{') {
        let found: String = text.chars().take(20).collect();
        return (1, format!("found `{found}`, expected a JSON object in braces: {{\"target\": …, \"workload\": …}}"));
    }
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    let problem = match message {
        _ if error.is_eof() => "the line ends before its JSON object does, expected a closing }",
        "expected ident" | "expected value" => {
            "expected a JSON value: text in double quotes, a number, true, false, null, an array or an object"
        }
        "key must be a string" => "expected a key in double quotes",
        "expected `:`" => "expected a colon after the key",
        "expected `,` or `}`" => "expected a comma before the next key, or a closing }",
        "expected `,` or `]`" => "expected a comma before the next item, or a closing ]",
        "trailing comma" => "a comma with nothing after it",
        "trailing characters" => "text after the JSON object, expected one object per line",
        message => message,
    };
    (error.column(), problem.to_owned())
}

enum Key {
    Known(usize),
    Unknown(String),
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = Key;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_str<E>(self, text: &str) -> Result<Key, E> {
                let known = KEYS.iter().position(|known| *known == text);
                Ok(known.map_or_else(|| Key::Unknown(text.to_owned()), Key::Known))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Line<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Line<'a>, D::Error> {
        struct LineVisitor;
        impl<'de> Visitor<'de> for LineVisitor {
            type Value = Line<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Line<'de>, A::Error> {
                let mut line = Line::default();
                while let Some(key) = map.next_key::<Key>()? {
                    match key {
                        Key::Known(at) => {
                            let value = map.next_value::<&'de RawValue>()?;
                            if let Some(slot) = line.parts.get_mut(at)
                                && slot.replace(value).is_some()
                            {
                                let key = KEYS.get(at).copied().unwrap_or_default();
                                return Err(A::Error::custom(format_args!("`{key}` is given twice")));
                            }
                        }
                        Key::Unknown(key) => {
                            map.next_value::<IgnoredAny>()?;
                            line.unknown.push(key);
                        }
                    }
                }
                Ok(line)
            }
        }
        deserializer.deserialize_map(LineVisitor)
    }
}
