//! GenAI-Perf and AIPerf: the table on the console, the CSV with its two tables, the JSON.

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Origin, Reading, Weight, object};
use crate::recogniser::{Outcome, Recogniser};
use crate::text::{has, number, owned_cells};

/// Reads all three.
#[derive(Debug, Default)]
pub struct GenAiPerf {
    facts: Facts,
    tool: Option<&'static str>,
    shape: &'static str,
    columns: Vec<String>,
    open: Open,
    /// A row whose label is wrapped over several lines.
    wrapped: Option<(String, Vec<String>)>,
    config: Config,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Open {
    #[default]
    Nothing,
    Table,
    Csv,
}

impl Recogniser for GenAiPerf {
    fn triggers(&self) -> &'static [&'static str] {
        &["| LLM Metrics", "Statistic ", "Metric,avg", "Metric,Value", "Metric ┃", "NVIDIA AIPerf", "NVIDIA GenAI-Perf"]
    }

    fn open(&self) -> bool {
        self.open != Open::Nothing
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if has(text, "GenAI-Perf |") {
            self.tool = Some("genai_perf");
            return Outcome::Noted;
        }
        if has(text, "AIPerf |") {
            self.tool = Some("aiperf");
            return Outcome::Noted;
        }
        if text.starts_with("Metric,") {
            self.columns = owned_cells(text).into_iter().skip(1).collect();
            self.open = Open::Csv;
            self.shape = "csv";
            // AIPerf's header has a sum, low percentiles and a deviation.
            if self.columns.iter().any(|column| matches!(column.as_str(), "sum" | "p1" | "std")) {
                self.tool = Some("aiperf");
            }
            return Outcome::Took;
        }
        if text.contains(['┃', '│', '|']) && (has(text, "Statistic") || has(text, "Metric")) && has(text, "avg") {
            self.columns = table_cells(text).into_iter().skip(1).collect();
            self.open = Open::Table;
            self.shape = "table";
            return Outcome::Took;
        }
        match self.open {
            Open::Nothing => Outcome::No,
            Open::Csv => {
                let mut row = owned_cells(text).into_iter();
                let label = row.next().unwrap_or_default();
                let values: Vec<String> = row.collect();
                if values.is_empty() { Outcome::No } else { self.row(&label, &values) }
            }
            Open::Table => self.table_row(text),
        }
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let Some(map) = document.as_object() else { return Outcome::No };
        let metric = |name: &str| map.get(name).and_then(Value::as_object).filter(|block| block.contains_key("unit"));
        if metric("request_latency").is_none() || metric("request_throughput").is_none() {
            return Outcome::No;
        }
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
        self.facts.set("has_gpu_telemetry", telemetry.is_some_and(|endpoints| !endpoints.is_empty()));
        self.telemetry(telemetry);
        let input = map.get("input_config");
        let model = input.and_then(|input| {
            let names = input.get("endpoint").and_then(|endpoint| endpoint.get("model_names")).or(input.get("model"));
            names.and_then(|names| names.get(0).or(Some(names))).and_then(Value::as_str)
        });
        if let Some(model) = model {
            self.facts.set("model", model);
            self.config.note("model", model, Origin::File);
        }
        let load = input.and_then(|input| input.get("loadgen"));
        self.facts.some("concurrency", load.and_then(|load| load.get("concurrency")).cloned());
        Outcome::Took
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.flush();
        if self.facts.is_empty() {
            return Vec::new();
        }
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
            weight: Weight::Result,
            facts: self.facts,
            config: self.config,
            ..Reading::default()
        }]
    }
}

impl GenAiPerf {
    fn table_row(&mut self, text: &str) -> Outcome {
        if text.starts_with(['└', '╰']) {
            self.flush();
            self.open = Open::Nothing;
            return Outcome::Took;
        }
        if text.starts_with(['┏', '┡', '├', '┣', '+']) {
            return Outcome::Took;
        }
        if !text.starts_with(['│', '┃', '|']) {
            return Outcome::No;
        }
        let mut row = table_cells(text).into_iter();
        let label = row.next().unwrap_or_default();
        let values: Vec<String> = row.collect();
        if values.iter().all(String::is_empty) {
            if let Some((above, _)) = &mut self.wrapped {
                above.push(' ');
                above.push_str(&label);
            }
            return Outcome::Took;
        }
        // `(per` and `sec)` may be the wrapped part of a label whose values stand on its first line.
        self.flush();
        self.wrapped = Some((label, values));
        Outcome::Took
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
            return Outcome::Skipped("a row of a metrics table without a number");
        }
        let (name, unit) = label.split_once('(').unwrap_or((label, ""));
        self.metric(name, unit.trim_end_matches([')', ' ']), &statistics);
        Outcome::Took
    }

    fn metric(&mut self, name: &str, unit: &str, statistics: &[(String, f64)]) {
        let name = name.trim().to_lowercase();
        let to_ms = match unit {
            "ns" => 1e-6,
            "us" | "µs" => 1e-3,
            "s" | "sec" | "seconds" => 1e3,
            _ => 1.0,
        };
        let block = match name.as_str() {
            "time to first token" => "ttft_ms",
            "time to second token" => "ttst_ms",
            "inter token latency" => "itl_ms",
            "inter chunk latency" => "inter_chunk_latency_ms",
            "request latency" => "request_latency_ms",
            _ => "",
        };
        if !block.is_empty() {
            let statistics = statistics.iter().map(|(name, value)| {
                let name = if name == "avg" { "mean" } else { name.as_str() };
                (name.to_owned(), Value::from(value * to_ms))
            });
            self.facts.set(block, Value::Object(object(statistics)));
            return;
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
            _ => return,
        };
        if let Some((_, value)) = statistics.iter().find(|(name, _)| name == "avg").or(statistics.first()) {
            self.facts.set(fact, *value);
        }
    }

    /// Mean power of every GPU that telemetry saw.
    fn telemetry(&mut self, endpoints: Option<&Map<String, Value>>) {
        let mut watts = Map::new();
        for (endpoint, data) in endpoints.into_iter().flatten() {
            for (gpu, data) in data.get("gpus").and_then(Value::as_object).into_iter().flatten() {
                let power = data.get("metrics").and_then(|metrics| metrics.get("gpu_power_usage"));
                if let Some(mean) = power.and_then(|power| power.get("avg")).and_then(json_number) {
                    watts.insert(format!("{endpoint} {gpu}"), mean.into());
                }
                if let Some(device) = data.get("gpu_name").and_then(Value::as_str) {
                    self.config.note("device", device, Origin::File);
                }
            }
        }
        if !watts.is_empty() {
            self.facts.set("mean_power_w_per_gpu", Value::Object(watts));
        }
    }
}

/// Cells between the bars of a drawn table.
fn table_cells(text: &str) -> Vec<String> {
    let inner = text.trim().trim_matches(['│', '┃', '|']);
    inner.split(['│', '┃', '|']).map(|cell| cell.trim().to_owned()).collect()
}
