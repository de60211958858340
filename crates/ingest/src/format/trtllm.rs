//! TensorRT-LLM: the report of `trtllm-bench` (old and new sections, text and JSON) and the `[BENCHMARK]` lines of the
//! C++ benchmarks.

use serde_json::{Map, Value};

use crate::json::json_number;
use crate::lines::Line;
use crate::quantity::{Measure, milliseconds};
use crate::reading::{Config, Context, Facts, Importance, Origin, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::reports::Reports;
use crate::text::{has, number, parse_leading_number};
use crate::training::MAX_LISTED;

/// Labels of rows without their unit, and our names. The unit determines the factor of times, and what a rate refers
/// to.
const ROWS: [(&str, &str); 30] = [
    ("Request Throughput", "request_throughput"),
    ("Total Output Throughput", "output_throughput"),
    ("Token Throughput", "output_throughput"),
    ("Generation Token Throughput", "output_throughput"),
    ("Total Token Throughput", "total_token_throughput"),
    ("Total Latency", "total_latency_ms"),
    ("Per User Output Throughput", "per_user_output_throughput"),
    ("Per User Output Speed", "per_user_output_speed"),
    ("Per GPU Output Throughput", "per_gpu_output_throughput"),
    ("Number of requests", "requests"),
    ("Number of Sequences", "requests"),
    ("Number of concurrent requests", "concurrency"),
    ("Average Input Length", "mean_input_tokens"),
    ("Average Output Length", "mean_output_tokens"),
    ("Avg Sequence Length (ISL)", "mean_input_tokens"),
    ("Avg Sequence Length (OSL)", "mean_output_tokens"),
    ("TP Size", "tp"),
    ("PP Size", "pp"),
    ("EP Size", "ep"),
    ("Max Runtime Batch Size", "max_batch_size"),
    ("Max Runtime Tokens", "max_tokens"),
    ("Issue Rate", "issue_rate"),
    ("Average request latency", "request_latency_ms.mean"),
    ("Average time-to-first-token", "ttft_ms.mean"),
    ("Average time-per-output-token", "tpot_ms.mean"),
    ("Average Inter-token latency", "itl_ms.mean"),
    ("Total Input Tokens", "input_tokens"),
    ("Total Output Tokens", "output_tokens"),
    ("Max Input Length", "max_input_tokens"),
    ("Acceptance Rate (Speculative)", "acceptance_rate"),
];

/// Labels of rows with text.
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

/// Facts that only this report states. Other facts are only used if one of these is present.
const MARKS: [&str; 5] =
    ["request_throughput", "output_throughput", "per_gpu_output_throughput", "issue_rate", "version"];

/// Recognizer of the report.
#[derive(Debug, Default)]
pub struct TrtLlm {
    reports: Reports,
    /// Results of the C++ benchmarks.
    lines: Vec<Value>,
    json: bool,
}

impl Recognizer for TrtLlm {
    fn triggers(&self) -> &'static [&'static str] {
        &[
            "Throughput (",
            "Throughput [",
            "Latency (",
            "Output Speed",
            "= ENGINE DETAILS",
            "= PYTORCH BACKEND",
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
        if has(text, "= ENGINE DETAILS") || has(text, "= PYTORCH BACKEND") {
            self.reports.begin();
            return Outcome::Settings;
        }
        let Some((label, value)) = text.split_once(": ").or_else(|| text.split_once(':')) else {
            return Outcome::NotRecognized;
        };
        let label = label.trim();
        if let Some((ours, scale)) = row(label) {
            let Some(value) = number(value) else {
                let none = matches!(value.trim(), "None" | "N/A" | "");
                return if none { Outcome::Settings } else { Outcome::Unusable("a row of a report without a number") };
            };
            return match ours.split_once('.') {
                Some((block, name)) => self.set(block, name, Some(value * scale)),
                None => {
                    self.reports.set(ours, number_to_json(value * scale));
                    Outcome::Recognized
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
            return self.set(block, &name, milliseconds(value, 1e-3));
        }
        if let Some((_, ours)) = WORDS.iter().find(|(name, _)| *name == label) {
            self.reports.set(ours, value.trim());
            return if certain(self.reports.current()) { Outcome::Recognized } else { Outcome::Settings };
        }
        Outcome::NotRecognized
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let Some(performance) = document.get("performance").and_then(Value::as_object) else {
            return Outcome::NotRecognized;
        };
        if !performance.contains_key("request_throughput_req_s") && !performance.contains_key("total_latency_ms") {
            return Outcome::NotRecognized;
        }
        self.reports.begin();
        for (theirs, ours) in [
            ("request_throughput_req_s", "request_throughput"),
            ("system_output_throughput_tok_s", "output_throughput"),
            ("system_total_throughput_tok_s", "total_token_throughput"),
            ("total_latency_ms", "total_latency_ms"),
            ("output_throughput_per_user_tok_s", "per_user_output_throughput"),
            ("output_throughput_per_gpu_tok_s", "per_gpu_output_throughput"),
        ] {
            if let Some(value) = performance.get(theirs) {
                self.reports.set(ours, value.clone());
            }
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
        let known = self.reports.current().get("request_latency_ms").and_then(|block| block.get("mean")).is_some();
        let mean = performance.get("avg_request_latency_ms").and_then(json_number).filter(|_| !known);
        self.set("request_latency_ms", "mean", mean);
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
            if let Some(value) = document.get(group).and_then(|group| group.get(theirs)) {
                self.reports.set(ours, value.clone());
            }
        }
        self.reports.begin();
        self.json = true;
        Outcome::Recognized
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        let lines = std::mem::take(&mut self.lines);
        let reports = self.reports.finish(certain);
        let reading = |format, facts, config, notes| Reading {
            tool: "trtllm_bench",
            format,
            kind: "offline_throughput",
            importance: Importance::Result,
            facts,
            config,
            notes,
            ..Reading::default()
        };
        let mut out = Vec::new();
        if !reports.is_empty() {
            let mut config = Config::default();
            for (theirs, ours) in [("tp", "tensor_parallel"), ("pp", "pipeline_parallel"), ("ep", "expert_parallel")] {
                config.number(ours, reports.common(theirs).and_then(json_number), Origin::File);
            }
            if let Some(model) = reports.common("model").and_then(Value::as_str) {
                config.note("model", model, Origin::File);
            }
            config.merge(&context.settings);
            let (facts, notes) = reports.facts();
            let format = if self.json { "trtllm-bench-json" } else { "trtllm-bench-report" };
            out.push(reading(format, facts, config, notes));
        }
        if !lines.is_empty() {
            let mut facts = Facts::default();
            facts.set("n_records", lines.len());
            facts.set("results", lines);
            out.push(reading("trtllm-benchmark-lines", facts, context.settings.clone(), Vec::new()));
        }
        out
    }
}

impl TrtLlm {
    fn set(&mut self, block: &str, name: &str, value: Option<f64>) -> Outcome {
        let Some(value) = value else { return Outcome::Unusable("a row of a report without a number") };
        self.reports.set_in(block, name, value);
        Outcome::Recognized
    }

    /// Parses `[BENCHMARK] batch_size 1 input_length 128 output_length 128 latency(ms) 812.3 tokensPerSec 157.6`, and
    /// `[BENCHMARK] token_throughput(token/sec) 1234.5` of the batch manager.
    fn benchmark(&mut self, rest: &str) -> Outcome {
        let words: Vec<&str> = rest.split_ascii_whitespace().collect();
        let mut record = Map::new();
        for pair in words.chunks(2) {
            let [name, value] = pair else { continue };
            if let Some((value, _)) = parse_leading_number(value).filter(|(value, _)| value.is_finite()) {
                record.insert((*name).to_owned(), number_to_json(value));
            }
        }
        if record.is_empty() || has(rest, "%%") {
            return Outcome::Unusable("a [BENCHMARK] line without metrics");
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
            self.reports.set(ours, value);
        } else if self.lines.len() < MAX_LISTED {
            self.lines.push(Value::Object(record));
        }
        Outcome::Recognized
    }
}

/// Whether a report was certainly written by this tool.
fn certain(report: &Facts) -> bool {
    MARKS.iter().any(|name| report.get(name).is_some())
        || ["request_latency_ms", "ttft_ms", "tpot_ms", "itl_ms"].iter().any(|name| report.get(name).is_some())
}

/// Returns our name for a label, and the factor to its unit: `Token Throughput (tokens/sec/gpu)` is per GPU, `Total
/// Latency (seconds)` is in seconds.
fn row(label: &str) -> Option<(&'static str, f64)> {
    let known = |name: &str| {
        let (_, ours) = ROWS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
        Some(*ours)
    };
    if let Some(ours) = known(label) {
        return Some((ours, 1.0));
    }
    let (name, unit) = label.strip_suffix(')')?.rsplit_once('(')?;
    // `[TTFT]`, `[w/ ctx]` and `[w/o ctx]` may be between the name and the unit.
    let name = name.split('[').next().unwrap_or_default().trim_end();
    let unit = unit.trim();
    let ours = known(name)?;
    let of_one = |what: &str| unit.ends_with(&format!("/{what}"));
    Some(match ours {
        "output_throughput" if of_one("gpu") => ("per_gpu_output_throughput", 1.0),
        "output_throughput" if of_one("user") => ("per_user_output_throughput", 1.0),
        _ if ours.contains("_ms") => (ours, Measure::Time.factor(unit)? * 1e3),
        _ => (ours, 1.0),
    })
}
