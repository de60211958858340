//! History entries written by subcommands.

use std::collections::BTreeMap;

use atlas_cluster::history::{CORRECTIONS, Draft, Entry, EntryKind, Filter, Origin, Store};
use atlas_config::Corrections;
use atlas_core::sort;
use atlas_document::fingerprint::fingerprint;
use atlas_plan::estimate::standing::available_value;
use atlas_plan::estimate::{Estimate, METRICS};
use atlas_plan::knob::Knob;
use atlas_plan::scenario::{Parts, Scenario};
use serde_json::Value;

use super::output::write_stderr;

/// Saves an entry and returns its id. On failure, warns and continues.
pub fn keep(kind: EntryKind, draft: Draft) -> Option<String> {
    let store = Store::of_user()?;
    let draft = Draft { origin: Origin::of_process(env!("CARGO_PKG_VERSION")), ..draft };
    match store.write(&Entry::new(kind, draft)) {
        Ok(written) => Some(written.id),
        Err(error) => {
            write_stderr(&format!("warning: not saved in the history: {error}; set ATLAS_HISTORY=off to disable it"));
            None
        }
    }
}

/// Draft with all inputs of a scenario.
#[must_use]
pub fn of_scenario(parts: &Parts, scenario: &Scenario) -> Draft {
    let knobs = Knob::all().filter(|knob| scenario.uses(*knob));
    let mut inputs: BTreeMap<String, Value> =
        sort::collect_unsorted(knobs.map(|knob| (knob.name().to_owned(), scenario.get(knob).to_string().into())));
    // Documents can change without a change of name, so their contents are fingerprinted.
    for (name, text) in [
        ("contents of the target", format!("{:?}", parts.target)),
        ("contents of the workload", format!("{:?}", parts.workload)),
        ("contents of the profile", format!("{:?}", parts.profile)),
        ("contents of the accelerator", format!("{:?}", parts.accelerator)),
        ("contents of the model", format!("{:?}", parts.model)),
    ] {
        inputs.insert(name.to_owned(), format!("{:016x}", fingerprint(text.as_bytes())).into());
    }
    inputs.extend(parts.corrections.as_deref().map(contents_of_corrections));
    Draft {
        target: Some(parts.target.name.to_string()),
        workload: Some(parts.workload.name.to_string()),
        software: Some(scenario.software_name().to_string()),
        engine: Some(scenario.engine.name().to_owned()),
        inputs,
        ..Draft::default()
    }
}

/// Input that links predictions to the calibration that corrects them.
#[must_use]
pub fn contents_of_corrections(corrections: &Corrections) -> (String, Value) {
    let contents = fingerprint(format!("{corrections:?}").as_bytes());
    (CORRECTIONS.to_owned(), format!("{contents:016x}").into())
}

/// Entries of these kinds. Empty if there is no history or it cannot be read, since they are only used for links.
#[must_use]
pub fn entries(kinds: &[EntryKind]) -> Vec<Entry> {
    let filter = Filter { kinds: kinds.to_vec(), ..Filter::default() };
    Store::of_user().and_then(|store| store.list(&filter).ok()).map_or_else(Vec::new, |(entries, _)| entries)
}

/// Absolute path.
#[must_use]
pub fn absolute(path: impl AsRef<std::path::Path>) -> String {
    let path = path.as_ref();
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

/// Draft for an estimate; `body` is its record.
#[must_use]
pub fn of_estimate(parts: &Parts, scenario: &Scenario, estimate: &Estimate, body: Value) -> Draft {
    let values = METRICS
        .iter()
        .filter_map(|metric| Some((metric.name.to_owned(), available_value(metric, scenario, estimate)?)));
    Draft { figures: sort::collect_unsorted(values), body, ..of_scenario(parts, scenario) }
}

/// Numbers of a document by their paths, such as `step_time_s.mean_no_warmup`. Lists are skipped.
#[must_use]
pub fn numbers(document: &Value) -> BTreeMap<String, f64> {
    fn gather(document: &Value, path: &str, depth: u32, out: &mut BTreeMap<String, f64>) {
        match document {
            Value::Number(number) => out.extend(number.as_f64().map(|value| (path.to_owned(), value))),
            Value::Object(map) if depth > 0 => {
                for (key, value) in map {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    gather(value, &path, depth - 1, out);
                }
            }
            _ => {}
        }
    }
    let mut out = BTreeMap::new();
    gather(document, "", 4, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_document_are_named_by_their_paths() {
        let found = numbers(&serde_json::json!({"a": 1, "b": {"c": 2.5, "d": "x"}, "e": [3]}));
        let expected = [("a", 1.0), ("b.c", 2.5)].map(|(name, value)| (name.to_owned(), value));
        assert_eq!(found, BTreeMap::from(expected));
    }
}
