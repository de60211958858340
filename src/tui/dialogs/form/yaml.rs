//! Entries as YAML, and back.

use std::sync::Arc;

use atlas_document::parse::parse;
use atlas_document::{Diagnostics, Node};

/// A text as a YAML scalar, quoted if it could be parsed as something else.
pub(super) fn yaml(text: &str) -> String {
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let special = ["true", "false", "null", "yes", "no", "on", "off"].contains(&text.to_lowercase().as_str());
    if word && !special { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

/// Decodes the first entry of a text.
pub(super) fn decoded<T>(
    text: &str,
    decode: fn(&Arc<str>, &Node, &mut Diagnostics) -> Option<T>,
    problems: &mut Diagnostics,
) -> Option<T> {
    let label: Arc<str> = "this form".into();
    let tree = parse(&label, text, problems)?;
    decode(&label, tree.items()?.first()?, problems)
}
