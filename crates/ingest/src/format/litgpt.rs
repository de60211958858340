//! LitGPT and its predecessor lit-llama: `Epoch 1 | iter 1 step 0 | loss train: 1.646, val: n/a | iter time: 820.31 ms`,
//! older `iter 0 step 1: loss 1.8, iter time: 1234.5ms (optimizer.step)`. Times are those of micro-batches.

use crate::lines::Line;
use crate::observation::Observation;
use crate::quantity::{Measure, quantity};
use crate::reading::{Context, Reading, Weight};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{has, number_after};
use crate::training::{Step, Training, ends};

/// Reads its iteration lines.
#[derive(Debug, Default)]
pub struct LitGpt {
    training: Training,
    milliseconds: Series,
    steps: u64,
    training_time: Option<f64>,
    memory: Option<f64>,
    rate: Option<f64>,
    summarized: bool,
}

impl Recognizer for LitGpt {
    fn triggers(&self) -> &'static [&'static str] {
        &["iter time:", "Training time:", "Training Time:", "Memory used:", "Memory Used:", "Tok/sec:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if has(text, "iter time:") {
            // The time is the last field: `iter time: 1205.55 ms`.
            let time = text.rsplit_once("iter time:").map_or("", |(_, time)| time);
            let seconds = quantity(time, Measure::Time, 1e-3);
            let (Some(iteration), Some(seconds)) = (number_after(text, "iter "), seconds) else {
                return Outcome::Skipped("a LitGPT iteration without counter or time");
            };
            let new = self.training.push(Step {
                step: Some(iteration as u64),
                seconds: Some(seconds),
                loss: number_after(text, "loss train:").or_else(|| number_after(text, "loss ")),
                line: line.number,
                ..Step::default()
            });
            if new {
                self.milliseconds.push(seconds * 1e3);
                self.steps += u64::from(has(text, "(step)") || has(text, "(optimizer.step)"));
            }
            return Outcome::Took;
        }
        let mut noted = false;
        for (slot, names) in [
            (&mut self.training_time, ["Training time:", "Training Time:"]),
            (&mut self.memory, ["Memory used:", "Memory Used:"]),
            (&mut self.rate, ["Tok/sec:", "tok/sec:"]),
        ] {
            if let Some(value) = names.iter().find_map(|name| number_after(text, name)) {
                *slot = Some(value);
                noted = true;
            }
        }
        self.summarized |= noted;
        if noted { Outcome::Noted } else { Outcome::No }
    }

    fn observed(&mut self, out: &mut Vec<Observation>) {
        self.training.observed(out);
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.training.is_empty() {
            return Vec::new();
        }
        let mut facts = self.training.facts("iterations", 1, context);
        let all = self.training.all();
        facts.set("micro_iterations", all.n);
        facts.set("optimizer_steps", self.steps);
        facts.some("iter_time_ms", all.stats(&self.milliseconds, 1, context).map(|stats| stats.json()));
        facts.some("training_time_s", self.training_time);
        facts.some("memory_used_gb", self.memory);
        facts.some("tokens_per_s", self.rate);
        facts.some("loss", ends(&all.loss));
        let notes = vec!["times are those of micro-batches, not of optimizer steps".to_owned()];
        let reading =
            Reading { tool: "litgpt", format: "litgpt", weight: Weight::Steps, facts, notes, ..Reading::default() };
        vec![self.training.reading(reading, 1, context)]
    }
}
