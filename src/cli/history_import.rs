//! `atlas history import`: imports records written by `atlas run`.

use std::path::{Path, PathBuf};

use atlas_cluster::history::{Draft, Entry, EntryKind, Store};
use atlas_document::Diagnostics;
use atlas_report::read;
use color_eyre::eyre::eyre;
use serde_json::Value;

use super::failure::Failure;
use super::keep::numbers;
use super::output::write_stderr;

/// Imports all records. A record that is already imported creates no second entry.
pub fn run(store: &Store, paths: &[PathBuf]) -> color_eyre::Result<()> {
    let (mut taken, mut failed) = (0_usize, false);
    for path in paths {
        if !path.exists() {
            return Err(eyre!("{}: no such file or directory", path.display()));
        }
        let mut problems = Diagnostics::new();
        for file in read::files(path, &mut problems) {
            match records(&file) {
                Ok(records) => {
                    for record in &records {
                        store.write(record)?;
                        taken += 1;
                    }
                }
                Err(problem) => {
                    write_stderr(&format!("error: {}: {problem}", file.display()));
                    failed = true;
                }
            }
        }
        for problem in &problems {
            write_stderr(&problem.to_string());
            failed = true;
        }
    }
    write_stderr(&format!("imported {taken} records into {}", store.directory().display()));
    if failed { Err(Failure::Reported.into()) } else { Ok(()) }
}

/// Records of a file, which holds one record or a list.
fn records(path: &Path) -> Result<Vec<Entry>, String> {
    let text = atlas_document::sources::read_text(path)?;
    let document: Value = serde_json::from_str(&text).map_err(|error| format!("not JSON: {error}"))?;
    let written = std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let written = written.and_then(|at| jiff::Timestamp::try_from(at).ok());
    match &document {
        Value::Array(items) => items.iter().map(|item| entry(item, written)).collect(),
        one => Ok(vec![entry(one, written)?]),
    }
}

fn entry(record: &Value, written: Option<jiff::Timestamp>) -> Result<Entry, String> {
    let text = |name: &str| record.get(name).and_then(Value::as_str).map(str::to_owned);
    let (target, workload) = (text("target"), text("workload"));
    let figures = record.get("record").map(numbers);
    let (Some(target), Some(workload), Some(mut figures)) = (target, workload, figures) else {
        return Err("not a record: expected target, workload and record".to_owned());
    };
    for name in ["dollar_per_1k_tokens", "dollar_per_1k_tokens_all_nodes"] {
        figures.extend(record.get(name).and_then(Value::as_f64).map(|value| (name.to_owned(), value)));
    }
    let mut inputs: std::collections::BTreeMap<String, Value> = std::collections::BTreeMap::new();
    for (name, value) in record.get("knobs").and_then(Value::as_object).into_iter().flatten() {
        inputs.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned).into());
    }
    for assignment in record.get("set").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if let Some((name, value)) = assignment.split_once('=') {
            inputs.insert(name.to_owned(), value.into());
        }
    }
    inputs.extend(record.get("seed").map(|seed| ("seed".to_owned(), seed.to_string().into())));
    let software = inputs.get("software").and_then(Value::as_str).map(str::to_owned);
    let label = text("label");
    let kind = if label.as_deref() == Some("post-opt") { EntryKind::Optimum } else { EntryKind::Prediction };
    let draft = Draft {
        target: Some(target),
        workload: Some(workload),
        software,
        // All records of the predecessor are from the same engine, which they do not name.
        engine: text("engine").or_else(|| Some("semi_empirical".to_owned())),
        at: text("ts").and_then(|at| at.parse().ok()).or(written),
        figures,
        inputs,
        body: record.clone(),
        ..Draft::default()
    };
    Ok(Entry::new(kind, draft).named_after(record.to_string().as_bytes()))
}
