//! Iterations of TensorRT-LLM: text lines printed with `print_iter_log: true`, and JSON statistics returned by
//! `trtllm-serve` at `/metrics` or written by `trtllm-bench --iteration_log`.

use serde_json::{Value, json};

use crate::json::json_number;
use crate::lines::Line;
use crate::observation::{Observation, PendingObservations, Server};
use crate::quantity::{Measure, quantity};
use crate::reading::{Context, Facts, Importance, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{has, number_after, parse_integer, text_after};

/// Recognizer of iterations. If several ranks print them, only those of the first one are used, because all ranks take
/// part in every iteration.
#[derive(Debug, Default)]
pub struct TrtLlmIterations {
    rank: Option<u64>,
    copies: u64,
    seconds: Series,
    /// Seconds of iterations that only decode.
    decode: Series,
    generation: Series,
    prompt: Series,
    running: Series,
    waiting: Series,
    cache: Series,
    /// Number of iterations that verified draft tokens, not all of which are accepted.
    drafts: u64,
    first: Option<u64>,
    last: Option<u64>,
    json: bool,
    fresh: PendingObservations<Server>,
}

/// Statistics of one iteration.
#[derive(Debug, Clone, Copy, Default)]
struct Iteration {
    number: Option<u64>,
    seconds: f64,
    prompts: f64,
    prompt_tokens: f64,
    generating: f64,
    generated: f64,
    waiting: Option<f64>,
    cache: Option<f64>,
}

impl Recognizer for TrtLlmIterations {
    fn triggers(&self) -> &'static [&'static str] {
        &["num_scheduled_requests:"]
    }

    /// Parses `iter = 4, global_rank = 0, rank = 0, currank_total_requests = 0/0, elapsed_time = 0.0213s, timestamp =
    /// 2025-06-04 15:17:51, num_scheduled_requests: 8, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0,
    /// 'num_generation_tokens': 8}`. Later versions print `host_step_time = 21.3ms, prev_device_step_time = 20.9ms`
    /// instead of the elapsed time.
    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if !has(text, "iter = ") {
            return Outcome::NotRecognized;
        }
        let time = ["elapsed_time =", "host_step_time ="].iter().find_map(|name| text_after(text, name));
        let seconds = time.and_then(|rest| quantity(rest, Measure::Time, 1.0)).filter(|seconds| *seconds > 0.0);
        let (Some(seconds), Some(scheduled)) = (seconds, number_after(text, "num_scheduled_requests:")) else {
            return Outcome::Unusable("a TensorRT-LLM iteration without its time");
        };
        let states = ["'num_ctx_requests':", "'num_ctx_tokens':", "'num_generation_tokens':"];
        let [Some(prompts), Some(prompt_tokens), Some(generated)] = states.map(|name| number_after(text, name)) else {
            return Outcome::Unusable("a TensorRT-LLM iteration without its tokens");
        };
        let rank = text_after(text, "global_rank =").and_then(parse_integer).unwrap_or(0);
        if *self.rank.get_or_insert(rank) != rank {
            self.copies += 1;
            return Outcome::Settings;
        }
        let number = text_after(text, "iter =").and_then(parse_integer);
        let generating = (scheduled - prompts).max(0.0);
        self.push(Iteration { number, seconds, prompts, prompt_tokens, generating, generated, ..Iteration::default() });
        Outcome::Recognized
    }

    /// Parses one iteration, or the list of iterations since the last request to `/metrics`.
    fn json(&mut self, document: &Value, _line: u64) -> Outcome {
        let list = document.as_array().map_or(std::slice::from_ref(document), Vec::as_slice);
        let mut read = false;
        for entry in list {
            let field = |name: &str| entry.get(name).and_then(json_number);
            let milliseconds = field("iterLatencyMS").filter(|time| *time > 0.0);
            let Some((milliseconds, batch)) = milliseconds.zip(entry.get("inflightBatchingStats")) else { continue };
            let of_batch = |name: &str| batch.get(name).and_then(json_number).unwrap_or(0.0);
            let of_cache = |name: &str| entry.get("kvCacheStats")?.get(name).and_then(json_number);
            let blocks = of_cache("usedNumBlocks").zip(of_cache("maxNumBlocks").filter(|most| *most > 0.0));
            let generating = of_batch("numGenRequests");
            self.push(Iteration {
                number: field("iter").filter(|iter| *iter >= 0.0).map(|iter| iter as u64),
                seconds: milliseconds / 1e3,
                prompts: of_batch("numContextRequests"),
                prompt_tokens: of_batch("numCtxTokens"),
                generating,
                generated: generating,
                waiting: field("numQueuedRequests"),
                cache: blocks.map(|(used, most)| used / most),
            });
            read = true;
        }
        self.json |= read;
        if read { Outcome::Recognized } else { Outcome::NotRecognized }
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.fresh.take(out, Observation::Server);
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        if self.seconds.is_empty() {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("n_records", self.seconds.len());
        if let (Some(first), Some(last)) = (self.first, self.last) {
            facts.set("iterations", json!([first, last]));
        }
        facts.set("iteration_time_s", spread(&self.seconds));
        facts.set("decode_iteration_time_s", spread(&self.decode));
        facts.set("generation_tps", spread(&self.generation));
        facts.set("prompt_tps", spread(&self.prompt));
        facts.set_optional("running_max", self.running.max().map(number_to_json));
        facts.set_optional("waiting_max", self.waiting.max().map(number_to_json));
        facts.set_optional("kv_cache_percent_max", self.cache.max().map(|share| share * 100.0));
        for (name, count) in [("copies_of_other_ranks", self.copies), ("iterations_with_drafts", self.drafts)] {
            facts.set_optional(name, Some(count).filter(|count| *count > 0));
        }
        vec![Reading {
            tool: "trtllm_server",
            format: if self.json { "trtllm-iterations-json" } else { "trtllm-iterations" },
            kind: "serving_server",
            importance: Importance::Server,
            facts,
            ..Reading::default()
        }]
    }
}

impl TrtLlmIterations {
    fn push(&mut self, iteration: Iteration) {
        let Iteration { number, seconds, prompts, prompt_tokens, generating, generated, waiting, cache } = iteration;
        self.first = self.first.or(number);
        self.last = number.or(self.last);
        self.seconds.push(seconds);
        self.running.push(generating + prompts);
        if prompt_tokens > 0.0 {
            self.prompt.push(prompt_tokens / seconds);
        }
        // If there are more tokens than requests, they include draft tokens. The number of accepted tokens is not
        // stated.
        let kept = (generated > 0.0 && generated <= generating).then(|| generated / seconds);
        self.drafts += u64::from(generated > generating);
        if let Some(rate) = kept {
            self.generation.push(rate);
            if prompts == 0.0 {
                self.decode.push(seconds);
            }
        }
        for (series, value) in [(&mut self.waiting, waiting), (&mut self.cache, cache)] {
            value.into_iter().for_each(|value| series.push(value));
        }
        self.fresh.push(Server {
            prompt_per_s: Some(prompt_tokens / seconds),
            generated_per_s: kept,
            running: Some(generating),
            waiting,
            cache,
        });
    }
}

/// Summarizes a series.
pub(super) fn spread(series: &Series) -> Value {
    json!({"n": series.len(), "mean": series.mean(), "median": series.median(), "min": series.min(), "max": series.max()})
}
