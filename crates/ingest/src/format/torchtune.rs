//! torchtune: `Step 2 | loss:1.51 lr:2e-05 tokens_per_second_per_gpu:3011.2 peak_memory_active:38.1 …`.

use crate::lines::Line;
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary, TOKENS_PER_GPU};
use crate::text::{labeled, number, parse_leading_number, text_after};
use crate::training::Step;

/// Recognizer of torchtune.
pub type TorchTune = StepReader<Lines>;

/// Parser of the step lines.
#[derive(Debug, Default)]
pub struct Lines;

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "torchtune",
        format: "torchtune",
        triggers: &["tokens_per_second_per_gpu:"],
        series: &[TOKENS_PER_GPU],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let counter = text_after(line.text, "Step ").and_then(parse_leading_number);
        let Some((counter, fields)) = counter.filter(|(_, rest)| rest.trim_ascii_start().starts_with('|')) else {
            return Outcome::NotRecognized;
        };
        let mut step = Step { step: Some(counter as u64), line: line.number, ..Step::default() };
        for (key, value) in labeled(fields) {
            match key {
                "loss" => step.loss = number(value),
                "lr" => step.learning_rate = number(value),
                "grad_norm" => step.grad_norm = number(value),
                "tokens_per_second_per_gpu" => step.tokens_per_gpu = number(value),
                // The value is in GiB.
                "peak_memory_alloc" => step.memory_gb = number(value).map(|gib| gib * 1.073_741_824),
                _ => {}
            }
        }
        if step.tokens_per_gpu.is_none() {
            return Outcome::Unusable("a torchtune step without a valid rate");
        }
        log.push(step);
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        let most = summary.all().memory.max();
        summary.facts.set_optional("max_memory_gb", most);
    }
}
