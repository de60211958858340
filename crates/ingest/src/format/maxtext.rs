//! MaxText: `completed step: 3, seconds: 0.254, TFLOP/s/device: 84.318, Tokens/s/device: 16098.398, …, loss: 0.708`.

use crate::lines::Line;
use crate::quantity::seconds_after;
use crate::reading::Origin;
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader};
use crate::text::{self, number_after, text_after};
use crate::training::Step;

/// Recognizer of MaxText.
pub type MaxText = StepReader<Lines>;

/// Parser of the step lines.
#[derive(Debug, Default)]
pub struct Lines;

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "maxtext",
        format: "maxtext",
        triggers: &["completed step:", "number parameters:", "Per train step:", "Num_devices:"],
        series: &[("tflops_per_device_reported", |run| &run.tflops), ("tokens_per_s_per_device", |run| &run.tokens)],
        // The first step includes compilation; the second waits for asynchronously dispatched work.
        warmup: 2,
        compiles_at_start: true,
        notes: &["warm-up takes two steps: compilation and asynchronous dispatch"],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let text = line.text;
        if let Some(parameters) = number_after(text, "number parameters:") {
            // `number parameters: 7.345 billion`
            let scale = if text::has(text, "million") { 1e-3 } else { 1.0 };
            let billions = Some(parameters * scale);
            if !log.is_empty() && log.config.differs("parameters_billion", billions) {
                return Outcome::NewDocument;
            }
            log.config.number("parameters_billion", billions, Origin::File);
            return Outcome::Settings;
        }
        if let Some(devices) = number_after(text, "Num_devices:") {
            if !log.is_empty() && log.config.differs("num_gpus", Some(devices)) {
                return Outcome::NewDocument;
            }
            log.config.number("num_gpus", Some(devices), Origin::File);
            return Outcome::Settings;
        }
        let Some(rest) = text_after(text, "completed step:") else { return Outcome::NotRecognized };
        let seconds = seconds_after(rest, "seconds:", 1.0).filter(|seconds| *seconds > 0.0);
        let (Some(step), Some(seconds)) = (number_after(rest, ""), seconds) else {
            return Outcome::Unusable("a MaxText step without counter or time");
        };
        log.push(Step {
            step: Some(step as u64),
            seconds: Some(seconds),
            loss: number_after(rest, ", loss:"),
            tokens_per_gpu: number_after(rest, "Tokens/s/device:"),
            tflops_per_gpu: number_after(rest, "TFLOP/s/device:").or_else(|| number_after(rest, "TFLOP/s:")),
            line: line.number,
            ..Step::default()
        });
        Outcome::Recognized
    }
}
