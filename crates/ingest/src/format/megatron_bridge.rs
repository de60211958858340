//! Megatron-Bridge: `Step Time : 11.65s GPU utilization: 1158.1TFLOP/s/GPU`.

use serde_json::{Value, json};

use crate::lines::Line;
use crate::quantity::seconds_after;
use crate::reading::Importance;
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary, TFLOPS_PER_GPU};
use crate::text::number_after;
use crate::training::{MAX_LISTED, Step};

/// Recognizer of Megatron-Bridge.
pub type Bridge = StepReader<Lines>;

/// Parser of the step lines.
#[derive(Debug, Default)]
pub struct Lines {
    records: Vec<Value>,
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "megatron_bridge",
        format: "megatron-bridge",
        triggers: &["GPU utilization:"],
        counter: "iterations",
        series: &[TFLOPS_PER_GPU],
        importance: Importance::Result,
        notes: &["lines have no step counter: several runs are treated as one"],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let seconds = seconds_after(line.text, "Step Time", 1.0).filter(|seconds| *seconds > 0.0);
        let Some(seconds) = seconds else { return Outcome::NotRecognized };
        let tflops = number_after(line.text, "GPU utilization");
        log.push(Step { seconds: Some(seconds), tflops_per_gpu: tflops, line: line.number, ..Step::default() });
        if self.records.len() < MAX_LISTED {
            self.records.push(json!({"step_time_s": seconds, "tflops_per_gpu": tflops}));
        }
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        summary.facts.set("records", self.records);
    }
}
