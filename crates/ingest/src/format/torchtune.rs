//! torchtune: `Step 2 | loss:1.51 lr:2e-05 tokens_per_second_per_gpu:3011.2 peak_memory_active:38.1 …`.

use crate::lines::Line;
use crate::observation::Observation;
use crate::reading::{Context, Reading, Weight};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{after, labeled, leading, number};
use crate::training::{Step, Training};

/// Reads its step lines.
#[derive(Debug, Default)]
pub struct TorchTune {
    training: Training,
}

impl Recognizer for TorchTune {
    fn triggers(&self) -> &'static [&'static str] {
        &["tokens_per_second_per_gpu:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let counter = after(line.text, "Step ").and_then(leading);
        let Some((counter, fields)) = counter.filter(|(_, rest)| rest.trim_ascii_start().starts_with('|')) else {
            return Outcome::No;
        };
        let mut step = Step { step: Some(counter as u64), line: line.number, ..Step::default() };
        for (key, value) in labeled(fields) {
            match key {
                "loss" => step.loss = number(value),
                "lr" => step.learning_rate = number(value),
                "grad_norm" => step.grad_norm = number(value),
                "tokens_per_second_per_gpu" => step.tokens_per_gpu = number(value),
                // The device counts binary gigabytes.
                "peak_memory_alloc" => step.memory_gb = number(value).map(|gib| gib * 1.073_741_824),
                _ => {}
            }
        }
        if step.tokens_per_gpu.is_none() {
            return Outcome::Skipped("a torchtune step without a readable rate");
        }
        self.training.push(step);
        Outcome::Took
    }

    fn observed(&mut self, out: &mut Vec<Observation>) {
        self.training.observed(out);
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.training.is_empty() {
            return Vec::new();
        }
        let mut facts = self.training.facts("steps", 1, context);
        let all = self.training.all();
        facts.some("tokens_per_s_per_gpu", all.stats(&all.tokens, 1, context).map(|stats| stats.json()));
        facts.some("max_memory_gb", all.memory.max());
        let reading =
            Reading { tool: "torchtune", format: "torchtune", weight: Weight::Steps, facts, ..Reading::default() };
        vec![self.training.reading(reading, 1, context)]
    }
}
