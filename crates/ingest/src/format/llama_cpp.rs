//! llama.cpp's timings: five lines per run, under names that differ between versions (`llama_print_timings`,
//! `llama_perf_context_print`, the server's `slot print_timing`).

use serde_json::Value;

use crate::lines::Line;
use crate::quantity::{Measure, milliseconds_after, quantity};
use crate::reading::{Context, Facts, Importance, Reading};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{has, number, text_after};
use crate::training::MAX_LISTED;

/// Recognizer of the timings.
#[derive(Debug, Default)]
pub struct LlamaCpp {
    prompt: Vec<Value>,
    prompt_tokens: Vec<Value>,
    eval: Vec<Value>,
    eval_tokens: Vec<Value>,
    total: Vec<Value>,
    load: Vec<Value>,
}

impl Recognizer for LlamaCpp {
    fn triggers(&self) -> &'static [&'static str] {
        &["eval time =", "total time =", "load time =", "sample time =", "sampling time ="]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if has(text, "sample time =") || has(text, "sampling time =") {
            return Outcome::Settings;
        }
        for (name, list) in [("total time =", &mut self.total), ("load time =", &mut self.load)] {
            if let Some(milliseconds) = milliseconds_after(text, name, 1e-3) {
                push(list, Some(milliseconds));
                return Outcome::Recognized;
            }
        }
        // `eval time = 7777.90 ms / 1023 runs ( 7.60 ms per token, 131.53 tokens per second)`
        let prompt = has(text, "prompt eval time =");
        let (rates, counts) =
            if prompt { (&mut self.prompt, &mut self.prompt_tokens) } else { (&mut self.eval, &mut self.eval_tokens) };
        let Some(rest) = text_after(text, "eval time =") else { return Outcome::NotRecognized };
        // A truncated line may lack the rate, or the values to compute it from.
        if !line.whole && !text.trim_ascii_end().ends_with(')') {
            return Outcome::Unusable("a truncated llama.cpp timing");
        }
        let rate = text_after(rest, "per token,").and_then(number);
        let rate = rate.or_else(|| rate_from(rest));
        // A phase that takes no time has the rate `inf`, which is not an error.
        if rate.is_none() && !has(rest, "per token") {
            return Outcome::Unusable("a llama.cpp timing without a rate");
        }
        push(rates, rate);
        push(counts, text_after(rest, "/").and_then(number));
        Outcome::Recognized
    }

    fn finish(self: Box<Self>, _context: &Context) -> Vec<Reading> {
        let runs = self.prompt.len().max(self.eval.len());
        if runs == 0 {
            return Vec::new();
        }
        let mut facts = Facts::default();
        facts.set("runs", runs);
        facts.set("prompt_tokens_per_s", self.prompt);
        facts.set("eval_tokens_per_s", self.eval);
        facts.set("total_time_ms", self.total);
        facts.set("load_time_ms", self.load);
        facts.set("prompt_tokens", self.prompt_tokens);
        facts.set("eval_runs", self.eval_tokens);
        vec![Reading {
            tool: "llama_cpp",
            format: "llama-cpp-timings",
            kind: "llama_cpp",
            importance: Importance::Result,
            facts,
            ..Reading::default()
        }]
    }
}

/// Computes tokens per second from tokens and milliseconds: old versions print no rate.
fn rate_from(rest: &str) -> Option<f64> {
    let seconds = quantity(rest, Measure::Time, 1e-3).filter(|time| *time > 0.0)?;
    Some(text_after(rest, "/").and_then(number)? / seconds)
}

fn push(list: &mut Vec<Value>, value: Option<f64>) {
    if list.len() < MAX_LISTED {
        list.push(value.map_or(Value::Null, Value::from));
    }
}
