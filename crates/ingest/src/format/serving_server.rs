//! Status lines of serving engines. vLLM prints one every ten seconds, SGLang one every few batches.

use serde_json::{Value, json};

use crate::lines::Line;
use crate::observation::{Observation, PendingObservations, Server};
use crate::reading::{Context, Facts, Importance, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{has, number_after};

/// Recognizer of `Avg prompt throughput: 99.1 tokens/s, Avg generation throughput: …, Running: 1 reqs, Waiting: 0 reqs,
/// …`.
#[derive(Debug, Default)]
pub struct VllmServer {
    prompt: Series,
    generation: Series,
    running: Series,
    waiting: Series,
    cache: Series,
    hits: Series,
    fresh: PendingObservations<Server>,
}

impl Recognizer for VllmServer {
    fn triggers(&self) -> &'static [&'static str] {
        &["Avg prompt throughput:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some(prompt) = number_after(text, "Avg prompt throughput:") else { return Outcome::NotRecognized };
        let Some(generation) = number_after(text, "Avg generation throughput:") else {
            return Outcome::Unusable("a vLLM metrics line without generation throughput");
        };
        self.prompt.push(prompt);
        self.generation.push(generation);
        let running = number_after(text, "Running:");
        let waiting = number_after(text, "Waiting:").or_else(|| number_after(text, "Pending:"));
        let cache = number_after(text, "KV cache usage:");
        self.fresh.push(Server {
            prompt_per_s: Some(prompt),
            generated_per_s: Some(generation),
            running,
            waiting,
            cache: cache.map(|percent| percent / 100.0),
        });
        for (series, value) in [
            (&mut self.running, running),
            (&mut self.waiting, waiting),
            (&mut self.cache, cache),
            (&mut self.hits, number_after(text, "refix cache hit rate:")),
        ] {
            value.into_iter().for_each(|value| series.push(value));
        }
        Outcome::Recognized
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.fresh.take(out, Observation::Server);
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        if self.prompt.is_empty() {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("n_records", self.prompt.len());
        facts.set("prompt_tps", rates(&self.prompt));
        facts.set("generation_tps", rates(&self.generation));
        facts.set_optional("running_max", self.running.max().map(number_to_json));
        facts.set_optional("waiting_max", self.waiting.max().map(number_to_json));
        facts.set_optional("kv_cache_percent_max", self.cache.max());
        facts.set_optional("prefix_cache_hit_percent_max", self.hits.max());
        vec![Reading {
            tool: "vllm_server",
            format: "vllm-server",
            kind: "serving_server",
            importance: Importance::Server,
            facts,
            ..Reading::default()
        }]
    }
}

/// Recognizer of `Decode batch, #running-req: 8, #token: 12752, token usage: 0.03, gen throughput (token/s): 608.05,
/// #queue-req: 0`.
#[derive(Debug, Default)]
pub struct SglangServer {
    decode: u64,
    prefill: u64,
    new_tokens: f64,
    cached_tokens: f64,
    generation: Series,
    input: Series,
    running: Series,
    queue: Series,
    usage: Series,
    accept: Series,
    fresh: PendingObservations<Server>,
}

impl Recognizer for SglangServer {
    fn triggers(&self) -> &'static [&'static str] {
        &["Decode batch", "Prefill batch"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if !has(text, "#running-req:") {
            return Outcome::NotRecognized;
        }
        if has(text, "Prefill batch") {
            self.prefill += 1;
            self.new_tokens += number_after(text, "#new-token:").unwrap_or(0.0);
            self.cached_tokens += number_after(text, "#cached-token:").unwrap_or(0.0);
            if let Some(rate) = number_after(text, "input throughput (token/s):") {
                self.input.push(rate);
            }
        } else {
            let Some(rate) = number_after(text, "gen throughput (token/s):") else {
                return Outcome::Unusable("an SGLang decode line without throughput");
            };
            self.decode += 1;
            self.generation.push(rate);
            self.fresh.push(Server {
                prompt_per_s: None,
                generated_per_s: Some(rate),
                running: number_after(text, "#running-req:"),
                waiting: number_after(text, "#queue-req:"),
                cache: number_after(text, "token usage:"),
            });
            if let Some(length) = number_after(text, "accept len:") {
                self.accept.push(length);
            }
        }
        for (series, name) in
            [(&mut self.running, "#running-req:"), (&mut self.queue, "#queue-req:"), (&mut self.usage, "token usage:")]
        {
            if let Some(value) = number_after(text, name) {
                series.push(value);
            }
        }
        Outcome::Recognized
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.fresh.take(out, Observation::Server);
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        if self.decode + self.prefill == 0 {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("decode_records", self.decode);
        facts.set("prefill_records", self.prefill);
        facts.set("prefill_new_tokens_sum", number_to_json(self.new_tokens));
        facts.set("prefill_cached_tokens_sum", number_to_json(self.cached_tokens));
        facts.set("generation_tps", rates(&self.generation));
        facts.set("input_tps", rates(&self.input));
        facts.set_optional("running_max", self.running.max().map(number_to_json));
        facts.set_optional("queue_max", self.queue.max().map(number_to_json));
        facts.set_optional("token_usage_max", self.usage.max());
        facts.set_optional("accept_length_mean", self.accept.mean());
        vec![Reading {
            tool: "sglang_server",
            format: "sglang-server",
            kind: "serving_server",
            importance: Importance::Server,
            facts,
            ..Reading::default()
        }]
    }
}

fn rates(series: &Series) -> Value {
    json!({"n": series.len(), "mean": series.mean(), "median": series.median(), "min": series.min(), "max": series.max()})
}
