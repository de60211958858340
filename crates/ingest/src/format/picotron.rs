//! picotron: `[rank 0] Step: 5 | Loss: 10.9 | Global batch size: 262.14K | Tokens/s: 52.3K | Tokens/s/GPU: 6.54K |
//! Tokens: 1.31M | MFU: 38.12% | Memory usage: 30.20GB`, with abbreviated numbers, and the batch size in tokens.

use crate::lines::Line;
use crate::quantity::gigabytes;
use crate::reading::{Origin, number_to_json};
use crate::recognizer::Outcome;
use crate::step_log::{MFU_PERCENT, Spec, StepFormat, StepLog, StepReader, Summary, TOKENS_PER_GPU};
use crate::text::{number, parse_abbreviated_number, parse_integer};
use crate::training::{DuplicateDetection, Step};

/// Recognizer of picotron.
pub type Picotron = StepReader<Lines>;

/// Parser of the step lines.
#[derive(Debug, Default)]
pub struct Lines {
    tokens: Option<f64>,
    /// Tokens per step, if it is the same in all steps.
    step_tokens: Option<f64>,
    gpus: Option<f64>,
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "picotron",
        format: "picotron",
        triggers: &["| Tokens/s/GPU:", "| Tokens/s:"],
        series: &[TOKENS_PER_GPU, MFU_PERCENT],
        copies: DuplicateDetection::EveryRank,
        notes: &["step times are tokens per step / tokens per second, both rounded to three digits"],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let Some((_, rest)) = line.text.split_once("Step:") else { return Outcome::NotRecognized };
        let mut fields = rest.split('|');
        let counter = fields.next().unwrap_or_default();
        let mut step = Step { step: parse_integer(counter), line: line.number, ..Step::default() };
        let (mut step_tokens, mut rate, mut tokens) = (None, None, None);
        for field in fields {
            let Some((name, value)) = field.split_once(':') else { continue };
            match name.trim() {
                "Loss" => step.loss = number(value),
                "Global batch size" => step_tokens = parse_abbreviated_number(value),
                "Tokens/s" => rate = parse_abbreviated_number(value),
                "Tokens/s/GPU" => step.tokens_per_gpu = parse_abbreviated_number(value),
                "Tokens" => tokens = parse_abbreviated_number(value),
                "MFU" => step.mfu = number(value),
                "Memory usage" => step.memory_gb = gigabytes(value, 1.0),
                _ => {}
            }
        }
        if step.step.is_none() || step.tokens_per_gpu.is_none() {
            return Outcome::Unusable("a picotron step without a counter or rate");
        }
        let (first, gpus) = (log.is_empty(), rate.zip(step.tokens_per_gpu));
        step.seconds = step_tokens.zip(rate).filter(|(_, rate)| *rate > 0.0).map(|(tokens, rate)| tokens / rate);
        if log.push(step) {
            self.tokens = tokens.or(self.tokens);
            self.step_tokens =
                if first { step_tokens } else { self.step_tokens.filter(|known| Some(*known) == step_tokens) };
            let gpus = gpus.filter(|(_, rate)| *rate > 0.0).map(|(all, one)| (all / one).round());
            self.gpus = if first { gpus } else { self.gpus.filter(|known| gpus.is_none_or(|now| now == *known)) };
        }
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        summary.facts.set_optional("consumed_tokens_last", self.tokens.map(number_to_json));
        summary.facts.set_optional("tokens_per_iteration", self.step_tokens.map(number_to_json));
        let most = summary.all().memory.max();
        summary.facts.set_optional("max_memory_gb", most);
        summary.config.number("num_gpus", self.gpus, Origin::Derived("tokens/s / tokens/s/GPU"));
        let length = summary.context.settings.get("seq_len").filter(|length| *length > 0.0);
        let batch = self.step_tokens.zip(length).map(|(tokens, length)| (tokens / length).round());
        summary.config.number("global_batch_size", batch, Origin::Derived("tokens per step / sequence length"));
    }
}
