//! Measurement files as given by the user: a path, followed by settings that the file does not state.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::columns::{COLUMNS, column};
use super::intake;
use super::misstated::invalid_value;
use super::observation::Observation;
use crate::validate::columns::{self, COLUMNS as TYPED};
use atlas_ingest::{Context, Warmup, files_below};

/// Name and value of a setting.
pub type Label = (&'static str, Value);

/// Reads `NAME=VALUE`, as in `--set` and after a file name.
///
/// # Errors
/// Returns an error for an unknown setting, with the most similar known one, and for an invalid value.
pub fn label(text: &str) -> Result<Label, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("\"{text}\": expected NAME=VALUE"));
    };
    let known = column(name).filter(|column| column.figure.is_none()).map(|column| column.name);
    let stated = || columns::find(name).filter(|column| column.place.is_scenario());
    let Some(known) = known.or_else(|| stated().map(|column| column.name)) else {
        let own = COLUMNS.iter().filter(|column| column.figure.is_none()).map(|column| column.name);
        let names = own.chain(TYPED.iter().filter(|column| column.place.is_scenario()).map(|column| column.name));
        let near = names.max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
        return Err(format!(
            "no setting \"{name}\"{}",
            near.map_or(String::new(), |near| format!("; did you mean {near}?"))
        ));
    };
    let value = value.trim();
    if let Some(problem) = invalid_value(known, &value.into()) {
        return Err(format!("{name}: {problem}"));
    }
    Ok((
        known,
        match (value, value.parse::<f64>()) {
            ("true" | "on" | "yes", _) => true.into(),
            ("false" | "off" | "no", _) => false.into(),
            (_, Ok(number)) if number.is_finite() => number.into(),
            _ => value.into(),
        },
    ))
}

/// A file or directory, or `-` for standard input, with settings: `ib.log:fabric=IB,num_gpus=8`.
#[derive(Debug, Clone, PartialEq)]
pub struct LabeledSource {
    /// The path.
    pub path: PathBuf,
    /// Settings that apply to all rows of the file.
    pub labels: Vec<Label>,
}

/// Rows and messages from reading files.
#[derive(Debug, Clone, Default)]
pub struct SourceContent {
    /// Rows with measurements.
    pub rows: Vec<Observation>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Files without measurements, and why.
    pub problems: Vec<String>,
}

impl LabeledSource {
    /// Parses a command-line argument.
    ///
    /// # Errors
    /// Returns an error for invalid settings after the path.
    pub fn parse(argument: &str) -> Result<LabeledSource, String> {
        let whole = Path::new(argument);
        let parts = argument.rsplit_once(':').filter(|(_, rest)| rest.contains('=') && !whole.exists());
        let Some((path, rest)) = parts else { return Ok(LabeledSource { path: whole.to_owned(), labels: Vec::new() }) };
        let labels: Result<Vec<Label>, String> = rest.split(',').map(label).collect();
        let labels = labels.map_err(|problem| format!("{argument}: {problem}"))?;
        Ok(LabeledSource { path: PathBuf::from(path), labels })
    }

    /// Reads the rows of the file, or of all files in the directory, where files without measurements are skipped.
    #[must_use]
    pub fn read(&self, warmup: Warmup) -> SourceContent {
        let mut found = SourceContent::default();
        let path = &self.path;
        if path.as_os_str() == "-" {
            let context = Context { name: "stdin".to_owned(), warmup, seed: 1337, ..Context::default() };
            match intake::gather(std::io::stdin().lock(), &context, &self.labels) {
                Ok(gathered) => (found.rows, found.notes) = (gathered.rows, gathered.notes),
                Err(problem) => found.problems.push(problem.to_string()),
            }
            return found;
        }
        let below = match files_below(path) {
            Ok(below) => below,
            Err(error) => {
                found.problems.push(format!("{}: cannot be read: {error}", path.display()));
                return found;
            }
        };
        let directory = path.is_dir();
        for file in below {
            let name = file.display().to_string();
            let context = Context { name: name.clone(), warmup, seed: 1337, ..Context::default() };
            let opened = File::open(&file).map_err(|error| format!("{name}: cannot be read: {error}"));
            let gathered =
                opened.and_then(|file| intake::gather(file, &context, &self.labels).map_err(|error| error.to_string()));
            match gathered {
                Ok(gathered) => {
                    found.notes.extend(gathered.notes);
                    found.rows.extend(gathered.rows);
                }
                Err(problem) if directory => found.notes.push(format!("skipped: {problem}")),
                Err(problem) => found.problems.push(problem),
            }
        }
        if directory && found.rows.is_empty() {
            found.problems.push(format!("{}: no measurements found in this directory", path.display()));
        }
        found
    }
}
