//! Training runs: steps and their time series.

use super::config::Config;
use super::context::Context;
use super::series::{Series, Stats};

/// One step, or the average over one log interval, as stated by a line. Fields that the line lacks are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Step {
    /// Step number.
    pub step: Option<u64>,
    /// Planned number of steps.
    pub planned: Option<u64>,
    /// Seconds per step.
    pub seconds: Option<f64>,
    /// Training loss.
    pub loss: Option<f64>,
    /// Learning rate.
    pub learning_rate: Option<f64>,
    /// Gradient norm.
    pub grad_norm: Option<f64>,
    /// Tokens per second and accelerator.
    pub tokens_per_gpu: Option<f64>,
    /// Model TFLOP/s per accelerator, as reported by the tool.
    pub tflops_per_gpu: Option<f64>,
    /// MFU in percent, as reported by the tool.
    pub mfu: Option<f64>,
    /// Sequences per step (global batch size).
    pub batch: Option<f64>,
    /// Memory in use, GB.
    pub memory_gb: Option<f64>,
    /// Line number in the file.
    pub line: u64,
}

/// A training run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Number of records.
    pub n: usize,
    /// Step number of the first record.
    pub first_step: Option<u64>,
    /// Step number of the second record.
    pub second_step: Option<u64>,
    /// Step number of the last record that has one.
    pub last_step: Option<u64>,
    /// Highest step number.
    pub max_step: Option<u64>,
    /// Step distance between the first records. Only meaningful if the distance is constant; see [`Run::log_interval`].
    pub interval: Option<u64>,
    irregular: bool,
    /// Whether the first steps are warm-up although the run does not start at step 0, because it was recompiled.
    pub recompiled: bool,
    /// Planned number of steps.
    pub planned: Option<u64>,
    /// Sequences per step (global batch size), as last stated.
    pub batch: Option<f64>,
    /// Seconds per step.
    pub seconds: Series,
    /// Training loss.
    pub loss: Series,
    /// Learning rate.
    pub learning_rate: Series,
    /// Gradient norm.
    pub grad_norm: Series,
    /// Tokens per second and accelerator.
    pub tokens: Series,
    /// TFLOP/s per accelerator, as reported by the tool.
    pub tflops: Series,
    /// MFU in percent, as reported by the tool.
    pub mfu: Series,
    /// Memory in use, GB.
    pub memory: Series,
    /// Numbers of the first and the last line in the file.
    pub lines: [u64; 2],
    /// Settings of this run only.
    pub config: Config,
}

impl Run {
    /// Adds a record.
    pub(crate) fn push(&mut self, step: &Step) {
        if self.n == 0 {
            self.first_step = step.step;
            self.lines[0] = step.line;
        } else if self.n == 1 {
            self.second_step = step.step;
        }
        if let (Some(before), Some(now)) = (self.last_step, step.step) {
            let distance = now.checked_sub(before).filter(|distance| *distance > 0);
            self.irregular |= distance.is_none() || self.interval.is_some_and(|known| Some(known) != distance);
            self.interval = self.interval.or(distance);
        }
        self.n += 1;
        self.lines[1] = step.line;
        self.last_step = step.step.or(self.last_step);
        self.max_step = self.max_step.max(step.step);
        self.planned = step.planned.or(self.planned);
        self.batch = step.batch.or(self.batch);
        for (series, value) in [
            (&mut self.seconds, step.seconds),
            (&mut self.loss, step.loss),
            (&mut self.learning_rate, step.learning_rate),
            (&mut self.grad_norm, step.grad_norm),
            (&mut self.tokens, step.tokens_per_gpu),
            (&mut self.tflops, step.tflops_per_gpu),
            (&mut self.mfu, step.mfu),
            (&mut self.memory, step.memory_gb),
        ] {
            if let Some(value) = value {
                series.push(value);
            }
        }
    }

    /// Number of steps between two records, if it is constant.
    #[must_use]
    pub fn log_interval(&self) -> Option<u64> {
        self.interval.filter(|_| !self.irregular)
    }

    /// Whether the log includes the start of the run: it starts at step 0 or 1, or the second record is at twice the
    /// step of the first. Also true for recompiled runs and without step numbers.
    #[must_use]
    pub fn includes_start(&self) -> bool {
        match (self.first_step, self.second_step) {
            _ if self.recompiled => true,
            (None, _) | (Some(0 | 1), _) => true,
            (Some(first), Some(second)) => second.checked_sub(first) == Some(first),
            (Some(_), None) => false,
        }
    }

    /// Statistics of `series`, one of the series of this run, without its warm-up.
    #[must_use]
    pub fn stats(&self, series: &Series, tool_warmup_steps: usize, context: &Context) -> Option<Stats> {
        let drop = series.warmup(context.warmup, self.includes_start(), tool_warmup_steps);
        series.stats(drop, context.seed)
    }
}
