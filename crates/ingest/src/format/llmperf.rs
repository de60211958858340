//! LLMPerf: the summary and the list of individual responses, both as JSON with latencies in seconds.

use serde_json::{Map, Value, json};

use crate::json::json_number;
use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Importance, Origin, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;

/// Metrics of LLMPerf, our names, and the factor to our unit.
const METRICS: [(&str, &str, f64); 4] = [
    ("ttft_s", "ttft_ms", 1e3),
    ("inter_token_latency_s", "itl_ms", 1e3),
    ("end_to_end_latency_s", "request_latency_ms", 1e3),
    ("request_output_throughput_token_per_s", "output_throughput_per_request", 1.0),
];

/// Recognizer of both files.
#[derive(Debug, Default)]
pub struct LlmPerf {
    summaries: Vec<(Facts, Config)>,
    individual: Option<Facts>,
}

impl Recognizer for LlmPerf {
    fn triggers(&self) -> &'static [&'static str] {
        &[]
    }

    fn line(&mut self, _line: Line<'_>) -> Outcome {
        Outcome::NotRecognized
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        if let Some(map) = document.as_object() {
            let map = flattened(map);
            if !map.keys().any(|key| key.starts_with("results_ttft_s")) || self.summaries.len() >= 256 {
                return Outcome::NotRecognized;
            }
            self.summaries.push(summary(&map));
            return Outcome::Recognized;
        }
        let Some(list) = document.as_array() else { return Outcome::NotRecognized };
        let first = list.first().and_then(Value::as_object);
        if !first.is_some_and(|first| first.contains_key("ttft_s") && first.contains_key("end_to_end_latency_s")) {
            return Outcome::NotRecognized;
        }
        self.individual = Some(individual(list));
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let reading = |format, facts, mut config: Config| {
            config.merge(&context.settings);
            let (tool, kind, weight) = ("llmperf", "serving", Importance::Record);
            Reading { tool, format, kind, importance: weight, facts, config, ..Reading::default() }
        };
        let summaries = self.summaries.into_iter().map(|(facts, config)| reading("llmperf-summary", facts, config));
        let individual = self.individual.map(|facts| reading("llmperf-individual", facts, Config::default()));
        summaries.chain(individual).collect()
    }
}

/// Flattens the nested groups of newer versions to the names of older ones.
fn flattened(map: &Map<String, Value>) -> Map<String, Value> {
    let mut out = Map::new();
    let mut open: Vec<(String, &Value)> = map.iter().map(|(name, value)| (name.clone(), value)).collect();
    while let Some((name, value)) = open.pop() {
        match value {
            Value::Object(inner) => open.extend(inner.iter().map(|(key, value)| (format!("{name}_{key}"), value))),
            value => {
                out.insert(name, value.clone());
            }
        }
    }
    out
}

fn summary(map: &Map<String, Value>) -> (Facts, Config) {
    let mut facts = Facts::default();
    for (theirs, ours) in [
        ("model", "model"),
        ("num_concurrent_requests", "concurrency"),
        ("results_num_completed_requests", "requests_completed"),
        ("results_num_requests_started", "requests_started"),
        ("results_number_errors", "errors"),
        ("mean_input_tokens", "mean_input_tokens"),
        ("mean_output_tokens", "mean_output_tokens_requested"),
        ("results_number_output_tokens_mean", "mean_output_tokens"),
        ("results_mean_output_throughput_token_per_s", "output_throughput_total"),
        ("results_num_completed_requests_per_min", "requests_per_minute"),
        ("framework", "framework"),
    ] {
        facts.set_optional(ours, map.get(theirs).filter(|value| !value.is_null()).cloned());
    }
    for (theirs, ours, scale) in METRICS {
        let mut block = Map::new();
        let prefix = format!("results_{theirs}_");
        for (key, value) in map {
            let Some(name) = key.strip_prefix(&prefix) else { continue };
            let name = match name.strip_prefix("quantiles_").unwrap_or(name) {
                "stddev" => "std",
                other => other,
            };
            if let Some(value) = json_number(value) {
                block.insert(name.to_owned(), (value * scale).into());
            }
        }
        if !block.is_empty() {
            facts.set(ours, Value::Object(block));
        }
    }
    let mut config = Config::default();
    if let Some(model) = map.get("model").and_then(Value::as_str) {
        config.note("model", model, Origin::File);
    }
    (facts, config)
}

fn individual(list: &[Value]) -> Facts {
    let mut facts = Facts::default();
    let failed = |entry: &&Value| entry.get("error_code").is_some_and(|code| !code.is_null());
    facts.set("requests", list.len());
    facts.set("errors", list.iter().filter(failed).count());
    let good = || list.iter().filter(|entry| !failed(entry));
    for (theirs, ours, scale) in METRICS {
        let mut series = Series::default();
        good().filter_map(|entry| entry.get(theirs).and_then(json_number)).for_each(|value| series.push(value * scale));
        if let Some(stats) = series.stats(0, 0) {
            let statistics = json!({"mean": stats.mean, "median": stats.median, "min": stats.min, "max": stats.max,
                "std": stats.std, "p95": stats.p95});
            facts.set(ours, statistics);
        }
    }
    for (theirs, ours) in [("number_output_tokens", "output_tokens"), ("number_input_tokens", "input_tokens")] {
        let sum: f64 = good().filter_map(|entry| entry.get(theirs).and_then(json_number)).sum();
        facts.set(ours, number_to_json(sum));
    }
    facts
}
