//! Composer and llm-foundry: a block for each batch, `[batch=2/100]:` and then `Train loss/train/total: 11.5012` and others.

use crate::lines::Line;
use crate::observation::Observation;
use crate::reading::{Config, Context, Origin, Reading, Weight, tidy};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::{after, find, number, whole};
use crate::training::{Step, Training};

/// Reads its blocks.
#[derive(Debug, Default)]
pub struct Composer {
    training: Training,
    config: Config,
    block: Option<Step>,
    /// Tokens per second of all accelerators, in this block and the last one stated.
    total: Option<f64>,
    rates: Option<(f64, f64)>,
}

impl Recognizer for Composer {
    fn triggers(&self) -> &'static [&'static str] {
        &["[batch="]
    }

    fn open(&self) -> bool {
        self.block.is_some()
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text.trim();
        if let Some(counter) = text.strip_suffix("]:").and_then(|text| after(text, "[batch=")) {
            self.close();
            let step = whole(counter);
            if step.is_none() {
                return Outcome::Skipped("a block of Composer without its batch");
            }
            let planned = counter.split_once('/').and_then(|(_, planned)| whole(planned));
            self.block = Some(Step { step, planned, line: line.number, ..Step::default() });
            return Outcome::Took;
        }
        let Some((name, value)) = text.strip_prefix("Train ").and_then(|text| text.split_once(": ")) else {
            return Outcome::No;
        };
        let (Some(step), Some(value)) = (&mut self.block, number(value)) else { return Outcome::No };
        match name {
            "throughput/batches_per_sec" => step.seconds = (value > 0.0).then(|| 1.0 / value),
            "throughput/tokens_per_sec" => self.total = Some(value),
            "throughput/device/tokens_per_sec" => step.tokens_per_gpu = Some(value),
            "throughput/device/flops_per_sec" => step.tflops_per_gpu = Some(value / 1e12),
            "throughput/device/mfu" => step.mfu = Some(value * 100.0),
            "loss/train/total" => step.loss = Some(value),
            "trainer/device_train_microbatch_size" => {
                self.config.number("micro_batch_size", Some(value), Origin::File);
            }
            name if name.starts_with("lr-") => step.learning_rate = Some(value),
            name if find(name, "l2_norm/grad/global").is_some() => step.grad_norm = Some(value),
            _ => {}
        }
        Outcome::Took
    }

    fn observed(&mut self, out: &mut Vec<Observation>) {
        self.training.observed(out);
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.close();
        if self.training.is_empty() {
            return Vec::new();
        }
        let mut facts = self.training.facts("batches", 1, context);
        let all = self.training.all();
        facts.some("tokens_per_s_per_gpu", all.stats(&all.tokens, 1, context).map(|stats| stats.json()));
        facts.some("tflops_per_gpu_reported", all.stats(&all.tflops, 1, context).map(|stats| stats.json()));
        if let Some((total, of_one)) = self.rates.filter(|(_, of_one)| *of_one > 0.0) {
            let gpus = (total / of_one).round();
            facts.set("num_gpus_implied", tidy(gpus));
            self.config.number("num_gpus", Some(gpus), Origin::Derived("tokens/s over tokens/s/device"));
        }
        let reading = Reading {
            tool: "composer",
            format: "composer",
            weight: Weight::Steps,
            facts,
            config: self.config,
            notes: vec!["rates are means over the last batches".to_owned()],
            ..Reading::default()
        };
        vec![self.training.reading(reading, 1, context)]
    }
}

impl Composer {
    /// Ends the block; one that states neither a rate nor a loss is no record.
    fn close(&mut self) {
        let total = self.total.take();
        let Some(step) = self.block.take() else { return };
        if step.seconds.is_none() && step.loss.is_none() && step.tokens_per_gpu.is_none() {
            return;
        }
        self.training.push(step);
        self.rates = total.zip(step.tokens_per_gpu).or(self.rates);
    }
}
