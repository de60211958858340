//! picotron: `[rank 0] Step: 5 | Loss: 10.9 | Global batch size: 262.14K | Tokens/s: 52.3K | Tokens/s/GPU: 6.54K |
//! Tokens: 1.31M | MFU: 38.12% | Memory usage: 30.20GB`, numbers abbreviated, the batch in tokens.

use crate::lines::Line;
use crate::observation::Observation;
use crate::quantity::gigabytes;
use crate::reading::{Config, Context, Origin, Reading, Weight, tidy};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{human, number, whole};
use crate::training::{Copies, Step, Training};

/// Reads its step lines.
#[derive(Debug)]
pub struct Picotron {
    training: Training,
    tokens: Option<f64>,
    /// Tokens a step, in which all steps agree.
    step_tokens: Option<f64>,
    gpus: Option<f64>,
}

impl Default for Picotron {
    fn default() -> Picotron {
        Picotron { training: Training::new(Copies::EveryRank), tokens: None, step_tokens: None, gpus: None }
    }
}

impl Recognizer for Picotron {
    fn triggers(&self) -> &'static [&'static str] {
        &["| Tokens/s/GPU:", "| Tokens/s:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let Some((_, rest)) = line.text.split_once("Step:") else { return Outcome::No };
        let mut fields = rest.split('|');
        let counter = fields.next().unwrap_or_default();
        let mut step = Step { step: whole(counter), line: line.number, ..Step::default() };
        let (mut step_tokens, mut rate, mut tokens) = (None, None, None);
        for field in fields {
            let Some((name, value)) = field.split_once(':') else { continue };
            match name.trim() {
                "Loss" => step.loss = number(value),
                "Global batch size" => step_tokens = human(value),
                "Tokens/s" => rate = human(value),
                "Tokens/s/GPU" => step.tokens_per_gpu = human(value),
                "Tokens" => tokens = human(value),
                "MFU" => step.mfu = number(value),
                "Memory usage" => step.memory_gb = gigabytes(value, 1.0),
                _ => {}
            }
        }
        if step.step.is_none() || step.tokens_per_gpu.is_none() {
            return Outcome::Skipped("a picotron step without a counter or rate");
        }
        let (first, gpus) = (self.training.is_empty(), rate.zip(step.tokens_per_gpu));
        step.seconds = step_tokens.zip(rate).filter(|(_, rate)| *rate > 0.0).map(|(tokens, rate)| tokens / rate);
        if self.training.push(step) {
            self.tokens = tokens.or(self.tokens);
            self.step_tokens =
                if first { step_tokens } else { self.step_tokens.filter(|known| Some(*known) == step_tokens) };
            let gpus = gpus.filter(|(_, rate)| *rate > 0.0).map(|(all, one)| (all / one).round());
            self.gpus = if first { gpus } else { self.gpus.filter(|known| gpus.is_none_or(|now| now == *known)) };
        }
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
        facts.some("mfu_percent", all.stats(&all.mfu, 1, context).map(|stats| stats.json()));
        facts.some("consumed_tokens_last", self.tokens.map(tidy));
        facts.some("tokens_per_iteration", self.step_tokens.map(tidy));
        facts.some("max_memory_gb", all.memory.max());
        let mut config = Config::default();
        config.number("num_gpus", self.gpus, Origin::Derived("tokens/s over tokens/s/GPU"));
        let length = context.settings.get("seq_len").filter(|length| *length > 0.0);
        let batch = self.step_tokens.zip(length).map(|(tokens, length)| (tokens / length).round());
        config.number("global_batch_size", batch, Origin::Derived("tokens a step / sequence length"));
        let reading = Reading {
            tool: "picotron",
            format: "picotron",
            weight: Weight::Steps,
            facts,
            config,
            notes: vec!["step times are tokens a step over tokens a second, both rounded to three digits".to_owned()],
            ..Reading::default()
        };
        vec![self.training.reading(reading, 1, context)]
    }
}
