//! Tables of sweeps over request rates, as written by tools based on GuideLLM: one CSV row per rate, with the units of
//! latencies in the column names.

use serde_json::{Map, Value};

use crate::lines::Line;
use crate::reading::{Context, Importance, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::CommonSettings;
use crate::text::{has, number, owned_cells};
use crate::training::MAX_LISTED;

/// Recognizer of these tables.
#[derive(Debug, Default)]
pub struct Sweep {
    columns: Vec<(String, f64)>,
    width: usize,
    results: Vec<Value>,
    settings: CommonSettings,
}

impl Recognizer for Sweep {
    fn triggers(&self) -> &'static [&'static str] {
        &["equests per Second,", "Time-to-first-token", "Time to First Token (ms),", "Output Token Throughput (t/s)"]
    }

    fn in_block(&self) -> bool {
        !self.columns.is_empty()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let values = owned_cells(line.text);
        let lower = line.text.to_lowercase();
        let is_head = has(&lower, "request") && has(&lower, "latency") && has(&lower, "first") && values.len() >= 4;
        if is_head && number(values.get(1).map_or("", String::as_str)).is_none() {
            self.columns = values.iter().map(|name| column(name)).collect();
            self.width = values.len();
            return Outcome::Recognized;
        }
        if self.columns.is_empty() || values.len() != self.width {
            return Outcome::NotRecognized;
        }
        // The units are in the column names. A row with units in its cells belongs to another table with the same
        // number of columns.
        let figures = self.columns.iter().zip(&values).filter(|((name, _), _)| !TEXTS.contains(&name.as_str()));
        if figures.map(|(_, cell)| cell).any(|cell| has_unit(cell)) {
            return Outcome::NotRecognized;
        }
        let mut result = Map::new();
        let mut figures = 0;
        for ((name, scale), cell) in self.columns.iter().zip(&values) {
            match (name.as_str(), number(cell)) {
                ("", _) => {}
                ("model", _) => self.settings.add("model", cell.as_str()),
                ("mode" | "date", _) => {
                    result.insert(name.clone(), cell.as_str().into());
                }
                (name, Some(value)) => {
                    figures += 1;
                    result.insert(name.to_owned(), (value * scale).into());
                }
                _ => {}
            }
        }
        if figures < 2 {
            return Outcome::Unusable("a sweep row without metrics");
        }
        if self.results.len() < MAX_LISTED {
            self.results.push(Value::Object(result));
        }
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let Some(reading) = Reading::of_results("blocks", self.results) else { return Vec::new() };
        vec![Reading {
            tool: "vllm_bench",
            format: "serving-sweep-csv",
            kind: "serving",
            importance: Importance::Result,
            config: self.settings.config(context),
            notes: vec!["output throughput is per request unless the column name states otherwise".to_owned()],
            ..reading
        }]
    }
}

/// Columns that are not numeric.
const TEXTS: [&str; 4] = ["", "model", "mode", "date"];

/// Whether a cell is a number with a suffix, such as `73 %`.
fn has_unit(cell: &str) -> bool {
    let plain = |c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.' | ',' | 'e' | 'E');
    cell.starts_with(|c: char| c.is_ascii_digit()) && !cell.trim().chars().all(plain)
}

/// Returns our name for a column, and the factor to its unit. The name is empty for columns that are not used.
fn column(name: &str) -> (String, f64) {
    let lower = name.to_lowercase().replace('-', " ");
    let milliseconds = if has(&lower, "(s)") || has(&lower, "(sec") { 1e3 } else { 1.0 };
    let statistic =
        ["median", "p50", "p90", "p95", "p99", "std", "min", "max"].into_iter().find(|name| has(&lower, name));
    let statistic = statistic.unwrap_or("mean");
    let latency = |metric: &str| (format!("{metric}.{statistic}"), milliseconds);
    match lower.as_str() {
        lower if has(lower, "model") => ("model".to_owned(), 1.0),
        lower if has(lower, "input type") || has(lower, "benchmark") || has(lower, "strategy") => {
            ("mode".to_owned(), 1.0)
        }
        "date" => ("date".to_owned(), 1.0),
        lower if has(lower, "first token") || has(lower, "ttft") => latency("ttft_ms"),
        lower if has(lower, "inter token") || has(lower, "itl") => latency("itl_ms"),
        lower if has(lower, "time per output token") || has(lower, "tpot") => latency("tpot_ms"),
        lower if has(lower, "request latency") => latency("request_latency_ms"),
        lower if has(lower, "requests per second") || has(lower, "request rate") => {
            ("request_throughput".to_owned(), 1.0)
        }
        lower if has(lower, "output token") => ("output_throughput".to_owned(), 1.0),
        lower if has(lower, "total token") => ("total_token_throughput".to_owned(), 1.0),
        lower if has(lower, "concurren") => ("max_concurrency".to_owned(), 1.0),
        _ => (String::new(), 1.0),
    }
}
