//! Scalars by name and step, as stored by TensorBoard and Weights & Biases, converted to training steps.

use std::collections::BTreeMap;

use super::reading::{Context, Importance, Reading};
use super::training::{Step, Training};

/// Maximum number of steps kept per file.
const MAX_STEPS: usize = 1_000_000;

/// Metric that a scalar represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Loss,
    LearningRate,
    GradNorm,
    Seconds,
    Milliseconds,
    TokensPerGpu,
    Tflops,
    MfuPercent,
    MemoryGib,
    Batch,
}

/// Names of scalars (after the last slash) in Megatron-LM, NeMo, torchtitan, Hugging Face Trainer, Lightning and
/// litgpt.
const NAMES: [(&str, Kind); 39] = [
    ("loss", Kind::Loss),
    ("lm loss", Kind::Loss),
    ("train_loss", Kind::Loss),
    ("training_loss", Kind::Loss),
    ("reduced_train_loss", Kind::Loss),
    ("global_avg_loss", Kind::Loss),
    ("loss_step", Kind::Loss),
    ("train_loss_step", Kind::Loss),
    ("lr", Kind::LearningRate),
    ("learning_rate", Kind::LearningRate),
    ("learning-rate", Kind::LearningRate),
    ("grad_norm", Kind::GradNorm),
    ("grad-norm", Kind::GradNorm),
    ("gradient_norm", Kind::GradNorm),
    ("iteration-time", Kind::Seconds),
    ("iteration_time", Kind::Seconds),
    ("iter_time", Kind::Seconds),
    ("step_time", Kind::Seconds),
    ("step_time_s", Kind::Seconds),
    ("step_time_seconds", Kind::Seconds),
    ("train_step_timing in s", Kind::Seconds),
    ("train_step_timing", Kind::Seconds),
    ("end_to_end(s)", Kind::Seconds),
    ("step_time_ms", Kind::Milliseconds),
    ("iter_time_ms", Kind::Milliseconds),
    ("throughput(tps)", Kind::TokensPerGpu),
    ("tokens_per_sec_per_gpu", Kind::TokensPerGpu),
    ("tokens_per_second_per_gpu", Kind::TokensPerGpu),
    ("tokens/sec/gpu", Kind::TokensPerGpu),
    ("tflops", Kind::Tflops),
    ("tflops_per_gpu", Kind::Tflops),
    ("tflops_per_sec_per_gpu", Kind::Tflops),
    ("model_tflops_per_gpu", Kind::Tflops),
    ("mfu(%)", Kind::MfuPercent),
    ("mfu_percent", Kind::MfuPercent),
    ("max_reserved(gib)", Kind::MemoryGib),
    ("batch-size", Kind::Batch),
    ("global_batch_size", Kind::Batch),
    ("global-batch-size", Kind::Batch),
];

/// Returns the metric that a scalar name stands for, or `None` if it is not used, such as validation metrics.
fn kind(name: &str) -> Option<Kind> {
    let name = name.trim().to_ascii_lowercase();
    let parts: Vec<&str> = name.split('/').collect();
    let strange = |part: &&str| ["eval", "val", "valid", "validation", "test"].contains(part) || part.contains(" vs ");
    if parts.iter().any(strange) {
        return None;
    }
    // Some known names contain slashes themselves.
    let known = |text: &str| NAMES.iter().find(|(known, _)| *known == text).map(|(_, kind)| *kind);
    known(&name).or_else(|| known(parts.last()?))
}

/// A partially filled step.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    step: Step,
    /// Unix time in seconds at which it was written.
    at: Option<f64>,
    useful: bool,
}

/// Scalars collected so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scalars {
    records: BTreeMap<u64, Record>,
    /// Names of scalars that are not used.
    passed_over: std::collections::BTreeSet<String>,
}

impl Scalars {
    /// Adds a scalar; returns whether it is used.
    pub(crate) fn take(&mut self, name: &str, step: u64, value: f64, at: Option<f64>, line: u64) -> bool {
        let Some(kind) = kind(name) else {
            if self.passed_over.len() < 64 {
                self.passed_over.insert(name.chars().take(80).collect());
            }
            return false;
        };
        if !value.is_finite() || (self.records.len() >= MAX_STEPS && !self.records.contains_key(&step)) {
            return false;
        }
        let record = self.records.entry(step).or_default();
        record.step.step = Some(step);
        record.step.line = line;
        record.at = at.or(record.at);
        record.useful = true;
        let fields = &mut record.step;
        let positive = Some(value).filter(|value| *value > 0.0);
        match kind {
            Kind::Loss => fields.loss = Some(value),
            Kind::LearningRate => fields.learning_rate = Some(value),
            Kind::GradNorm => fields.grad_norm = Some(value),
            Kind::Seconds => fields.seconds = positive,
            Kind::Milliseconds => fields.seconds = positive.map(|ms| ms / 1e3),
            Kind::TokensPerGpu => fields.tokens_per_gpu = positive,
            Kind::Tflops => fields.tflops_per_gpu = positive,
            Kind::MfuPercent => fields.mfu = positive,
            Kind::MemoryGib => fields.memory_gb = positive.map(|gib| gib * 1.073_741_824),
            Kind::Batch => fields.batch = positive,
        }
        true
    }

    /// Converts the steps to a reading. Empty if no scalar is used.
    pub(crate) fn finish(self, tool: &'static str, format: &'static str, context: &Context) -> Vec<Reading> {
        let mut records: Vec<Record> = self.records.into_values().filter(|record| record.useful).collect();
        if records.is_empty() {
            return Vec::new();
        }
        let mut notes = Vec::new();
        let timed = records.iter().any(|r| r.step.seconds.is_some() || r.step.tokens_per_gpu.is_some());
        if !timed && records.windows(2).any(|pair| matches!(pair, [a, b] if a.at.zip(b.at).is_some())) {
            // Derive step times from the time stamps of consecutive records, divided by the number of steps between
            // them.
            let before: Vec<(Option<u64>, Option<f64>)> = records.iter().map(|r| (r.step.step, r.at)).collect();
            for (record, (step, at)) in records.iter_mut().skip(1).zip(before) {
                let steps = record.step.step.zip(step).and_then(|(now, then)| now.checked_sub(then));
                let seconds = record.at.zip(at).map(|(now, then)| now - then).filter(|seconds| *seconds > 0.0);
                record.step.seconds = seconds.zip(steps.filter(|n| *n > 0)).map(|(seconds, n)| seconds / n as f64);
            }
            notes.push(
                "step times are differences of the time stamps of records, including pauses for validation and \
                 checkpoints"
                    .to_owned(),
            );
        }
        if !self.passed_over.is_empty() {
            let names: Vec<String> = self.passed_over.into_iter().take(8).collect();
            notes.push(format!("ignored scalars: {}", names.join(", ")));
        }
        let mut training = Training::default();
        for record in records {
            training.push(record.step);
        }
        let mut facts = training.facts("steps", 1, context);
        let all = training.all();
        facts.set_optional("tokens_per_s_per_gpu", all.stats(&all.tokens, 1, context).map(|stats| stats.json()));
        facts.set_optional("mfu_percent", all.stats(&all.mfu, 1, context).map(|stats| stats.json()));
        facts.set_optional("max_memory_gb", all.memory.max());
        let reading = Reading { tool, format, importance: Importance::Steps, facts, notes, ..Reading::default() };
        vec![training.reading(reading, 1, context)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalar_kind_follows_the_last_name_part_and_skips_validation() {
        assert_eq!(kind("train/loss"), Some(Kind::Loss));
        assert_eq!(kind("lm loss"), Some(Kind::Loss));
        assert_eq!(kind("iteration-time/iteration-time"), Some(Kind::Seconds));
        assert_eq!(kind("time_metrics/end_to_end(s)"), Some(Kind::Seconds));
        assert_eq!(kind("Train/Learning_Rate"), Some(Kind::LearningRate));
        for other in ["eval/loss", "val/loss", "lm loss vs samples", "accuracy", "loss_scale"] {
            assert_eq!(kind(other), None, "{other}");
        }
    }
}
