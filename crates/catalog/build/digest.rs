//! Encodes YAML as bytes that can be read without parsing. They are decoded by `src/shipped.rs` and `src/digest.rs`.
//!
//! Every distinct string is stored once in an arena, and referred to by offset and length. Integers are LEB128. A
//! document is its tree, with the positions of its keys. An entry of the catalog is the number of its names (`id` and
//! `aliases`, or `accelerator` for a price), the names, its file, and its tree without the positions of keys.

use std::collections::HashMap;
use std::sync::Arc;

use atlas_document::diagnostic::Diagnostics;
use atlas_document::node::{Node, Value};
use atlas_document::parse::parse;

use crate::tag;

/// Arena of strings, each stored once.
#[derive(Default)]
pub(crate) struct Arena {
    pub text: String,
    known: HashMap<String, (usize, usize)>,
}

impl Arena {
    fn place(&mut self, text: &str) -> (usize, usize) {
        if let Some(place) = self.known.get(text) {
            return *place;
        }
        let place = (self.text.len(), text.len());
        self.text.push_str(text);
        self.known.insert(text.to_owned(), place);
        place
    }
}

/// Entries of one kind of the catalog, or documents.
#[derive(Default)]
pub(crate) struct Digest {
    pub bytes: Vec<u8>,
    /// Offset of each entry.
    pub entries: Vec<usize>,
    /// Whether to store the positions of keys, which are needed for diagnostics about keys and for edits of the text.
    keys: bool,
}

impl Digest {
    /// Adds a whole document. Returns the offsets of its items if it is a list.
    pub(crate) fn add_document(&mut self, arena: &mut Arena, file: &str, text: &str) -> Result<Vec<usize>, String> {
        let root = tree(file, text)?;
        self.keys = true;
        self.entries.push(self.bytes.len());
        Ok(self.node(arena, &root))
    }

    /// Adds all entries of a file.
    pub(crate) fn add_entries(&mut self, arena: &mut Arena, file: &str, text: &str) -> Result<(), String> {
        let root = tree(file, text)?;
        let Some(items) = root.items() else { return Err(format!("{file}: not a list")) };
        for item in items {
            self.entries.push(self.bytes.len());
            let single = [item.get("id").or_else(|| item.get("accelerator"))];
            let aliases = item.get("aliases").and_then(Node::items).unwrap_or_default();
            let names: Vec<&str> =
                single.into_iter().flatten().chain(aliases.iter()).filter_map(|node| node.text()).collect();
            self.whole(names.len() as u128);
            for name in names {
                self.text(arena, name);
            }
            self.text(arena, file);
            self.node(arena, item);
        }
        Ok(())
    }

    fn whole(&mut self, mut value: u128) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn text(&mut self, arena: &mut Arena, text: &str) {
        let (offset, length) = arena.place(text);
        self.whole(offset as u128);
        self.whole(length as u128);
    }

    /// Adds a node. Returns the offsets of its items if it is a list.
    fn node(&mut self, arena: &mut Arena, node: &Node) -> Vec<usize> {
        let mut begins = Vec::new();
        self.whole(node.at.line.into());
        self.whole(node.at.column.into());
        match &node.value {
            Value::Null => self.bytes.push(tag::NULL),
            Value::Bool(false) => self.bytes.push(tag::FALSE),
            Value::Bool(true) => self.bytes.push(tag::TRUE),
            Value::Int(value) if *value >= 0 => {
                self.bytes.push(tag::NATURAL);
                self.whole(value.unsigned_abs());
            }
            Value::Int(value) => {
                self.bytes.push(tag::NEGATIVE);
                self.whole(value.unsigned_abs());
            }
            Value::Float(value) => {
                self.bytes.push(tag::FLOAT);
                self.bytes.extend(value.to_le_bytes());
            }
            Value::Text(text) => {
                self.bytes.push(tag::TEXT);
                self.text(arena, text);
            }
            Value::List(items) => {
                self.bytes.push(tag::LIST);
                self.whole(items.len() as u128);
                for item in items {
                    begins.push(self.bytes.len());
                    self.node(arena, item);
                }
            }
            Value::Map(entries) => {
                self.bytes.push(if self.keys { tag::PLACED_MAP } else { tag::MAP });
                self.whole(entries.len() as u128);
                for entry in entries {
                    self.text(arena, &entry.key);
                    if self.keys {
                        self.whole(entry.key_at.line.into());
                        self.whole(entry.key_at.column.into());
                    }
                    self.node(arena, &entry.value);
                }
            }
        }
        begins
    }
}

fn tree(file: &str, text: &str) -> Result<Node, String> {
    let label: Arc<str> = file.into();
    let mut problems = Diagnostics::new();
    let root = parse(&label, text, &mut problems);
    match root {
        Some(root) if !problems.has_errors() => Ok(root),
        _ => Err(problems.to_string()),
    }
}
