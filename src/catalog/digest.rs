//! The shipped catalog as the build wrote it: trees that are read entry by entry, with no YAML to parse.
//!
//! `build/digest.rs` describes the bytes. A digest that does not hold what it should reads as absent, never as a panic;
//! a test compares every entry with its YAML.

use std::sync::Arc;

use crate::spec::Origin;
use crate::spec::fingerprint::fingerprint;
use crate::spec::node::{Entry, Node, Position, Value};

include!(concat!(env!("OUT_DIR"), "/catalog.rs"));

/// Whether a text is, letter by letter, what ships under that path.
pub(super) fn ships(path: &str, text: &str) -> bool {
    let known = FINGERPRINTS.iter().find(|(name, _)| *name == path);
    known.is_some_and(|(_, shipped)| *shipped == fingerprint(text.as_bytes()))
}

/// Deeper trees than any catalog entry.
const MAX_DEPTH: usize = 16;

/// Shipped entries of one kind.
#[derive(Debug)]
pub struct Digest {
    bytes: &'static [u8],
    /// Where each entry begins.
    entries: &'static [usize],
}

impl Digest {
    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The names under which an entry is found, its id first.
    pub fn names(&self, index: usize) -> impl Iterator<Item = &'static str> + use<> {
        let mut cursor = self.cursor(index);
        let count = cursor.whole().unwrap_or(0);
        (0..count).map_while(move |_| cursor.text())
    }

    /// An entry's file, marked as built in, and its tree.
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<(Arc<str>, Node)> {
        let mut cursor = self.cursor(index);
        for _ in 0..cursor.whole()? {
            cursor.text()?;
        }
        let file = format!("{}{}", Origin::BUILT_IN, cursor.text()?).into();
        Some((file, cursor.node(0)?))
    }

    fn cursor(&self, index: usize) -> Cursor {
        let rest = self.entries.get(index).and_then(|&at| self.bytes.get(at..)).unwrap_or_default();
        Cursor { rest }
    }
}

/// Reads forward; `None` once the bytes end or make no sense.
struct Cursor {
    rest: &'static [u8],
}

impl Cursor {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    fn whole(&mut self) -> Option<usize> {
        let mut value: usize = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let [byte] = self.take::<1>()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    fn text(&mut self) -> Option<&'static str> {
        let offset = self.whole()?;
        let length = self.whole()?;
        ARENA.get(offset..offset.checked_add(length)?)
    }

    fn node(&mut self, depth: usize) -> Option<Node> {
        if depth > MAX_DEPTH {
            return None;
        }
        let line = u32::try_from(self.whole()?).ok()?;
        let column = u32::try_from(self.whole()?).ok()?;
        let [tag] = self.take::<1>()?;
        let value = match tag {
            0 => Value::Null,
            1 => Value::Bool(false),
            2 => Value::Bool(true),
            3 => Value::Int(i128::try_from(self.whole()?).ok()?),
            4 => Value::Float(f64::from_le_bytes(self.take::<8>()?)),
            5 => Value::Text(self.text()?.to_owned()),
            6 => {
                let count = self.whole()?;
                Value::List((0..count).map(|_| self.node(depth + 1)).collect::<Option<_>>()?)
            }
            7 => {
                let count = self.whole()?;
                Value::Map((0..count).map(|_| self.pair(depth)).collect::<Option<_>>()?)
            }
            _ => return None,
        };
        Some(Node { value, at: Position { line, column } })
    }

    fn pair(&mut self, depth: usize) -> Option<Entry> {
        let key = self.text()?.to_owned();
        let value = self.node(depth + 1)?;
        // Keys' own positions serve complaints about unknown keys, which shipped entries have none of.
        Some(Entry { key, key_at: value.at, value })
    }
}
