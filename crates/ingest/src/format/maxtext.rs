//! MaxText: `completed step: 3, seconds: 0.254, TFLOP/s/device: 84.318, Tokens/s/device: 16098.398, …, loss: 0.708`.

use crate::lines::Line;
use crate::observation::Observation;
use crate::quantity::seconds_after;
use crate::reading::{Config, Context, Origin, Reading, Weight};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{self, after, number_after};
use crate::training::{Step, Training};

/// Steps that JAX needs before it runs steadily: one compiles, the next still waits for what was dispatched.
const WARMUP: usize = 2;

/// Reads its step lines.
#[derive(Debug, Default)]
pub struct MaxText {
    training: Training,
    config: Config,
}

impl Recognizer for MaxText {
    fn triggers(&self) -> &'static [&'static str] {
        &["completed step:", "number parameters:", "Per train step:", "Num_devices:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if let Some(parameters) = number_after(text, "number parameters:") {
            // `number parameters: 7.345 billion`
            let scale = if text::has(text, "million") { 1e-3 } else { 1.0 };
            let billions = Some(parameters * scale);
            if !self.training.is_empty() && self.config.differs("parameters_billion", billions) {
                return Outcome::Begins;
            }
            self.config.number("parameters_billion", billions, Origin::File);
            return Outcome::Noted;
        }
        if let Some(devices) = number_after(text, "Num_devices:") {
            if !self.training.is_empty() && self.config.differs("num_gpus", Some(devices)) {
                return Outcome::Begins;
            }
            self.config.number("num_gpus", Some(devices), Origin::File);
            return Outcome::Noted;
        }
        let Some(rest) = after(text, "completed step:") else { return Outcome::No };
        let seconds = seconds_after(rest, "seconds:", 1.0).filter(|seconds| *seconds > 0.0);
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

    fn observed(&mut self, out: &mut Vec<Observation>) {
        self.training.observed(out);
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.training.is_empty() {
            return Vec::new();
        }
        self.training.find_cold_starts();
        let mut facts = self.training.facts("steps", WARMUP, context);
        let all = self.training.all();
        facts.some("tflops_per_device_reported", all.stats(&all.tflops, WARMUP, context).map(|stats| stats.json()));
        facts.some("tokens_per_s_per_device", all.stats(&all.tokens, WARMUP, context).map(|stats| stats.json()));
        let reading = Reading {
            tool: "maxtext",
            format: "maxtext",
            weight: Weight::Steps,
            facts,
            config: self.config,
            notes: vec!["warm-up is two steps: compilation and asynchronous dispatch".to_owned()],
            ..Reading::default()
        };
        vec![self.training.reading(reading, WARMUP, context)]
    }
}
