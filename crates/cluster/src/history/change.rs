//! Differences between two entries.

use atlas_core::sort;
use serde_json::Value;

use super::entry::Entry;

/// An input that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Name of the input.
    pub name: String,
    /// Its value in the first entry, if it has one.
    pub before: Option<String>,
    /// Its value in the second entry, if it has one.
    pub after: Option<String>,
}

/// Inputs and metrics that differ between two entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Difference {
    /// Inputs by name, with target, workload, software, engine and version first.
    pub inputs: Vec<Change>,
    /// Figures that both entries have: name, first value, second value.
    pub figures: Vec<(String, f64, f64)>,
}

/// A value as users write it.
#[must_use]
pub fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Compares two entries.
#[must_use]
pub fn compare(first: &Entry, second: &Entry) -> Difference {
    let mut inputs = Vec::new();
    let mut differ = |name: &str, before: Option<String>, after: Option<String>| {
        if before != after {
            inputs.push(Change { name: name.to_owned(), before, after });
        }
    };
    for (name, get) in [
        ("target", (|entry| entry.target.clone()) as fn(&Entry) -> Option<String>),
        ("workload", |entry| entry.workload.clone()),
        ("software", |entry| entry.software.clone()),
        ("engine", |entry| entry.engine.clone()),
        ("version of atlas", |entry| Some(entry.origin.version.clone()).filter(|version| !version.is_empty())),
    ] {
        differ(name, get(first), get(second));
    }
    let names: std::collections::BTreeSet<&String> =
        sort::collect_unsorted(first.inputs.keys().chain(second.inputs.keys()));
    for name in names.into_iter().filter(|name| name.as_str() != "software") {
        differ(name, first.inputs.get(name).map(value_text), second.inputs.get(name).map(value_text));
    }
    let figures = first.figures.iter().filter_map(|(name, before)| {
        let after = second.figures.get(name).filter(|after| *after != before)?;
        Some((name.clone(), *before, *after))
    });
    Difference { figures: figures.collect(), inputs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Draft, EntryKind};
    use std::collections::BTreeMap;

    #[test]
    fn comparison_lists_only_changed_inputs_and_metrics() {
        let draft = |tp: &str, release: &str, rate: f64| Draft {
            software: Some(release.to_owned()),
            inputs: BTreeMap::from([("tp".to_owned(), tp.into()), ("pp".to_owned(), "1".into())]),
            figures: BTreeMap::from([("tokens_per_sec".to_owned(), rate), ("mfu".to_owned(), 0.4)]),
            ..Draft::default()
        };
        let first = Entry::new(EntryKind::Run, draft("4", "vllm@0.10", 1000.0));
        let second = Entry::new(EntryKind::Run, draft("8", "vllm@0.11", 900.0));
        let difference = compare(&first, &second);
        let names: Vec<&str> = difference.inputs.iter().map(|change| &*change.name).collect();
        assert_eq!(names, ["software", "tp"]);
        assert_eq!(difference.figures, [("tokens_per_sec".to_owned(), 1000.0, 900.0)]);
        assert_eq!(compare(&first, &first), Difference::default());
    }
}
