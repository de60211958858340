//! GenAI-Perf and AIPerf: console table, CSV with two tables, and JSON.

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::quantity::Measure;
use crate::reading::{Config, Context, Importance, Origin, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::Reports;
use crate::text::{has, number, owned_cells};

/// Recognizer of all three forms.
#[derive(Debug, Default)]
pub struct GenAiPerf {
    reports: Reports,
    tool: Option<&'static str>,
    shape: &'static str,
    columns: Vec<String>,
    open: Open,
    /// A row whose label is wrapped onto several lines.
    wrapped: Option<(String, Vec<String>)>,
    config: Config,
    /// Device name in the telemetry data.
    device: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Table,
    Csv,
}

impl Recognizer for GenAiPerf {
    fn triggers(&self) -> &'static [&'static str] {
        &["| LLM Metrics", "Statistic ", "Metric,avg", "Metric,Value", "Metric ┃", "NVIDIA AIPerf", "NVIDIA GenAI-Perf"]
    }

    fn in_block(&self) -> bool {
        self.open != Open::Nothing
    }

    fn blank_line(&mut self) {
        if self.open == Open::Csv {
            self.open = Open::Nothing;
        }
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "GenAI-Perf |") {
            self.begin();
            self.tool = Some("genai_perf");
            return Outcome::Settings;
        }
        if has(text, "AIPerf |") {
            self.begin();
            self.tool = Some("aiperf");
            return Outcome::Settings;
        }
        if text.starts_with("Metric,") {
            self.flush();
            if has(text, ",avg") {
                self.begin();
            }
            self.columns = owned_cells(text).into_iter().skip(1).collect();
            self.open = Open::Csv;
            self.shape = "csv";
            // Only the header of AIPerf has these columns.
            if self.columns.iter().any(|column| matches!(column.as_str(), "sum" | "p1" | "std")) {
                self.tool = Some("aiperf");
            }
            return Outcome::Recognized;
        }
        if text.contains(['┃', '│', '|']) && (has(text, "Statistic") || has(text, "Metric")) && has(text, "avg") {
            self.begin();
            self.columns = table_cells(text).into_iter().skip(1).collect();
            self.open = Open::Table;
            self.shape = "table";
            return Outcome::Recognized;
        }
        match self.open {
            Open::Nothing => Outcome::NotRecognized,
            Open::Csv => {
                let mut row = owned_cells(text).into_iter();
                let label = row.next().unwrap_or_default();
                let values: Vec<String> = row.collect();
                // A sentence with commas is not a row.
                if values.is_empty() || values.len() > self.columns.len() {
                    return Outcome::NotRecognized;
                }
                self.row(&label, &values)
            }
            Open::Table => self.table_row(text),
        }
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let Some(map) = document.as_object() else { return Outcome::NotRecognized };
        let metric = |name: &str| map.get(name).and_then(Value::as_object).filter(|block| block.contains_key("unit"));
        if metric("request_latency").is_none() || metric("request_throughput").is_none() {
            return Outcome::NotRecognized;
        }
        self.begin();
        let aiperf = ["telemetry_data", "benchmark_duration", "was_cancelled", "aiperf_version", "cli_command"];
        self.tool = Some(if aiperf.iter().any(|name| map.contains_key(*name)) { "aiperf" } else { "genai_perf" });
        self.shape = "json";
        for (name, block) in map {
            let Some(block) = block.as_object() else { continue };
            let unit = block.get("unit").and_then(Value::as_str).unwrap_or_default();
            let statistics = block.iter().filter(|(name, _)| *name != "unit");
            let statistics: Vec<(String, f64)> =
                statistics.filter_map(|(name, value)| Some((name.clone(), json_number(value)?))).collect();
            if !statistics.is_empty() {
                self.metric(&name.replace('_', " "), unit, &statistics);
            }
        }
        let telemetry = map.get("telemetry_data").and_then(|data| data.get("endpoints")).and_then(Value::as_object);
        self.reports.set("has_gpu_telemetry", telemetry.is_some_and(|endpoints| !endpoints.is_empty()));
        self.telemetry(telemetry);
        let input = map.get("input_config");
        let model = input.and_then(|input| {
            let names = input.get("endpoint").and_then(|endpoint| endpoint.get("model_names")).or(input.get("model"));
            names.and_then(|names| names.get(0).or(Some(names))).and_then(Value::as_str)
        });
        if let Some(model) = model {
            self.reports.set("model", model);
        }
        let load = input.and_then(|input| input.get("loadgen"));
        if let Some(concurrency) = load.and_then(|load| load.get("concurrency")) {
            self.reports.set("concurrency", concurrency.clone());
        }
        self.reports.begin();
        Outcome::Recognized
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        // The unit at the end of a wrapped label may be on a missing line.
        let whole = |(label, _): &(String, Vec<String>)| label.contains('(') && label.ends_with(')');
        self.wrapped = self.wrapped.filter(whole);
        self.flush();
        let reports = std::mem::take(&mut self.reports).finish(|report| !report.is_empty());
        if reports.is_empty() {
            return Vec::new();
        }
        for name in ["model", "device"] {
            if let Some(text) = reports.common(name).and_then(Value::as_str) {
                self.config.note(name, text, Origin::File);
            }
        }
        let (facts, notes) = reports.facts();
        let (tool, format) = match (self.tool.unwrap_or("genai_perf"), self.shape) {
            ("aiperf", "csv") => ("aiperf", "aiperf-csv"),
            ("aiperf", "table") => ("aiperf", "aiperf-table"),
            ("aiperf", _) => ("aiperf", "aiperf-json"),
            (_, "csv") => ("genai_perf", "genai-perf-csv"),
            (_, "table") => ("genai_perf", "genai-perf-table"),
            _ => ("genai_perf", "genai-perf-json"),
        };
        self.config.merge(&context.settings);
        vec![Reading {
            tool,
            format,
            kind: "serving",
            importance: Importance::Result,
            facts,
            config: self.config,
            notes,
            ..Reading::default()
        }]
    }
}

impl GenAiPerf {
    fn table_row(&mut self, text: &str) -> Outcome {
        if text.starts_with(['└', '╰']) {
            self.flush();
            self.open = Open::Nothing;
            return Outcome::Recognized;
        }
        if text.starts_with(['┏', '┡', '├', '┣', '+']) {
            return Outcome::Recognized;
        }
        if !text.starts_with(['│', '┃', '|']) {
            return Outcome::NotRecognized;
        }
        let mut row = table_cells(text).into_iter();
        let label = row.next().unwrap_or_default();
        let values: Vec<String> = row.collect();
        if values.iter().all(String::is_empty) {
            if let Some((above, _)) = &mut self.wrapped {
                above.push(' ');
                above.push_str(&label);
            }
            return Outcome::Recognized;
        }
        // `(per` and `sec)` may be the wrapped part of a label whose values are on its first line.
        self.flush();
        self.wrapped = Some((label, values));
        Outcome::Recognized
    }

    /// Starts another table or document.
    fn begin(&mut self) {
        self.flush();
        self.reports.begin();
    }

    fn flush(&mut self) {
        if let Some((label, values)) = self.wrapped.take() {
            self.row(&label, &values);
        }
    }

    fn row(&mut self, label: &str, values: &[String]) -> Outcome {
        let statistics: Vec<(String, f64)> = self
            .columns
            .iter()
            .zip(values)
            .filter_map(|(column, value)| {
                let column = if column.eq_ignore_ascii_case("value") { "avg" } else { column.as_str() };
                Some((column.to_owned(), number(value)?))
            })
            .collect();
        if statistics.is_empty() {
            return Outcome::Unusable("a row of a metrics table without a number");
        }
        let (name, unit) = label.split_once('(').unwrap_or((label, ""));
        // Other lines with commas and numbers may follow a table.
        if self.metric(name, unit.trim_end_matches([')', ' ']), &statistics) || self.open == Open::Table {
            Outcome::Recognized
        } else {
            Outcome::NotRecognized
        }
    }

    /// Adds a metric. Returns whether it is known.
    fn metric(&mut self, name: &str, unit: &str, statistics: &[(String, f64)]) -> bool {
        let name = name.trim().to_lowercase();
        let to_ms = Measure::Time.factor(unit).map_or(1.0, |seconds| seconds * 1e3);
        let block = match name.as_str() {
            "time to first token" => "ttft_ms",
            "time to second token" => "ttst_ms",
            "inter token latency" => "itl_ms",
            "inter chunk latency" => "inter_chunk_latency_ms",
            "request latency" => "request_latency_ms",
            _ => "",
        };
        if !block.is_empty() {
            let known = self.reports.current().get(block).and_then(Value::as_object).cloned();
            // The second table of the CSV may add statistics to a metric of the first. If a statistic is repeated, it
            // belongs to another run.
            let names = |name: &str| if name == "avg" { "mean".to_owned() } else { name.to_owned() };
            let again =
                known.as_ref().is_some_and(|known| statistics.iter().any(|(name, _)| known.contains_key(&names(name))));
            if again {
                self.reports.begin();
            }
            for (name, value) in statistics {
                self.reports.set_in(block, &names(name), value * to_ms);
            }
            return true;
        }
        let fact = match name.as_str() {
            "output sequence length" => "mean_output_tokens",
            "input sequence length" => "mean_input_tokens",
            "output token throughput" => "output_throughput",
            "total token throughput" => "total_token_throughput",
            "output token throughput per user" => "output_throughput_per_user",
            "output token throughput per gpu" => "output_throughput_per_gpu",
            "request throughput" => "request_throughput",
            "request count" => "requests",
            "benchmark duration" => "duration_s",
            "request goodput" | "goodput" => "request_goodput",
            "total output tokens" | "total osl" => "output_tokens",
            "total isl" => "input_tokens",
            "error request count" => "failed_requests",
            _ => return false,
        };
        if let Some((_, value)) = statistics.iter().find(|(name, _)| name == "avg").or(statistics.first()) {
            let scale = if fact == "duration_s" { Measure::Time.factor(unit).unwrap_or(1.0) } else { 1.0 };
            self.reports.set(fact, value * scale);
        }
        true
    }

    /// Adds the mean power of every GPU in the telemetry data.
    fn telemetry(&mut self, endpoints: Option<&Map<String, Value>>) {
        let mut watts = Map::new();
        for (endpoint, data) in endpoints.into_iter().flatten() {
            for (gpu, data) in data.get("gpus").and_then(Value::as_object).into_iter().flatten() {
                let power = data.get("metrics").and_then(|metrics| metrics.get("gpu_power_usage"));
                if let Some(mean) = power.and_then(|power| power.get("avg")).and_then(json_number) {
                    watts.insert(format!("{endpoint} {gpu}"), mean.into());
                }
                if let Some(device) = data.get("gpu_name").and_then(Value::as_str) {
                    self.device = Some(device.to_owned());
                }
            }
        }
        if let Some(device) = self.device.take() {
            self.reports.set("device", device);
        }
        if !watts.is_empty() {
            self.reports.set("mean_power_w_per_gpu", Value::Object(watts));
        }
    }
}

/// Splits a row of a drawn table into its cells.
fn table_cells(text: &str) -> Vec<String> {
    let inner = text.trim().trim_matches(['│', '┃', '|']);
    inner.split(['│', '┃', '|']).map(|cell| cell.trim().to_owned()).collect()
}
