//! A YAML document as a tree with positions.
//!
//! Typed documents are decoded from this tree rather than directly from text, so that every diagnostic can state line
//! and column, all missing fields are reported at once, and unknown keys are preserved.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use atlas_core::units::written;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// Where a node begins: line and column, both from 1. `0:0` means "not from a file".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One node of a document.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its value.
    pub value: Value,
    /// Position at which it begins.
    pub at: Position,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// `null`, `~` or an empty value.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i128),
    /// Any other number.
    Float(f64),
    /// Text; static for built-in documents.
    Text(Cow<'static, str>),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order it was written.
    Map(Vec<Entry>),
}

/// One `key: value` of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: Cow<'static, str>,
    /// Position of the key.
    pub key_at: Position,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Creates a node without a position in a file.
    #[must_use]
    pub fn synthetic(value: Value) -> Node {
        Node { value, at: Position::default() }
    }

    /// The entries if this is a mapping.
    #[must_use]
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The items if this is a list.
    #[must_use]
    pub fn items(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// The text if this is a string.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number if this is an integer or a float.
    #[must_use]
    pub fn number(&self) -> Option<f64> {
        match self.value {
            #[expect(clippy::cast_precision_loss, reason = "counts and seeds are rounded as any float would be")]
            Value::Int(int) => Some(int as f64),
            Value::Float(float) => Some(float),
            _ => None,
        }
    }

    /// Whether this is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }

    /// The value under `key` if this is a mapping that contains it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The value under a path of nested keys.
    #[must_use]
    pub fn at_path(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// Returns this document overridden by `patch`. Mappings are merged key by key at every depth; any other value is
    /// replaced. Patched values keep the positions of the patch, so that diagnostics refer to the override.
    #[must_use]
    pub fn merged(&self, patch: &Node) -> Node {
        let (Value::Map(base), Value::Map(over)) = (&self.value, &patch.value) else {
            return patch.clone();
        };
        let mut entries = base.clone();
        let at: HashMap<&str, usize> = base.iter().enumerate().map(|(at, entry)| (&*entry.key, at)).collect();
        for entry in over {
            match at.get(&*entry.key).and_then(|at| entries.get_mut(*at)) {
                Some(known) => known.value = known.value.merged(&entry.value),
                None => entries.push(entry.clone()),
            }
        }
        Node { value: Value::Map(entries), at: self.at }
    }

    /// Describes the value for diagnostics: `text "four"`, `a list of 3`.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("{value}"),
            Value::Int(value) => format!("{value}"),
            Value::Float(value) => written(*value),
            Value::Text(value) if value.chars().count() > 40 => {
                format!("text \"{}…\"", value.chars().take(40).collect::<String>())
            }
            Value::Text(value) => format!("text \"{value}\""),
            Value::List(items) => format!("a list of {}", items.len()),
            Value::Map(entries) => format!("a mapping of {}", entries.len()),
        }
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.value {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => match i64::try_from(*value) {
                Ok(small) => serializer.serialize_i64(small),
                Err(_) => serializer.serialize_i128(*value),
            },
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Text(value) => serializer.serialize_str(value),
            Value::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Value::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for entry in entries {
                    map.serialize_entry(&entry.key, &entry.value)?;
                }
                map.end()
            }
        }
    }
}

/// Deserializes JSON documents (batch lines, records) into the same tree, without positions. A duplicate key is an
/// error.
impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::synthetic(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::synthetic(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::synthetic(Value::Int(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::synthetic(Value::Int(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::synthetic(Value::Float(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::synthetic(Value::Text(value.to_owned().into())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Node::synthetic(Value::List(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Node, A::Error> {
        let mut entries: Vec<Entry> = Vec::new();
        let mut known: HashSet<String> = HashSet::new();
        while let Some((key, value)) = access.next_entry::<String, Node>()? {
            if !known.insert(key.clone()) {
                return Err(A::Error::custom(format!("duplicate key `{key}`")));
            }
            entries.push(Entry { key: key.into(), key_at: Position::default(), value });
        }
        Ok(Node::synthetic(Value::Map(entries)))
    }
}
