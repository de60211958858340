//! The values of an imported job, each with its origin.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use atlas_catalog::Model;
use serde_json::{Map, Value};

use super::{MissingInput, UserInput};
use crate::import::{Import, Origin};
use crate::launch::{one_line, slug, yaml_text};

/// Fields that are no settings of a plan: names, files, job options, and what other fields are derived from.
const NOT_PLANNED: &[&str] = &[
    "_format",
    "accelerator",
    "accelerators",
    "accelerators_per_node",
    "accelerators_per_replica",
    "architecture",
    "backend",
    "base_config",
    "benchmark.dataset",
    "benchmark.num_prompts",
    "benchmark.tool",
    "calls",
    "config_file",
    "conflict",
    "dataset",
    "dcn",
    "devices_per_replica",
    "dp",
    "dp_local",
    "dp_replicate",
    "dp_shard",
    "expert_parallel",
    "fp8_format",
    "framework",
    "grad_accum",
    "hf_model",
    "ici",
    "kind",
    "launcher",
    "manifest",
    "max_model_len",
    "minibatch_per_dp",
    "model",
    "model_path",
    "name",
    "nodes",
    "nodes_per_replica",
    "num_accelerators",
    "num_prompts",
    "orchestrator",
    "quantization",
    "required_args",
    "required_env",
    "role",
    "scenario",
    "slurm",
    "tool_name",
    "ulysses_sp",
];

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
        for key in ["isl", "osl", "concurrency", "request_rate"] {
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

    /// The value under a dotted name; `roles.prefill.tp` is a setting of the prefill workers.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.used.borrow_mut().insert(key.to_owned());
        let (fields, own) = match key.strip_prefix("roles.") {
            Some(own) => (&self.roles, own),
            None => (&self.fields, key),
        };
        let mut parts = own.split('.');
        let first = fields.get(parts.next()?)?;
        parts.try_fold(first, |value, part| value.get(part))
    }

    /// The name of a scheduler's setting: that of the whole job, else that of the decode workers.
    pub(super) fn of_scheduler(&self, key: &str) -> String {
        let own = format!("roles.decode.{key}");
        if self.value(key).is_none() && self.value(&own).is_some() { own } else { key.to_owned() }
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
        leaves_of("roles.", &self.roles, &mut leaves);
        let unused = leaves.into_iter().filter(|(name, _)| {
            let own = name.splitn(3, '.').last().filter(|_| name.starts_with("roles.")).unwrap_or(name);
            let head = own.split('.').next().unwrap_or_default();
            !used.contains(name) && !NOT_PLANNED.contains(&head) && !NOT_PLANNED.contains(&own)
        });
        let shown = |(name, value): (String, &Value)| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            match self.place(&name) {
                Some(place) => format!("{name} = {} ({place})", one_line(&value)),
                None => format!("{name} = {}", one_line(&value)),
            }
        };
        unused.map(shown).collect()
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
pub(super) fn line_from_field(facts: &Facts, key: &'static str, from: &str, value: impl ToString) -> Line {
    Line { key, value: value.to_string(), comment: facts.place(from) }
}

/// A line with a value from another source, which `comment` describes.
pub(super) fn line_with_comment(key: &'static str, value: impl ToString, comment: &str) -> Line {
    Line { key, value: value.to_string(), comment: (!comment.is_empty()).then(|| comment.to_owned()) }
}
