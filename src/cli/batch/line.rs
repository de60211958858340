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
