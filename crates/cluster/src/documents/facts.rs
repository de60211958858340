//! The values of an imported job, each with its origin.

use std::collections::BTreeMap;

use atlas_catalog::Model;
use serde_json::{Map, Value};

use super::{MissingInput, UserInput};
use crate::import::{Import, Origin};
use crate::launch::{one_line, slug, yaml_text};

/// Fields of one configuration, with their origins.
pub(super) struct Facts {
    fields: Map<String, Value>,
    origin: BTreeMap<String, Origin>,
    /// Settings of the prefill and decode workers.
    pub(super) roles: Map<String, Value>,
}

impl Facts {
    /// Selects the only configuration of the import, or the one that the user chose.
    pub(super) fn of(import: &Import, given: &UserInput) -> Result<Facts, Vec<MissingInput>> {
        let (mut fields, mut origin) = (import.fields.clone(), import.origin.clone());
        let count = import.variants.len();
        let chosen = match (given.variant, count) {
            (Some(index), count) if index < count => Some(index),
            (Some(index), count) => {
                let reason =
                    format!("{index} is out of range: the files contain {count} configurations, numbered from 0");
                return Err(vec![MissingInput::new("variant", reason)]);
            }
            (None, 0) => None,
            (None, 1) => Some(0),
            (None, count) => {
                let reason =
                    format!("the files contain {count} configurations; choose one with --variant 0 to {}", count - 1);
                return Err(vec![MissingInput::new("variant", reason)]);
            }
        };
        if let Some(variant) = chosen.and_then(|index| import.variants.get(index)) {
            fields.extend(variant.clone());
            let prefix = format!("variants.{}.", chosen.unwrap_or_default());
            let own: Vec<(String, Origin)> = import
                .origin
                .iter()
                .filter_map(|(key, place)| Some((key.strip_prefix(&prefix)?.to_owned(), place.clone())))
                .collect();
            origin.extend(own);
        }
        if fields.is_empty() && import.roles.is_empty() {
            return Err(vec![MissingInput::new(
                "files",
                "found no launch command or configuration of a supported tool",
            )]);
        }
        Ok(Facts { fields, origin, roles: import.roles.clone() })
    }

    /// The value under a dotted name.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        let mut parts = key.split('.');
        let first = self.fields.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }

    /// A whole number of at least one.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        self.value(key)?.as_u64().filter(|count| *count > 0)
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.value(key)?.as_f64().filter(|value| value.is_finite())
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.value(key)?.as_str()
    }

    pub(super) fn flag(&self, key: &str) -> Option<bool> {
        self.value(key)?.as_bool()
    }

    /// Whether the job is a serving job.
    pub(super) fn serves(&self) -> bool {
        self.text("kind").is_some_and(|kind| kind != "training")
    }

    /// Formats the origin of a value as a comment.
    pub(super) fn place(&self, key: &str) -> Option<String> {
        let origin = self.origin.get(key)?;
        let line = origin.line.map_or_else(String::new, |line| format!(":{line}"));
        Some(format!("{}{line}", one_line(&origin.file)))
    }

    /// Derives a name for the job's documents.
    pub(super) fn name(&self, model: Option<&Model>) -> String {
        let model = model.map(|model| model.id.as_str()).or_else(|| self.text("model")).unwrap_or("model");
        slug(&format!("{model} {}", self.text("framework").unwrap_or("imported")))
    }
}

/// Lines of YAML, with comments that state the origin of the values.
#[derive(Default)]
pub(super) struct YamlLines {
    text: String,
    /// The comment of each value, keyed by the path of the value.
    read_from: Vec<(String, String)>,
}

impl YamlLines {
    /// Appends a line, followed by a comment that states where the value comes from.
    fn push(&mut self, section: Option<&str>, key: &str, value: &str, comment: Option<&str>) {
        let pad = " ".repeat(if section.is_some() { 4 } else { 2 });
        if let Some(comment) = comment {
            let path = section.map_or_else(|| key.to_owned(), |section| format!("{section}.{key}"));
            self.read_from.push((path, one_line(comment)));
        }
        let comment = comment.map_or_else(String::new, |comment| format!("  # {}", one_line(comment)));
        self.text.push_str(&format!("{pad}{key}: {value}{comment}\n"));
    }

    /// Appends a string at the top level of the entry.
    pub(super) fn push_string(&mut self, key: &str, value: &str, comment: Option<&str>) {
        self.push(None, key, &yaml_text(value), comment);
    }

    /// Appends a number or boolean at the top level of the entry.
    pub(super) fn push_scalar(&mut self, key: &str, value: impl ToString, comment: Option<&str>) {
        self.push(None, key, &value.to_string(), comment);
    }

    /// Appends a mapping, unless it is empty.
    pub(super) fn section(&mut self, key: &str, entries: Vec<Line>) {
        if entries.is_empty() {
            return;
        }
        self.text.push_str(&format!("  {key}:\n"));
        let mut last: Option<String> = None;
        for entry in entries {
            self.push(Some(key), entry.key, &entry.value, entry.comment.as_deref());
            // A line without a comment has the origin of the line above it.
            match (entry.comment, &last) {
                (Some(comment), _) => last = Some(comment),
                (None, Some(above)) => self.read_from.push((format!("{key}.{}", entry.key), one_line(above))),
                (None, None) => {}
            }
        }
    }

    /// Appends preformatted YAML.
    pub(super) fn raw(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Returns the entry's body, and the comments as a `read_from` mapping for explanations.
    pub(super) fn finish(self) -> (String, String) {
        let quoted = |(path, comment): &(String, String)| format!("    {path}: {}\n", yaml_text(comment));
        let places: String = self.read_from.iter().map(quoted).collect();
        (self.text, if places.is_empty() { places } else { format!("  read_from:\n{places}") })
    }
}

/// A line of a mapping.
pub(super) struct Line {
    pub(super) key: &'static str,
    pub(super) value: String,
    pub(super) comment: Option<String>,
}

/// A line with the value that the files state in the field `from`.
pub(super) fn line_from_field(facts: &Facts, key: &'static str, from: &str, value: impl ToString) -> Line {
    Line { key, value: value.to_string(), comment: facts.place(from) }
}

/// A line with a value from another source, which `comment` describes.
pub(super) fn line_with_comment(key: &'static str, value: impl ToString, comment: &str) -> Line {
    Line { key, value: value.to_string(), comment: (!comment.is_empty()).then(|| comment.to_owned()) }
}
