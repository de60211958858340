//! Decodes [`Node`] trees into typed documents, field by field, and collects all problems.

use std::sync::Arc;

use super::diagnostic::{Diagnostic, Diagnostics, Severity};
use super::node::{Entry, Node, Position};
use super::suggestion::did_you_mean;

pub use atlas_core::bounds::Bounds;
use atlas_core::count::Count;

/// Reads one mapping. Request fields by name, then call [`Fields::finish`], which reports all missing fields and every
/// key that was not requested.
pub struct Fields<'a> {
    file: &'a Arc<str>,
    path: String,
    at: Position,
    entries: &'a [Entry],
    known: Vec<&'static str>,
    missing: Vec<String>,
    place_of: PlaceOf,
    diagnostics: &'a mut Diagnostics,
}

/// Returns the help text for an unknown key that belongs elsewhere in the document, or `None`.
pub type PlaceOf = fn(&str) -> Option<String>;

/// Number of unknown keys of one mapping that are reported one by one; the rest are only counted.
const MAX_UNKNOWN_KEYS: usize = 50;

impl<'a> Fields<'a> {
    /// Starts reading `node`. Reports an error and returns `None` if it is not a mapping.
    pub fn open(
        file: &'a Arc<str>,
        path: impl Into<String>,
        node: &'a Node,
        diagnostics: &'a mut Diagnostics,
    ) -> Option<Fields<'a>> {
        let path = path.into();
        let Some(entries) = node.entries() else {
            diagnostics.push(Diagnostic {
                severity: Severity::Error,
                file: Arc::clone(file),
                at: node.at,
                path,
                message: format!("found {}, expected a mapping", node.describe()),
                help: None,
            });
            return None;
        };
        Some(Fields {
            file,
            path,
            at: node.at,
            entries,
            known: Vec::new(),
            missing: Vec::new(),
            place_of: |_| None,
            diagnostics,
        })
    }

    /// Sets the function that provides help for unknown keys of this mapping and of the mappings nested in it.
    pub fn set_help(&mut self, place_of: PlaceOf) {
        self.place_of = place_of;
    }

    /// Path of a field of this mapping.
    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn report(&mut self, severity: Severity, at: Position, key: &str, message: String, help: Option<String>) {
        let path = if key.is_empty() { self.path.clone() } else { self.path_of(key) };
        self.diagnostics.push(Diagnostic { severity, file: Arc::clone(self.file), at, path, message, help });
    }

    /// Reports an error at the field `key`, or at the mapping itself if the field is absent.
    pub fn error(&mut self, key: &str, message: impl Into<String>, help: Option<String>) {
        let at = self.entries.iter().find(|entry| entry.key == key).map_or(self.at, |entry| entry.value.at);
        self.report(Severity::Error, at, key, message.into(), help);
    }

    /// Reports a warning at the field `key`, or at the mapping itself if the field is absent.
    pub fn warn(&mut self, key: &str, message: impl Into<String>, help: Option<String>) {
        let at = self.entries.iter().find(|entry| entry.key == key).map_or(self.at, |entry| entry.value.at);
        self.report(Severity::Warning, at, key, message.into(), help);
    }

    /// Returns the raw value under `key` and marks the key as known. `null` counts as absent.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value).filter(|node| !node.is_null())
    }

    /// Like [`Fields::node`], but does not mark the key as known.
    #[must_use]
    pub fn peek(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value).filter(|node| !node.is_null())
    }

    /// Whether `key` has a value other than `null`.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key && !entry.value.is_null())
    }

    /// Records that `key` is required and absent.
    pub fn missing(&mut self, key: &str) {
        let path = self.path_of(key);
        self.missing.push(path);
    }

    /// Reads the mapping under `key` with `read`. Returns `None` if it is absent or not a mapping.
    pub fn map<T>(&mut self, key: &'static str, read: impl FnOnce(&mut Fields<'_>) -> T) -> Option<T> {
        let node = self.node(key)?;
        let path = self.path_of(key);
        let mut fields = Fields::open(self.file, path, node, self.diagnostics)?;
        fields.place_of = self.place_of;
        let value = read(&mut fields);
        let missing = fields.warn_and_take_missing();
        self.missing.extend(missing);
        Some(value)
    }

    /// Like [`Fields::map`], for a required mapping. If it is absent, the fields named in `needed` are reported as
    /// missing.
    pub fn required_map<T>(
        &mut self,
        key: &'static str,
        needed: &[&str],
        read: impl FnOnce(&mut Fields<'_>) -> T,
    ) -> Option<T> {
        if self.entries.iter().any(|entry| entry.key == key && !entry.value.is_null()) {
            return self.map(key, read);
        }
        self.known.push(key);
        for field in needed {
            let path = format!("{}.{field}", self.path_of(key));
            self.missing.push(path);
        }
        None
    }

    /// Returns the value as text. Numbers and booleans are formatted; a list or mapping is an error.
    pub fn text(&mut self, key: &'static str) -> Option<String> {
        let node = self.node(key)?;
        if node.items().is_some() || node.entries().is_some() {
            let message = format!("found {}, expected text", node.describe());
            self.report(Severity::Error, node.at, key, message, None);
            return None;
        }
        Some(node.text().map_or_else(|| node.describe(), str::to_owned))
    }

    /// Like [`Fields::text`], for a required field.
    pub fn required_text(&mut self, key: &'static str) -> Option<String> {
        self.require(key, Fields::text)
    }

    /// Returns the value as a number within `bounds`. A quoted number is accepted with a warning.
    pub fn number(&mut self, key: &'static str, bounds: Bounds) -> Option<f64> {
        let node = self.node(key)?;
        let quoted = node.text().and_then(|text| Node::synthetic(super::parse::scalar(text.trim())).number());
        match node.number().or(quoted) {
            Some(value) if bounds.contains(value) => {
                if quoted.is_some() {
                    let help = Some("remove the quotes".to_owned());
                    self.report(
                        Severity::Warning,
                        node.at,
                        key,
                        format!("found {}, read as {value}", node.describe()),
                        help,
                    );
                }
                Some(value)
            }
            _ => {
                let message = format!("found {}, expected {}", node.describe(), bounds.describe());
                self.report(Severity::Error, node.at, key, message, None);
                None
            }
        }
    }

    /// Like [`Fields::number`], for a required field.
    pub fn required_number(&mut self, key: &'static str, bounds: Bounds) -> Option<f64> {
        self.require(key, |fields, key| fields.number(key, bounds))
    }

    /// Returns the value as a whole number within `bounds`.
    pub fn count(&mut self, key: &'static str, bounds: Bounds) -> Option<Count> {
        let max = bounds.max.min(f64::from(Count::MAX));
        self.number(key, Bounds { max, whole: true, ..bounds }).map(Count::floor)
    }

    /// Like [`Fields::count`], for a required field.
    pub fn required_count(&mut self, key: &'static str, bounds: Bounds) -> Option<Count> {
        self.require(key, |fields, key| fields.count(key, bounds))
    }

    /// Returns the value as a boolean: `true`, `false`, or the words `yes`, `on`, `no` and `off`.
    pub fn boolean(&mut self, key: &'static str) -> Option<bool> {
        let node = self.node(key)?;
        match (&node.value, node.text()) {
            (super::node::Value::Bool(value), _) => Some(*value),
            (_, Some("yes" | "on")) => Some(true),
            (_, Some("no" | "off")) => Some(false),
            _ => {
                let message = format!("found {}, expected true or false", node.describe());
                self.report(Severity::Error, node.at, key, message, None);
                None
            }
        }
    }

    /// Returns the value as a list of strings. A single string counts as a list of one.
    pub fn texts(&mut self, key: &'static str) -> Vec<String> {
        let Some(node) = self.node(key) else { return Vec::new() };
        if let Some(text) = node.text() {
            return vec![text.to_owned()];
        }
        let Some(items) = node.items() else {
            let message = format!("found {}, expected a list of strings", node.describe());
            self.report(Severity::Error, node.at, key, message, None);
            return Vec::new();
        };
        items.iter().map(|item| item.text().map_or_else(|| item.describe(), str::to_owned)).collect()
    }

    /// Returns the value that belongs to one of the words in `choices`.
    pub fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let node = self.node(key)?;
        let found = node.text().and_then(|text| choices.iter().find(|(name, _)| *name == text));
        if let Some((_, value)) = found {
            return Some(*value);
        }
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let help = node.text().and_then(|text| did_you_mean(text, names.iter().copied()));
        let message = format!("found {}, expected one of {}", node.describe(), names.join(", "));
        self.report(Severity::Error, node.at, key, message, help);
        None
    }

    fn require<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&mut Fields<'a>, &'static str) -> Option<T>,
    ) -> Option<T> {
        if self.entries.iter().any(|entry| entry.key == key && !entry.value.is_null()) {
            return read(self, key);
        }
        self.known.push(key);
        self.missing(key);
        None
    }

    /// Returns all entries of the mapping and marks every key as known: for mappings whose keys are arbitrary names,
    /// such as fabrics.
    pub fn all(&mut self) -> &'a [Entry] {
        self.known.clear();
        self.known.push("*");
        self.entries
    }

    /// Suppresses warnings about unknown keys, which may belong to other tools.
    pub fn ignore_unknown_keys(&mut self) {
        self.known.push("*");
    }

    /// The file that contains this mapping.
    #[must_use]
    pub fn file(&self) -> &'a Arc<str> {
        self.file
    }

    /// Position at which the mapping begins.
    #[must_use]
    pub fn at(&self) -> Position {
        self.at
    }

    /// The diagnostics collected so far, for decoders of nested documents.
    pub fn diagnostics(&mut self) -> &mut Diagnostics {
        self.diagnostics
    }

    /// Warns about unknown keys and returns the missing fields, so that the outermost mapping can report them together.
    fn warn_and_take_missing(mut self) -> Vec<String> {
        self.warn_unknown();
        self.missing
    }

    fn warn_unknown(&mut self) {
        if self.known.contains(&"*") {
            return;
        }
        let mut unknown = 0_usize;
        for entry in self.entries {
            if self.known.contains(&&*entry.key) {
                continue;
            }
            unknown += 1;
            if unknown > MAX_UNKNOWN_KEYS {
                continue;
            }
            if entry.value.is_null() && entry.key.bytes().all(|byte| byte.is_ascii_digit()) {
                let message = "found a number, expected a key".to_owned();
                let help = Some("use a decimal point, not a comma".to_owned());
                self.report(Severity::Error, entry.key_at, &entry.key, message, help);
                continue;
            }
            let help = (self.place_of)(&entry.key).or_else(|| did_you_mean(&entry.key, self.known.iter().copied()));
            let message = "unknown key; kept but ignored".to_owned();
            self.report(Severity::Warning, entry.key_at, &entry.key, message, help);
        }
        if unknown > MAX_UNKNOWN_KEYS {
            let message = format!("{} more unknown keys", unknown - MAX_UNKNOWN_KEYS);
            self.report(Severity::Warning, self.at, "", message, None);
        }
    }

    /// Reports all missing fields in one diagnostic, and warns about unknown keys. Returns whether no field is missing.
    pub fn finish(mut self) -> bool {
        self.warn_unknown();
        if self.missing.is_empty() {
            return true;
        }
        let prefix = format!("{}.", self.path);
        let names: Vec<&str> = self.missing.iter().map(|path| path.strip_prefix(&prefix).unwrap_or(path)).collect();
        let (noun, it) = if names.len() == 1 { ("field", "it") } else { ("fields", "them") };
        let message = format!("{} missing {noun}: {}", names.len(), names.join(", "));
        let help = Some(format!("add {it}; nothing is filled in from hidden defaults"));
        self.report(Severity::Error, self.at, "", message, help);
        false
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::parse::parse;

    #[test]
    fn all_missing_fields_are_listed_in_one_diagnostic() {
        let file: Arc<str> = "t.yaml".into();
        let mut problems = Diagnostics::new();
        let node = parse(&file, "name: x\ncost:\n  pue: 1.2\nhostt: 3\n", &mut problems).unwrap();
        let mut fields = Fields::open(&file, "x", &node, &mut problems).unwrap();
        fields.required_text("name");
        fields.required_text("vendor");
        fields.text("host");
        fields.required_map("cost", &["pue"], |cost| {
            cost.required_number("pue", Bounds::POSITIVE);
            cost.required_number("hourly_usd", Bounds::POSITIVE);
        });
        fields.required_map("sequence", &["prompt", "generate"], |_| ());
        assert!(!fields.finish());
        assert_eq!(
            problems.to_string(),
            "t.yaml:4:1: warning: x.hostt: unknown key; kept but ignored; did you mean `host`?\n\
             t.yaml:1:1: error: x: 4 missing fields: vendor, cost.hourly_usd, sequence.prompt, sequence.generate; \
             add them; nothing is filled in from hidden defaults"
        );
    }

    #[test]
    fn a_decimal_comma_is_an_error_and_many_unknown_keys_are_counted() {
        let file: Arc<str> = "t.yaml".into();
        let mut problems = Diagnostics::new();
        let node = parse(&file, "{ pue: 1,15 }", &mut problems).unwrap();
        let mut fields = Fields::open(&file, "", &node, &mut problems).unwrap();
        fields.number("pue", Bounds::POSITIVE);
        fields.finish();
        assert!(problems.to_string().contains("use a decimal point"), "{problems}");
        let mut problems = Diagnostics::new();
        let text: String = (0..1000).map(|i| format!("k{i}: 1\n")).collect();
        let node = parse(&file, &text, &mut problems).unwrap();
        Fields::open(&file, "", &node, &mut problems).unwrap().finish();
        assert_eq!(problems.len(), MAX_UNKNOWN_KEYS + 1);
        assert!(problems.to_string().contains("950 more unknown keys"), "{problems}");
    }

    #[test]
    fn errors_of_numbers_state_found_and_expected() {
        let file: Arc<str> = "t.yaml".into();
        let mut problems = Diagnostics::new();
        let node = parse(&file, "a: four\nb: -1\nc: .nan\nd: 1.5\ne: 1e30\n", &mut problems).unwrap();
        let mut fields = Fields::open(&file, "", &node, &mut problems).unwrap();
        assert_eq!(fields.number("a", Bounds::COUNT), None);
        assert_eq!(fields.number("b", Bounds::COUNT), None);
        assert_eq!(fields.number("c", Bounds::POSITIVE), None);
        assert_eq!(fields.number("d", Bounds::COUNT), None);
        assert_eq!(fields.number("e", Bounds::COUNT), None);
        assert!(fields.finish());
        assert_eq!(problems.errors(), 5);
        assert!(problems.to_string().starts_with("t.yaml:1:4: error: a: found text \"four\", expected a whole number"));
    }

    #[test]
    fn a_count_that_is_not_whole_or_too_large_is_an_error_with_its_position() {
        let file: Arc<str> = "t.yaml".into();
        let mut problems = Diagnostics::new();
        let node = parse(&file, "a: 2.5\nb: 5000000000\nc: 7\n", &mut problems).unwrap();
        let mut fields = Fields::open(&file, "", &node, &mut problems).unwrap();
        assert_eq!(fields.count("a", Bounds::NATURAL), None);
        assert_eq!(fields.count("b", Bounds::NATURAL), None);
        assert_eq!(fields.count("c", Bounds::NATURAL), Some(Count::new(7)));
        assert!(fields.finish());
        assert_eq!(
            problems.to_string(),
            "t.yaml:1:4: error: a: found 2.5, expected a whole number from 0 to 4294967295\n\
             t.yaml:2:4: error: b: found 5000000000, expected a whole number from 0 to 4294967295"
        );
    }

    #[test]
    fn a_quoted_number_is_a_number_with_a_warning() {
        let file: Arc<str> = "t.yaml".into();
        let mut problems = Diagnostics::new();
        let node = parse(&file, "a: '8'\nb: 'eight'\n", &mut problems).unwrap();
        let mut fields = Fields::open(&file, "", &node, &mut problems).unwrap();
        assert_eq!(fields.number("a", Bounds::COUNT), Some(8.0));
        assert_eq!(fields.number("b", Bounds::COUNT), None);
        fields.finish();
        assert_eq!((problems.len(), problems.errors()), (2, 1), "{problems}");
    }
}
