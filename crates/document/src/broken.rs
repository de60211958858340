//! Entries of users' files that could not be decoded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::diagnostic::{Diagnostic, Severity};
use super::node::{Node, Position};

/// The entries that could not be decoded. An entry of the same name in a lower layer or in the built-in catalog must
/// not be used in place of a broken one, since its values differ from what the user wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrokenEntries {
    entries: HashMap<Arc<str>, Place>,
    files: Vec<BrokenFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    file: Arc<str>,
    at: Position,
}

/// A file that could not be read as a list of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
struct BrokenFile {
    file: Arc<str>,
    /// Text of the file, if it could be read. The file can only have defined names that occur in its text.
    text: Option<Arc<str>>,
    /// Names that a later file defines, overriding this file.
    replaced: HashSet<Arc<str>>,
}

impl BrokenEntries {
    /// Records that a whole file is broken, so that any entry may be missing. `text` is its text, if it could be read.
    pub fn add_file(&mut self, file: &Arc<str>, text: Option<&str>) {
        let text = text.map(Arc::from);
        self.files.push(BrokenFile { file: Arc::clone(file), text, replaced: HashSet::new() });
    }

    /// Records a broken entry under its name, the text of its field `key`. An entry without a name is ignored: it
    /// cannot be requested.
    pub fn add_entry(&mut self, file: &Arc<str>, entry: &Node, key: &str) {
        if let Some(name) = entry.get(key).and_then(Node::text) {
            self.entries.insert(name.into(), Place { file: Arc::clone(file), at: entry.at });
        }
    }

    /// Records that a later file defines `name`, which overrides earlier broken entries of that name.
    pub fn replace(&mut self, name: &str) {
        self.entries.remove(name);
        for file in &mut self.files {
            file.replaced.insert(name.into());
        }
    }

    /// Adds the broken entries of `later`, a file that is read after this one.
    pub fn extend(&mut self, later: &BrokenEntries) {
        self.entries.extend(later.entries.iter().map(|(name, place)| (Arc::clone(name), place.clone())));
        self.files.extend(later.files.iter().cloned());
    }

    /// Whether no entry or file is broken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.files.is_empty()
    }

    /// Returns an error for the entry `name` if it is broken, or if a broken file may have defined it.
    #[must_use]
    pub fn diagnostic(&self, kind: &str, name: &str) -> Option<Diagnostic> {
        let may_define = |file: &&BrokenFile| {
            file.text.as_ref().is_none_or(|text| text.contains(name)) && !file.replaced.contains(name)
        };
        let (file, at, path, message) = match self.entries.get(name) {
            Some(Place { file, at }) => {
                let message =
                    format!("this {kind} has errors; a built-in entry of the same name is not used in its place");
                (file, *at, name, message)
            }
            None => {
                let file = &self.files.iter().rev().find(may_define)?.file;
                (
                    file,
                    Position::default(),
                    "",
                    format!("cannot be read, so it is unknown whether it defines {kind} `{name}`"),
                )
            }
        };
        Some(Diagnostic {
            severity: Severity::Error,
            file: Arc::clone(file),
            at,
            path: path.to_owned(),
            message,
            help: Some(format!("fix it; run `atlas check` to list the errors in {file}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;
    use crate::node::Entry;

    fn named(name: &str) -> Node {
        let value = Node::synthetic(Value::Text(name.to_owned().into()));
        Node::synthetic(Value::Map(vec![Entry { key: "name".into(), key_at: Position::default(), value }]))
    }

    #[test]
    fn broken_entry_is_reported_until_a_later_file_defines_it() {
        let mut broken = BrokenEntries::default();
        broken.add_entry(&"mine.yaml".into(), &named("a"), "name");
        assert!(broken.diagnostic("target", "a").is_some_and(|problem| &*problem.file == "mine.yaml"));
        assert!(broken.diagnostic("target", "b").is_none());
        broken.replace("a");
        assert!(broken.diagnostic("target", "a").is_none());
    }

    #[test]
    fn unreadable_file_is_reported_for_names_not_defined_later() {
        let mut broken = BrokenEntries::default();
        broken.replace("b");
        broken.add_file(&"mine.yaml".into(), None);
        broken.replace("a");
        assert!(broken.diagnostic("target", "a").is_none());
        assert!(broken.diagnostic("target", "b").is_some(), "it was defined before, not after");
    }

    #[test]
    fn malformed_document_is_reported_for_the_names_in_it() {
        let mut broken = BrokenEntries::default();
        broken.add_file(&"mine.yaml".into(), Some("- name: a\n  cost: {"));
        assert!(broken.diagnostic("target", "a").is_some());
        assert!(broken.diagnostic("target", "b").is_none());
    }
}
