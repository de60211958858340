//! Built-in documents: trees that were parsed at build time, so that startup parses no YAML, and texts, which are
//! rarely used.
//!
//! The encoding is described in `build/digest.rs`. Decoding damaged data returns nothing and never panics. A test
//! compares every tree with its YAML.

use std::io::Read as _;
use std::sync::{Arc, OnceLock};

use atlas_document::diagnostic::Diagnostics;
use atlas_document::fingerprint::fingerprint;
use atlas_document::node::{Entry, Node, Position, Value};
use atlas_document::parse::parse;

use crate::tag;

include!(concat!(env!("OUT_DIR"), "/documents.rs"));

/// The trees of all documents.
static TREE_DATA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/documents.bin"));
/// Texts of all documents, concatenated and deflated.
static COMPRESSED_TEXTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/documents.txt.deflate"));
/// Strings of the trees and of the catalog, each stored once.
static STRING_POOL: &str = include_str!(concat!(env!("OUT_DIR"), "/arena.txt"));

/// Maximum depth of a tree, more than that of any built-in one.
const MAX_DEPTH: usize = 32;

/// A built-in document.
#[derive(Debug)]
pub struct Document {
    /// Path relative to the root of the project.
    pub path: &'static str,
    /// Offset of the tree.
    tree: usize,
    /// Offsets of the items, if the tree is a list.
    items: &'static [usize],
    /// Start and end of the text.
    text: (usize, usize),
    fingerprint: u64,
}

impl Document {
    /// Text of the document.
    #[must_use]
    pub fn text(&self) -> &'static str {
        static ALL: OnceLock<String> = OnceLock::new();
        let all = ALL.get_or_init(|| {
            let mut text = String::new();
            // If the stream is truncated, which a test excludes, the text is too short and `get` below returns `None`.
            let _ = flate2::read::DeflateDecoder::new(COMPRESSED_TEXTS).read_to_string(&mut text);
            text
        });
        all.get(self.text.0..self.text.1).unwrap_or_default()
    }

    /// Decodes the tree, with positions in the text.
    #[must_use]
    pub fn tree(&self) -> Option<Node> {
        self.part().tree()
    }

    /// Returns the whole document for partial decoding.
    #[must_use]
    pub fn part(&self) -> Part {
        Part(self.tree)
    }

    /// Iterates over the items, if the document is a list. Each is decoded on demand.
    pub fn items(&self) -> impl ExactSizeIterator<Item = Part> + use<> {
        self.items.iter().map(|begin| Part(*begin))
    }
}

/// A part of a built-in document that is not decoded yet, given by its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part(usize);

impl Part {
    /// Decodes the tree, with positions in the text.
    #[must_use]
    pub fn tree(self) -> Option<Node> {
        Cursor::at(TREE_DATA, self.0).node()
    }

    /// Decodes only the values of these keys of a mapping. `None` for keys that it lacks.
    #[must_use]
    pub fn values<const N: usize>(self, keys: [&str; N]) -> [Option<Node>; N] {
        let mut found = [const { None }; N];
        // If the bytes end early, the remaining values are absent.
        let _ = Cursor::at(TREE_DATA, self.0).values(keys, &mut found);
        found
    }
}

/// Returns the documents below `folder/`, sorted by path.
pub fn documents(folder: &str) -> impl Iterator<Item = &'static Document> {
    DOCUMENTS.iter().filter(move |document| document.path.split('/').next() == Some(folder))
}

/// Returns the document at `path`.
#[must_use]
pub fn document(path: &str) -> Option<&'static Document> {
    DOCUMENTS.iter().find(|document| document.path == path)
}

/// Content of a file.
#[derive(Debug, Clone)]
pub enum Text {
    /// A built-in document, or an unmodified copy of one.
    Shipped(&'static Document),
    /// Text of another file.
    Own(String),
}

impl Text {
    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Text::Shipped(document) => document.text(),
            Text::Own(text) => text,
        }
    }

    /// Returns the tree. Problems are added to `diagnostics`. `None` if the text is not YAML.
    #[must_use]
    pub fn tree(&self, file: &Arc<str>, diagnostics: &mut Diagnostics) -> Option<Node> {
        match self {
            Text::Shipped(document) => document.tree(),
            Text::Own(text) => parse(file, text, diagnostics),
        }
    }
}

impl From<String> for Text {
    /// Detects unmodified copies of built-in files, which then need not be parsed.
    fn from(text: String) -> Text {
        let own = fingerprint(text.as_bytes());
        let same = |known: &&Document| known.fingerprint == own && known.text.1 - known.text.0 == text.len();
        DOCUMENTS.iter().find(same).map_or(Text::Own(text), Text::Shipped)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        match (self, other) {
            (Text::Shipped(a), Text::Shipped(b)) => a.path == b.path,
            _ => self.as_str() == other.as_str(),
        }
    }
}

/// Sequential decoder of a digest. Methods return `None` at the end of the bytes or if they are invalid.
pub struct Cursor {
    rest: &'static [u8],
}

impl Cursor {
    /// Starts decoding at `offset`. Beyond the end of `bytes`, all methods return `None`.
    pub fn at(bytes: &'static [u8], offset: usize) -> Cursor {
        Cursor { rest: bytes.get(offset..).unwrap_or_default() }
    }

    fn read_bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    /// Decodes an unsigned integer (LEB128).
    pub fn whole(&mut self) -> Option<usize> {
        let mut value: usize = 0;
        for shift in (0..usize::BITS).step_by(7) {
            let [byte] = self.read_bytes::<1>()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// Decodes a string.
    pub fn text(&mut self) -> Option<&'static str> {
        let offset = self.whole()?;
        let length = self.whole()?;
        STRING_POOL.get(offset..offset.checked_add(length)?)
    }

    /// Decodes a tree.
    pub fn node(&mut self) -> Option<Node> {
        self.node_below(0)
    }

    fn node_below(&mut self, depth: usize) -> Option<Node> {
        if depth > MAX_DEPTH {
            return None;
        }
        let at = self.position()?;
        let [kind] = self.read_bytes::<1>()?;
        let value = match kind {
            tag::NULL => Value::Null,
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::NATURAL => Value::Int(i128::try_from(self.whole()?).ok()?),
            tag::FLOAT => Value::Float(f64::from_le_bytes(self.read_bytes::<8>()?)),
            tag::TEXT => Value::Text(self.text()?.into()),
            tag::LIST => {
                let count = self.whole()?;
                let mut items = self.vec_for_nodes(count);
                for _ in 0..count {
                    items.push(self.node_below(depth + 1)?);
                }
                Value::List(items)
            }
            tag::NEGATIVE => Value::Int(-i128::try_from(self.whole()?).ok()?),
            tag::MAP | tag::PLACED_MAP => {
                let count = self.whole()?;
                let mut entries = self.vec_for_nodes(count);
                for _ in 0..count {
                    entries.push(self.entry(depth, kind == tag::PLACED_MAP)?);
                }
                Value::Map(entries)
            }
            _ => return None,
        };
        Some(Node { value, at })
    }

    /// Decodes the values of these keys in the mapping at the current position.
    fn values<const N: usize>(&mut self, keys: [&str; N], found: &mut [Option<Node>; N]) -> Option<()> {
        self.position()?;
        let [kind] = self.read_bytes::<1>()?;
        let count = if matches!(kind, tag::MAP | tag::PLACED_MAP) { self.whole()? } else { 0 };
        let mut left = N;
        for _ in 0..count {
            let key = self.text()?;
            if kind == tag::PLACED_MAP {
                self.position()?;
            }
            match keys.iter().zip(found.iter_mut()).find(|(wanted, _)| **wanted == key) {
                None => self.skip_node(0)?,
                Some((_, place)) => {
                    *place = Some(self.node()?);
                    left -= 1;
                }
            }
            if left == 0 {
                break;
            }
        }
        Some(())
    }

    /// Skips the node at the current position.
    fn skip_node(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.position()?;
        let [kind] = self.read_bytes::<1>()?;
        match kind {
            tag::NULL | tag::FALSE | tag::TRUE => {}
            tag::NATURAL | tag::NEGATIVE => drop(self.whole()?),
            tag::FLOAT => drop(self.read_bytes::<8>()?),
            tag::TEXT => drop(self.text()?),
            tag::LIST => (0..self.whole()?).try_for_each(|_| self.skip_node(depth + 1))?,
            tag::MAP | tag::PLACED_MAP => {
                for _ in 0..self.whole()? {
                    self.text()?;
                    if kind == tag::PLACED_MAP {
                        self.position()?;
                    }
                    self.skip_node(depth + 1)?;
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// Allocates a vector for `count` nodes. The capacity is limited by the remaining bytes, because every node has at
    /// least one.
    fn vec_for_nodes<T>(&self, count: usize) -> Vec<T> {
        Vec::with_capacity(count.min(self.rest.len()))
    }

    fn entry(&mut self, depth: usize, placed: bool) -> Option<Entry> {
        let key = self.text()?.into();
        let key_at = if placed { Some(self.position()?) } else { None };
        let value = self.node_below(depth + 1)?;
        // Positions of keys are only needed for diagnostics about keys, of which the entries of the catalog have none.
        Some(Entry { key, key_at: key_at.unwrap_or(value.at), value })
    }

    fn position(&mut self) -> Option<Position> {
        let line = u32::try_from(self.whole()?).ok()?;
        let column = u32::try_from(self.whole()?).ok()?;
        Some(Position { line, column })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_tree_equals_its_parsed_text() {
        assert!(DOCUMENTS.len() >= 20, "{}", DOCUMENTS.len());
        for document in DOCUMENTS {
            let mut problems = Diagnostics::new();
            let parsed = parse(&document.path.into(), document.text(), &mut problems);
            assert!(problems.is_empty(), "{problems}");
            assert!(parsed.is_some() && document.tree() == parsed, "{}", document.path);
        }
    }

    #[test]
    fn parts_equal_the_tree() {
        for document in DOCUMENTS {
            let tree = document.tree().unwrap();
            let items: Vec<Option<Node>> = document.items().map(Part::tree).collect();
            let listed: Vec<Option<Node>> = tree.items().unwrap_or_default().iter().cloned().map(Some).collect();
            assert_eq!(items, listed, "{}", document.path);
            let mappings =
                document.items().chain([document.part()]).zip(tree.items().unwrap_or_default().iter().chain([&tree]));
            for (part, node) in mappings {
                for entry in node.entries().unwrap_or_default() {
                    let [value, absent] = part.values([&*entry.key, "no such key"]);
                    assert_eq!((value.as_ref(), absent), (Some(&entry.value), None), "{}", document.path);
                }
            }
        }
        assert_eq!(Part(usize::MAX).values(["name"]), [None]);
    }

    #[test]
    fn a_copy_of_a_built_in_file_is_recognized_and_a_changed_one_is_not() {
        let shipped = document("themes/dark.yaml").unwrap();
        let copy = Text::from(shipped.text().to_owned());
        assert!(matches!(copy, Text::Shipped(found) if found.path == shipped.path));
        let changed = Text::from(format!("{} ", shipped.text()));
        assert!(matches!(changed, Text::Own(_)) && changed != copy);
        assert_eq!(copy.as_str(), shipped.text());
    }
}
