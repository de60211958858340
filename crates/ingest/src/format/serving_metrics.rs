//! Metrics of vLLM and SGLang in the Prometheus text format of `/metrics`, or in responses of the Prometheus HTTP API.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::lines::Line;
use crate::prometheus::{Sample, answer, sample};
use crate::reading::{Config, Context, Facts, Importance, Origin, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};

/// Counters and gauges of the engines, and our names. Values of several ranks and engines are added.
const PLAIN: [(&str, &str); 14] = [
    ("num_requests_running", "running"),
    ("num_running_reqs", "running"),
    ("num_requests_waiting", "waiting"),
    ("num_queue_reqs", "waiting"),
    ("prompt_tokens_total", "input_tokens"),
    ("generation_tokens_total", "output_tokens"),
    ("prefix_cache_queries_total", "prefix_cache_queries"),
    ("prefix_cache_hits_total", "prefix_cache_hits"),
    ("num_preemptions_total", "preemptions"),
    ("request_success_total", "successful_requests"),
    ("num_requests_total", "successful_requests"),
    ("gen_throughput", "generation_tps"),
    ("avg_prompt_throughput_toks_per_s", "prompt_tps"),
    ("avg_generation_throughput_toks_per_s", "generation_tps"),
];

/// Histograms in seconds of the engines, and our names in milliseconds.
const HISTOGRAMS: [(&str, &str); 7] = [
    ("time_to_first_token_seconds", "ttft_ms"),
    ("time_per_output_token_seconds", "tpot_ms"),
    ("request_time_per_output_token_seconds", "tpot_ms"),
    ("inter_token_latency_seconds", "itl_ms"),
    ("e2e_request_latency_seconds", "e2el_ms"),
    ("request_queue_time_seconds", "queue_ms"),
    ("request_prefill_time_seconds", "prefill_ms"),
];

/// Metrics of the engines for the fraction of the KV cache in use.
const CACHE: [&str; 3] = ["gpu_cache_usage_perc", "kv_cache_usage_perc", "token_usage"];

/// Histograms of tokens per request, and our names of their means.
const LENGTHS: [(&str, &str); 2] =
    [("request_prompt_tokens", "mean_input_tokens"), ("request_generation_tokens", "mean_output_tokens")];

/// Samples of one scrape. A repeated sample starts the next scrape.
#[derive(Debug, Default)]
struct Scrape {
    values: BTreeMap<(String, String), f64>,
    samples: u64,
}

/// Metrics of one model on one server.
#[derive(Debug, Default)]
struct Server {
    now: Scrape,
    /// Last complete scrape.
    last: Option<Scrape>,
    scrapes: u64,
}

/// Recognizer of the metrics.
#[derive(Debug, Default)]
pub struct ServingMetrics {
    /// Servers by tool and model.
    servers: BTreeMap<(&'static str, String), Server>,
}

/// Splits a name into tool and metric. The separator is a colon, or an underscore if a collector renamed the metric.
fn known(name: &str) -> Option<(&'static str, &str)> {
    ["vllm", "sglang"].into_iter().find_map(|tool| Some((tool, name.strip_prefix(tool)?.strip_prefix([':', '_'])?)))
}

impl Recognizer for ServingMetrics {
    fn triggers(&self) -> &'static [&'static str] {
        &["vllm:", "sglang:", "vllm_", "sglang_"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if let Some(comment) = text.strip_prefix("# ") {
            let name = comment.split(' ').nth(1).and_then(known);
            let about = comment.starts_with("HELP ") || comment.starts_with("TYPE ");
            return if about && name.is_some() { Outcome::Settings } else { Outcome::NotRecognized };
        }
        if known(text).is_none() {
            return Outcome::NotRecognized;
        }
        match sample(text) {
            Some(sample) => self.take(&sample),
            None if text.starts_with("vllm:") || text.starts_with("sglang:") => {
                Outcome::Unusable("a metric without a value")
            }
            None => Outcome::NotRecognized,
        }
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        // Of a range query, use the last value.
        let mut last: BTreeMap<(&str, String), Sample<'_>> = BTreeMap::new();
        for sample in answer(document).into_iter().filter(|sample| known(sample.name).is_some()) {
            last.insert((sample.name, sample.labels.key()), sample);
        }
        let mut outcome = Outcome::NotRecognized;
        for sample in last.values() {
            outcome = self.take(sample);
        }
        outcome
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let readings = self.servers.into_iter().map(|((tool, model), server)| {
            let (tool, format) = match tool {
                "vllm" => ("vllm_server", "vllm-metrics"),
                _ => ("sglang_server", "sglang-metrics"),
            };
            server.reading(tool, format, &model, context)
        });
        readings.collect()
    }
}

impl ServingMetrics {
    fn take(&mut self, sample: &Sample<'_>) -> Outcome {
        let Some((tool, name)) = known(sample.name) else { return Outcome::NotRecognized };
        let model = sample.labels.get("model_name").unwrap_or_default().to_owned();
        if self.servers.len() >= 256 && !self.servers.contains_key(&(tool, model.clone())) {
            return Outcome::Unusable("a sample of a model beyond the limit of 256");
        }
        let server = self.servers.entry((tool, model)).or_default();
        let key = (name.to_owned(), sample.labels.key());
        if server.now.values.contains_key(&key) {
            server.close();
        }
        server.now.samples += 1;
        if !name.ends_with("_bucket") && sample.value.is_finite() && server.now.values.len() < 1 << 14 {
            // The key includes the labels, because other ranks report the same metric.
            server.now.values.insert(key, sample.value);
        }
        Outcome::Recognized
    }
}

impl Server {
    /// Ends a scrape. A truncated scrape does not replace a complete one.
    fn close(&mut self) {
        let scrape = std::mem::take(&mut self.now);
        self.scrapes += 1;
        if self.last.as_ref().is_none_or(|last| scrape.samples >= last.samples) {
            self.last = Some(scrape);
        }
    }

    fn reading(mut self, tool: &'static str, format: &'static str, model: &str, context: &Context) -> Reading {
        self.close();
        let scrape = self.last.unwrap_or_default();
        let mut facts = Facts::default();
        facts.set("n_records", scrape.samples);
        for (theirs, ours) in PLAIN {
            if facts.get(ours).is_none() {
                facts.set_optional(ours, scrape.sum(theirs).map(number_to_json));
            }
        }
        let shares = scrape.values.iter().filter(|((name, _), _)| CACHE.contains(&name.as_str()));
        let cache = shares.map(|(_, share)| *share).reduce(f64::max);
        facts.set_optional("kv_cache_percent", cache.map(|share| share * 100.0));
        for (theirs, ours) in HISTOGRAMS {
            let (sum, count) = (scrape.sum(&format!("{theirs}_sum")), scrape.sum(&format!("{theirs}_count")));
            if let (Some(sum), Some(count), None) = (sum, count.filter(|count| *count > 0.0), facts.get(ours)) {
                facts.set(ours, serde_json::json!({"mean": 1e3 * sum / count, "n": number_to_json(count)}));
            }
        }
        for (theirs, ours) in LENGTHS {
            let (sum, count) = (scrape.sum(&format!("{theirs}_sum")), scrape.sum(&format!("{theirs}_count")));
            if let (Some(sum), Some(count)) = (sum, count.filter(|count| *count > 0.0)) {
                facts.set(ours, sum / count);
            }
        }
        let mut notes = vec!["counters and means are since the start of the server".to_owned()];
        if self.scrapes > 1 {
            facts.set("snapshots", self.scrapes);
            notes.push(format!("values are those of the last complete one of {} scrapes", self.scrapes));
        }
        let mut config = Config::default();
        if !model.is_empty() {
            config.note("model", model, Origin::File);
        }
        config.merge(&context.settings);
        Reading {
            tool,
            format,
            kind: "serving_state",
            importance: Importance::State,
            facts,
            config,
            notes,
            ..Reading::default()
        }
    }
}

impl Scrape {
    /// Sums a metric over ranks and engines.
    fn sum(&self, name: &str) -> Option<f64> {
        let of = self.values.iter().filter(|((known, _), _)| known == name);
        of.map(|(_, value)| *value).reduce(|a, b| a + b)
    }
}
