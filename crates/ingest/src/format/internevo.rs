//! InternEvo and InternLM: `tflops=189.8,step=1,loss=11.6,tgs (tokens/gpu/second)=4274.45,lr=6e-07,…`.

use crate::lines::Line;
use crate::observation::Observation;
use crate::reading::{Config, Context, Origin, Reading, Weight};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::number_after;
use crate::training::{Step, Training};

/// Reads its step lines.
#[derive(Debug, Default)]
pub struct InternEvo {
    training: Training,
    config: Config,
    tokens: Option<f64>,
}

impl Recognizer for InternEvo {
    fn triggers(&self) -> &'static [&'static str] {
        &["tgs (tokens/gpu/second)="]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some(rate) = number_after(text, "tgs (tokens/gpu/second)=") else { return Outcome::No };
        // `step=` also ends other words: the counter follows a comma, a blank or nothing.
        let step = [",step=", " step=", ",step: "].iter().find_map(|name| number_after(text, name));
        let Some(step) = step else { return Outcome::Skipped("an InternEvo step without a counter") };
        let loss = [",loss=", " loss="].iter().find_map(|name| number_after(text, name));
        self.training.push(Step {
            step: Some(step as u64),
            loss,
            learning_rate: number_after(text, "lr="),
            grad_norm: number_after(text, "grad_norm="),
            tokens_per_gpu: Some(rate),
            tflops_per_gpu: number_after(text, "tflops="),
            line: line.number,
            ..Step::default()
        });
        self.tokens = number_after(text, "num_consumed_tokens=").or(self.tokens);
        self.config.number("gradient_accumulation_steps", number_after(text, "micro_num="), Origin::File);
        self.config.number("seq_len", number_after(text, "largest_length="), Origin::Derived("longest sequence"));
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
        facts.some("tflops_per_gpu_reported", all.stats(&all.tflops, 1, context).map(|stats| stats.json()));
        facts.some("consumed_tokens_last", self.tokens);
        let reading = Reading {
            tool: "internevo",
            format: "internevo",
            weight: Weight::Steps,
            facts,
            config: self.config,
            ..Reading::default()
        };
        vec![self.training.reading(reading, 1, context)]
    }
}
