//! JSON lines of SGLang's single-batch benchmarks: `bench_one_batch` (phases) and `bench_one_batch_server`.

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::reading::{Config, Context, Importance, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::training::MAX_LISTED;

/// Fields of the benchmarks, our names, and the factor to our unit.
const FIELDS: [(&str, &str, f64); 15] = [
    ("batch_size", "batch_size", 1.0),
    ("input_len", "input_len", 1.0),
    ("output_len", "output_len", 1.0),
    ("prefill_latency", "prefill_ms", 1e3),
    ("prefill_throughput", "prefill_tokens_per_s", 1.0),
    ("median_decode_latency", "decode_step_ms", 1e3),
    ("median_decode_throughput", "decode_tokens_per_s", 1.0),
    ("total_latency", "total_latency_ms", 1e3),
    ("latency", "total_latency_ms", 1e3),
    ("ttft", "ttft_ms", 1e3),
    ("overall_throughput", "total_token_throughput", 1.0),
    ("input_throughput", "input_throughput", 1.0),
    ("output_throughput", "output_throughput", 1.0),
    ("last_gen_throughput", "last_generation_throughput", 1.0),
    ("last_ttft", "ttft_ms", 1e3),
];

/// Recognizer of both benchmarks.
#[derive(Debug, Default)]
pub struct OneBatch {
    results: Vec<Value>,
}

impl Recognizer for OneBatch {
    fn triggers(&self) -> &'static [&'static str] {
        &[]
    }

    fn line(&mut self, _line: Line<'_>) -> Outcome {
        Outcome::NotRecognized
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let Some(map) = document.as_object() else { return Outcome::NotRecognized };
        let sized = ["run_name", "batch_size", "input_len", "output_len"].iter().all(|name| map.contains_key(*name));
        if !sized || !(map.contains_key("overall_throughput") || map.contains_key("output_throughput")) {
            return Outcome::NotRecognized;
        }
        let mut result = Map::new();
        for (theirs, ours, scale) in FIELDS {
            if let Some(value) = map.get(theirs).and_then(json_number) {
                result.entry(ours).or_insert((value * scale).into());
            }
        }
        if self.results.len() < MAX_LISTED {
            self.results.push(Value::Object(result));
        }
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let Some(reading) = Reading::of_results("n_records", self.results) else { return Vec::new() };
        let mut config = Config::default();
        config.merge(&context.settings);
        vec![Reading {
            tool: "sglang_bench",
            format: "sglang-one-batch-jsonl",
            kind: "serving",
            importance: Importance::Record,
            config,
            ..reading
        }]
    }
}
