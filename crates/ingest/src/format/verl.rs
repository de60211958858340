//! verl: `step:2 - actor/grad_norm:0.22 - timing_s/step:59.9 - perf/total_num_tokens:936004 - perf/throughput:1953.3`.

use serde_json::{Map, Value, json};

use crate::lines::Line;
use crate::observation::Observation;
use crate::reading::{Config, Context, Origin, Reading, Weight};
use crate::recognizer::{Outcome, Recognizer};
use crate::series::Series;
use crate::text::{number, whole};
use crate::training::{Step, Training};

/// The parts of a step of reinforcement learning whose times are read.
const PARTS: [&str; 6] = ["gen", "old_log_prob", "ref", "values", "adv", "update_actor"];

/// Reads its step lines.
#[derive(Debug, Default)]
pub struct Verl {
    training: Training,
    config: Config,
    parts: [Series; PARTS.len()],
}

impl Recognizer for Verl {
    fn triggers(&self) -> &'static [&'static str] {
        &["timing_s/step:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let Some(fields) = line.text.trim_ascii_start().strip_prefix("step:") else { return Outcome::No };
        let mut fields = fields.split(" - ");
        let counter = fields.next().and_then(whole);
        let mut step = Step { step: counter, line: line.number, ..Step::default() };
        let (mut tokens, mut parts) = (None, [None; PARTS.len()]);
        for (key, value) in fields.filter_map(|field| field.trim_ascii().split_once(':')) {
            // NumPy's scalars may be printed with their type: `np.float64(0.41)`.
            let value = value.strip_prefix("np.float64(").unwrap_or(value);
            match key {
                "timing_s/step" => step.seconds = number(value),
                "perf/throughput" => step.tokens_per_gpu = number(value),
                "perf/total_num_tokens" => tokens = number(value),
                "actor/grad_norm" => step.grad_norm = number(value),
                "actor/lr" => step.learning_rate = number(value),
                // The device counts binary gigabytes.
                "perf/max_memory_allocated_gb" => step.memory_gb = number(value).map(|gib| gib * 1.073_741_824),
                _ => {
                    let known = key.strip_prefix("timing_s/").and_then(|part| PARTS.iter().position(|p| *p == part));
                    if let Some(slot) = known.and_then(|index| parts.get_mut(index)) {
                        *slot = number(value);
                    }
                }
            }
        }
        if step.step.is_none() || step.seconds.is_none() {
            return Outcome::Skipped("a verl step without a counter or a readable time");
        }
        if self.training.push(step) {
            self.parts.iter_mut().zip(parts).for_each(|(series, value)| value.into_iter().for_each(|v| series.push(v)));
            if let (Some(tokens), Some(seconds), Some(rate)) = (tokens, step.seconds, step.tokens_per_gpu) {
                let gpus = tokens / (seconds * rate);
                if gpus >= 0.99 && (gpus - gpus.round()).abs() < 0.01 * gpus {
                    let how = Origin::Derived("tokens / (step time x tokens/s/GPU)");
                    self.config.number("num_gpus", Some(gpus.round()), how);
                }
            }
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
        facts.some("max_memory_gb", all.memory.max());
        let mut parts = Map::new();
        for (name, series) in PARTS.iter().zip(&self.parts) {
            if let Some(mean) = series.mean() {
                parts.insert((*name).to_owned(), json!(mean));
            }
        }
        if !parts.is_empty() {
            facts.set("mean_seconds_of_parts", Value::Object(parts));
        }
        let reading = Reading {
            tool: "verl",
            format: "verl",
            weight: Weight::Steps,
            facts,
            config: self.config,
            ..Reading::default()
        };
        vec![self.training.reading(reading, 1, context)]
    }
}
