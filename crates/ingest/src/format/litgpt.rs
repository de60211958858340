//! LitGPT and its predecessor lit-llama: `Epoch 1 | iter 1 step 0 | loss train: 1.646, val: n/a | iter time: 820.31
//! ms`, in older versions `iter 0 step 1: loss 1.8, iter time: 1234.5ms (optimizer.step)`. Times are those of
//! micro-batches.

use crate::lines::Line;
use crate::quantity::{Measure, quantity};
use crate::recognizer::Outcome;
use crate::series::Series;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary};
use crate::text::{has, number_after};
use crate::training::Step;

/// Recognizer of LitGPT.
pub type LitGpt = StepReader<Lines>;

/// Parser of the iteration lines.
#[derive(Debug, Default)]
pub struct Lines {
    milliseconds: Series,
    steps: u64,
    training_time: Option<f64>,
    memory: Option<f64>,
    rate: Option<f64>,
    summarized: bool,
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "litgpt",
        format: "litgpt",
        triggers: &["iter time:", "Training time:", "Training Time:", "Memory used:", "Memory Used:", "Tok/sec:"],
        counter: "iterations",
        notes: &["times are per micro-batch, not per optimizer step"],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let text = line.text;
        if has(text, "iter time:") {
            // The time is the last field: `iter time: 1205.55 ms`.
            let time = text.rsplit_once("iter time:").map_or("", |(_, time)| time);
            let seconds = quantity(time, Measure::Time, 1e-3);
            let (Some(iteration), Some(seconds)) = (number_after(text, "iter "), seconds) else {
                return Outcome::Unusable("a LitGPT iteration without counter or time");
            };
            let new = log.push(Step {
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
            return Outcome::Recognized;
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
        if noted { Outcome::Settings } else { Outcome::NotRecognized }
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        let records = summary.all().n;
        summary.facts.set("micro_iterations", records);
        summary.facts.set("optimizer_steps", self.steps);
        summary.series("iter_time_ms", &self.milliseconds);
        summary.facts.set_optional("training_time_s", self.training_time);
        summary.facts.set_optional("memory_used_gb", self.memory);
        summary.facts.set_optional("tokens_per_s", self.rate);
    }
}
