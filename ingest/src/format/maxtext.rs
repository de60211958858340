//! MaxText: `completed step: 3, seconds: 0.254, TFLOP/s/device: 84.318, Tokens/s/device: 16098.398, …, loss: 0.708`.

use crate::lines::Line;
use crate::reading::{Config, Context, Origin, Reading, Weight};
use crate::recogniser::{Outcome, Recogniser};
use crate::text::{after, number_after};
use crate::training::{Step, Training};

/// Steps that JAX needs before it runs steadily: one compiles, the next still waits for what was dispatched.
const WARMUP: usize = 2;

/// Reads its step lines.
#[derive(Debug, Default)]
pub struct MaxText {
    training: Training,
    config: Config,
}

impl Recogniser for MaxText {
    fn triggers(&self) -> &'static [&'static str] {
        &["completed step:", "number parameters:", "Per train step:", "Num_devices:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if let Some(parameters) = number_after(text, "number parameters:") {
            self.config.number("parameters_billion", Some(parameters), Origin::File);
            return Outcome::Noted;
        }
        if let Some(devices) = number_after(text, "Num_devices:") {
            self.config.number("num_gpus", Some(devices), Origin::File);
            return Outcome::Noted;
        }
        let Some(rest) = after(text, "completed step:") else { return Outcome::No };
        let seconds = number_after(rest, "seconds:").filter(|seconds| *seconds > 0.0);
        let (Some(step), Some(seconds)) = (number_after(rest, ""), seconds) else {
            return Outcome::Skipped("a MaxText step without counter or time");
        };
        self.training.push(Step {
            step: Some(step as u64),
            seconds: Some(seconds),
            loss: number_after(rest, ", loss:"),
            tokens_per_gpu: number_after(rest, "Tokens/s/device:"),
            tflops_per_gpu: number_after(rest, "TFLOP/s/device:").or_else(|| number_after(rest, "TFLOP/s:")),
            line: line.number,
            ..Step::default()
        });
        Outcome::Took
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.training.is_empty() {
            return Vec::new();
        }
        let mut facts = self.training.facts("steps", WARMUP, context);
        let all = &self.training.all;
        facts.some("tflops_per_device_reported", all.stats(&all.tflops, WARMUP, context).map(|stats| stats.json()));
        facts.some("tokens_per_s_per_device", all.stats(&all.tokens, WARMUP, context).map(|stats| stats.json()));
        let reading = Reading {
            tool: "maxtext",
            format: "maxtext",
            weight: Weight::Steps,
            facts,
            config: self.config,
            notes: vec!["two steps of warm-up: compilation, asynchronous dispatch".to_owned()],
            ..Reading::default()
        };
        vec![self.training.reading(reading, WARMUP, context)]
    }
}
