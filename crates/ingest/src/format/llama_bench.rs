//! llama-bench in each of its output formats: Markdown, JSON, JSON lines, CSV, SQL.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::markdown;
use crate::reading::{Context, Importance, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::CommonSettings;
use crate::text::{has, number, owned_cells, parse_leading_number};
use crate::training::MAX_LISTED;

/// Recognizer of llama-bench.
#[derive(Debug, Default)]
pub struct LlamaBench {
    results: Vec<Value>,
    format: &'static str,
    markdown: Vec<String>,
    csv: Vec<String>,
    settings: CommonSettings,
    /// Number of results before the last `build:` line, which ends the table of one run of the program.
    built: usize,
}

impl Recognizer for LlamaBench {
    fn triggers(&self) -> &'static [&'static str] {
        &["t/s |", "\"avg_ts\"", "avg_ts,", "INSERT INTO ", "build: "]
    }

    fn in_block(&self) -> bool {
        !self.markdown.is_empty() || !self.csv.is_empty()
    }

    fn blank_line(&mut self) {
        self.markdown.clear();
        self.csv.clear();
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if let Some(build) = text.strip_prefix("build: ").filter(|_| !self.results.is_empty()) {
            for result in self.results.iter_mut().skip(self.built) {
                if let Some(map) = result.as_object_mut() {
                    map.insert("build".to_owned(), build.trim().into());
                }
            }
            self.built = self.results.len();
            self.markdown.clear();
            return Outcome::Recognized;
        }
        if text.starts_with('|') && has(text, "t/s |") && has(text, "test |") {
            self.markdown = row(text);
            return Outcome::Recognized;
        }
        if !self.markdown.is_empty() {
            if text.starts_with('|') {
                return self.markdown_row(text);
            }
            self.markdown.clear();
        }
        if has(text, "avg_ts")
            && has(text, "avg_ns")
            && has(text, ",")
            && !text.starts_with(['{', 'I'])
            && !has(text, ":")
        {
            self.csv = owned_cells(text);
            return Outcome::Recognized;
        }
        if has(text, "INSERT INTO ") && has(text, "avg_ts") {
            return self.sql(text);
        }
        if !self.csv.is_empty() {
            let values = owned_cells(text);
            if values.len() == self.csv.len() {
                let pairs = self.csv.iter().cloned().zip(values);
                let mut record = BTreeMap::new();
                record.extend(pairs);
                return self.flat(&record, "llama-bench-csv");
            }
        }
        Outcome::NotRecognized
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        if let Some(list) = document.as_array() {
            let took = list.iter().filter(|entry| self.json_record(entry)).count();
            if took > 0 {
                self.format = "llama-bench-json";
            }
            return if took > 0 { Outcome::Recognized } else { Outcome::NotRecognized };
        }
        if self.json_record(document) {
            self.format = "llama-bench-jsonl";
            return Outcome::Recognized;
        }
        Outcome::NotRecognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let Some(reading) = Reading::of_results("n_records", self.results) else { return Vec::new() };
        let config = self.settings.config(context);
        vec![Reading {
            tool: "llama_bench",
            format: self.format,
            kind: "llama_bench",
            importance: Importance::Result,
            config,
            ..reading
        }]
    }
}

impl LlamaBench {
    fn push(&mut self, result: Map<String, Value>) {
        if self.results.len() < MAX_LISTED {
            self.results.push(Value::Object(result));
        }
    }

    fn markdown_row(&mut self, text: &str) -> Outcome {
        let values = row(text);
        if markdown::is_rule(&values) {
            return Outcome::Recognized;
        }
        // Another table starts without a line between them.
        if values.iter().all(|cell| number(cell).is_none()) && values.len() != self.markdown.len() {
            self.markdown.clear();
            return Outcome::NotRecognized;
        }
        if values.len() != self.markdown.len() {
            return Outcome::Unusable("a llama-bench table row whose number of columns differs from the header");
        }
        let mut result = Map::new();
        for (name, cell) in self.markdown.clone().iter().zip(&values) {
            match name.as_str() {
                "t/s" => {
                    let Some((rate, rest)) = parse_leading_number(cell) else {
                        return Outcome::Unusable("a llama-bench row without a rate");
                    };
                    result.insert("tokens_per_s".to_owned(), rate.into());
                    let deviation = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
                    if let Some(deviation) = number(deviation) {
                        result.insert("stddev".to_owned(), deviation.into());
                    }
                }
                "" => {}
                name => {
                    result.insert(name.to_owned(), cell.as_str().into());
                }
            }
        }
        self.format = "llama-bench-md";
        self.push(result);
        Outcome::Recognized
    }

    fn json_record(&mut self, record: &Value) -> bool {
        let number = |name: &str| record.get(name).and_then(json_number);
        let Some(rate) = number("avg_ts").filter(|_| record.get("n_prompt").is_some()) else { return false };
        let mut result = Map::new();
        let model = record.get("model_type").or_else(|| record.get("model_filename"));
        result.insert("model".to_owned(), model.cloned().unwrap_or_default());
        let sizes = [number("n_prompt"), number("n_gen"), number("n_depth")].map(|size| size.unwrap_or(0.0));
        result.insert("test".to_owned(), test_name(sizes).into());
        result.insert("tokens_per_s".to_owned(), rate.into());
        for (theirs, ours) in
            [("stddev_ts", "stddev"), ("avg_ns", "avg_ns"), ("backends", "backend"), ("n_gpu_layers", "ngl")]
        {
            if let Some(value) = record.get(theirs) {
                result.insert(ours.to_owned(), value.clone());
            }
        }
        if let Some(samples) = record.get("samples_ns").and_then(Value::as_array) {
            result.insert("n_samples".to_owned(), samples.len().into());
        }
        if let Some(device) = record.get("gpu_info").and_then(Value::as_str) {
            self.settings.add("device", device);
        }
        if let Some(parameters) = number("model_n_params") {
            self.settings.add("parameters_billion", number_to_json(parameters / 1e9));
        }
        self.push(result);
        true
    }

    /// Reads a record of strings, from CSV or SQL.
    fn flat(&mut self, record: &BTreeMap<String, String>, format: &'static str) -> Outcome {
        let mut object = Map::new();
        for (name, value) in record {
            let value = match parse_leading_number(value) {
                Some((number, "")) if number.is_finite() => number_to_json(number),
                _ => Value::from(value.as_str()),
            };
            object.insert(name.clone(), value);
        }
        if !self.json_record(&Value::Object(object)) {
            return Outcome::Unusable("a llama-bench record without avg_ts or n_prompt");
        }
        self.format = format;
        Outcome::Recognized
    }

    /// Parses `INSERT INTO llama_bench (a, b) VALUES ('x', 'y');`.
    fn sql(&mut self, text: &str) -> Outcome {
        let lists: Vec<Vec<String>> = text
            .split('(')
            .skip(1)
            .filter_map(|part| part.rsplit_once(')').map(|(inner, _)| inner))
            .map(|inner| owned_cells(&inner.replace('\'', "\"")))
            .collect();
        let (Some(names), Some(values)) = (lists.first(), lists.get(1)) else {
            return Outcome::Unusable("an INSERT statement without lists of columns and values");
        };
        let mut record = BTreeMap::new();
        record.extend(names.iter().cloned().zip(values.iter().cloned()));
        self.flat(&record, "llama-bench-sql")
    }
}

/// Returns the name of a test as in the table: `pp512`, `tg128`, `pp512+tg128`, `pp512 @ d1024`.
fn test_name([prompt, generate, depth]: [f64; 3]) -> String {
    let mut name = match (prompt > 0.0, generate > 0.0) {
        (true, true) => format!("pp{prompt}+tg{generate}"),
        (true, false) => format!("pp{prompt}"),
        _ => format!("tg{generate}"),
    };
    if depth > 0.0 {
        name += &format!(" @ d{depth}");
    }
    name
}

fn row(text: &str) -> Vec<String> {
    text.trim().trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}
