//! The Hugging Face Trainer: dictionaries it prints, with a summary a rank, and `trainer_state.json`.

use serde_json::{Value, json};

use crate::json::{self, json_number};
use crate::lines::Line;
use crate::reading::{Config, Context, Origin, Reading, Weight, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::text;
use crate::training::{LISTED, Step, Training, ends};

/// Reads both.
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
    /// The block of `***** train metrics *****` at hand.
    block: Option<serde_json::Map<String, Value>>,
}

impl Recogniser for HfTrainer {
    fn triggers(&self) -> &'static [&'static str] {
        &[
            "{'loss':",
            "{'train_runtime':",
            "'epoch':",
            "{'eval_",
            "Number of trainable parameters =",
            "Num examples =",
            " metrics *****",
        ]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if text.trim_ascii_start().starts_with("*****") && text.trim_ascii_end().ends_with(" metrics *****") {
            self.close(line.number);
            self.block = Some(serde_json::Map::new());
            return Outcome::Took;
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
                return Outcome::Took;
            }
            self.close(line.number);
        }
        if let Some(parameters) = text::number_after(text, "Number of trainable parameters =") {
            self.config.number("parameters_billion", Some(parameters / 1e9), Origin::File);
            return Outcome::Noted;
        }
        let Some(start) = text.find("{'") else { return Outcome::No };
        let literal = text.get(start..).and_then(|rest| rest.get(..=rest.rfind('}')?));
        match literal.and_then(json::python_literal) {
            Some(record) => self.record(&record, line.number),
            None => Outcome::Skipped("a dictionary of the Trainer that is not whole"),
        }
    }

    fn open(&self) -> bool {
        self.block.is_some()
    }

    fn json(&mut self, document: &Value, line: u64) -> Outcome {
        let Some(history) = document.get("log_history").and_then(Value::as_array) else {
            return if document.get("train_runtime").is_some() && document.get("train_samples_per_second").is_some() {
                // train_results.json and all_results.json hold the summary alone.
                self.record(document, line)
            } else {
                Outcome::No
            };
        };
        for record in history {
            self.record(record, line);
        }
        let mut state = document.clone();
        if let Some(map) = state.as_object_mut() {
            map.remove("log_history");
        }
        self.state = Some(state);
        Outcome::Took
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        self.close(0);
        if self.state.is_none() && self.summary.is_none() && self.training.is_empty() {
            return Vec::new();
        }
        let mut facts = self.training.facts("steps", 1, context);
        let all = &self.training.all;
        facts.set("train_records", all.n);
        facts.set("eval_records", self.evals.len());
        facts.some("loss", ends(&all.loss));
        facts.some("num_tokens_last", self.tokens);
        if !self.evals.is_empty() {
            facts.set("eval_samples_per_second", self.evals);
            facts.set("eval_runtime_s", self.eval_seconds);
            facts.set("eval_loss", self.eval_losses);
        }
        let field = |value: &Option<Value>, name: &str| value.as_ref().and_then(|value| json_number(value.get(name)?));
        for name in ["global_step", "max_steps", "train_batch_size", "total_flos", "num_train_epochs"] {
            facts.some(name, field(&self.state, name).map(tidy));
        }
        let runtime = field(&self.summary, "train_runtime");
        if self.summary.is_some() {
            facts.set("summary_records", self.summaries);
            facts.some("train_runtime_s", runtime);
            for name in ["train_samples_per_second", "train_steps_per_second", "train_loss", "epoch", "total_flos"] {
                facts.some(name, field(&self.summary, name));
            }
        }
        self.config.merge(&context.settings);
        let steps = field(&self.state, "global_step").or_else(|| self.config.get("total_steps"));
        let mut training = self.training;
        if let (Some(runtime), Some(steps)) = (runtime, steps.filter(|steps| *steps > 0.0)) {
            // One figure over all steps, warm-up included: there is no better in these files.
            if training.is_empty() {
                training.push(Step { seconds: Some(runtime / steps), ..Step::default() });
            } else if let Some(run) = training.runs.last_mut() {
                run.seconds.push(runtime / steps);
            }
        }
        let (format, notes) = if self.state.is_some() {
            ("hf-trainer-state", Vec::new())
        } else {
            ("hf-trainer-stdout", vec!["one summary a rank is one run: nothing was added up".to_owned()])
        };
        let reading = Reading {
            tool: "hf_trainer",
            format,
            weight: Weight::Result,
            facts,
            config: self.config,
            notes,
            ..Reading::default()
        };
        vec![training.reading(reading, 1, context)]
    }
}

/// A value of a block of metrics: `2.3456`, `0:10:23.45`, `12345678GF` (1e9 FLOPs).
fn metric(value: &str) -> Option<f64> {
    if value.contains(':') {
        let (days, clock) = match value.split_once(" day") {
            Some((days, clock)) => (text::number(days)?, clock.trim_start_matches(['s', ',', ' '])),
            None => (0.0, value),
        };
        let seconds = clock.split(':').try_fold(0.0, |sum, part| Some(sum * 60.0 + text::number(part)?))?;
        return Some(days * 86_400.0 + seconds);
    }
    let (number, rest) = text::leading(value)?;
    Some(if rest.starts_with("GF") { number * 1e9 } else { number })
}

impl HfTrainer {
    /// Takes the block at hand for a record, as the dictionary that says the same.
    fn close(&mut self, line: u64) {
        if let Some(block) = self.block.take().filter(|block| !block.is_empty()) {
            self.record(&Value::Object(block), line);
        }
    }

    fn record(&mut self, record: &Value, line: u64) -> Outcome {
        let number = |name: &str| record.get(name).and_then(json_number);
        if record.get("train_runtime").is_some() {
            self.summaries += 1;
            self.summary.get_or_insert_with(|| record.clone());
            return Outcome::Took;
        }
        if let Some(rate) = number("eval_samples_per_second").or_else(|| number("eval_runtime")) {
            if self.evals.len() < LISTED {
                self.evals.push(rate.into());
                self.eval_seconds.push(json!(number("eval_runtime")));
                self.eval_losses.push(json!(number("eval_loss")));
            }
            return Outcome::Took;
        }
        let Some(loss) = number("loss").filter(|_| record.get("epoch").is_some() || record.get("step").is_some())
        else {
            return Outcome::No;
        };
        self.training.push(Step {
            step: number("step").map(|step| step.max(0.0) as u64),
            loss: Some(loss),
            learning_rate: number("learning_rate"),
            grad_norm: number("grad_norm"),
            line,
            ..Step::default()
        });
        self.tokens = number("num_tokens").or_else(|| number("num_input_tokens_seen")).or(self.tokens);
        Outcome::Took
    }
}
