//! NeMo: step lines of NeMo 2, progress bars of NeMo 1 and projects based on it, and NVIDIA's DLLogger.

use atlas_core::math;
use serde_json::{Value, json};

use crate::json;
use crate::lines::Line;
use crate::reading::{Origin, number_to_json};
use crate::recognizer::Outcome;
use crate::step_log::{Spec, StepFormat, StepLog, StepReader, Summary, TFLOPS_PER_GPU};
use crate::text::{has, number, number_after, parse_integer, parse_leading_number, text_after, text_between};
use crate::training::{MAX_LISTED, Step, tokens_per_second};

/// Recognizer of step lines of NeMo 2.
pub type Nemo2 = StepReader<Lines>;

/// Recognizer of progress bars of NeMo 1.
pub type Nemo1 = StepReader<Bars>;

/// Recognizer of NVIDIA's DLLogger.
pub type DlLogger = StepReader<Records>;

/// Parser of `Training epoch 0, iteration 1/19 | lr: … | global_step: 1 | train_step_timing in s: 7.549 | …`.
#[derive(Debug, Default)]
pub struct Lines {
    consumed: Option<f64>,
    steps: Vec<Value>,
}

impl StepFormat for Lines {
    const SPEC: Spec =
        Spec { tool: "nemo", format: "nemo2", triggers: &["Training epoch"], counter: "global_steps", ..Spec::DEFAULT };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let Some(rest) = text_after(line.text, "Training epoch") else { return Outcome::NotRecognized };
        let Some(counter) = text_after(rest, "iteration").and_then(parse_leading_number) else {
            return Outcome::NotRecognized;
        };
        let mut step = Step { step: Some(counter.0 as u64), line: line.number, ..Step::default() };
        // Iterations are counted from 0: 19 is the last of 20.
        step.planned = counter.1.strip_prefix('/').and_then(parse_integer).map(|last| last.saturating_add(1));
        let mut consumed = None;
        for field in rest.split('|') {
            let Some((key, value)) = field.split_once(": ") else { continue };
            match key.trim() {
                "lr" => step.learning_rate = number(value),
                "global_batch_size" => step.batch = number(value),
                "global_step" => step.step = parse_integer(value).or(step.step),
                "reduced_train_loss" | "loss" => step.loss = number(value),
                "grad_norm" => step.grad_norm = number(value),
                "train_step_timing in s" => step.seconds = number(value),
                "TFLOPS_per_GPU" | "tflops_per_gpu" => step.tflops_per_gpu = number(value),
                "consumed_samples" => consumed = number(value),
                _ => {}
            }
        }
        if step.seconds.is_none() {
            return Outcome::Unusable("a NeMo step line without train_step_timing");
        }
        if log.push(step) {
            self.consumed = consumed.or(self.consumed);
            if self.steps.len() < MAX_LISTED {
                self.steps.push(json!([step.step, step.seconds]));
            }
        }
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        let (most, runs) = (summary.all().max_step, summary.training.runs.len());
        summary.facts.set_optional("global_step_max", most);
        summary.facts.set("restarts", runs.saturating_sub(1));
        summary.facts.set_optional("consumed_samples_last", self.consumed.map(number_to_json));
        summary.add_series_statistics(TFLOPS_PER_GPU);
        summary.facts.set("all_steps", self.steps);
    }
}

/// Parser of `Epoch 0: : 47%|████▋ | 7/15 [06:19<07:13, reduced_train_loss=11.50, global_step=5.000, train_step_timing
/// in s=49.5]`.
#[derive(Debug, Default)]
pub struct Bars {
    consumed: Option<f64>,
    records: Vec<Value>,
    without_timing: usize,
    /// Epoch, length of the bar, and global step minus the position in the bar.
    offset: Option<(f64, Option<u64>, f64)>,
}

impl StepFormat for Bars {
    const SPEC: Spec = Spec {
        tool: "nemo",
        format: "nemo1-progress",
        triggers: &["reduced_train_loss=", "train_step_timing in s=", "train_step_timing="],
        counter: "global_steps",
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        // If carriage returns were lost, one line has several bars.
        let starts: Vec<usize> = line.text.match_indices("Epoch ").map(|(at, _)| at).collect();
        let mut outcome = Outcome::NotRecognized;
        for (index, start) in starts.iter().enumerate() {
            let end = starts.get(index + 1).copied().unwrap_or(line.text.len());
            let bar = line.text.get(*start..end).unwrap_or_default();
            outcome = match (self.bar(bar, line.number, log), outcome) {
                (Outcome::Recognized, _) | (_, Outcome::Recognized) => Outcome::Recognized,
                (now, _) => now,
            };
        }
        outcome
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        let most = summary.all().max_step;
        summary.facts.set_optional("global_step_max", most);
        summary.facts.set_optional("consumed_samples_last", self.consumed.map(number_to_json));
        summary.facts.set("records", self.records);
        if self.without_timing > 0 {
            let n = self.without_timing;
            summary.notes.push(format!(
                "progress bars without train_step_timing: {n}; their step times are running averages of the bar"
            ));
        }
    }
}

impl Bars {
    /// Returns the global step of a bar. Global steps with more than three digits are rounded (`1.23e+3`), so they are
    /// derived from the position in the bar.
    fn counted(&mut self, bar: &str, global: Option<f64>, now: f64, epoch: f64, of: Option<u64>) -> f64 {
        let Some(global) = global else { return now };
        let written = text_between(bar, "global_step=", ",").unwrap_or_default();
        let rounded = written.contains(['e', 'E']);
        if !rounded {
            self.offset = Some((epoch, of, global - now));
            return global;
        }
        let offset = match self.offset {
            Some((known, length, offset)) if known == epoch && length == of => offset,
            // The global step continues from the previous epoch.
            Some((known, Some(length), offset)) if known + 1.0 == epoch => offset + length as f64,
            _ => global - now,
        };
        // Progress bars write three significant digits, without trailing zeros. The step of the offset may be rounded,
        // too, so that both together are off by up to one unit of the third digit.
        let digits = written.split(['e', 'E']).next().unwrap_or_default();
        let places = digits.split_once('.').map_or(0, |(_, fraction)| fraction.trim_end_matches(']').len()).max(2);
        let unit = math::powf(10.0, math::log10(global.abs()).floor() - places as f64);
        let offset = if (now + offset - global).abs() <= unit { offset } else { global - now };
        self.offset = Some((epoch, of, offset));
        now + offset
    }

    fn bar(&mut self, bar: &str, line: u64, log: &mut StepLog) -> Outcome {
        let metrics = ["reduced_train_loss=", "train_step_timing in s=", "train_step_timing="];
        let Some((position, inside)) = bar.split_once('[').filter(|_| metrics.iter().any(|name| has(bar, name))) else {
            return Outcome::NotRecognized;
        };
        let position = position.rsplit('|').next().unwrap_or_default();
        let Some((now, of)) = parse_leading_number(position) else {
            return Outcome::Unusable("a progress bar without a position");
        };
        let value = |name: &str| number_after(inside, name);
        let timing = value("train_step_timing in s=").or_else(|| value("train_step_timing="));
        let from_bar = inside.find("s/it").and_then(|at| {
            let before = inside.get(..at)?;
            number(before.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next()?)
        });
        let from_bar = from_bar.or_else(|| {
            let before = inside.get(..inside.find("it/s")?)?;
            let rate = number(before.rsplit(|c: char| !c.is_ascii_digit() && c != '.').next()?)?;
            (rate > 0.0).then(|| 1.0 / rate)
        });
        let global_step = value("global_step=");
        let epoch = number_after(bar, "Epoch");
        let of = of.strip_prefix('/').and_then(parse_integer);
        let counted = self.counted(inside, global_step, now, epoch.unwrap_or(0.0), of);
        let loss = value("reduced_train_loss=");
        let consumed = value("consumed_samples=");
        self.without_timing += usize::from(timing.is_none());
        let step = Step {
            step: Some(counted.max(0.0) as u64),
            planned: of,
            seconds: timing.or(from_bar),
            loss,
            learning_rate: text_between(inside, "lr=", ",").and_then(number),
            line,
            ..Step::default()
        };
        if step.seconds.is_none() {
            return Outcome::Unusable("a progress bar without a step time");
        }
        // A bar is printed repeatedly during a step, but already has all values the first time.
        let mut record = json!({"step": now as u64, "of": step.planned, "global_step": global_step,
            "consumed_samples": consumed, "reduced_train_loss": loss});
        if let Some(map) = record.as_object_mut() {
            if let Some(timing) = timing {
                map.insert("train_step_timing_s".to_owned(), timing.into());
            }
            if let Some(seconds) = from_bar {
                map.insert("step_time_s_from_bar".to_owned(), seconds.into());
            }
        }
        if self.records.last() != Some(&record) {
            if log.push(step) && self.records.len() < MAX_LISTED {
                self.records.push(record);
            }
            self.consumed = consumed.or(self.consumed);
        }
        Outcome::Recognized
    }
}

/// Parser of `DLLL {"timestamp": …, "step": 0, "data": {"train_step_timing in s": 107.35, …}}`, with or without `DLLL`.
#[derive(Debug, Default)]
pub struct Records {
    consumed: Option<f64>,
}

impl Records {
    fn record(&mut self, record: &Value, line: u64, log: &mut StepLog) -> Outcome {
        let (Some(step), Some(data)) = (record.get("step"), record.get("data").and_then(Value::as_object)) else {
            return Outcome::NotRecognized;
        };
        if step.as_str() == Some("PARAMETER") {
            for (name, ours) in [
                ("cfg/num_layers", "num_layers"),
                ("cfg/hidden_size", "hidden_size"),
                ("cfg/num_attention_heads", "num_attention_heads"),
                ("cfg/global_batch_size", "global_batch_size"),
                ("cfg/micro_batch_size", "micro_batch_size"),
                ("cfg/encoder_seq_length", "seq_len"),
                ("cfg/tensor_model_parallel_size", "tensor_parallel"),
                ("cfg/pipeline_model_parallel_size", "pipeline_parallel"),
                ("cfg/virtual_pipeline_model_parallel_size", "virtual_pipeline_parallel"),
                ("cfg/context_parallel_size", "context_parallel"),
                ("cfg/expert_model_parallel_size", "expert_parallel"),
                ("cfg/sequence_parallel", "sequence_parallel"),
                ("trainer/precision", "precision"),
            ] {
                let value = data.get(name).or_else(|| data.get(name.trim_start_matches("cfg/")));
                if let Some(value) = value {
                    log.config.note(ours, value.clone(), Origin::File);
                }
            }
            if let (Some(nodes), Some(devices)) = (
                data.get("trainer/num_nodes").and_then(json::json_number),
                data.get("trainer/devices").and_then(json::json_number),
            ) {
                log.config.number("num_gpus", Some(nodes * devices), Origin::File);
            }
            return Outcome::Settings;
        }
        let value = |name: &str| data.get(name).and_then(json::json_number).filter(|value| value.is_finite());
        let Some(seconds) = value("train_step_timing in s").or_else(|| value("train_step_timing")) else {
            return Outcome::NotRecognized;
        };
        let counter = step.as_u64().or_else(|| step.as_array()?.last()?.as_u64());
        log.push(Step {
            step: counter.or_else(|| value("global_step").map(|step| step as u64)),
            seconds: Some(seconds),
            loss: value("reduced_train_loss").or_else(|| value("loss")),
            learning_rate: value("lr"),
            grad_norm: value("grad_norm"),
            line,
            ..Step::default()
        });
        self.consumed = value("consumed_samples").or(self.consumed);
        Outcome::Recognized
    }
}

impl StepFormat for Records {
    const SPEC: Spec = Spec { tool: "nemo", format: "nemo-dllogger", triggers: &["DLLL {"], ..Spec::DEFAULT };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let Some(document) = text_after(line.text, "DLLL {") else { return Outcome::NotRecognized };
        let start = line.text.len() - document.len();
        let document = line.text.get(line.text.get(..start).and_then(|text| text.rfind('{')).unwrap_or(start)..);
        match document.and_then(|document| json::json(document.as_bytes()).ok()) {
            Some(record) => match self.record(&record, line.number, log) {
                Outcome::NotRecognized => Outcome::Unusable("a DLLogger record without a step time"),
                other => other,
            },
            None => Outcome::Unusable("a DLLogger record with incomplete JSON"),
        }
    }

    fn json(&mut self, document: &Value, line: u64, log: &mut StepLog) -> Outcome {
        self.record(document, line, log)
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        summary.config.merge(&summary.context.settings);
        summary.facts.set_optional("consumed_samples_last", self.consumed.map(number_to_json));
        let (all, stats) = (summary.all(), summary.stats(&summary.all().seconds));
        let rate = stats.and_then(|stats| tokens_per_second(&summary.config, all.batch, stats.mean));
        summary.facts.set_optional("tokens_per_s_no_warmup", rate);
    }
}
