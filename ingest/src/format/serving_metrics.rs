//! What vLLM and SGLang answer to Prometheus at `/metrics`.

use std::collections::BTreeMap;

use crate::lines::Line;
use crate::reading::{Config, Context, Facts, Origin, Reading, Weight, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::text::{between, number};

/// Their counters and gauges, and ours. Ranks and engines add up.
const PLAIN: [(&str, &str); 12] = [
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

/// One server's samples; of a sample that comes again the last counts.
#[derive(Debug, Default)]
struct Server {
    values: BTreeMap<String, f64>,
    samples: u64,
    cache: Option<f64>,
    model: Option<String>,
}

/// Reads them.
#[derive(Debug, Default)]
pub struct ServingMetrics {
    vllm: Server,
    sglang: Server,
}

impl Recogniser for ServingMetrics {
    fn triggers(&self) -> &'static [&'static str] {
        &["vllm:", "sglang:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim_ascii();
        if text.starts_with("# ") && (text.contains(" vllm:") || text.contains(" sglang:")) {
            return Outcome::Noted;
        }
        let (server, rest) = if let Some(rest) = text.strip_prefix("vllm:") {
            (&mut self.vllm, rest)
        } else if let Some(rest) = text.strip_prefix("sglang:") {
            (&mut self.sglang, rest)
        } else {
            return Outcome::No;
        };
        let name = rest.split(['{', ' ']).next().unwrap_or_default();
        let value = rest
            .rsplit_once('}')
            .map_or_else(|| rest.rsplit_once(' ').map(|(_, value)| value), |(_, value)| Some(value));
        let Some(value) = value.and_then(number) else { return Outcome::Skipped("a metric without a value") };
        server.samples += 1;
        server.model = between(text, "model_name=\"", "\"").map(str::to_owned).or(server.model.take());
        if matches!(name, "gpu_cache_usage_perc" | "kv_cache_usage_perc" | "token_usage") {
            server.cache = Some(server.cache.map_or(value, |known| known.max(value)));
        }
        if !name.ends_with("_bucket") && server.values.len() < 1 << 14 {
            // With its labels: the same metric of another rank is another sample.
            server.values.insert(rest.rsplit_once(' ').map_or(rest, |(key, _)| key).to_owned(), value);
        }
        Outcome::Took
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let servers = [("vllm_server", "vllm-metrics", self.vllm), ("sglang_server", "sglang-metrics", self.sglang)];
        servers.into_iter().filter_map(|(tool, format, server)| server.reading(tool, format, context)).collect()
    }
}

impl Server {
    /// The sum over ranks and engines.
    fn sum(&self, name: &str) -> Option<f64> {
        let of = self.values.iter().filter(|(key, _)| key.split('{').next() == Some(name));
        of.map(|(_, value)| *value).reduce(|a, b| a + b)
    }

    fn reading(self, tool: &'static str, format: &'static str, context: &Context) -> Option<Reading> {
        if self.samples == 0 {
            return None;
        }
        let mut facts = Facts::default();
        facts.set("n_records", self.samples);
        for (theirs, ours) in PLAIN {
            if facts.get(ours).is_none() {
                facts.some(ours, self.sum(theirs).map(tidy));
            }
        }
        facts.some("kv_cache_percent", self.cache.map(|share| share * 100.0));
        for (theirs, ours) in HISTOGRAMS {
            let (sum, count) = (self.sum(&format!("{theirs}_sum")), self.sum(&format!("{theirs}_count")));
            if let (Some(sum), Some(count), None) = (sum, count.filter(|count| *count > 0.0), facts.get(ours)) {
                facts.set(ours, serde_json::json!({"mean": 1e3 * sum / count, "n": tidy(count)}));
            }
        }
        let mut config = Config::default();
        if let Some(model) = self.model {
            config.note("model", model, Origin::File);
        }
        config.merge(&context.settings);
        Some(Reading {
            tool,
            format,
            kind: "serving_state",
            weight: Weight::State,
            facts,
            config,
            notes: vec!["counters since the server started; means over its whole life".to_owned()],
            ..Reading::default()
        })
    }
}
