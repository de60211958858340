//! Triton's Perf Analyzer: the blocks of its text output, the summary below them, and its CSV. Times are in
//! microseconds unless a unit is stated.

use serde_json::{Map, Value};

use crate::lines::Line;
use crate::quantity::{Measure, milliseconds, milliseconds_after};
use crate::reading::{Config, Context, Facts, Importance, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{has, number, number_after, owned_cells, parse_leading_number, text_after};
use crate::training::MAX_LISTED;

/// Unit of times in the CSV, in seconds.
const MICROSECOND: f64 = 1e-6;

/// Columns of the CSV that are times, and our names.
const TIMES: [(&str, &str); 10] = [
    ("client send", "client_send_ms"),
    ("network+server send/recv", "network_ms"),
    ("server queue", "server_queue_ms"),
    ("server compute input", "server_compute_input_ms"),
    ("server compute infer", "server_compute_infer_ms"),
    ("server compute output", "server_compute_output_ms"),
    ("client recv", "client_recv_ms"),
    ("avg latency", "request_latency_ms.mean"),
    ("request/response", "request_response_ms"),
    ("response wait", "response_wait_ms"),
];

/// Content of a column of the CSV: our name and the factor to its unit.
type Column = Option<(String, f64)>;

/// Recognizer of all three forms.
#[derive(Debug, Default)]
pub struct PerfAnalyzer {
    results: Vec<Map<String, Value>>,
    block: Option<Map<String, Value>>,
    part: Part,
    /// Whether the current lines are the measurement settings.
    settings: bool,
    columns: Vec<Column>,
    batch: Option<f64>,
    csv: bool,
}

/// Side that the lines of a block describe.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Client,
    Server,
}

impl Recognizer for PerfAnalyzer {
    fn triggers(&self) -> &'static [&'static str] {
        &["infer/sec", "Request concurrency:", "Request Rate:", "*** Measurement Settings", "Inferences/Second"]
    }

    fn in_block(&self) -> bool {
        self.block.is_some() || !self.columns.is_empty() || self.settings
    }

    fn blank_line(&mut self) {
        self.columns.clear();
        self.settings = false;
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "*** Measurement Settings") {
            self.close();
            (self.batch, self.settings) = (None, true);
            return Outcome::Recognized;
        }
        for (mark, name) in [("Request concurrency:", "concurrency"), ("Request Rate:", "request_rate")] {
            let Some(value) = text.strip_prefix(mark).and_then(number) else { continue };
            self.close();
            let mut block = Map::new();
            block.insert(name.to_owned(), number_to_json(value));
            (self.block, self.part) = (Some(block), Part::Client);
            return Outcome::Recognized;
        }
        if let Some(batch) = text.strip_prefix("Batch size:").filter(|_| self.settings) {
            self.batch = number(batch);
            return Outcome::Settings;
        }
        if has(text, ", throughput:") && has(text, "latency") {
            return self.summary(text);
        }
        if has(text, "Inferences/Second") && text.contains(',') {
            self.close();
            self.columns = owned_cells(text).iter().map(|name| column(name)).collect();
            return Outcome::Recognized;
        }
        if !self.columns.is_empty() {
            return self.row(text);
        }
        if self.block.is_some() { self.figure(text) } else { Outcome::NotRecognized }
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.close();
        if self.results.is_empty() {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("blocks", self.results.len());
        facts.set("results", self.results.into_iter().map(Value::Object).collect::<Vec<Value>>());
        let mut config = Config::default();
        config.merge(&context.settings);
        vec![Reading {
            tool: "perf_analyzer",
            format: if self.csv { "perf-analyzer-csv" } else { "perf-analyzer-text" },
            kind: "serving",
            importance: Importance::Result,
            facts,
            config,
            ..Reading::default()
        }]
    }
}

impl PerfAnalyzer {
    /// Ends the current block.
    fn close(&mut self) {
        self.columns.clear();
        let block = self.block.take().filter(|block| block.contains_key("inferences_per_s"));
        if let Some(mut block) = block {
            if let Some(batch) = self.batch {
                block.insert("batch_size".to_owned(), number_to_json(batch));
            }
            self.push(block);
        }
    }

    fn push(&mut self, result: Map<String, Value>) {
        if self.results.len() < MAX_LISTED {
            self.results.push(result);
        }
    }

    /// Reads a line of a block.
    fn figure(&mut self, text: &str) -> Outcome {
        match text {
            "Client:" => self.part = Part::Client,
            "Server:" | "Composing models:" => self.part = Part::Server,
            _ => {}
        }
        let Some((label, value)) = text.split_once(':') else { return Outcome::NotRecognized };
        let Some(block) = &mut self.block else { return Outcome::NotRecognized };
        let time = || milliseconds(value, MICROSECOND);
        let (name, figure) = match (label, self.part) {
            ("Client" | "Server" | "Composing models", _) => return Outcome::Recognized,
            ("Request count", Part::Client) => ("requests".to_owned(), number(value)),
            ("Throughput", Part::Client) => ("inferences_per_s".to_owned(), number(value)),
            ("Response Throughput", Part::Client) => ("responses_per_s".to_owned(), number(value)),
            ("Avg latency", Part::Client) => {
                if let Some(deviation) = milliseconds_after(value, "standard deviation", MICROSECOND) {
                    block.insert("request_latency_ms.std".to_owned(), deviation.into());
                }
                ("request_latency_ms.mean".to_owned(), time())
            }
            ("Avg request latency", Part::Server) if !block.contains_key("server_latency_ms") => {
                ("server_latency_ms".to_owned(), time())
            }
            (label, Part::Client) if percentile(label).is_some() => {
                (format!("request_latency_ms.{}", percentile(label).unwrap_or_default()), time())
            }
            _ => return Outcome::NotRecognized,
        };
        let Some(figure) = figure else { return Outcome::Unusable("a Perf Analyzer line without a number") };
        block.insert(name, number_to_json(figure));
        Outcome::Recognized
    }

    /// Reads a summary line, `Concurrency: 1, throughput: 1407.84 infer/sec, latency 708 usec`, unless it repeats a
    /// block above.
    fn summary(&mut self, text: &str) -> Outcome {
        self.close();
        let load = [("Concurrency:", "concurrency"), ("Request Rate:", "request_rate")];
        let load = load.iter().find_map(|(mark, name)| Some((*name, text.strip_prefix(mark).and_then(number)?)));
        let rate = number_after(text, "throughput:");
        // A latency without unit is ignored, because the line is truncated.
        let latency = text_after(text, ", latency").and_then(|rest| {
            let (value, unit) = parse_leading_number(rest)?;
            Some(value * (Measure::Time.factor(unit)? * 1e3))
        });
        let (Some((name, load)), Some(rate)) = (load, rate) else {
            return Outcome::Unusable("a Perf Analyzer summary without its load or throughput");
        };
        let (load, rate) = (number_to_json(load), number_to_json(rate));
        let same =
            |known: &Map<String, Value>| known.get(name) == Some(&load) && known.get("inferences_per_s") == Some(&rate);
        if !self.results.iter().any(same) {
            let mut result = Map::new();
            result.insert(name.to_owned(), load);
            result.insert("inferences_per_s".to_owned(), rate);
            if let Some(latency) = latency {
                result.insert("request_latency_ms.mean".to_owned(), latency.into());
            }
            self.push(result);
        }
        Outcome::Recognized
    }

    fn row(&mut self, text: &str) -> Outcome {
        let cells = owned_cells(text);
        if cells.len() != self.columns.len() {
            self.columns.clear();
            return Outcome::NotRecognized;
        }
        let mut result = Map::new();
        for (column, cell) in self.columns.iter().zip(&cells) {
            if let (Some((name, factor)), Some(value)) = (column, number(cell)) {
                result.insert(name.clone(), number_to_json(value * factor));
            }
        }
        if !result.contains_key("inferences_per_s") {
            return Outcome::Unusable("a row of Perf Analyzer without a throughput");
        }
        self.csv = true;
        self.push(result);
        Outcome::Recognized
    }
}

/// Returns the percentile in a label: `p99` for `p99 latency`.
fn percentile(label: &str) -> Option<&str> {
    let name = label.strip_suffix(" latency")?;
    let digits = name.strip_prefix('p')?;
    number(digits).is_some().then_some(name)
}

/// Returns the content of a column of the CSV.
fn column(name: &str) -> Column {
    let lower = name.to_lowercase();
    if let Some((_, ours)) = TIMES.iter().find(|(theirs, _)| *theirs == lower) {
        return Some(((*ours).to_owned(), MICROSECOND * 1e3));
    }
    match lower.as_str() {
        "concurrency" => Some(("concurrency".to_owned(), 1.0)),
        "request rate" => Some(("request_rate".to_owned(), 1.0)),
        "inferences/second" => Some(("inferences_per_s".to_owned(), 1.0)),
        lower => {
            let rank = percentile(lower)?;
            Some((format!("request_latency_ms.{rank}"), MICROSECOND * 1e3))
        }
    }
}
