//! nanoGPT (`iter 1631: loss 4.0863, time 561.94ms, mfu 35.20%`) and the speed runs that descend from it
//! (`step:137/1530 train_loss:4.3672 train_time:20412ms step_avg:160.72ms`).

use serde_json::json;

use crate::lines::Line;
use crate::reading::{Config, Context, Origin, Reading, Weight, tidy};
use crate::recogniser::{Outcome, Recogniser};
use crate::series::Series;
use crate::text::{after, has, leading, number_after, whole};
use crate::training::{Step, Training, ends};

/// Reads nanoGPT.
#[derive(Debug, Default)]
pub struct NanoGpt {
    training: Training,
    config: Config,
    tokens_per_iteration: Option<f64>,
    /// Losses of `step 250: train loss 2.4531, val loss 2.4601`.
    evaluated: Series,
    validated: Series,
}

impl Recogniser for NanoGpt {
    fn triggers(&self) -> &'static [&'static str] {
        &["iter ", ", val loss ", "tokens per iteration will be", "number of parameters:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        if let Some(tokens) = number_after(text, "tokens per iteration will be") {
            self.tokens_per_iteration = Some(tokens);
            return Outcome::Noted;
        }
        if let Some(millions) = number_after(text, "number of parameters:").filter(|_| text.trim_end().ends_with('M')) {
            self.config.number("parameters_billion", Some(millions / 1e3), Origin::File);
            return Outcome::Noted;
        }
        if let Some((_, rest)) = after(text, "step ").and_then(leading)
            && let Some(rest) = rest.strip_prefix(": train loss ")
            && let (Some((train, _)), Some(validation)) = (leading(rest), number_after(rest, "val loss "))
        {
            self.evaluated.push(train);
            self.validated.push(validation);
            return Outcome::Took;
        }
        let Some((iteration, rest)) = after(text, "iter ").and_then(leading) else { return Outcome::No };
        let Some(rest) = rest.strip_prefix(": loss ") else { return Outcome::No };
        // lit-llama, which descends from it, puts a colon behind the word.
        let time = after(rest, "time").and_then(|time| leading(time.trim_start_matches(':')));
        let Some((time, unit)) = time.filter(|(time, _)| *time > 0.0 && time.is_finite()) else {
            return Outcome::Skipped("a nanoGPT iteration without a time");
        };
        let seconds = if unit.starts_with("ms") { time / 1e3 } else { time };
        self.training.push(Step {
            step: Some(iteration as u64),
            seconds: Some(seconds),
            loss: number_after(rest, ""),
            mfu: number_after(rest, "mfu ").filter(|share| *share >= 0.0),
            line: line.number,
            ..Step::default()
        });
        Outcome::Took
    }

    fn finish(mut self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.training.is_empty() {
            return Vec::new();
        }
        let mut facts = self.training.facts("iterations", 1, context);
        if !self.validated.is_empty() {
            facts.set("val_records", self.validated.len());
            facts.some("val_loss", ends(&self.validated));
            facts.some("eval_train_loss", ends(&self.evaluated));
        }
        let all = &self.training.all;
        facts.some("mfu_percent", all.stats(&all.mfu, 1, context).map(|stats| stats.json()));
        if let Some(tokens) = self.tokens_per_iteration {
            facts.set("tokens_per_iteration", tidy(tokens));
            if let Some(length) = context.settings.get("seq_len").filter(|length| *length > 0.0) {
                let how = Origin::Derived("tokens per iteration / sequence length");
                self.config.number("global_batch_size", Some(tokens / length), how);
            }
            let stats = all.stats(&all.seconds, 1, context);
            facts.some("tokens_per_s_no_warmup", stats.map(|stats| tokens / stats.mean));
        }
        let reading = Reading {
            tool: "nanogpt",
            format: "nanogpt",
            weight: Weight::Steps,
            facts,
            config: self.config,
            ..Reading::default()
        };
        vec![self.training.reading(reading, 1, context)]
    }
}

/// Reads the speed runs.
#[derive(Debug, Default)]
pub struct ModdedNanoGpt {
    training: Training,
    validations: u64,
    average: Option<f64>,
    last: Option<(u64, f64)>,
    /// Differences of the clock since it was last reset.
    differences: Series,
    reset_after: Option<u64>,
    last_step: Option<u64>,
}

impl Recogniser for ModdedNanoGpt {
    fn triggers(&self) -> &'static [&'static str] {
        &["train_time:"]
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        let text = line.text;
        let Some((step, rest)) = after(text, "step:").and_then(leading) else { return Outcome::No };
        let Some(time) = after(rest, "train_time:").and_then(leading) else { return Outcome::No };
        let step = step as u64;
        let milliseconds = if time.1.starts_with("ms") { time.0 } else { time.0 * 1e3 };
        if has(rest, "val_loss:") {
            self.validations += 1;
            return Outcome::Took;
        }
        let difference = match self.last {
            Some((before, clock)) if step > before => {
                let difference = (milliseconds - clock) / (step - before) as f64;
                if difference < 0.0 {
                    self.reset_after = Some(before);
                    self.differences = Series::default();
                }
                Some(difference).filter(|difference| *difference >= 0.0)
            }
            _ => None,
        };
        let new = self.training.push(Step {
            step: Some(step),
            planned: rest.strip_prefix('/').and_then(whole),
            seconds: difference.map(|difference| difference / 1e3),
            loss: number_after(rest, "train_loss:"),
            // Tells copies apart where there is no difference yet.
            tokens_per_gpu: None,
            line: line.number,
            ..Step::default()
        });
        if new || self.last.is_none() {
            if let Some(difference) = difference {
                self.differences.push(difference);
            }
            self.last = Some((step, milliseconds));
            self.last_step = Some(step);
            self.average = number_after(rest, "step_avg:").or(self.average);
        }
        Outcome::Took
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        if self.training.is_empty() {
            return Vec::new();
        }
        let mut facts = self.training.facts("steps", 1, context);
        facts.set("n_train_records", self.training.all.n);
        facts.some("planned_steps", self.training.all.planned);
        facts.some("last_step", self.last_step);
        facts.some("step_avg_ms_last", self.average);
        if let Some(stats) = self.differences.stats(1.min(self.differences.len().saturating_sub(1)), context.seed) {
            let told = json!({"n": stats.n - stats.warmup_dropped, "median": stats.median, "mean": stats.mean,
                "std": stats.std, "p95": stats.p95});
            facts.set("step_time_ms_from_differences", told);
        }
        facts.some("timer_reset_after_step", self.reset_after);
        facts.some("loss", ends(&self.training.all.loss));
        facts.set("val_records", self.validations);
        let mut config = Config::default();
        // The speed runs are runs of one node, and print its devices in front.
        let how = Origin::Derived("one node with the devices that nvidia-smi lists");
        config.number("num_gpus", context.settings.get("gpus_per_node"), how);
        let reading = Reading {
            tool: "nanogpt",
            format: "modded-nanogpt",
            weight: Weight::Steps,
            facts,
            config,
            notes: vec!["step times are differences of the clock of training, since its last reset".to_owned()],
            ..Reading::default()
        };
        vec![self.training.reading(reading, 1, context)]
    }
}
