//! nanotron: `iteration: 1 / 15 | consumed_tokens: 512 | elapsed_time_per_iteration_ms: 4.71K | …`, with abbreviated
//! numbers.

use crate::lines::Line;
use crate::reading::{Origin, number_to_json};
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary, TFLOPS_PER_GPU, TOKENS_PER_GPU};
use crate::text::{labeled, parse_abbreviated_number, parse_integer, parse_leading_number, text_after};
use crate::training::Step;

/// Recognizer of nanotron.
pub type Nanotron = StepReader<Lines>;

/// Parser of the step lines.
#[derive(Debug, Default)]
pub struct Lines {
    tokens: Option<f64>,
    total: Option<f64>,
    per_gpu: Option<f64>,
    reserved: Option<f64>,
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "nanotron",
        format: "nanotron",
        triggers: &["time_per_iteration_ms:"],
        counter: "iterations",
        series: &[TOKENS_PER_GPU, TFLOPS_PER_GPU],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let Some(counter) = text_after(line.text, "iteration:").and_then(parse_leading_number) else {
            return Outcome::NotRecognized;
        };
        let mut step = Step { step: Some(counter.0 as u64), line: line.number, ..Step::default() };
        step.planned = counter.1.trim_start().strip_prefix('/').and_then(parse_integer);
        // The last field of a truncated file may end within a number.
        let whole_fields = if line.whole { None } else { line.text.rsplit_once('|').map(|(fields, _)| fields) };
        let (mut tokens, mut total) = (None, None);
        for (key, value) in labeled(whole_fields.unwrap_or(line.text)) {
            let value = parse_abbreviated_number(value);
            match key {
                "elapsed_time_per_iteration_ms" | "time_per_iteration_ms" => {
                    step.seconds = value.map(|time| time / 1e3);
                }
                "consumed_tokens" => tokens = value,
                "tokens_per_sec" => total = value,
                "tokens_per_sec_per_gpu" => step.tokens_per_gpu = value,
                "global_batch_size" => step.batch = value,
                "lm_loss" | "loss" => step.loss = value,
                "lr" => step.learning_rate = value,
                "grad_norm" => step.grad_norm = value,
                "model_tflops_per_gpu" => step.tflops_per_gpu = value,
                "cuda_memory_allocated" => step.memory_gb = value.map(|bytes| bytes / 1e9),
                "cuda_max_memory_reserved" => self.reserved = value.or(self.reserved),
                _ => {}
            }
        }
        if step.seconds.is_none() {
            return Outcome::Unusable("a nanotron step without a valid time");
        }
        if log.push(step) {
            self.tokens = tokens.or(self.tokens);
            self.total = total.or(self.total);
            self.per_gpu = step.tokens_per_gpu.or(self.per_gpu);
        }
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        let Summary { training, facts, config, .. } = summary;
        let all = training.all();
        facts.set_optional("tokens_per_s_last", self.total);
        facts.set_optional("consumed_tokens_last", self.tokens);
        facts.set_optional("model_tflops_per_gpu_last", all.tflops.last());
        facts.set_optional("max_reserved_gb", self.reserved.map(|bytes| bytes / 1e9));
        if let (Some(total), Some(per_gpu)) = (self.total, self.per_gpu.filter(|rate| *rate > 0.0)) {
            let gpus = (total / per_gpu).round();
            facts.set("num_gpus_implied", number_to_json(gpus));
            config.number("num_gpus", Some(gpus), Origin::Derived("tokens/s / tokens/s/GPU"));
        }
        if let (Some(tokens), Some(batch), Some(step)) = (self.tokens, all.batch, all.last_step) {
            // The number of tokens is rounded to three digits, so the result is only valid if it is an integer number
            // of tokens per sequence.
            let length = tokens / (batch * step.max(1) as f64);
            if length >= 1.0 && training.runs.len() == 1 && (length - length.round()).abs() < 0.01 {
                let how = Origin::Derived("consumed tokens / (iterations x batch)");
                config.number("seq_len", Some(length.round()), how);
            }
        }
    }
}
