//! torchtitan: `step: 10  loss: 10.7  memory: 30.99GiB(32.62%)  tps: 7,034  tflops: 407.35  mfu: 41.19%`, in color,
//! printed by every rank; older versions have `wps` instead of `tps`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::lines::Line;
use crate::reading::{Config, Origin, object};
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary, TFLOPS_PER_GPU, TOKENS_PER_GPU};
use crate::text::{find, has, labeled, number, number_after, parse_leading_number, text_after};
use crate::training::{DuplicateDetection, MAX_LISTED, Step};

/// Recognizer of torchtitan.
pub type TorchTitan = StepReader<Lines>;

/// Parser of the metrics.
#[derive(Debug, Default)]
pub struct Lines {
    lines: usize,
    repeats: bool,
    /// Sums over ranks for every step: number of lines, tokens/s, MFU, and number of lines with MFU.
    by_step: BTreeMap<u64, [f64; 4]>,
    records: Vec<Value>,
    validation: Vec<Value>,
    memory: Option<(f64, f64)>,
    ends: [Option<f64>; 2],
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "torchtitan",
        format: "torchtitan",
        triggers: &["tps:", "wps:", "device mesh with", "total parameters", "global batch size "],
        copies: DuplicateDetection::EveryRank,
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let text = line.text;
        let Some(steps) = find(text, "step:").and_then(|at| text.get(at..)) else {
            return about(text, &mut log.config);
        };
        let (mut step, mut rate, mut loss, mut memory) = (None, None, None, None);
        let mut record = Step { line: line.number, ..Step::default() };
        for (name, value) in labeled(steps) {
            match name {
                "step" => step = step.or_else(|| number(value)),
                "tps" | "wps" => rate = rate.or_else(|| number(value)),
                "loss" => loss = number(value),
                "global_avg_loss" => loss = loss.or_else(|| number(value)),
                "memory" => memory = parse_leading_number(value),
                "mfu" => record.mfu = number(value),
                "tflops" => record.tflops_per_gpu = number(value),
                "grad_norm" => record.grad_norm = number(value),
                "lr" => record.learning_rate = number(value),
                _ => {}
            }
        }
        let (Some(step), Some(rate)) = (step, rate) else { return about(text, &mut log.config) };
        let (step, mfu) = (step as u64, record.mfu);
        if text.get(..text.len() - steps.len()).is_some_and(|front| front.ends_with("validate ")) {
            if let Some(loss) = loss.filter(|_| self.validation.len() < MAX_LISTED) {
                self.validation.push(json!([step, loss]));
            }
            return Outcome::Recognized;
        }
        if let Some((gib, rest)) = memory {
            let share = rest.split_once('(').and_then(|(_, share)| number(share)).unwrap_or(0.0);
            if self.memory.is_none_or(|(known, _)| gib > known) {
                self.memory = Some((gib, share));
            }
        }
        self.lines += 1;
        self.ends = [self.ends[0].or(loss), loss.or(self.ends[1])];
        if self.by_step.len() < MAX_LISTED || self.by_step.contains_key(&step) {
            let [count, rates, shares, with_share] = self.by_step.entry(step).or_default();
            *count += 1.0;
            self.repeats |= *count > 1.0;
            *rates += rate;
            *shares += mfu.unwrap_or(0.0);
            *with_share += f64::from(u8::from(mfu.is_some()));
        }
        if self.records.len() < MAX_LISTED {
            self.records.push(json!([step, rate, mfu]));
        }
        // torchtitan prints GiB; records are in decimal GB.
        record.memory_gb = memory.map(|(gib, _)| gib * 1.073_741_824);
        log.push(Step { step: Some(step), loss, tokens_per_gpu: Some(rate), ..record });
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        let Summary { training, facts, .. } = summary;
        facts.set("n_lines", self.lines);
        facts.set("distinct_steps", self.by_step.keys().copied().collect::<Vec<u64>>());
        if training.runs.len() < 2 {
            let mean = |pick: fn(&[f64; 4]) -> [f64; 2]| -> Value {
                let pairs = self.by_step.iter().map(|(step, sums)| (step, pick(sums)));
                let pairs = pairs.filter(|(_, [_, count])| *count > 0.0);
                Value::Object(object(pairs.map(|(step, [sum, count])| (step.to_string(), (sum / count).into()))))
            };
            facts.set("tokens_per_s_per_gpu_by_step", mean(|[count, rates, ..]| [*rates, *count]));
            facts.set("mfu_percent_by_step", mean(|[.., shares, count]| [*shares, *count]));
        }
        if let Some((gib, share)) = self.memory {
            facts.set("memory_gib", gib);
            facts.set("memory_percent", share);
        }
        facts.set("loss", json!({"n": training.all().loss.len(), "first": self.ends[0], "last": self.ends[1]}));
        summary.add_series_statistics(TOKENS_PER_GPU);
        summary.add_series_statistics(TFLOPS_PER_GPU);
        let facts = &mut summary.facts;
        if !self.validation.is_empty() {
            facts.set("validation", self.validation);
        }
        if self.repeats {
            facts.set("ranks_repeat_a_step", true);
        }
        facts.set("records", self.records);
    }
}

/// Reads configuration from the lines before the first step.
fn about(text: &str, config: &mut Config) -> Outcome {
    if let Some(mesh) = text_after(text, "device mesh with") {
        // `Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]`
        let Some((_, sizes)) = mesh.split_once("], [") else { return Outcome::NotRecognized };
        let sizes = sizes.split([',', ']']).filter_map(number);
        config.number("num_gpus", Some(sizes.product()), Origin::File);
        return Outcome::Settings;
    }
    if let Some(size) = number_after(text, "size:").filter(|_| has(text, "total parameters")) {
        config.number("parameters_billion", Some(size / 1e9), Origin::File);
        return Outcome::Settings;
    }
    if has(text, "global batch size ") && has(text, "sequence length") {
        config.number("micro_batch_size", number_after(text, "local batch size"), Origin::File);
        config.number("global_batch_size", number_after(text, "global batch size"), Origin::File);
        config.number("seq_len", number_after(text, "sequence length"), Origin::File);
        config.number("total_steps", number_after(text, "total steps"), Origin::File);
        return Outcome::Settings;
    }
    Outcome::NotRecognized
}
