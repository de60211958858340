//! Decoding of an entry, for tests.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use atlas_document::{Diagnostics, Node};

/// Decodes an entry from text. Returns it and its problems.
pub(crate) fn decoded<T>(
    text: &str,
    decode: impl Fn(&Arc<str>, &Node, &mut Diagnostics) -> Option<T>,
) -> (Option<T>, Diagnostics) {
    let (file, mut problems) = ("own.yaml".into(), Diagnostics::new());
    let node = atlas_document::parse::parse(&file, text, &mut problems).unwrap();
    (decode(&file, &node, &mut problems), problems)
}
