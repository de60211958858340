//! Builder for document mappings.

use atlas_document::node::{Entry, Position};
use atlas_document::{Node, Value};

/// A mapping under construction; absent values are left out.
#[derive(Debug, Default)]
pub(super) struct Tree {
    entries: Vec<Entry>,
}

impl Tree {
    /// Adds a value, which keeps its position. `None` is left out.
    pub(super) fn put(mut self, key: &str, value: impl Into<Option<Node>>) -> Tree {
        if let Some(value) = value.into() {
            self.entries.push(Entry { key: key.to_owned().into(), key_at: value.at, value });
        }
        self
    }

    /// Adds text that is written at `at` or derived from the value there.
    pub(super) fn text(self, key: &str, text: impl Into<String>, at: Position) -> Tree {
        self.put(key, Node { value: Value::Text(text.into().into()), at })
    }

    /// Adds a number that is written at `at` or derived from the value there.
    pub(super) fn number(self, key: &str, number: impl Into<Option<f64>>, at: Position) -> Tree {
        self.put(key, number.into().map(|number| self::number(number, at)))
    }

    /// Adds a mapping; an empty one is left out.
    pub(super) fn map(self, key: &str, tree: Tree, at: Position) -> Tree {
        let empty = tree.entries.is_empty();
        self.put(key, (!empty).then(|| tree.done(at)))
    }

    /// Returns the mapping as a node at `at`.
    pub(super) fn done(self, at: Position) -> Node {
        Node { value: Value::Map(self.entries), at }
    }
}

/// Returns a node with the number, as an integer if it is whole.
pub(super) fn number(number: f64, at: Position) -> Node {
    let whole = number.fract() == 0.0 && number.abs() < 1e15;
    #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
    let value = if whole { Value::Int(number as i128) } else { Value::Float(number) };
    Node { value, at }
}
