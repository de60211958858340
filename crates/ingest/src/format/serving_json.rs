//! JSON of serving benchmarks: vLLM's `bench serve` of all versions (in milliseconds, or in seconds if stated by a tool
//! based on it), `bench throughput` and `bench latency`, and SGLang's JSON lines.

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::reading::{Context, Facts, Importance, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::{CommonSettings, flattened};
use crate::text::number;
use crate::training::MAX_LISTED;

/// Benchmark that wrote a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Vllm,
    Sglang,
    Throughput,
    Latency,
}

/// Recognizer of these documents.
#[derive(Debug, Default)]
pub struct ServingJson {
    results: Vec<(Kind, Facts)>,
    dropped: usize,
}

impl Recognizer for ServingJson {
    fn triggers(&self) -> &'static [&'static str] {
        &[]
    }

    fn line(&mut self, _line: Line<'_>) -> Outcome {
        Outcome::NotRecognized
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        if let Some(list) = document.as_array() {
            let mut outcome = Outcome::NotRecognized;
            for entry in list.iter().filter(|entry| entry.is_object()) {
                outcome = match self.json(entry, 0) {
                    Outcome::NotRecognized => outcome,
                    took => took,
                };
            }
            return outcome;
        }
        let Some(map) = document.as_object() else { return Outcome::NotRecognized };
        let has = |name: &str| map.contains_key(name);
        let latencies = ["ttft", "tpot", "itl", "e2el", "e2e_latency"];
        let timed = map.keys().any(|key| latencies.iter().any(|name| metric(key, name).is_some()));
        let kind = if has("total_output_tokens_retokenized") || has("mean_e2e_latency_ms") || has("sharegpt_output_len")
        {
            Kind::Sglang
        } else if (has("completed") || has("num_prompts")) && has("duration") && (timed || has("output_throughput")) {
            Kind::Vllm
        } else if has("elapsed_time") && has("num_requests") && has("tokens_per_second") {
            Kind::Throughput
        } else if has("avg_latency") && (has("latencies") || has("percentiles")) {
            Kind::Latency
        } else {
            return Outcome::NotRecognized;
        };
        if self.results.len() >= MAX_LISTED {
            self.dropped += 1;
        } else {
            self.results.push((kind, facts(kind, map)));
        }
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let mut out = Vec::new();
        for kind in [Kind::Vllm, Kind::Sglang, Kind::Throughput, Kind::Latency] {
            let mut of: Vec<Facts> =
                self.results.iter().filter(|(of, _)| *of == kind).map(|(_, facts)| facts.clone()).collect();
            let Some(first) = of.first() else { continue };
            let mut settings = CommonSettings::default();
            for model in of.iter().filter_map(|facts| facts.get("model").and_then(Value::as_str)) {
                settings.add("model", model);
            }
            let config = settings.config(context);
            // There is no single time window if there are several results.
            let window = Some(first).filter(|_| of.len() == 1);
            let window = window.and_then(|first| first.get("benchmark_window_unix")).and_then(Value::as_array);
            let window = window.and_then(|ends| Some([ends.first()?.as_f64()?, ends.get(1)?.as_f64()?]));
            let (tool, format, what) = match kind {
                Kind::Vllm => ("vllm_bench", "vllm-bench-json", "serving"),
                Kind::Sglang => ("sglang_bench", "sglang-bench-jsonl", "serving"),
                Kind::Throughput => ("vllm_bench", "vllm-throughput-json", "offline_throughput"),
                Kind::Latency => ("vllm_bench", "vllm-latency-json", "offline_latency"),
            };
            let mut facts = Facts::default();
            if of.len() > 1 || kind == Kind::Sglang {
                facts.set("blocks", of.len());
                facts.set("results", of.iter().cloned().map(flattened).collect::<Vec<Value>>());
            }
            if let (1, Some(only)) = (of.len(), of.pop()) {
                only.iter().for_each(|(name, value)| facts.set(name, value.clone()));
            }
            let notes = (self.dropped > 0).then(|| format!("{} more results were not listed", self.dropped));
            out.push(Reading {
                tool,
                format,
                kind: what,
                importance: Importance::Record,
                facts,
                config,
                window,
                notes: notes.into_iter().collect(),
                ..Reading::default()
            });
        }
        out
    }
}

/// Converts a result to facts with our names.
fn facts(kind: Kind, map: &Map<String, Value>) -> Facts {
    let mut facts = Facts::default();
    let get = |name: &str| map.get(name).filter(|value| !value.is_null());
    if kind == Kind::Throughput {
        for (theirs, ours) in [
            ("elapsed_time", "elapsed_s"),
            ("num_requests", "requests"),
            ("total_num_tokens", "total_tokens"),
            ("requests_per_second", "requests_per_s"),
            ("tokens_per_second", "total_tokens_per_s"),
        ] {
            facts.set_optional(ours, get(theirs).cloned());
        }
        return facts;
    }
    if kind == Kind::Latency {
        let mut block = Map::new();
        block.insert("mean".to_owned(), get("avg_latency").cloned().unwrap_or_default());
        for (p, value) in get("percentiles").and_then(Value::as_object).into_iter().flatten() {
            block.insert(format!("p{p}"), value.clone());
        }
        facts.set("latency_s", Value::Object(block));
        facts.set_optional("n_records", get("latencies").and_then(Value::as_array).map(Vec::len));
        return facts;
    }
    for (theirs, ours) in [
        ("request_rate", "request_rate"),
        ("completed", "successful_requests"),
        ("failed", "failed_requests"),
        ("num_prompts", "num_prompts"),
        ("duration", "duration_s"),
        ("total_input_tokens", "input_tokens"),
        ("total_output_tokens", "output_tokens"),
        ("total_output_tokens_retokenized", "output_tokens_retokenized"),
        ("request_throughput", "request_throughput"),
        ("request_goodput", "request_goodput"),
        ("input_throughput", "input_throughput"),
        ("output_throughput", "output_throughput"),
        ("max_output_tokens_per_s", "peak_output_throughput"),
        ("total_token_throughput", "total_token_throughput"),
        ("total_throughput", "total_token_throughput"),
        ("max_concurrency", "max_concurrency"),
        ("max_concurrent_requests", "peak_concurrency"),
        ("concurrency", "concurrency"),
        ("accept_length", "accept_length"),
        ("random_input_len", "random_input_len"),
        ("random_output_len", "random_output_len"),
        ("random_range_ratio", "random_range_ratio"),
        ("dataset_name", "dataset"),
        ("model_id", "model"),
        ("model", "model"),
        ("backend", "backend"),
        ("date", "date"),
    ] {
        facts.set_optional(ours, get(theirs).cloned());
    }
    if facts.get("total_token_throughput").is_none() {
        let known = (facts.number("input_tokens"), facts.number("output_tokens"), facts.number("duration_s"));
        if let (Some(input), Some(output), Some(duration)) = known
            && duration > 0.0
        {
            facts.set("total_token_throughput", (input + output) / duration);
        }
    }
    if let (Some(from), Some(to)) = (get("benchmark_start_time_unix"), get("benchmark_end_time_unix")) {
        facts.set("benchmark_window_unix", vec![from.clone(), to.clone()]);
    }
    for (theirs, ours) in
        [("ttft", "ttft_ms"), ("tpot", "tpot_ms"), ("itl", "itl_ms"), ("e2el", "e2el_ms"), ("e2e_latency", "e2el_ms")]
    {
        let mut block = Map::new();
        for (key, value) in map {
            if let (Some((statistic, scale)), Some(value)) = (metric(key, theirs), json_number(value)) {
                block.insert(statistic, (value * scale).into());
            }
        }
        // `"percentiles_ttft_ms": [[99.0, 568.4]]`
        for pair in map.get(&format!("percentiles_{theirs}_ms")).and_then(Value::as_array).into_iter().flatten() {
            if let (Some(p), Some(value)) = (pair.get(0).and_then(json_number), pair.get(1).and_then(json_number)) {
                block.insert(format!("p{p}"), value.into());
            }
        }
        if !block.is_empty() {
            facts.set(ours, Value::Object(block));
        }
    }
    facts
}

/// Parses the key of a latency statistic: `p99.9_ttft_ms` is `p99.9` in milliseconds, `median_ttft` is `median` in
/// seconds.
pub(super) fn metric(key: &str, name: &str) -> Option<(String, f64)> {
    let (statistic, rest) = key.split_once('_')?;
    let scale = match rest.strip_prefix(name)? {
        "_ms" => 1.0,
        "" | "_s" => 1e3,
        _ => return None,
    };
    let known = matches!(statistic, "mean" | "median" | "std" | "min" | "max")
        || statistic.strip_prefix('p').is_some_and(|digits| number(digits).is_some());
    known.then(|| (statistic.to_owned(), scale))
}
