//! Megatron-Bridge: `Step Time : 11.65s GPU utilization: 1158.1TFLOP/s/GPU`.

use serde_json::{Value, json};

use crate::lines::Line;
use crate::observation::Observation;
use crate::quantity::seconds_after;
use crate::reading::{Config, Context, Reading, Weight};
use crate::recognizer::{Outcome, Recognizer};
use crate::text::number_after;
use crate::training::{LISTED, Step, Training};

/// Reads its step lines.
#[derive(Debug, Default)]
pub struct Bridge {
    training: Training,
    records: Vec<Value>,
}

impl Recognizer for Bridge {
    fn triggers(&self) -> &'static [&'static str] {
        &["GPU utilization:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let seconds = seconds_after(line.text, "Step Time", 1.0).filter(|seconds| *seconds > 0.0);
        let Some(seconds) = seconds else { return Outcome::No };
        let tflops = number_after(line.text, "GPU utilization");
        self.training.push(Step {
            seconds: Some(seconds),
            tflops_per_gpu: tflops,
            line: line.number,
            ..Step::default()
        });
        if self.records.len() < LISTED {
            self.records.push(json!({"step_time_s": seconds, "tflops_per_gpu": tflops}));
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
        let mut facts = self.training.facts("iterations", 1, context);
        let all = self.training.all();
        facts.some("tflops_per_gpu_reported", all.stats(&all.tflops, 1, context).map(|stats| stats.json()));
        facts.set("records", self.records);
        let reading = Reading {
            tool: "megatron_bridge",
            format: "megatron-bridge",
            weight: Weight::Result,
            facts,
            config: Config::default(),
            notes: vec!["lines have no counter: several runs are read as one".to_owned()],
            ..Reading::default()
        };
        vec![self.training.reading(reading, 1, context)]
    }
}
