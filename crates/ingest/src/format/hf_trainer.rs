//! The Hugging Face Trainer: printed dictionaries with a summary per rank, and `trainer_state.json`.

use serde_json::{Value, json};

use crate::json::{self, json_number};
use crate::lines::Line;
use crate::observation::Observation;
use crate::quantity::duration;
use crate::reading::{Config, Context, Importance, Origin, Reading, number_to_json};
use crate::recognizer::{Outcome, Recognizer};
use crate::text;
use crate::training::{MAX_LISTED, Step, Training, series_ends};

/// Recognizer of both forms.
#[derive(Debug, Default)]
pub struct HfTrainer {
    training: Training,
    evals: Vec<Value>,
    eval_seconds: Vec<Value>,
    eval_losses: Vec<Value>,
    summary: Option<Value>,
    summaries: u64,
    state: Option<Value>,
    tokens: Option<f64>,
    config: Config,
    /// The current block of `***** train metrics *****`.
    block: Option<serde_json::Map<String, Value>>,
    /// Last state of the progress bar of training, and the total number of steps of that bar.
    bar: Option<Bar>,
    total: Option<u64>,
    /// Whether rows of the table of losses in a notebook follow.
    table: bool,
    /// Steps and seconds stated by the progress in a notebook.
    progress: Option<(u64, f64)>,
    steps: Option<f64>,
    /// Whether step times come from a progress bar.
    smoothed: bool,
    /// Last step of ms-swift, and seconds elapsed until then.
    elapsed: Option<(u64, f64)>,
}

impl Recognizer for HfTrainer {
    fn triggers(&self) -> &'static [&'static str] {
        &[
            "{'loss':",
            "{'train_runtime':",
            "'epoch':",
            "{'eval_",
            "Number of trainable parameters =",
            "Num examples =",
            " metrics *****",
            "s/it]",
            "it/s]",
            "Total optimization steps",
            "Training Loss",
            ", Epoch ",
        ]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if text.trim_ascii_start().starts_with("*****") && text.trim_ascii_end().ends_with(" metrics *****") {
            self.close(line.number);
            self.block = Some(serde_json::Map::new());
            return Outcome::Recognized;
        }
        if let Some(block) = &mut self.block {
            let pair = text.split_once(" = ").or_else(|| text.split_once('=')).filter(|_| block.len() < 64);
            let name = pair.map(|(name, _)| name.trim()).filter(|name| {
                !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            });
            if let (Some((_, value)), Some(name)) = (pair, name) {
                if let Some(value) = metric(value.trim()) {
                    block.insert(name.to_owned(), value.into());
                }
                return Outcome::Recognized;
            }
            self.close(line.number);
        }
        if let Some(parameters) = text::number_after(text, "Number of trainable parameters =") {
            self.config.number("parameters_billion", Some(parameters / 1e9), Origin::File);
            return Outcome::Settings;
        }
        if let Some(steps) = text::number_after(text, "Total optimization steps").filter(|steps| *steps >= 1.0) {
            self.total = Some(steps as u64);
            return Outcome::Settings;
        }
        if let Some(outcome) = self.notebook(text, line.number) {
            return outcome;
        }
        let start = text.find("{'");
        let bars = bars(text.get(..start.unwrap_or(text.len())).unwrap_or_default());
        if let Some(bar) = bars.into_iter().rfind(|bar| self.total.is_none_or(|total| total == bar.total)) {
            self.bar = Some(bar);
        }
        let Some(start) = start else { return Outcome::NotRecognized };
        let literal = text.get(start..).and_then(|rest| rest.get(..=rest.rfind('}')?));
        match literal.and_then(json::python_literal) {
            Some(record) if self.begins(&record) => Outcome::NewDocument,
            Some(record) => {
                if record.get("train_runtime").is_some() {
                    // `TrainOutput(global_step=500, training_loss=1.2, metrics={'train_runtime': …`
                    self.steps = text::number_after(text, "global_step=").or(self.steps);
                }
                self.record(&record, line.number)
            }
            None => Outcome::Unusable("an incomplete dictionary of the Trainer"),
        }
    }

    fn in_block(&self) -> bool {
        self.block.is_some() || self.table
    }

    fn blank_line(&mut self) {
        self.table = false;
    }

    fn json(&mut self, document: &Value, line: u64) -> Outcome {
        let Some(history) = document.get("log_history").and_then(Value::as_array) else {
            return if document.get("train_runtime").is_some() && document.get("train_samples_per_second").is_some() {
                // train_results.json and all_results.json contain only the summary.
                if self.begins(document) { Outcome::NewDocument } else { self.record(document, line) }
            } else {
                Outcome::NotRecognized
            };
        };
        if self.state.is_some() || self.summary.is_some() || !self.training.is_empty() {
            return Outcome::NewDocument;
        }
        for record in history {
            self.record(record, line);
        }
        let mut state = document.clone();
        if let Some(map) = state.as_object_mut() {
            map.remove("log_history");
        }
        self.state = Some(state);
        Outcome::Recognized
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.training.append_observations(out);
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.close(0);
        if self.state.is_none() && self.summary.is_none() && self.training.is_empty() {
            return Vec::new();
        }
        let mut notes = Vec::new();
        let mut facts = self.training.facts("steps", 1, context);
        let all = self.training.all();
        facts.set("train_records", all.n);
        facts.set("eval_records", self.evals.len());
        facts.set_optional("loss", series_ends(&all.loss));
        facts.set_optional("num_tokens_last", self.tokens);
        facts.set_optional("tokens_per_s_per_gpu", all.stats(&all.tokens, 1, context).map(|stats| stats.json()));
        facts.set_optional("max_memory_gb", all.memory.max());
        if !self.evals.is_empty() {
            facts.set("eval_samples_per_second", self.evals);
            facts.set("eval_runtime_s", self.eval_seconds);
            facts.set("eval_loss", self.eval_losses);
        }
        let field = |value: &Option<Value>, name: &str| value.as_ref().and_then(|value| json_number(value.get(name)?));
        for name in ["global_step", "max_steps", "train_batch_size", "total_flos", "num_train_epochs"] {
            facts.set_optional(name, field(&self.state, name).map(number_to_json));
        }
        let runtime = field(&self.summary, "train_runtime");
        if self.summary.is_some() {
            facts.set("summary_records", self.summaries);
            facts.set_optional("train_runtime_s", runtime);
            for name in ["train_samples_per_second", "train_steps_per_second", "train_loss", "epoch", "total_flos"] {
                facts.set_optional(name, field(&self.summary, name));
            }
        }
        self.config.merge(&context.settings);
        let steps = field(&self.state, "global_step").or(self.steps).or_else(|| self.config.get("total_steps"));
        let mut training = self.training;
        let timed = !training.all().seconds.is_empty();
        if self.smoothed {
            notes.push("step times are from the progress bar, which smooths them".to_owned());
        }
        match (runtime, self.progress) {
            _ if timed => {}
            (None, Some((steps, seconds))) => {
                facts.set("progress_steps", steps);
                facts.set("progress_elapsed_s", seconds);
                if let Some(run) = training.runs.last_mut() {
                    run.seconds.push(seconds / steps as f64);
                }
            }
            (Some(runtime), _) => {
                // A mean over all steps, including warm-up: these files have no better value.
                let mean = steps.filter(|steps| *steps > 0.0).map(|steps| runtime / steps);
                match (training.runs.last_mut(), mean) {
                    (Some(run), Some(mean)) => run.seconds.push(mean),
                    (None, Some(_)) => drop(training.push(Step { seconds: mean, ..Step::default() })),
                    (_, None) => {}
                }
            }
            (None, None) => {}
        }
        let format = if self.state.is_some() { "hf-trainer-state" } else { "hf-trainer-stdout" };
        if self.summaries > 1 {
            notes.push("every rank prints a summary of the same run; the summaries are not summed".to_owned());
        }
        let reading = Reading {
            tool: "hf_trainer",
            format,
            importance: Importance::Result,
            facts,
            config: self.config,
            notes,
            ..Reading::default()
        };
        vec![training.reading(reading, 1, context)]
    }
}

/// Parses a value of a block of metrics: `2.3456`, `0:10:23.45`, `12345678GF` (1e9 FLOPs).
fn metric(value: &str) -> Option<f64> {
    if value.contains(':') {
        return duration(value);
    }
    let (number, rest) = text::parse_leading_number(value)?;
    Some(if rest.starts_with("GF") { number * 1e9 } else { number })
}

/// A state of a progress bar: `6%|▋  | 1/16 [00:02<00:33,  2.2s/it]`.
#[derive(Debug, Clone, Copy)]
struct Bar {
    step: u64,
    total: u64,
    /// Smoothed seconds per step. The first state has none.
    seconds: Option<f64>,
}

/// Parses the progress bars of a line, of which there are several if carriage returns were lost.
fn bars(text: &str) -> Vec<Bar> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('[') {
        rest = behind;
        let position = before.trim_end().rsplit(['|', ' ']).next().unwrap_or_default();
        let counts = position.split_once('/').and_then(|(step, total)| Some((step.parse().ok()?, total.parse().ok()?)));
        let (Some((step, total)), Some((inside, _))) = (counts, behind.split_once(']')) else { continue };
        let rate = inside.rsplit(',').next().unwrap_or_default().trim();
        let seconds = text::parse_leading_number(rate).and_then(|(value, unit)| match unit.trim() {
            "s/it" => Some(value),
            "it/s" if value > 0.0 => Some(1.0 / value),
            _ => None,
        });
        out.push(Bar { step, total, seconds });
    }
    out
}

impl HfTrainer {
    /// Parses the table of losses and the progress of a notebook: `| Step | Training Loss |` and the rows below, and
    /// `[500/500 12:34, Epoch 1/1]`.
    fn notebook(&mut self, text: &str, line: u64) -> Option<Outcome> {
        let text = text.trim_ascii();
        let progress = text.strip_prefix('[').and_then(|inside| inside.split_once(", Epoch "));
        if let Some((counts, rest)) = progress {
            let (position, clock) = counts.trim().split_once(' ')?;
            let step: u64 = position.split_once('/')?.0.trim().parse().ok().filter(|step| *step > 0)?;
            let seconds = duration(clock.split('<').next()?)?;
            rest.contains(']').then_some(())?;
            self.progress = Some((step, seconds));
            return Some(Outcome::Recognized);
        }
        if !text.starts_with('|') {
            self.table = false;
            return None;
        }
        let mut cells = text.trim_matches('|').split('|').map(str::trim);
        if cells.clone().next() == Some("Step") && text.contains("Training Loss") {
            self.table = true;
            return Some(Outcome::Recognized);
        }
        if !self.table {
            return None;
        }
        let (step, loss) = (text::parse_integer(cells.next()?)?, text::number(cells.next()?)?);
        self.training.push(Step { step: Some(step), loss: Some(loss), line, ..Step::default() });
        Some(Outcome::Recognized)
    }

    /// Whether a record belongs to another run: it starts after the summary of the current run, or has a different
    /// summary. Summaries of different ranks of a run differ by little.
    fn begins(&self, record: &Value) -> bool {
        let Some(summary) = &self.summary else { return false };
        let runtime = |record: &Value| record.get("train_runtime").and_then(json_number);
        match (runtime(summary), runtime(record)) {
            (Some(known), Some(now)) => (now - known).abs() > 0.05 * known.abs(),
            _ => record.get("loss").is_some(),
        }
    }

    /// Ends the current block, and reads it like the equivalent dictionary.
    fn close(&mut self, line: u64) {
        if let Some(block) = self.block.take().filter(|block| !block.is_empty()) {
            self.record(&Value::Object(block), line);
        }
    }

    /// Returns step number and time of a record of ms-swift. The record states the mean speed since the start, so the
    /// time since the previous record is computed from both records.
    fn swift(&mut self, record: &Value) -> Option<Bar> {
        let (step, total) = record.get("global_step/max_steps")?.as_str()?.split_once('/')?;
        let (step, total): (u64, u64) = (step.trim().parse().ok()?, total.trim().parse().ok()?);
        let number = |name: &str| record.get(name).and_then(json_number).filter(|value| *value > 0.0);
        let mean = number("train_speed(s/it)").or_else(|| number("train_speed(iter/s)").map(f64::recip));
        let elapsed = mean.map(|mean| mean * step as f64);
        let (before, then) = self.elapsed.filter(|(before, _)| *before < step).unwrap_or_default();
        let seconds = elapsed.map(|now| (now - then) / (step - before) as f64).filter(|seconds| *seconds > 0.0);
        self.elapsed = elapsed.map(|now| (step, now));
        Some(Bar { step, total, seconds })
    }

    fn record(&mut self, record: &Value, line: u64) -> Outcome {
        let number = |name: &str| record.get(name).and_then(json_number);
        if record.get("train_runtime").is_some() {
            self.summaries += 1;
            self.summary.get_or_insert_with(|| record.clone());
            return Outcome::Recognized;
        }
        if let Some(rate) = number("eval_samples_per_second").or_else(|| number("eval_runtime")) {
            if self.evals.len() < MAX_LISTED {
                self.evals.push(rate.into());
                self.eval_seconds.push(json!(number("eval_runtime")));
                self.eval_losses.push(json!(number("eval_loss")));
            }
            return Outcome::Recognized;
        }
        let Some(loss) = number("loss").filter(|_| record.get("epoch").is_some() || record.get("step").is_some())
        else {
            return Outcome::NotRecognized;
        };
        let swift = self.swift(record);
        let bar = self.bar.filter(|_| number("step").is_none() && swift.is_none());
        if let Some(bar) = bar {
            self.total = self.total.or(Some(bar.total));
            self.smoothed |= bar.seconds.is_some();
        }
        let state = bar.or(swift);
        // ms-swift and axolotl add memory in GiB, axolotl also the rate per accelerator.
        let memory = number("memory(GiB)").or_else(|| number("memory/max_mem_allocated(gib)"));
        self.training.push(Step {
            step: number("step").map(|step| step.max(0.0) as u64).or(state.map(|state| state.step)),
            planned: state.map(|state| state.total),
            seconds: state.and_then(|state| state.seconds),
            loss: Some(loss),
            learning_rate: number("learning_rate"),
            grad_norm: number("grad_norm"),
            tokens_per_gpu: number("tokens_per_second_per_gpu").filter(|rate| *rate > 0.0),
            memory_gb: memory.map(|gib| gib * 1.073_741_824),
            line,
            ..Step::default()
        });
        self.tokens = number("num_tokens").or_else(|| number("num_input_tokens_seen")).or(self.tokens);
        Outcome::Recognized
    }
}
