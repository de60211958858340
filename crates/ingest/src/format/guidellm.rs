//! GuideLLM's result files `benchmarks.json` and `benchmarks.csv`, with one benchmark per request rate.

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::reading::{Context, Importance, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::CommonSettings;
use crate::text::{number, owned_cells};
use crate::training::MAX_LISTED;

/// Metric of GuideLLM, name of the fact, and factor to its unit. Request latency is in seconds.
const METRICS: [(&str, &str, f64); 9] = [
    ("requests_per_second", "request_throughput", 1.0),
    ("request_concurrency", "concurrency", 1.0),
    ("request_latency", "request_latency_ms", 1e3),
    ("time_to_first_token_ms", "ttft_ms", 1.0),
    ("time_per_output_token_ms", "tpot_ms", 1.0),
    ("inter_token_latency_ms", "itl_ms", 1.0),
    ("output_tokens_per_second", "output_throughput", 1.0),
    ("tokens_per_second", "total_token_throughput", 1.0),
    ("output_token_count", "output_tokens_per_request", 1.0),
];

/// Content of a column of the CSV.
#[derive(Debug, Clone)]
enum Column {
    Name,
    Duration,
    Requests(&'static str),
    /// A statistic of a metric, and the factor to our unit.
    Statistic(String, f64),
    /// Several percentiles in one cell, as a list: metric, names of the percentiles, and factor to our unit.
    Percentiles(&'static str, Vec<String>, f64),
    Other,
}

/// Recognizer of both files.
#[derive(Debug, Default)]
pub struct GuideLlm {
    columns: Vec<Column>,
    results: Vec<Value>,
    format: &'static str,
    settings: CommonSettings,
}

impl Recognizer for GuideLlm {
    fn triggers(&self) -> &'static [&'static str] {
        &["Successful Requests", "Successful requests"]
    }

    fn in_block(&self) -> bool {
        !self.columns.is_empty()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let values = owned_cells(line.text);
        if values.len() > 6 && values.iter().any(|name| name == "Run Id") {
            self.columns = values.iter().map(|name| column(name)).collect();
            return Outcome::Recognized;
        }
        if self.columns.is_empty() || values.len() != self.columns.len() {
            return Outcome::NotRecognized;
        }
        let mut result = Map::new();
        for (column, cell) in self.columns.iter().zip(&values) {
            match column {
                Column::Name => drop(result.insert("mode".to_owned(), cell.as_str().into())),
                Column::Duration => drop(result.insert("duration_s".to_owned(), number(cell).into())),
                Column::Requests(name) => drop(result.insert((*name).to_owned(), number(cell).into())),
                Column::Statistic(name, scale) => {
                    if let Some(value) = number(cell) {
                        result.insert(name.clone(), (value * scale).into());
                    }
                }
                Column::Percentiles(name, ranks, scale) => {
                    let list = cell.trim_matches(['[', ']']).split(',').map(number);
                    for (rank, value) in ranks.iter().zip(list) {
                        if let Some(value) = value {
                            result.insert(format!("{name}.{rank}"), (value * scale).into());
                        }
                    }
                }
                Column::Other => {}
            }
        }
        if result.len() < 3 {
            return Outcome::Unusable("a GuideLLM row without metrics");
        }
        self.format = "guidellm-csv";
        self.push(result);
        Outcome::Recognized
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let Some(benchmarks) = document.get("benchmarks").and_then(Value::as_array) else {
            return Outcome::NotRecognized;
        };
        let timed = |benchmark: &&Value| {
            benchmark.non_null("metrics").is_some_and(|metrics| metrics.non_null("requests_per_second").is_some())
        };
        let mut took = false;
        for benchmark in benchmarks.iter().filter(timed) {
            self.benchmark(benchmark);
            took = true;
        }
        if !took {
            return Outcome::NotRecognized;
        }
        self.format = "guidellm-json";
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let Some(reading) = Reading::of_results("blocks", self.results) else { return Vec::new() };
        vec![Reading {
            tool: "guidellm",
            format: self.format,
            kind: "serving",
            importance: Importance::Record,
            config: self.settings.config(context),
            ..reading
        }]
    }
}

/// Access to non-null fields of a document.
trait NonNullField {
    fn non_null(&self, name: &str) -> Option<&Value>;
}

impl NonNullField for Value {
    fn non_null(&self, name: &str) -> Option<&Value> {
        self.get(name).filter(|value| !value.is_null())
    }
}

impl GuideLlm {
    fn push(&mut self, result: Map<String, Value>) {
        if self.results.len() < MAX_LISTED {
            self.results.push(Value::Object(result));
        }
    }

    fn benchmark(&mut self, benchmark: &Value) {
        let mut result = Map::new();
        let path = |names: &[&str]| names.iter().try_fold(benchmark, |value, name| value.non_null(name));
        let mode =
            [&["args", "strategy", "type_"][..], &["config", "strategy", "type_"], &["scheduler", "strategy", "type_"]];
        if let Some(mode) = mode.iter().find_map(|names| path(names)) {
            result.insert("mode".to_owned(), mode.clone());
        }
        let model =
            [&["worker", "backend_model"][..], &["config", "backend", "model"], &["benchmarker", "backend", "model"]];
        if let Some(model) = model.iter().find_map(|names| path(names)).and_then(Value::as_str) {
            self.settings.add("model", model);
        }
        if let Some(duration) = path(&["duration"]).and_then(json_number) {
            result.insert("duration_s".to_owned(), duration.into());
        }
        let made = path(&["run_stats", "requests_made"]).or_else(|| path(&["metrics", "request_totals"]));
        for (theirs, ours) in [("successful", "successful_requests"), ("errored", "failed_requests")] {
            if let Some(count) = made.and_then(|made| made.non_null(theirs)).and_then(json_number) {
                result.insert(ours.to_owned(), count.into());
            }
        }
        for (theirs, ours, scale) in METRICS {
            let Some(metric) = path(&["metrics", theirs]).and_then(|metric| metric.non_null("successful")) else {
                continue;
            };
            let plain = ours.ends_with("throughput") || !ours.ends_with("_ms");
            for (name, statistic) in [("mean", "mean"), ("median", "median"), ("std_dev", "std")] {
                let Some(value) = metric.non_null(name).and_then(json_number) else { continue };
                match (plain, statistic) {
                    (true, "mean") => drop(result.insert(ours.to_owned(), (value * scale).into())),
                    (true, _) => {}
                    (false, _) => drop(result.insert(format!("{ours}.{statistic}"), (value * scale).into())),
                }
            }
            let percentiles = metric.non_null("percentiles").and_then(Value::as_object).filter(|_| !plain);
            for (rank, value) in percentiles.into_iter().flatten() {
                if let Some(value) = json_number(value) {
                    result.insert(format!("{ours}.{}", rank_of(rank)), (value * scale).into());
                }
            }
        }
        self.push(result);
    }
}

/// Converts GuideLLM's name of a percentile: `p999` is the 99.9th, `p001` the 0.1st.
fn rank_of(rank: &str) -> String {
    match rank {
        "p999" => "p99.9".to_owned(),
        "p001" => "p0.1".to_owned(),
        "p01" => "p1".to_owned(),
        "p05" => "p5".to_owned(),
        other => other.to_owned(),
    }
}

/// Parses a column name: `Successful Time to First Token ms mean`, `Successful Request Latency [0.1, 1, …, 99]`.
fn column(name: &str) -> Column {
    let lower = name.to_lowercase();
    let lower = lower.trim();
    match lower {
        "name" => return Column::Name,
        "duration" => return Column::Duration,
        "successful requests" => return Column::Requests("successful_requests"),
        "errored requests" => return Column::Requests("failed_requests"),
        _ => {}
    }
    let Some(rest) = lower.strip_prefix("successful ") else { return Column::Other };
    let words = rest.replace([' ', '-'], "_");
    let Some((theirs, ours, scale)) = METRICS.iter().find(|(theirs, ..)| words.starts_with(theirs)).copied() else {
        return Column::Other;
    };
    let statistic = words.get(theirs.len()..).unwrap_or_default().trim_matches('_');
    let plain = !ours.ends_with("_ms");
    if let Some(list) = rest.split_once('[').map(|(_, list)| list.trim_end_matches(']')).filter(|_| !plain) {
        let ranks = list.split(',').map(|rank| format!("p{}", rank.trim())).collect();
        return Column::Percentiles(ours, ranks, scale);
    }
    match (plain, statistic) {
        (true, "mean") => Column::Statistic(ours.to_owned(), scale),
        (false, "mean" | "median") => Column::Statistic(format!("{ours}.{statistic}"), scale),
        (false, "std_dev" | "std") => Column::Statistic(format!("{ours}.std"), scale),
        _ => Column::Other,
    }
}
