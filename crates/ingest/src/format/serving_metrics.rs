//! Metrics of vLLM and SGLang in Prometheus' text format, as `/metrics` gives them, or as answers of Prometheus.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::lines::Line;
use crate::prometheus::{Sample, answer, sample};
use crate::reading::{Config, Context, Facts, Origin, Reading, Weight, tidy};
use crate::recognizer::{Outcome, Recognizer};

/// Their counters and gauges, and ours. Ranks and engines add up.
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

/// Their histograms of seconds, and ours of milliseconds.
const HISTOGRAMS: [(&str, &str); 7] = [
    ("time_to_first_token_seconds", "ttft_ms"),
    ("time_per_output_token_seconds", "tpot_ms"),
    ("request_time_per_output_token_seconds", "tpot_ms"),
    ("inter_token_latency_seconds", "itl_ms"),
    ("e2e_request_latency_seconds", "e2el_ms"),
    ("request_queue_time_seconds", "queue_ms"),
    ("request_prefill_time_seconds", "prefill_ms"),
];

/// Their shares of the KV cache in use.
const CACHE: [&str; 3] = ["gpu_cache_usage_perc", "kv_cache_usage_perc", "token_usage"];

/// Their histograms of tokens a request, and our means.
const LENGTHS: [(&str, &str); 2] =
    [("request_prompt_tokens", "mean_input_tokens"), ("request_generation_tokens", "mean_output_tokens")];

/// Samples of one scrape; a repeated sample begins the next one.
#[derive(Debug, Default)]
struct Scrape {
    values: BTreeMap<(String, String), f64>,
    samples: u64,
}

/// One model of one server.
#[derive(Debug, Default)]
struct Server {
    now: Scrape,
    /// The last whole scrape.
    last: Option<Scrape>,
    scrapes: u64,
}

/// Reads them.
#[derive(Debug, Default)]
pub struct ServingMetrics {
    /// By tool and model.
    servers: BTreeMap<(&'static str, String), Server>,
}

/// The tool and the metric of a name: `vllm:` and, where a collector has renamed it, `vllm_`.
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
            return if about && name.is_some() { Outcome::Noted } else { Outcome::No };
        }
        if known(text).is_none() {
            return Outcome::No;
        }
        match sample(text) {
            Some(sample) => self.take(&sample),
            None if text.starts_with("vllm:") || text.starts_with("sglang:") => {
                Outcome::Skipped("a metric without a value")
            }
            None => Outcome::No,
        }
    }

    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        // Of a range query the last value counts.
        let mut last: BTreeMap<(&str, String), Sample<'_>> = BTreeMap::new();
        for sample in answer(document).into_iter().filter(|sample| known(sample.name).is_some()) {
            last.insert((sample.name, sample.labels.key()), sample);
        }
        let mut outcome = Outcome::No;
        for sample in last.values() {
            outcome = self.take(sample);
        }
        outcome
    }

    fn ambient(&self) -> bool {
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
        let Some((tool, name)) = known(sample.name) else { return Outcome::No };
        let model = sample.labels.get("model_name").unwrap_or_default().to_owned();
        if self.servers.len() >= 256 && !self.servers.contains_key(&(tool, model.clone())) {
            return Outcome::Skipped("more models than are kept");
        }
        let server = self.servers.entry((tool, model)).or_default();
        let key = (name.to_owned(), sample.labels.key());
        if server.now.values.contains_key(&key) {
            server.close();
        }
        server.now.samples += 1;
        if !name.ends_with("_bucket") && sample.value.is_finite() && server.now.values.len() < 1 << 14 {
            // With its labels: the same metric of another rank is another sample.
            server.now.values.insert(key, sample.value);
        }
        Outcome::Took
    }
}

impl Server {
    /// Ends a scrape. A truncated one does not replace a complete one.
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
                facts.some(ours, scrape.sum(theirs).map(tidy));
            }
        }
        let shares = scrape.values.iter().filter(|((name, _), _)| CACHE.contains(&name.as_str()));
        let cache = shares.map(|(_, share)| *share).reduce(f64::max);
        facts.some("kv_cache_percent", cache.map(|share| share * 100.0));
        for (theirs, ours) in HISTOGRAMS {
            let (sum, count) = (scrape.sum(&format!("{theirs}_sum")), scrape.sum(&format!("{theirs}_count")));
            if let (Some(sum), Some(count), None) = (sum, count.filter(|count| *count > 0.0), facts.get(ours)) {
                facts.set(ours, serde_json::json!({"mean": 1e3 * sum / count, "n": tidy(count)}));
            }
        }
        for (theirs, ours) in LENGTHS {
            let (sum, count) = (scrape.sum(&format!("{theirs}_sum")), scrape.sum(&format!("{theirs}_count")));
            if let (Some(sum), Some(count)) = (sum, count.filter(|count| *count > 0.0)) {
                facts.set(ours, sum / count);
            }
        }
        let mut notes = vec!["counters since the server started; means over its whole life".to_owned()];
        if self.scrapes > 1 {
            facts.set("snapshots", self.scrapes);
            notes.push(format!("{} scrapes: figures are those of the last whole one", self.scrapes));
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
            weight: Weight::State,
            facts,
            config,
            notes,
            ..Reading::default()
        }
    }
}

impl Scrape {
    /// The sum over ranks and engines.
    fn sum(&self, name: &str) -> Option<f64> {
        let of = self.values.iter().filter(|((known, _), _)| known == name);
        of.map(|(_, value)| *value).reduce(|a, b| a + b)
    }
}
