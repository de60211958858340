//! The result of an import, and its JSON format.

use std::collections::BTreeMap;

use atlas_core::sort;
use serde_json::{Map, Value as Json, json};

use super::fields::{Fields, ReadFields};
use super::origin::Origin;
use super::place::Place;
use crate::flags::misspelled_flag;
use crate::secrets::mask;
use atlas_document::suggestion::clause;

/// An environment variable without a default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Its name.
    pub name: String,
    /// Place of the first use.
    pub at: Origin,
}

/// A note with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The flag or the finding.
    pub text: String,
    /// Its place.
    pub at: Origin,
}

/// Values that were read from the files of one job.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// Values by name, with dotted names nested.
    pub fields: Map<String, Json>,
    /// Place of each value, by dotted name.
    pub origin: BTreeMap<String, Origin>,
    /// Variables that the caller must set.
    pub missing: Vec<Missing>,
    /// Settings that were not recognized.
    pub not_recognized: Vec<Note>,
    /// Reasons why the job cannot run as written.
    pub conflicts: Vec<Note>,
    /// For several configurations in one file, the values that differ in each.
    pub variants: Vec<Map<String, Json>>,
    /// Settings of the prefill and decode workers of a disaggregated server.
    pub roles: Map<String, Json>,
}

impl Import {
    /// Whether no tool was recognized.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.variants.is_empty() && self.roles.is_empty()
    }

    /// JSON output of `atlas import --format json`.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let note = |n: &Note| json!({ "text": n.text, "file": n.at.file, "line": n.at.line });
        json!({
            "fields": self.fields,
            "origin": sort::collect_unsorted::<Map<_, _>, _>(
                self.origin.iter().map(|(k, o)| (k.clone(), json!({ "file": o.file, "line": o.line }))),
            ),
            "missing": self.missing.iter().map(|m| json!({ "name": m.name, "file": m.at.file, "line": m.at.line })).collect::<Vec<_>>(),
            "not_recognized": self.not_recognized.iter().map(note).collect::<Vec<_>>(),
            "conflicts": self.conflicts.iter().map(note).collect::<Vec<_>>(),
            "variants": self.variants,
            "roles": self.roles,
        })
    }
}

/// Variables that the system sets.
const AMBIENT: &[&str] = &[
    "HOME",
    "USER",
    "PWD",
    "PATH",
    "HOSTNAME",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "OLDPWD",
    "SHELL",
    "LANG",
    "UID",
];

pub(crate) fn build(out: ReadFields, files: &[String]) -> Import {
    let origin = |at: Place| Origin {
        file: files.get(at.file).cloned().unwrap_or_default(),
        line: (at.line > 0).then_some(at.line),
    };
    let mut fields = Fields::default();
    for e in out.fields.iter() {
        let mut e = e.clone();
        masked(&mut e.value);
        fields.put(e);
    }
    let mut origins = BTreeMap::new();
    let mut collect = |prefix: &str, f: &Fields| {
        for e in f.iter() {
            origins.insert(format!("{prefix}{}", e.key.name()), origin(e.at));
        }
    };
    collect("", &fields);
    for (r, f) in &out.roles {
        collect(&format!("roles.{r}."), f);
    }
    for (i, f) in out.variants.iter().enumerate() {
        collect(&format!("variants.{i}."), f);
    }
    let as_json = |f: &Fields| {
        let mut v = Json::Object(f.json());
        masked(&mut v);
        match v {
            Json::Object(m) => m,
            _ => Map::new(),
        }
    };
    let roles: Map<String, Json> =
        sort::collect_unsorted(out.roles.iter().map(|(r, f)| (r.clone(), Json::Object(as_json(f)))));
    let variants: Vec<Map<String, Json>> = out.variants.iter().map(as_json).collect();
    let mut map = fields.json();
    if !roles.is_empty() {
        map.insert("roles".to_owned(), Json::Object(roles.clone()));
    }
    if !variants.is_empty() {
        map.insert("variants".to_owned(), Json::Array(variants.iter().cloned().map(Json::Object).collect()));
    }
    let mut conflicts: Vec<Note> = Vec::new();
    for (text, at) in out.conflicts {
        conflicts.push(Note { text: mask(&text), at: origin(at) });
    }
    if !conflicts.is_empty() {
        let all: Vec<&str> = conflicts.iter().map(|c| c.text.as_str()).collect();
        map.insert("conflict".to_owned(), Json::String(all.join("; ")));
    }
    let mut missing: Vec<Missing> = Vec::new();
    for (name, at) in out.missing {
        let ambient = AMBIENT.contains(&name.as_str()) || name.starts_with("SLURM_") || name.starts_with("LWS_");
        if !ambient && !missing.iter().any(|m| m.name == name) {
            missing.push(Missing { name, at: origin(at) });
        }
    }
    let mut not_recognized: Vec<Note> = Vec::new();
    // Files that are referenced but were not provided may contain the missing values.
    let absent = out.references.into_iter().map(|(path, at)| (format!("file {path} not provided"), at));
    for (text, at) in out.unrecognized.into_iter().chain(absent) {
        let near = Some(&text).filter(|text| text.starts_with("--")).and_then(|flag| misspelled_flag(flag));
        let n = Note { text: mask(&text) + &clause(near), at: origin(at) };
        if !not_recognized.contains(&n) && not_recognized.len() < 1000 {
            not_recognized.push(n);
        }
    }
    Import { fields: map, origin: origins, missing, not_recognized, conflicts, variants, roles }
}

fn masked(v: &mut Json) {
    match v {
        Json::String(s) => *s = mask(s),
        Json::Array(a) => a.iter_mut().for_each(masked),
        Json::Object(o) => o.values_mut().for_each(masked),
        _ => {}
    }
}
