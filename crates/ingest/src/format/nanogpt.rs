//! nanoGPT (`iter 1631: loss 4.0863, time 561.94ms, mfu 35.20%`) and the speedruns derived from it (modded-nanogpt:
//! `step:137/1530 train_loss:4.3672 train_time:20412ms step_avg:160.72ms`).

use serde_json::json;

use crate::lines::Line;
use crate::quantity::{milliseconds_after, seconds_after};
use crate::reading::{Origin, number_to_json};
use crate::recognizer::Outcome;
use crate::series::Series;
use crate::step_log::{MFU_PERCENT, Spec, StepFormat, StepLog, StepReader, Summary};
use crate::text::{has, number_after, parse_integer, parse_leading_number, text_after};
use crate::training::{Step, Training, series_ends};

/// Recognizer of nanoGPT.
pub type NanoGpt = StepReader<Lines>;

/// Recognizer of the speedruns.
pub type ModdedNanoGpt = StepReader<Timings>;

/// Parser of nanoGPT's lines.
#[derive(Debug, Default)]
pub struct Lines {
    tokens_per_iteration: Option<f64>,
    /// Training and validation losses of lines like `step 250: train loss 2.4531, val loss 2.4601`.
    evaluated: Series,
    validated: Series,
}

impl StepFormat for Lines {
    const SPEC: Spec = Spec {
        tool: "nanogpt",
        format: "nanogpt",
        triggers: &["iter ", ", val loss ", "tokens per iteration will be", "number of parameters:"],
        counter: "iterations",
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let text = line.text;
        if let Some(tokens) = number_after(text, "tokens per iteration will be") {
            if !log.is_empty() && self.tokens_per_iteration.is_some_and(|known| known != tokens) {
                return Outcome::NewDocument;
            }
            self.tokens_per_iteration = Some(tokens);
            return Outcome::Settings;
        }
        if let Some(millions) = number_after(text, "number of parameters:").filter(|_| text.trim_end().ends_with('M')) {
            log.config.number("parameters_billion", Some(millions / 1e3), Origin::File);
            return Outcome::Settings;
        }
        if let Some((_, rest)) = text_after(text, "step ").and_then(parse_leading_number)
            && let Some(rest) = rest.strip_prefix(": train loss ")
            && let (Some((train, _)), Some(validation)) = (parse_leading_number(rest), number_after(rest, "val loss "))
        {
            self.evaluated.push(train);
            self.validated.push(validation);
            return Outcome::Recognized;
        }
        let Some((iteration, rest)) = text_after(text, "iter ").and_then(parse_leading_number) else {
            return Outcome::NotRecognized;
        };
        let Some(rest) = rest.strip_prefix(": loss ") else { return Outcome::NotRecognized };
        // lit-llama, which is derived from nanoGPT, adds a colon after `time`.
        let Some(seconds) = seconds_after(rest, "time", 1.0).filter(|seconds| *seconds > 0.0) else {
            return Outcome::Unusable("a nanoGPT iteration without a time");
        };
        log.push(Step {
            step: Some(iteration as u64),
            seconds: Some(seconds),
            loss: number_after(rest, ""),
            mfu: number_after(rest, "mfu ").filter(|share| *share >= 0.0),
            line: line.number,
            ..Step::default()
        });
        Outcome::Recognized
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        if !self.validated.is_empty() {
            summary.facts.set("val_records", self.validated.len());
            summary.facts.set_optional("val_loss", series_ends(&self.validated));
            summary.facts.set_optional("eval_train_loss", series_ends(&self.evaluated));
        }
        summary.add_series_statistics(MFU_PERCENT);
        if let Some(tokens) = self.tokens_per_iteration {
            summary.facts.set("tokens_per_iteration", number_to_json(tokens));
            if let Some(length) = summary.context.settings.get("seq_len").filter(|length| *length > 0.0) {
                let how = Origin::Derived("tokens per iteration / sequence length");
                summary.config.number("global_batch_size", Some(tokens / length), how);
            }
            let stats = summary.stats(&summary.all().seconds);
            summary.facts.set_optional("tokens_per_s_no_warmup", stats.map(|stats| tokens / stats.mean));
        }
    }
}

/// Parser of the lines of the speedruns.
#[derive(Debug, Default)]
pub struct Timings {
    /// The validations, from which step times are derived if the log has no other lines.
    validated: Training,
    validation_clock: Clock,
    validation_loss: Series,
    validations: u64,
    average: Option<f64>,
    clock: Clock,
    last_step: Option<u64>,
    /// Whether the log has no other steps than those with a validation.
    only_validations: bool,
}

/// Accumulated training time, which the tool resets after the first steps.
#[derive(Debug, Default)]
struct Clock {
    last: Option<(u64, f64)>,
    /// Milliseconds per step since the last reset.
    differences: Series,
    reset_after: Option<u64>,
}

impl Clock {
    /// Returns the milliseconds per step since the last reading.
    fn difference(&self, step: u64, milliseconds: f64) -> Option<f64> {
        let (before, clock) = self.last.filter(|(before, _)| step > *before)?;
        Some((milliseconds - clock) / (step - before) as f64)
    }

    /// Adds a reading.
    fn push(&mut self, step: u64, milliseconds: f64) {
        match (self.difference(step, milliseconds), self.last) {
            (Some(difference), Some((before, _))) if difference < 0.0 => {
                self.reset_after = Some(before);
                self.differences = Series::default();
            }
            (Some(difference), _) => self.differences.push(difference),
            // The step counter restarted.
            (None, Some(_)) => self.differences = Series::default(),
            (None, None) => {}
        }
        self.last = Some((step, milliseconds));
    }
}

impl StepFormat for Timings {
    const SPEC: Spec = Spec {
        tool: "nanogpt",
        format: "modded-nanogpt",
        triggers: &["train_time:"],
        notes: &["step times are differences of the training clock since its last reset"],
        ..Spec::DEFAULT
    };

    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome {
        let text = line.text;
        let counter = text_after(text, "step:").or_else(|| text_after(text, "step ")).and_then(parse_leading_number);
        let Some((step, rest)) = counter else { return Outcome::NotRecognized };
        let clock = milliseconds_after(rest, "train_time:", 1.0).filter(|milliseconds| *milliseconds >= 0.0);
        let Some(milliseconds) = clock else { return Outcome::NotRecognized };
        let step = step.max(0.0) as u64;
        let planned = rest.strip_prefix('/').and_then(parse_integer);
        let validation = number_after(rest, "val_loss:");
        let validating = has(rest, "val_loss:");
        let (training, clock) = if validating {
            (&mut self.validated, &mut self.validation_clock)
        } else {
            (&mut log.training, &mut self.clock)
        };
        if training.runs.last().is_some_and(|run| run.planned.is_some() && planned.is_some() && run.planned != planned)
        {
            // Another run started, whose clock restarts.
            *clock = Clock::default();
        }
        let difference = clock.difference(step, milliseconds).filter(|difference| *difference >= 0.0);
        let new = training.push(Step {
            step: Some(step),
            planned,
            seconds: difference.map(|difference| difference / 1e3),
            loss: number_after(rest, "train_loss:"),
            line: line.number,
            ..Step::default()
        });
        if !new {
            return Outcome::Recognized;
        }
        clock.push(step, milliseconds);
        self.validations += u64::from(validating);
        validation.into_iter().for_each(|loss| self.validation_loss.push(loss));
        if !validating || log.is_empty() {
            self.last_step = Some(step);
            self.average = milliseconds_after(rest, "step_avg:", 1e-3).or(self.average);
        }
        Outcome::Recognized
    }

    fn close(&mut self, log: &mut StepLog) {
        if log.is_empty() {
            log.training = std::mem::take(&mut self.validated);
            self.clock = std::mem::take(&mut self.validation_clock);
            self.only_validations = true;
        }
    }

    fn summarize(self, summary: &mut Summary<'_>) {
        let Summary { training, facts, config, notes, context, .. } = summary;
        if self.only_validations {
            let averaged = "only validations are timed: step times are averages between them, without their duration";
            notes.push(averaged.to_owned());
        }
        facts.set("n_train_records", training.all().n);
        facts.set_optional("planned_steps", training.all().planned);
        facts.set_optional("last_step", self.last_step);
        facts.set_optional("step_avg_ms_last", self.average);
        let differences = &self.clock.differences;
        if let Some(stats) = differences.stats(1.min(differences.len().saturating_sub(1)), context.seed) {
            let steps = json!({"n": stats.n - stats.warmup_dropped, "median": stats.median, "mean": stats.mean,
                "std": stats.std, "p95": stats.p95});
            facts.set("step_time_ms_from_differences", steps);
        }
        facts.set_optional("timer_reset_after_step", self.clock.reset_after);
        facts.set("val_records", self.validations);
        facts.set_optional("val_loss", series_ends(&self.validation_loss));
        // The speedruns use one node, whose devices they print first.
        let how = Origin::Derived("one node with the devices listed by nvidia-smi");
        config.number("num_gpus", context.settings.get("gpus_per_node"), how);
    }
}
