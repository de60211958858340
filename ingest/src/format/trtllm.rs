//! TensorRT-LLM: the report of `trtllm-bench` (old and new sections, text and JSON) and the `[BENCHMARK]` lines of the
//! C++ benchmarks.

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Origin, Reading, Weight, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::text::{has, leading, number};
use crate::training::LISTED;

/// Rows, our names, and what their figures are multiplied with.
const ROWS: [(&str, &str, f64); 37] = [
    ("Request Throughput (req/sec)", "request_throughput", 1.0),
    ("Total Output Throughput (tokens/sec)", "output_throughput", 1.0),
    ("Token Throughput (tokens/sec)", "output_throughput", 1.0),
    ("Total Token Throughput (tokens/sec)", "total_token_throughput", 1.0),
    ("Total Latency (ms)", "total_latency_ms", 1.0),
    ("Total Latency (seconds)", "total_latency_ms", 1e3),
    ("Total Latency (s)", "total_latency_ms", 1e3),
    ("Per User Output Throughput [w/ ctx] (tps/user)", "per_user_output_throughput", 1.0),
    ("Per User Output Throughput (tps/user)", "per_user_output_throughput", 1.0),
    ("Per User Output Speed [w/o ctx] (tps/user)", "per_user_output_speed", 1.0),
    ("Per User Output Speed (tps/user)", "per_user_output_speed", 1.0),
    ("Per GPU Output Throughput (tps/gpu)", "per_gpu_output_throughput", 1.0),
    ("Number of requests", "requests", 1.0),
    ("Number of Requests", "requests", 1.0),
    ("Number of Sequences", "requests", 1.0),
    ("Number of concurrent requests", "concurrency", 1.0),
    ("Average Input Length (tokens)", "mean_input_tokens", 1.0),
    ("Average Output Length (tokens)", "mean_output_tokens", 1.0),
    ("Avg Sequence Length (ISL)", "mean_input_tokens", 1.0),
    ("Avg Sequence Length (OSL)", "mean_output_tokens", 1.0),
    ("TP Size", "tp", 1.0),
    ("PP Size", "pp", 1.0),
    ("EP Size", "ep", 1.0),
    ("Max Runtime Batch Size", "max_batch_size", 1.0),
    ("Max Runtime Tokens", "max_tokens", 1.0),
    ("Issue Rate (req/sec)", "issue_rate", 1.0),
    ("Average request latency (ms)", "request_latency_ms.mean", 1.0),
    ("Average time-to-first-token [TTFT] (ms)", "ttft_ms.mean", 1.0),
    ("Average time-per-output-token [TPOT] (ms)", "tpot_ms.mean", 1.0),
    ("Average Inter-token latency (ms)", "itl_ms.mean", 1.0),
    ("Total Input Tokens (tokens)", "input_tokens", 1.0),
    ("Total Output Tokens (tokens)", "output_tokens", 1.0),
    ("Generation Token Throughput (tokens/sec)", "output_throughput", 1.0),
    ("Average time-to-first-token (ms)", "ttft_ms.mean", 1.0),
    ("Average inter-token latency (ms)", "itl_ms.mean", 1.0),
    ("Acceptance Rate (Speculative)", "acceptance_rate", 1.0),
    ("Max Input Length", "max_input_tokens", 1.0),
];

/// Rows of words.
const WORDS: [(&str, &str); 8] = [
    ("Model", "model"),
    ("Model Path", "model_path"),
    ("TensorRT-LLM Version", "version"),
    ("Dtype", "dtype"),
    ("KV Cache Dtype", "kv_cache_dtype"),
    ("Quantization", "quantization"),
    ("Backend", "backend"),
    ("Scheduling Policy", "scheduling_policy"),
];

/// Rows that only this report has. Others are taken once one of these was seen.
const MARKS: [&str; 6] = [
    "Request Throughput (req/sec)",
    "Token Throughput (tokens/sec)",
    "Total Output Throughput (tokens/sec)",
    "TensorRT-LLM Version",
    "Per GPU Output Throughput (tps/gpu)",
    "Issue Rate (req/sec)",
];

/// Reads the report.
#[derive(Debug, Default)]
pub struct TrtLlm {
    facts: Facts,
    /// The lines of C++ benchmarks.
    lines: Vec<Value>,
    certain: bool,
    json: bool,
    reports: u64,
}

impl Recogniser for TrtLlm {
    fn triggers(&self) -> &'static [&'static str] {
        &[
            "Throughput (",
            "Throughput [",
            "Latency (",
            "Output Speed",
            "Number of requests:",
            "Number of Requests:",
            "Number of Sequences:",
            "Number of concurrent requests:",
            "Length (tokens):",
            "Sequence Length (",
            "Average request latency",
            "Average time-",
            "Average Inter-token latency",
            "Average inter-token latency",
            "Acceptance Rate (",
            "TP Size:",
            "PP Size:",
            "EP Size:",
            "Max Runtime",
            "Issue Rate",
            "Tokens (tokens):",
            "Max Input Length:",
            "Model:",
            "Model Path:",
            "TensorRT-LLM Version:",
            "Dtype:",
            "Quantization:",
            "Backend:",
            "Scheduling Policy:",
            "[Latency]",
            "[TTFT]",
            "[TPOT]",
            "[ITL]",
            "[BENCHMARK]",
        ]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if let Some((_, rest)) = text.split_once("[BENCHMARK]") {
            return self.benchmark(rest);
        }
        let Some((label, value)) = text.split_once(": ").or_else(|| text.split_once(':')) else { return Outcome::No };
        let label = label.trim();
        self.certain |= MARKS.contains(&label);
        if let Some((_, ours, scale)) = ROWS.iter().find(|(name, ..)| *name == label) {
            if *ours == "request_throughput" {
                self.reports += 1;
            }
            let Some(value) = number(value) else {
                let none = matches!(value.trim(), "None" | "N/A" | "");
                return if none { Outcome::Noted } else { Outcome::Skipped("a row of a report without a number") };
            };
            return match ours.split_once('.') {
                Some((block, name)) => self.set(block, name, Some(value * scale)),
                None => {
                    self.facts.set(*ours, tidy(value * scale));
                    Outcome::Took
                }
            };
        }
        for (mark, block) in
            [("[Latency]", "request_latency_ms"), ("[TTFT]", "ttft_ms"), ("[TPOT]", "tpot_ms"), ("[ITL]", "itl_ms")]
        {
            let Some((_, rest)) = text.split_once(mark) else { continue };
            let Some((name, value)) = rest.split_once(':') else { continue };
            let name = match name.trim() {
                "AVERAGE" => "mean".to_owned(),
                "MINIMUM" => "min".to_owned(),
                "MAXIMUM" => "max".to_owned(),
                p => p.to_lowercase(),
            };
            self.certain = true;
            return self.set(block, &name, number(value));
        }
        if let Some((_, ours)) = WORDS.iter().find(|(name, _)| *name == label) {
            self.facts.set(*ours, value.trim());
            return if self.certain { Outcome::Took } else { Outcome::Noted };
        }
        Outcome::No
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let Some(performance) = document.get("performance").and_then(Value::as_object) else { return Outcome::No };
        if !performance.contains_key("request_throughput_req_s") && !performance.contains_key("total_latency_ms") {
            return Outcome::No;
        }
        for (theirs, ours) in [
            ("request_throughput_req_s", "request_throughput"),
            ("system_output_throughput_tok_s", "output_throughput"),
            ("system_total_throughput_tok_s", "total_token_throughput"),
            ("total_latency_ms", "total_latency_ms"),
            ("output_throughput_per_user_tok_s", "per_user_output_throughput"),
            ("output_throughput_per_gpu_tok_s", "per_gpu_output_throughput"),
        ] {
            self.facts.some(ours, performance.get(theirs).cloned());
        }
        let streaming = document.get("streaming_metrics").and_then(Value::as_object);
        for (group, theirs, ours) in [
            (Some(performance), "request_latency_percentiles_ms", "request_latency_ms"),
            (streaming, "ttft_percentiles", "ttft_ms"),
            (streaming, "tpot_percentiles", "tpot_ms"),
        ] {
            let block = group.and_then(|group| group.get(theirs)).and_then(Value::as_object);
            for (name, value) in block.into_iter().flatten() {
                let name = match name.as_str() {
                    "average" => "mean",
                    "minimum" => "min",
                    "maximum" => "max",
                    other => other,
                };
                self.set(ours, name, json_number(value));
            }
        }
        self.set("request_latency_ms", "mean", performance.get("avg_request_latency_ms").and_then(json_number));
        for (group, theirs, ours) in [
            ("world_info", "tp_size", "tp"),
            ("world_info", "pp_size", "pp"),
            ("world_info", "ep_size", "ep"),
            ("request_info", "num_requests", "requests"),
            ("request_info", "avg_num_concurrent_requests", "concurrency"),
            ("request_info", "avg_input_length", "mean_input_tokens"),
            ("request_info", "avg_output_length", "mean_output_tokens"),
            ("engine", "model", "model"),
            ("engine", "quantization", "quantization"),
            ("engine", "version", "version"),
        ] {
            self.facts.some(ours, document.get(group).and_then(|group| group.get(theirs)).cloned());
        }
        (self.certain, self.json) = (true, true);
        Outcome::Took
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        if !self.certain && self.lines.is_empty() {
            return Vec::new();
        }
        let mut config = Config::default();
        for (theirs, ours) in [("tp", "tensor_parallel"), ("pp", "pipeline_parallel"), ("ep", "expert_parallel")] {
            config.number(ours, self.facts.number(theirs), Origin::File);
        }
        if let Some(model) = self.facts.get("model").and_then(Value::as_str) {
            config.note("model", model, Origin::File);
        }
        config.merge(&context.settings);
        let mut notes = Vec::new();
        if self.reports > 1 {
            notes.push(format!("{} reports in one file: the figures are those of the last", self.reports));
        }
        let format = if !self.lines.is_empty() {
            self.facts.set("n_records", self.lines.len());
            self.facts.set("results", std::mem::take(&mut self.lines));
            "trtllm-benchmark-lines"
        } else if self.json {
            "trtllm-bench-json"
        } else {
            "trtllm-bench-report"
        };
        vec![Reading {
            tool: "trtllm_bench",
            format,
            kind: "offline_throughput",
            weight: Weight::Result,
            facts: self.facts,
            config,
            notes,
            ..Reading::default()
        }]
    }
}

impl TrtLlm {
    fn set(&mut self, block: &str, name: &str, value: Option<f64>) -> Outcome {
        let Some(value) = value else { return Outcome::Skipped("a row of a report without a number") };
        let mut map = self.facts.get(block).and_then(Value::as_object).cloned().unwrap_or_default();
        map.insert(name.to_owned(), value.into());
        self.facts.set(block, Value::Object(map));
        Outcome::Took
    }

    /// `[BENCHMARK] batch_size 1 input_length 128 output_length 128 latency(ms) 812.3 tokensPerSec 157.6`, and the
    /// manager's `[BENCHMARK] token_throughput(token/sec) 1234.5`.
    fn benchmark(&mut self, rest: &str) -> Outcome {
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let mut record = Map::new();
        for pair in words.chunks(2) {
            let [name, value] = pair else { continue };
            if let Some((value, _)) = leading(value).filter(|(value, _)| value.is_finite()) {
                record.insert((*name).to_owned(), tidy(value));
            }
        }
        if record.is_empty() || has(rest, "%%") {
            return Outcome::Skipped("a [BENCHMARK] line without figures");
        }
        if record.len() == 1 {
            let (name, value) = record.into_iter().next().unwrap_or_default();
            let ours = match name.as_str() {
                "num_samples" => "requests",
                "total_latency(ms)" => "total_latency_ms",
                "seq_throughput(seq/sec)" => "request_throughput",
                "token_throughput(token/sec)" => "output_throughput",
                "avg_sequence_latency(ms)" => return self.set("request_latency_ms", "mean", value.as_f64()),
                other => other,
            };
            self.facts.set(ours, value);
            self.certain = true;
        } else if self.lines.len() < LISTED {
            self.lines.push(Value::Object(record));
        }
        Outcome::Took
    }
}
