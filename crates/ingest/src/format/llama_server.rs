//! `llama-server`: the timings of every request, with the name of its slot. Older versions print the name on a separate
//! line, newer ones at the start of each timing.

use super::trtllm_iterations::spread;
use crate::lines::Line;
use crate::observation::{Observation, PendingObservations, Server};
use crate::quantity::milliseconds_after;
use crate::reading::{Context, Facts, Importance, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{has, number, text_after};

/// Recognizer of `llama-server`.
#[derive(Debug, Default)]
pub struct LlamaServer {
    /// Whether a slot was named. Other programs of llama.cpp print the same timings without a slot.
    named: bool,
    requests: u64,
    prompt_tokens: Series,
    output_tokens: Series,
    prompt_ms: Series,
    token_ms: Series,
    prompt: Series,
    generation: Series,
    /// Prompt tokens per second of the request whose timings are being read.
    last_prompt: Option<f64>,
    fresh: PendingObservations<Server>,
}

impl Recognizer for LlamaServer {
    fn triggers(&self) -> &'static [&'static str] {
        &["eval time =", "total time =", "print_timing"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let slot = has(text, "print_timing") && has(text, "| task ");
        self.named |= slot;
        // Timings printed by the library when the program ends cover all requests.
        if !self.named || has(text, "llama_") {
            return Outcome::NotRecognized;
        }
        let Some(rest) = text_after(text, "eval time =") else {
            // Claim the line, so that `LlamaCpp` does not read it as that of a program without slots.
            return if has(text, "total time =") { Outcome::Recognized } else { Outcome::Settings };
        };
        // `155.60 ms /    12 tokens (   12.97 ms per token,    77.12 tokens per second)`
        let time = milliseconds_after(text, "eval time =", 1e-3);
        let tokens = text_after(rest, "/").and_then(number);
        let (Some(time), Some(tokens), true) = (time, tokens, line.whole) else {
            return Outcome::Unusable("a truncated llama-server timing");
        };
        // A phase without time or tokens has no rate.
        let rate = Some(tokens / time * 1e3).filter(|rate| rate.is_finite() && *rate > 0.0);
        if has(text, "prompt eval time =") {
            self.last_prompt = rate;
            self.prompt_tokens.push(tokens);
            self.prompt_ms.push(time);
            rate.into_iter().for_each(|rate| self.prompt.push(rate));
            return Outcome::Recognized;
        }
        self.requests += 1;
        self.output_tokens.push(tokens);
        if let Some(rate) = rate {
            self.generation.push(rate);
            self.token_ms.push(1e3 / rate);
        }
        // Rate of this request only, not of the whole server.
        let prompt_per_s = self.last_prompt.take();
        self.fresh.push(Server { prompt_per_s, generated_per_s: rate, running: Some(1.0), ..Server::default() });
        Outcome::Recognized
    }

    fn reports_device_state(&self) -> bool {
        true
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.fresh.take(out, Observation::Server);
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        if self.requests == 0 {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("n_records", self.requests);
        facts.set_optional("prompt_tokens_mean", self.prompt_tokens.mean());
        facts.set_optional("output_tokens_mean", self.output_tokens.mean());
        for (name, series) in [
            ("prompt_time_ms", &self.prompt_ms),
            ("tpot_ms", &self.token_ms),
            ("prompt_tps_of_a_request", &self.prompt),
            ("generation_tps_of_a_request", &self.generation),
        ] {
            facts.set(name, spread(series));
        }
        vec![Reading {
            tool: "llama_server",
            format: "llama-server",
            kind: "serving_server",
            importance: Importance::Server,
            facts,
            ..Reading::default()
        }]
    }
}
