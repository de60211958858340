//! The values of an imported job, each with its origin.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use atlas_catalog::Model;
use serde_json::{Map, Value};

use super::{MissingInput, UserInput};
use crate::import::{Field, Import, Kind, Origin, Use};
use crate::launch::{one_line, slug, yaml_text};

/// A field of the job, or of the workers of one role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    role: Option<&'static str>,
    field: Field,
}

impl Key {
    /// A setting of the workers of a role.
    pub(super) fn of_role(role: &'static str, field: Field) -> Key {
        Key { role: Some(role), field }
    }
}

impl From<Field> for Key {
    fn from(field: Field) -> Key {
        Key { role: None, field }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.role {
            Some(role) => write!(f, "roles.{role}.{}", self.field.name()),
            None => f.write_str(self.field.name()),
        }
    }
}

/// Fields of one configuration, with their origins.
pub(super) struct Facts {
    fields: Map<String, Value>,
    origin: BTreeMap<String, Origin>,
    /// Settings of the prefill and decode workers.
    roles: Map<String, Value>,
    /// Names of the values that were used.
    used: RefCell<BTreeSet<String>>,
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
        // A configuration of the client alone states the load without a section.
        for field in [Field::Isl, Field::Osl, Field::Shortest, Field::Concurrency, Field::RequestRate] {
            let key = field.name();
            let section = fields.get("benchmark").and_then(Value::as_object);
            if section.is_some_and(|section| section.contains_key(key)) {
                continue;
            }
            let Some(value) = fields.remove(key) else { continue };
            let section = fields.entry("benchmark").or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(section) = section {
                section.insert(key.to_owned(), value);
            }
            if let Some(place) = origin.remove(key) {
                origin.insert(format!("benchmark.{key}"), place);
            }
        }
        if fields.is_empty() && import.roles.is_empty() {
            return Err(vec![MissingInput::new(
                "files",
                "found no launch command or configuration of a supported tool",
            )]);
        }
        Ok(Facts { fields, origin, roles: import.roles.clone(), used: RefCell::default() })
    }

    /// The value of a field.
    pub(super) fn value(&self, key: impl Into<Key>) -> Option<&Value> {
        let key = key.into();
        debug_assert!(key.field.usage() != Use::Unplanned, "{key} is planned, but its entry states the opposite");
        self.used.borrow_mut().insert(key.to_string());
        let fields = match key.role {
            Some(role) => self.roles.get(role)?.as_object()?,
            None => &self.fields,
        };
        match key.field.section() {
            (Some(section), name) => fields.get(section)?.get(name),
            (None, name) => fields.get(name),
        }
    }

    /// The setting of a scheduler: that of the whole job, else that of the decode workers.
    pub(super) fn of_scheduler(&self, field: Field) -> Key {
        let own = Key::of_role("decode", field);
        if self.value(field).is_none() && self.value(own).is_some() { own } else { field.into() }
    }

    /// Whether the files describe workers of this role.
    pub(super) fn has_role(&self, role: &str) -> bool {
        self.roles.contains_key(role)
    }

    /// Settings of the files that the documents do not contain, with their places.
    pub(super) fn unused(&self) -> Vec<String> {
        let used = self.used.borrow();
        let mut leaves = Vec::new();
        leaves_of("", &self.fields, &mut leaves);
        let unused = leaves.into_iter().filter(|(name, _)| {
            let own = name.splitn(3, '.').last().filter(|_| name.starts_with("roles.")).unwrap_or(name);
            let planned = Field::named(own).is_some_and(|field| field.usage() != Use::Context);
            planned && !used.contains(name)
        });
        let shown = |(name, value): (String, &Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match self.origin.get(&name).map(shown_place) {
                Some(place) => format!("{name} = {} ({place})", one_line(&value)),
                None => format!("{name} = {}", one_line(&value)),
            }
        };
        unused.map(shown).collect()
    }

    /// A whole number of at least one.
    pub(super) fn count(&self, key: impl Into<Key>) -> Option<u64> {
        self.value(key)?.as_u64().filter(|count| *count > 0)
    }

    pub(super) fn number(&self, key: impl Into<Key>) -> Option<f64> {
        self.value(key)?.as_f64().filter(|value| value.is_finite())
    }

    pub(super) fn text(&self, key: impl Into<Key>) -> Option<&str> {
        self.value(key)?.as_str()
    }

    pub(super) fn flag(&self, key: impl Into<Key>) -> Option<bool> {
        self.value(key)?.as_bool()
    }

    /// Whether the job is a serving job.
    pub(super) fn serves(&self) -> bool {
        self.text(Field::Kind).is_some_and(|kind| Kind::named(kind) != Some(Kind::Training))
    }

    /// Formats the origin of a value as a comment.
    pub(super) fn place(&self, key: impl Into<Key>) -> Option<String> {
        self.origin.get(&key.into().to_string()).map(shown_place)
    }

    /// Derives a name for the job's documents.
    pub(super) fn name(&self, model: Option<&Model>) -> String {
        let model = model.map(|model| model.id.as_str()).or_else(|| self.text(Field::Model)).unwrap_or("model");
        slug(&format!("{model} {}", self.text(Field::Framework).unwrap_or("imported")))
    }
}

/// The place as `file:line`.
pub(super) fn shown_place(origin: &Origin) -> String {
    let line = origin.line.map_or_else(String::new, |line| format!(":{line}"));
    format!("{}{line}", one_line(&origin.file))
}

/// Values by dotted name. Lists and numbers are single values.
fn leaves_of<'a>(prefix: &str, fields: &'a Map<String, Value>, out: &mut Vec<(String, &'a Value)>) {
    for (key, value) in fields {
        match value {
            Value::Object(inner) => leaves_of(&format!("{prefix}{key}."), inner, out),
            Value::Array(items) if items.iter().any(Value::is_object) => {}
            _ => out.push((format!("{prefix}{key}"), value)),
        }
    }
}

/// Lines of YAML, with comments that state the origin of the values.
#[derive(Default)]
pub(super) struct YamlLines {
    entries: Vec<Entry>,
}

/// A scalar with its path in the entry.
struct Entry {
    path: Vec<&'static str>,
    value: String,
    /// The comment after the value.
    comment: Option<String>,
    /// Where the value comes from. Values without a comment come from the same place as the one above.
    origin: Option<String>,
}

impl YamlLines {
    /// Appends a string at the top level of the entry.
    pub(super) fn push_string(&mut self, key: &'static str, value: &str, comment: Option<&str>) {
        self.push_scalar(key, yaml_text(value), comment);
    }

    /// Appends a number or boolean at the top level of the entry.
    pub(super) fn push_scalar(&mut self, key: &'static str, value: impl ToString, comment: Option<&str>) {
        let comment = comment.map(one_line);
        self.entries.push(Entry { path: vec![key], value: value.to_string(), origin: comment.clone(), comment });
    }

    /// Appends lines to the mapping at this path.
    pub(super) fn section(&mut self, path: &[&'static str], lines: Vec<Line>) {
        let mut above: Option<String> = None;
        for line in lines {
            let comment = line.comment.as_deref().map(one_line);
            above = comment.clone().or(above);
            let path = path.iter().copied().chain([line.key]).collect();
            self.entries.push(Entry { path, value: line.value, comment, origin: above.clone() });
        }
    }

    /// Sets a value that the user gives in place of the one in the files, or removes it.
    pub(super) fn overwrite(&mut self, path: &[&'static str], value: Option<String>) {
        let mut path = path.to_vec();
        // A mapping such as `recompute` is also written as a word, its `mode`.
        let nested = |path: &[&str], outer: &[&str]| path.len() > outer.len() && path.starts_with(outer);
        if let Some(word) = self.entries.iter_mut().find(|entry| nested(&path, &entry.path)) {
            word.path.push("mode");
        }
        if self.entries.iter().any(|entry| nested(&entry.path, &path)) {
            path.push("mode");
        }
        let given = || Some("given".to_owned());
        match (self.entries.iter().position(|entry| entry.path == path), value) {
            (Some(at), None) => drop(self.entries.remove(at)),
            (None, None) => {}
            (Some(at), Some(value)) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    *entry = Entry { path, value, comment: given(), origin: given() };
                }
            }
            (None, Some(value)) => self.entries.push(Entry { path, value, comment: given(), origin: given() }),
        }
    }

    /// Returns the entry's body, and the origins as a `read_from` mapping for explanations.
    pub(super) fn finish(self) -> (String, String) {
        let mut body = String::new();
        let entries: Vec<(&[&'static str], &Entry)> =
            self.entries.iter().map(|entry| (entry.path.as_slice(), entry)).collect();
        render(&entries, 2, &mut body);
        let quoted =
            |entry: &Entry| Some(format!("    {}: {}\n", entry.path.join("."), yaml_text(entry.origin.as_deref()?)));
        let places: String = self.entries.iter().filter_map(quoted).collect();
        (body, if places.is_empty() { places } else { format!("  read_from:\n{places}") })
    }
}

/// Writes entries, whose paths are relative to the mapping, with the keys of each mapping together.
fn render(entries: &[(&[&'static str], &Entry)], indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    let mut done: Vec<&str> = Vec::new();
    for (path, entry) in entries {
        let Some((first, rest)) = path.split_first() else { continue };
        if rest.is_empty() {
            let comment = entry.comment.as_deref().map_or_else(String::new, |comment| format!("  # {comment}"));
            out.push_str(&format!("{pad}{first}: {}{comment}\n", entry.value));
        } else if !done.contains(first) {
            done.push(first);
            out.push_str(&format!("{pad}{first}:\n"));
            let inner = entries.iter().filter_map(|(path, entry)| match path.split_first() {
                Some((key, rest)) if key == first && !rest.is_empty() => Some((rest, *entry)),
                _ => None,
            });
            render(&inner.collect::<Vec<_>>(), indent + 2, out);
        }
    }
}

/// A line of a mapping.
pub(super) struct Line {
    pub(super) key: &'static str,
    pub(super) value: String,
    pub(super) comment: Option<String>,
}

/// A line with the value that the files state in the field `from`.
pub(super) fn line_from_field(facts: &Facts, key: &'static str, from: impl Into<Key>, value: impl ToString) -> Line {
    Line { key, value: value.to_string(), comment: facts.place(from) }
}

/// A line with a value from another source, which `comment` describes.
pub(super) fn line_with_comment(key: &'static str, value: impl ToString, comment: &str) -> Line {
    Line { key, value: value.to_string(), comment: (!comment.is_empty()).then(|| comment.to_owned()) }
}
