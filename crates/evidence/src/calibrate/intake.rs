//! Reads files into rows: measurement YAML, CSV as in the guide, JSON, and every log format known to `atlas ingest`.

use std::io::{self, Read};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::columns::column;
use super::misstated::invalid_value;
use super::observation::Observation;
use atlas_config::Mode;
use atlas_core::sort;
use atlas_document::diagnostic::Diagnostics;
use atlas_document::node::{Node, Value as Yaml};
use atlas_document::parse;
use atlas_ingest as ingest;
use atlas_ingest::{Context, IngestError, measurement};

/// Content of a file.
#[derive(Debug, Clone, Default)]
pub struct FileContent {
    /// Rows with measurements.
    pub rows: Vec<Observation>,
    /// Warnings: unknown columns, rows without measurements.
    pub notes: Vec<String>,
}

/// Reason why a file yields no measurements.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    /// The file cannot be read, or its format is unknown.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// It is YAML or CSV, but without measurements.
    #[error("{0}")]
    Content(String),
}

/// Maximum size of files other than logs, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// Reads a file. `context` contains its name and settings that a log does not contain; `labels` apply to all of its
/// rows and take precedence over the file.
///
/// # Errors
/// Returns an error if the file cannot be read or has no measurements.
pub fn gather(
    mut source: impl Read,
    context: &Context,
    labels: &[(&'static str, Value)],
) -> Result<FileContent, GatherError> {
    let name = &context.name;
    let failed = |source: io::Error| GatherError::Ingest(IngestError::Read { file: name.clone(), source });
    let mut head = Vec::new();
    source.by_ref().take(64 << 10).read_to_end(&mut head).map_err(failed)?;
    let text = String::from_utf8_lossy(&head);
    let kind = Kind::of(name, &text);
    let mut gathered = match kind {
        Kind::Log => logs(head.as_slice().chain(source), context)?,
        Kind::Yaml | Kind::Csv => {
            source.by_ref().take(MAX_FILE_BYTES).read_to_end(&mut head).map_err(failed)?;
            let text = std::str::from_utf8(&head).map_err(|error| {
                let before = head.get(..error.valid_up_to()).unwrap_or_default();
                let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
                GatherError::Content(format!("{name}:{line}: expected UTF-8 text; save the file as UTF-8"))
            })?;
            if kind == Kind::Yaml { yaml(name, text)? } else { csv(name, text)? }
        }
    };
    for row in &mut gathered.rows {
        for (setting, value) in labels {
            row.set(setting, value.clone());
        }
    }
    let before = gathered.rows.len();
    gathered.rows.retain(|row| !row.is_empty());
    if before > gathered.rows.len() {
        let dropped = before - gathered.rows.len();
        gathered.notes.push(format!("{name}: ignored {dropped} rows without a measured value"));
    }
    if gathered.rows.is_empty() {
        let expected = "expected throughput, step times, latencies, utilization, power or bandwidth";
        return Err(GatherError::Content(format!("{name}: no measurements found: {expected}")));
    }
    Ok(gathered)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Log,
    Yaml,
    Csv,
}

impl Kind {
    fn of(name: &str, head: &str) -> Kind {
        let head = head.trim_start_matches('\u{feff}');
        let lines = || head.lines().filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
        let begins = |word: &str| lines().next().is_some_and(|line| line.starts_with(word));
        let yaml = name.ends_with(".yaml") || name.ends_with(".yml");
        if begins("measurements:") || (yaml && (begins("- ") || begins("---"))) {
            return Kind::Yaml;
        }
        let names: Vec<&str> =
            lines().next().unwrap_or_default().split(',').map(|name| name.trim().trim_matches('"')).collect();
        let known = names.iter().filter_map(|name| column(name)).collect::<Vec<_>>();
        let either = |name: &&&str| column(name).is_some() || super::observation::typed(name).is_some();
        let understood = names.iter().filter(either).count();
        let ours = known.iter().any(|column| column.figure.is_some()) && understood * 2 >= names.len();
        if ours && (names.len() > 1 || known.len() == 1) && !begins("{") && !begins("[") {
            Kind::Csv
        } else {
            Kind::Log
        }
    }
}

fn csv(name: &str, text: &str) -> Result<FileContent, GatherError> {
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let bad = |error: csv::Error| GatherError::Content(format!("{name}: not CSV: {error}"));
    let head = reader.headers().map_err(bad)?.clone();
    let mut gathered = FileContent::default();
    let mut unknown: Vec<String> = Vec::new();
    let mut problems = Vec::new();
    for (at, column) in head.iter().enumerate() {
        if !column.is_empty() && head.iter().take(at).any(|known| known == column) {
            problems.push(format!("{name}: column `{column}` occurs twice; keep one of them"));
        }
    }
    for record in reader.records() {
        let record = record.map_err(bad)?;
        let line = record.position().map_or(0, csv::Position::line);
        if record.iter().skip(head.len()).any(|cell| !cell.is_empty()) {
            problems.push(format!("{name}:{line}: {} cells for {} columns", record.len(), head.len()));
        }
        let fields: Vec<(&str, Value)> = head
            .iter()
            .zip(record.iter())
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(name, cell)| (name, Value::from(cell)))
            .collect();
        for (at, (column, cell)) in head.iter().zip(record.iter()).enumerate() {
            if let Some(problem) = invalid_value(column, &Value::from(cell)) {
                let place = usize::try_from(line).ok().and_then(|line| text.lines().nth(line.checked_sub(1)?));
                problems.push(format!("{name}:{line}:{}: {column}: {problem}", character(place.unwrap_or(""), at)));
            }
        }
        let (row, strange) = Observation::of(format!("{name}:{line}"), fields.iter().map(|(name, cell)| (*name, cell)));
        unknown.extend(strange);
        gathered.rows.push(row);
    }
    notes_on_unknown(name, unknown, &mut gathered.notes);
    check_cells(problems)?;
    Ok(gathered)
}

/// Column in which cell number `index` of a CSV line begins, from 1.
fn character(line: &str, index: usize) -> usize {
    let (mut quoted, mut commas) = (false, 0);
    for (at, c) in line.chars().enumerate() {
        if commas == index {
            return at + 1;
        }
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => commas += 1,
            _ => {}
        }
    }
    line.chars().count() + 1
}

/// Returns an error that lists the invalid cells, if there are any.
fn check_cells(problems: Vec<String>) -> Result<(), GatherError> {
    const MAX_LISTED_CELLS: usize = 12;
    let more = problems.len().saturating_sub(MAX_LISTED_CELLS);
    if problems.is_empty() {
        return Ok(());
    }
    let mut text = problems.into_iter().take(MAX_LISTED_CELLS).collect::<Vec<_>>().join("\n");
    if more > 0 {
        text += &format!("\nand {more} more");
    }
    Err(GatherError::Content(text))
}

/// Adds a note that lists the unknown columns.
fn notes_on_unknown(name: &str, mut unknown: Vec<String>, notes: &mut Vec<String>) {
    sort::ascending(&mut unknown);
    unknown.dedup();
    if !unknown.is_empty() {
        notes.push(format!("{name}: ignored unknown fields: {}", unknown.join(", ")));
    }
}

fn yaml(name: &str, text: &str) -> Result<FileContent, GatherError> {
    let mut problems = Diagnostics::new();
    let file: Arc<str> = name.into();
    let node = parse::parse(&file, text, &mut problems);
    let Some(node) = node.filter(|_| !problems.has_errors()) else {
        return Err(GatherError::Content(problems.to_string()));
    };
    let list = node.get("measurements").and_then(Node::items).or_else(|| node.items());
    let Some(list) = list else {
        let found = node.describe();
        return Err(GatherError::Content(format!(
            "{name}: found {found}, expected a list of measurements, or a mapping with `measurements`"
        )));
    };
    let mut gathered = FileContent::default();
    let mut unknown = Vec::new();
    let mut problems = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        let source = format!("{name}:{}", entry.at.line.max(1));
        for field in entry.entries().unwrap_or_default() {
            if let Some(problem) = invalid_value(&field.key, &json(&field.value)) {
                let at = field.value.at;
                problems.push(format!("{name}:{}:{}: {}: {problem}", at.line, at.column, field.key));
            }
        }
        let entry = json(entry);
        if entry.get("figures").is_some() || entry.get("configuration").is_some() {
            gathered.rows.extend(measurements(&source, &entry, &mut unknown));
        } else if let Some(map) = entry.as_object() {
            let (row, strange) = Observation::of(source, map.iter().map(|(name, value)| (name.as_str(), value)));
            unknown.extend(strange);
            gathered.rows.push(row);
        } else {
            gathered.notes.push(format!("{name}: ignored entry {}, which is not a mapping", index + 1));
        }
    }
    check_cells(problems)?;
    notes_on_unknown(name, unknown, &mut gathered.notes);
    Ok(gathered)
}

/// Converts a YAML node to JSON.
pub(super) fn json(node: &Node) -> Value {
    match &node.value {
        Yaml::Null => Value::Null,
        Yaml::Bool(on) => Value::from(*on),
        Yaml::Int(int) => i64::try_from(*int).map_or(Value::Null, Value::from),
        Yaml::Float(float) => Value::from(*float),
        Yaml::Text(text) => Value::from(&**text),
        Yaml::List(items) => items.iter().map(json).collect(),
        Yaml::Map(entries) => {
            Value::Object(entries.iter().map(|entry| (entry.key.to_string(), json(&entry.value))).collect())
        }
    }
}

fn logs(source: impl Read, context: &Context) -> Result<FileContent, GatherError> {
    let ingested = ingest::ingest(source, context)?;
    let mut gathered = FileContent::default();
    let mut entries = measurement::measurements(&ingested, context).into_iter();
    for reading in &ingested.readings {
        let count = reading.runs.len().max(1);
        for (index, mut entry) in entries.by_ref().take(count).enumerate() {
            // A report with averages only has a rate, but not its details.
            if let (1, Some(figures)) = (count, entry.get_mut("figures").and_then(Value::as_object_mut)) {
                for name in ["reported_tokens_per_s", "reported_tokens_per_s_per_gpu"] {
                    if let Some(value) = reading.facts.get(name) {
                        figures.entry(name.to_owned()).or_insert_with(|| value.clone());
                    }
                }
            }
            let place = if count > 1 { format!("{}#{}", context.name, index + 1) } else { context.name.clone() };
            // Names in logs that calibration does not use are not a mistake of the user.
            gathered.rows.extend(measurements(&place, &entry, &mut Vec::new()));
        }
        gathered.notes.extend(reading.notes.iter().map(|note| format!("{}: {note}", context.name)));
    }
    Ok(gathered)
}

/// Returns the rows of one measurement: one row, or one per result.
fn measurements(source: &str, entry: &Value, unknown: &mut Vec<String>) -> Vec<Observation> {
    let kind = entry.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut flat: Map<String, Value> = Map::new();
    for (name, setting) in entry.get("configuration").and_then(Value::as_object).into_iter().flatten() {
        let value = setting.get("value").unwrap_or(setting);
        flat.insert(name.clone(), value.clone());
    }
    let figures = entry.get("figures").and_then(Value::as_object);
    let mut results = Vec::new();
    for (name, value) in figures.into_iter().flatten() {
        match (name.as_str(), value) {
            ("results", Value::Array(list)) => results.extend(list.iter().filter_map(Value::as_object).cloned()),
            _ => {
                flat.insert(name.clone(), value.clone());
            }
        }
    }
    let mode = match kind.as_str() {
        "training" | "mlperf_training" => Some(Mode::Training),
        "serving" | "offline_throughput" | "llama_bench" | "llama_cpp" | "serving_server" | "mlperf_inference" => {
            Some(Mode::Inference)
        }
        _ => None,
    };
    let one = |source: String, fields: &Map<String, Value>, unknown: &mut Vec<String>| {
        let mut fields = fields.clone();
        serving(&mut fields);
        let (mut row, strange) = Observation::of(source, fields.iter().map(|(name, value)| (name.as_str(), value)));
        unknown.extend(strange);
        row.mode = row.mode.or(mode);
        row.kind.clone_from(&kind);
        let table = fields.get("bytes_us_algbw_busbw").and_then(Value::as_array);
        let rows = table.into_iter().flatten().filter_map(|row| {
            let numbers: Vec<f64> = row.as_array()?.iter().filter_map(Value::as_f64).collect();
            Some((numbers.first().copied()?, numbers.get(3).copied()?))
        });
        let rows: Vec<(f64, f64)> = rows.filter(|(_, bandwidth)| *bandwidth > 0.0).collect();
        if !rows.is_empty() {
            row.collective = rows;
        }
        row
    };
    if results.is_empty() {
        return vec![one(source.to_owned(), &flat, unknown)];
    }
    let several = results.len() > 1;
    let rows = results.into_iter().enumerate().map(|(index, result)| {
        let mut fields = flat.clone();
        fields.extend(result);
        let place = if several { format!("{source} result {}", index + 1) } else { source.to_owned() };
        one(place, &fields, unknown)
    });
    rows.collect()
}

/// Derives the request lengths of a serving benchmark from their sums.
fn serving(fields: &mut Map<String, Value>) {
    let number = |name: &str| fields.get(name).and_then(Value::as_f64).filter(|value| *value > 0.0);
    let requests = number("successful_requests").or_else(|| number("requests")).or_else(|| number("num_prompts"));
    let each = |sum: &str, mean: &str, random: &str| {
        let of_sum = || Some(number(sum)? / requests?);
        number(mean).or_else(of_sum).or_else(|| number(random))
    };
    let input = each("input_tokens", "mean_input_tokens", "random_input_len");
    let output = each("output_tokens", "mean_output_tokens", "random_output_len");
    if let (Some(input), false) = (input, fields.contains_key("seq_len")) {
        fields.insert("seq_len".to_owned(), input.round().into());
    }
    if let (Some(output), false) = (output, fields.contains_key("generate")) {
        fields.insert("generate".to_owned(), output.round().into());
    }
    // Infinite rates are given as text. In this case the concurrency, or the number of requests, is the load.
    if fields.get("request_rate").is_some_and(|rate| rate.as_f64().is_none()) {
        fields.remove("request_rate");
    }
}
