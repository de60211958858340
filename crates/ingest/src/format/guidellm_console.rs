//! GuideLLM's console tables: `Benchmarks Info:` has request counts, `Benchmarks Stats:` the metrics. The header has
//! two lines: groups of columns with their unit, and the statistic in each column.

use serde_json::{Map, Value};

use crate::lines::Line;
use crate::quantity::Measure;
use crate::reading::{Context, Facts, Importance, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::CommonSettings;
use crate::text::{number, text_between};
use crate::training::MAX_LISTED;

/// Prefixes of the names of column groups, and the metric. Groups whose metric ends with `_ms` have several statistics.
const GROUPS: [(&str, &str); 6] = [
    ("Out Tok/sec", "output_throughput"),
    ("Tot Tok/sec", "total_token_throughput"),
    ("Req Latency", "request_latency_ms"),
    ("TTFT", "ttft_ms"),
    ("ITL", "itl_ms"),
    ("TPOT", "tpot_ms"),
];

/// Content of a column.
#[derive(Debug, Clone)]
enum Column {
    Name,
    /// Name of a fact, and the factor to its unit.
    Figure(String, f64),
    Other,
}

/// Recognizer of both tables.
#[derive(Debug, Default)]
pub struct GuideLlmConsole {
    /// Header line with the column groups.
    groups: Option<Vec<String>>,
    columns: Vec<Column>,
    results: Vec<Map<String, Value>>,
    settings: CommonSettings,
}

impl Recognizer for GuideLlmConsole {
    fn triggers(&self) -> &'static [&'static str] {
        &["Benchmarks Info:", "Benchmarks Stats:", "backend_model=", "Metadata "]
    }

    fn in_table(&self) -> bool {
        self.groups.is_some() || !self.columns.is_empty()
    }

    fn blank_line(&mut self) {
        self.groups = None;
        self.columns.clear();
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim();
        if let Some(model) = text_between(text, "backend_model='", "'").filter(|model| !model.is_empty()) {
            self.settings.add("model", model);
            return Outcome::Settings;
        }
        if text.starts_with("Benchmarks Info:") || text.starts_with("Benchmarks Stats:") {
            self.blank_line();
            return Outcome::Settings;
        }
        if text.starts_with("Metadata") && text.contains("||") {
            self.columns.clear();
            self.groups = Some(line.text.split('|').map(|cell| cell.trim().to_owned()).collect());
            return Outcome::Recognized;
        }
        if text.bytes().all(|byte| matches!(byte, b'-' | b'|' | b'=' | b' ')) {
            return if self.in_block() { Outcome::Recognized } else { Outcome::NotRecognized };
        }
        let cells: Vec<&str> = line.text.split('|').map(str::trim).collect();
        if let Some(mut groups) = self.groups.take() {
            // The line may end with a bar.
            while groups.len() > cells.len() && groups.last().is_some_and(String::is_empty) {
                groups.pop();
            }
            if cells.len() != groups.len() || !cells.first().is_some_and(|name| name.starts_with("Benchmark")) {
                return Outcome::NotRecognized;
            }
            let mut group = "";
            for (named, name) in groups.iter().zip(&cells) {
                group = if named.is_empty() { group } else { named };
                self.columns.push(column(group, name));
            }
            return Outcome::Recognized;
        }
        if self.columns.is_empty() || cells.len() != self.columns.len() {
            return Outcome::NotRecognized;
        }
        if !line.whole {
            return Outcome::Unusable("a truncated GuideLLM row");
        }
        self.row(&cells);
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        // A row that is only in the first table has request counts but no metrics.
        let results: Vec<Value> =
            self.results.into_iter().filter(|result| result.len() > 4).map(Value::Object).collect();
        if results.is_empty() {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("blocks", results.len());
        facts.set("results", results);
        vec![Reading {
            tool: "guidellm",
            format: "guidellm-text",
            kind: "serving",
            importance: Importance::Result,
            facts,
            config: self.settings.config(context),
            ..Reading::default()
        }]
    }
}

impl GuideLlmConsole {
    fn row(&mut self, cells: &[&str]) {
        let mut row = Map::new();
        let mut mode = "";
        for (column, cell) in self.columns.iter().zip(cells) {
            match column {
                Column::Name => mode = cell,
                Column::Figure(name, scale) => {
                    if let Some(value) = number(cell) {
                        row.insert(name.clone(), (value * scale).into());
                    }
                }
                Column::Other => {}
            }
        }
        // Both tables have a row for each benchmark. Merge that of the second table into that of the first.
        let measured = |result: &Map<String, Value>| result.keys().any(|name| name.contains("throughput"));
        let counted = self.results.iter_mut().find(|result| {
            result.get("mode").and_then(Value::as_str) == Some(mode) && !measured(result) && measured(&row)
        });
        if let Some(result) = counted {
            result.extend(row);
        } else if self.results.len() < MAX_LISTED {
            row.insert("mode".to_owned(), mode.into());
            self.results.push(row);
        }
    }
}

fn column(group: &str, name: &str) -> Column {
    let figure = |name: &str, scale: f64| Column::Figure(name.to_owned(), scale);
    match (group, name) {
        (_, "Benchmark") => return Column::Name,
        (_, "Duration (s)") => return figure("duration_s", 1.0),
        ("Requests Made", "Comp") => return figure("successful_requests", 1.0),
        ("Requests Made", "Err") => return figure("failed_requests", 1.0),
        ("Request Stats", "Per Second") => return figure("request_throughput", 1.0),
        ("Request Stats", "Concurrency") => return figure("concurrency", 1.0),
        _ => {}
    }
    let Some((_, ours)) = GROUPS.iter().find(|(theirs, _)| group.starts_with(theirs)) else { return Column::Other };
    if !ours.ends_with("_ms") {
        return if name == "mean" { figure(ours, 1.0) } else { Column::Other };
    }
    let unit = group.split_once('(').and_then(|(_, unit)| Measure::Time.factor(unit.trim_end_matches(')')));
    match (unit, name) {
        // Multiply and round the factors first, so that seconds are exactly 1000 ms.
        (Some(unit), "mean" | "median" | "p90" | "p95" | "p99") => {
            Column::Figure(format!("{ours}.{name}"), (unit * 1e6).round() / 1e3)
        }
        _ => Column::Other,
    }
}
