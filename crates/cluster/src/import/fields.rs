//! Values that were read, each with the place where it is written.

use serde_json::{Map, Value as Json};

use super::field::{Field, Kind, Type};
use super::place::Place;
use super::unknown;
use super::value::Node;

/// One value with its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Field,
    pub(crate) value: Json,
    pub(crate) at: Place,
    /// Whether the value was computed from other values, or read from a name or a comment.
    pub(crate) implied: bool,
}

/// Values by dotted name, in reading order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Fields {
    entries: Vec<Entry>,
    /// Names that are stated, but whose value the caller must supply.
    unknown: Vec<Field>,
}

impl Fields {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn entry(&self, key: Field) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    pub(crate) fn has(&self, key: Field) -> bool {
        self.entry(key).is_some()
    }

    pub(crate) fn int(&self, key: Field) -> Option<i64> {
        self.entry(key)?.value.as_i64()
    }

    pub(crate) fn str(&self, key: Field) -> Option<&str> {
        self.entry(key)?.value.as_str()
    }

    /// Kind of the job.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.str(Field::Kind).and_then(Kind::named)
    }

    pub(crate) fn bool(&self, key: Field) -> Option<bool> {
        self.entry(key)?.value.as_bool()
    }

    pub(crate) fn at(&self, key: Field) -> Place {
        self.entry(key).map_or(Place::NONE, |e| e.at)
    }

    pub(crate) fn remove(&mut self, key: Field) -> Option<Entry> {
        let i = self.entries.iter().position(|e| e.key == key)?;
        Some(self.entries.remove(i))
    }

    /// Records that the value is stated, but not known.
    pub(crate) fn mark_unknown(&mut self, key: Field) {
        self.remove(key);
        if !self.is_unknown(key) {
            self.unknown.push(key);
        }
    }

    pub(crate) fn is_unknown(&self, key: Field) -> bool {
        self.unknown.contains(&key)
    }

    /// Sets or replaces a value.
    pub(crate) fn set(&mut self, key: Field, value: impl Into<Json>, at: Place) {
        self.put(Entry { key, value: value.into(), at, implied: false });
    }

    /// Sets a value unless it is already set, and marks it as implied.
    pub(crate) fn set_implied(&mut self, key: Field, value: impl Into<Json>, at: Place) {
        if !self.has(key) {
            self.put(Entry { key, value: value.into(), at, implied: true });
        }
    }

    pub(crate) fn put(&mut self, entry: Entry) {
        self.unknown.retain(|k| *k != entry.key);
        match self.entries.iter_mut().find(|e| e.key == entry.key) {
            Some(e) => *e = entry,
            None => self.entries.push(entry),
        }
    }

    /// Sets the place of values that have none.
    pub(crate) fn set_missing_places(&mut self, at: Place) {
        self.entries.iter_mut().filter(|e| e.at == Place::NONE).for_each(|e| e.at = at);
    }

    /// Copies the values of `other` that are not set here.
    pub(crate) fn copy_missing(&mut self, other: &Fields) {
        for e in &other.entries {
            if !self.has(e.key) {
                self.entries.push(e.clone());
            }
        }
        for key in &other.unknown {
            if !self.has(*key) && !self.is_unknown(*key) {
                self.unknown.push(*key);
            }
        }
    }

    /// Converts the values to a JSON object, with dotted names nested.
    pub(crate) fn json(&self) -> Map<String, Json> {
        let mut out = Map::new();
        for e in &self.entries {
            match e.key.section() {
                (Some(section), name) => {
                    let slot = out.entry(section).or_insert_with(|| Json::Object(Map::new()));
                    if let Json::Object(m) = slot {
                        m.insert(name.to_owned(), e.value.clone());
                    }
                }
                (None, name) => {
                    out.insert(name.to_owned(), e.value.clone());
                }
            }
        }
        out
    }
}

/// What has been read from one file, command or role.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReadFields {
    pub(crate) fields: Fields,
    /// Unset variables that values depend on, with the places of use.
    pub(crate) missing: Vec<(String, Place)>,
    /// Settings that are not recognized, with their places.
    pub(crate) unrecognized: Vec<(String, Place)>,
    /// Reasons why the job cannot run as written, with their places.
    pub(crate) conflicts: Vec<(String, Place)>,
    pub(crate) roles: Vec<(String, Fields)>,
    pub(crate) variants: Vec<Fields>,
    /// The name under which a server offers its model, with its place.
    pub(crate) served: Option<(String, Place)>,
    /// Files that settings refer to, with the places.
    pub(crate) references: Vec<(String, Place)>,
}

impl ReadFields {
    /// Records the unset variables that a value depends on. Returns whether there are any.
    pub(crate) fn record_unset_variables(&mut self, node: &Node) -> bool {
        let Some(raw) = node.raw() else { return false };
        if !unknown::is_in(raw) {
            return false;
        }
        for n in unknown::names(raw) {
            if !self.missing.iter().any(|(m, _)| *m == n) {
                self.missing.push((n, node.line));
            }
        }
        true
    }

    /// Sets a whole number, or a short expression of unset variables.
    pub(crate) fn int(&mut self, key: Field, node: &Node) -> bool {
        if let Some(n) = node.int() {
            self.fields.set(key, n, node.line);
        } else if self.record_unset_variables(node) {
            // Lengths and numbers of requests may be sums of variables that the caller sets.
            let sum = matches!(key.kind(), Type::Sum | Type::Load);
            let expr = node
                .raw()
                .and_then(unknown::whole)
                .filter(|e| sum && !e.starts_with('?') && e.contains(['+', '-', '*']) && !e.contains("SLURM_"));
            match expr.map(str::to_owned) {
                Some(e) => self.fields.set(key, e, node.line),
                // A later value that is unset overrides an earlier one.
                None => self.fields.mark_unknown(key),
            }
        }
        true
    }

    pub(crate) fn float(&mut self, key: Field, node: &Node) -> bool {
        if let Some(x) = node.float() {
            let value = if x.fract() == 0.0 && x.abs() < 9e15 && node.int().is_some() {
                Json::from(x as i64)
            } else {
                Json::from(x)
            };
            self.fields.set(key, value, node.line);
        } else {
            self.record_unset_variables(node);
        }
        true
    }

    pub(crate) fn text(&mut self, key: Field, node: &Node) -> bool {
        if let Some(s) = node.text() {
            self.fields.set(key, s, node.line);
        } else {
            self.record_unset_variables(node);
        }
        true
    }

    pub(crate) fn flag(&mut self, key: Field, node: &Node) -> bool {
        if let Some(b) = node.switch() {
            self.fields.set(key, b, node.line);
        } else {
            self.record_unset_variables(node);
        }
        true
    }

    /// Sets the place of everything that has none.
    pub(crate) fn set_missing_places(&mut self, at: Place) {
        self.fields.set_missing_places(at);
        self.roles.iter_mut().for_each(|(_, f)| f.set_missing_places(at));
        self.variants.iter_mut().for_each(|f| f.set_missing_places(at));
        for list in [&mut self.missing, &mut self.unrecognized, &mut self.conflicts] {
            list.iter_mut().filter(|(_, p)| *p == Place::NONE).for_each(|(_, p)| *p = at);
        }
    }

    /// Sets the whole number at the first of several dotted paths that exists.
    pub(crate) fn int_at(&mut self, key: Field, doc: &Node, paths: &[&str]) {
        if let Some(node) = doc.first(paths) {
            self.int(key, node);
        }
    }

    /// Sets a value if the switch is on.
    pub(crate) fn set_if_on(&mut self, key: Field, value: impl Into<Json>, node: &Node) -> bool {
        node.switch() != Some(true) || self.set(key, value, node.line)
    }

    /// Sets a value as implied if the switch is on and the value is not set.
    pub(crate) fn imply_if_on(&mut self, key: Field, value: impl Into<Json>, node: &Node) -> bool {
        if node.switch() == Some(true) {
            self.fields.set_implied(key, value, node.line);
        }
        true
    }

    /// Sets the negation of a boolean.
    pub(crate) fn set_negated(&mut self, key: Field, node: &Node) -> bool {
        if let Some(b) = node.switch() {
            self.fields.set(key, !b, node.line);
        }
        true
    }

    pub(crate) fn set(&mut self, key: Field, value: impl Into<Json>, at: Place) -> bool {
        self.fields.set(key, value, at);
        true
    }

    pub(crate) fn conflict(&mut self, text: impl Into<String>, at: Place) {
        let text = text.into();
        if !self.conflicts.iter().any(|(t, _)| *t == text) {
            self.conflicts.push((text, at));
        }
    }
}
