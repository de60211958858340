//! Results of InferenceMAX (InferenceX): JSON of one or many configurations, and the summary table. Latencies without a
//! unit in their name are in seconds.

use serde_json::{Map, Value};

use super::serving_json::metric;
use crate::json::json_number;
use crate::lines::Line;
use crate::markdown;
use crate::quantity::Measure;
use crate::reading::{Context, Importance, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::CommonSettings;
use crate::text::number;
use crate::training::MAX_LISTED;

/// Fields of InferenceMAX, and our names.
const FIELDS: [(&str, &str); 18] = [
    ("hw", "device"),
    ("framework", "backend"),
    ("precision", "precision"),
    ("model", "model"),
    ("tp", "tp"),
    ("ep", "ep"),
    ("dp_attention", "dp_attention"),
    ("conc", "max_concurrency"),
    ("isl", "random_input_len"),
    ("osl", "random_output_len"),
    ("tput_per_gpu", "total_throughput_per_gpu"),
    ("output_tput_per_gpu", "output_throughput_per_gpu"),
    ("input_tput_per_gpu", "input_throughput_per_gpu"),
    ("spec_decoding", "spec_decoding"),
    ("disagg", "disaggregated"),
    ("is_multinode", "multinode"),
    ("num_prefill_gpu", "prefill_gpus"),
    ("num_decode_gpu", "decode_gpus"),
];

/// Columns of the summary table without their unit, and our names. A latency column without a statistic in its name is
/// the mean.
const COLUMNS: [(&str, &str); 17] = [
    ("hardware", "device"),
    ("framework", "backend"),
    ("precision", "precision"),
    ("model", "model"),
    ("tp", "tp"),
    ("ep", "ep"),
    ("dp attention", "dp_attention"),
    ("conc", "max_concurrency"),
    ("isl", "random_input_len"),
    ("osl", "random_output_len"),
    ("ttft", "ttft_ms"),
    ("tpot", "tpot_ms"),
    ("e2el", "e2el_ms"),
    ("interactivity", "interactivity_tokens_per_s"),
    ("tput per gpu", "total_throughput_per_gpu"),
    ("output tput per gpu", "output_throughput_per_gpu"),
    ("input tput per gpu", "input_throughput_per_gpu"),
];

/// Recognizer of both forms.
#[derive(Debug, Default)]
pub struct InferenceMax {
    results: Vec<Value>,
    settings: CommonSettings,
    /// Content of each column of the open table, and the factor to our unit.
    columns: Vec<Option<(&'static str, f64)>>,
    table: bool,
}

impl Recognizer for InferenceMax {
    fn triggers(&self) -> &'static [&'static str] {
        &["TPUT per GPU"]
    }

    fn in_block(&self) -> bool {
        !self.columns.is_empty()
    }

    fn blank_line(&mut self) {
        self.columns.clear();
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if !text.starts_with('|') {
            self.columns.clear();
            return Outcome::NotRecognized;
        }
        let cells = markdown::cells(text);
        if cells.iter().any(|cell| cell.starts_with("TPUT per GPU")) && cells.contains(&"Conc") {
            self.columns = cells.iter().map(|cell| column(cell)).collect();
            return Outcome::Recognized;
        }
        let other_width = "an InferenceMAX row whose number of columns differs from the header";
        if let Some(outcome) = markdown::not_values(&cells, self.columns.len(), other_width) {
            return outcome;
        }
        let mut result = Map::new();
        for (column, cell) in self.columns.iter().zip(&cells) {
            let Some((name, factor)) = column else { continue };
            let value = number(cell).filter(|_| !matches!(*name, "device" | "model" | "precision" | "backend"));
            result.insert(
                (*name).to_owned(),
                value.map_or_else(|| (*cell).into(), |value| number_to_json(value * factor)),
            );
        }
        self.table = true;
        self.push(result);
        Outcome::Recognized
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        if let Some(list) = document.as_array() {
            return Outcome::of_entries(list, |entry| self.json(entry, 0));
        }
        let Some(map) = document.as_object() else { return Outcome::NotRecognized };
        if !["hw", "conc", "tput_per_gpu"].iter().all(|name| map.contains_key(*name)) {
            return Outcome::NotRecognized;
        }
        let mut result = Map::new();
        for (theirs, ours) in FIELDS {
            if let Some(value) = map.get(theirs).filter(|value| !value.is_null()) {
                result.insert(ours.to_owned(), value.clone());
            }
        }
        for (key, value) in map {
            let Some(value) = json_number(value).filter(|value| value.is_finite()) else { continue };
            let latency = ["ttft", "tpot", "itl", "e2el"].into_iter().find_map(|name| Some((name, metric(key, name)?)));
            if let Some((name, (statistic, scale))) = latency {
                result.insert(format!("{name}_ms.{statistic}"), (value * scale).into());
            } else if let Some((statistic, "intvty")) = key.split_once('_') {
                result.insert(format!("interactivity_tokens_per_s.{statistic}"), value.into());
            }
        }
        self.push(result);
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let Some(reading) = Reading::of_results("blocks", self.results) else { return Vec::new() };
        vec![Reading {
            tool: "inferencemax",
            format: if self.table { "inferencemax-table" } else { "inferencemax-json" },
            kind: "serving",
            importance: Importance::Record,
            config: self.settings.config(context),
            ..reading
        }]
    }
}

impl InferenceMax {
    fn push(&mut self, result: Map<String, Value>) {
        for (name, setting) in
            [("device", "device"), ("precision", "precision"), ("model", "model"), ("tp", "tensor_parallel")]
        {
            if let Some(value) = result.get(name) {
                self.settings.add(setting, value.clone());
            }
        }
        if self.results.len() < MAX_LISTED {
            self.results.push(Value::Object(result));
        }
    }
}

/// Parses a column name of the summary table: `TTFT (ms)`, `Interactivity (tok/s/user)`, `TPUT per GPU`.
fn column(name: &str) -> Option<(&'static str, f64)> {
    let (name, unit) = name.split_once('(').unwrap_or((name, ""));
    let lower = name.trim().to_lowercase();
    let (_, ours) = COLUMNS.iter().find(|(theirs, _)| *theirs == lower)?;
    let factor =
        if ours.ends_with("_ms") { Measure::Time.factor(unit).map_or(1.0, |seconds| seconds * 1e3) } else { 1.0 };
    Some((*ours, factor))
}
