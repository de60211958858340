//! The built-in catalog in encoded form: trees that are decoded entry by entry, without parsing YAML.
//!
//! Decoding a damaged digest returns nothing and never panics. A test compares every entry with its YAML.

use std::sync::Arc;

use crate::shipped::Cursor;
use atlas_document::Origin;
use atlas_document::fingerprint::fingerprint;
use atlas_document::node::Node;

include!(concat!(env!("OUT_DIR"), "/catalog.rs"));

/// Whether `text` is identical to the built-in file at `path`.
pub(super) fn ships(path: &str, text: &str) -> bool {
    let known = FINGERPRINTS.iter().find(|(name, _)| *name == path);
    known.is_some_and(|(_, shipped)| *shipped == fingerprint(text.as_bytes()))
}

/// Built-in entries of one kind.
#[derive(Debug)]
pub struct Digest {
    bytes: &'static [u8],
    /// Offset of each entry.
    entries: &'static [usize],
}

impl Digest {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Iterates over the names of an entry, starting with its id.
    pub fn names(&self, index: usize) -> impl Iterator<Item = &'static str> + use<> {
        let mut cursor = self.cursor(index);
        let count = cursor.whole().unwrap_or(0);
        (0..count).map_while(move |_| cursor.text())
    }

    /// Decodes an entry. Returns its file, marked as built-in, and its tree.
    #[must_use]
    pub fn entry(&self, index: usize) -> Option<(Arc<str>, Node)> {
        let mut cursor = self.cursor(index);
        for _ in 0..cursor.whole()? {
            cursor.text()?;
        }
        let file = format!("{}{}", Origin::BUILT_IN, cursor.text()?).into();
        Some((file, cursor.node()?))
    }

    fn cursor(&self, index: usize) -> Cursor {
        Cursor::at(self.bytes, self.entries.get(index).copied().unwrap_or(usize::MAX))
    }
}
