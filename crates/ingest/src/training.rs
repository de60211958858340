//! Collects the steps of training runs from the lines of a tool, splits them into runs where the step counter restarts,
//! and drops copies printed by other ranks.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::observation::{Observation, PendingObservations};
use super::reading::{Config, Context, Facts, Origin, Reading, number_to_json};
pub use super::run::{Run, Step};
use super::series::Series;

/// Maximum number of separate runs. Further ones are merged into the last.
const MAX_RUNS: usize = 64;
/// Number of recent records that are compared with a new one to find copies. Copies are not further apart.
const RECENT_RECORDS: usize = 8;
/// Maximum number of records listed individually.
pub(crate) const MAX_LISTED: usize = 2000;

/// How copies of a record are detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DuplicateDetection {
    /// A copy has the same step, time and loss. For logs that print a record twice.
    #[default]
    Identical,
    /// A copy has the same step and loss. For logs to which every rank prints its own line.
    EveryRank,
}

/// Steps of all runs in a file.
#[derive(Debug, Clone, Default)]
pub struct Training {
    /// All records as one run, if there are several runs; see [`Training::all`].
    combined: Run,
    /// The runs, in order.
    pub runs: Vec<Run>,
    /// Number of copies that were dropped.
    pub copies: usize,
    /// How copies are detected.
    pub rule: DuplicateDetection,
    recent: VecDeque<(u64, u64, u64, u64)>,
    fresh: PendingObservations<Step>,
}

impl Training {
    /// Creates an empty collection that detects copies by `rule`.
    #[must_use]
    pub fn new(rule: DuplicateDetection) -> Training {
        Training { rule, ..Training::default() }
    }

    /// Adds a record. Returns whether it is new, not a copy.
    pub fn push(&mut self, step: Step) -> bool {
        let bits = |value: Option<f64>| value.map_or(0, f64::to_bits);
        let seconds =
            if self.rule == DuplicateDetection::EveryRank { 0 } else { bits(step.seconds.or(step.tokens_per_gpu)) };
        let key = (step.step.unwrap_or(u64::MAX), step.planned.unwrap_or(u64::MAX), bits(step.loss), seconds);
        if step.step.is_some() {
            if self.recent.contains(&key) {
                self.copies += 1;
                return false;
            }
            if self.recent.len() >= RECENT_RECORDS {
                self.recent.pop_front();
            }
            self.recent.push_back(key);
        }
        let another = self.runs.last().is_none_or(|run| {
            let back = matches!((run.last_step, step.step), (Some(last), Some(now)) if now < last);
            let replanned = matches!((run.planned, step.planned), (Some(known), Some(now)) if known != now);
            (back || replanned) && self.runs.len() < MAX_RUNS
        });
        if another {
            self.recent.clear();
            self.recent.push_back(key);
            if let [only] = self.runs.as_slice() {
                self.combined = only.clone();
            }
            self.runs.push(Run::default());
        }
        if self.runs.len() > 1 {
            self.combined.push(&step);
        }
        if let Some(run) = self.runs.last_mut() {
            run.push(&step);
        }
        self.fresh.push(step);
        true
    }

    /// All records as one run.
    #[must_use]
    pub fn all(&self) -> &Run {
        match self.runs.as_slice() {
            [only] => only,
            _ => &self.combined,
        }
    }

    /// Appends the steps since the last call to `out`.
    pub fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.fresh.take(out, Observation::Step);
    }

    /// Adds a setting of the current run.
    pub fn add_setting(&mut self, name: &'static str, value: Option<f64>) {
        if let Some(run) = self.runs.last_mut() {
            run.config.number(name, value, Origin::File);
        }
    }

    /// Marks as cold the runs whose first step took at least twice the median. For tools that compile at every start.
    pub fn find_cold_starts(&mut self) {
        for run in self.runs.iter_mut().chain([&mut self.combined]) {
            let first_and_median = run.seconds.first().zip(run.seconds.median());
            run.recompiled =
                run.seconds.len() > 2 && first_and_median.is_some_and(|(first, median)| first >= 2.0 * median);
        }
    }

    /// Whether there are no records.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Batch size, if it is the same in all runs.
    fn batch(&self) -> Option<f64> {
        let batch = self.all().batch;
        batch.filter(|_| self.runs.iter().all(|run| run.batch == batch))
    }

    /// Planned number of steps, if it is the same in all runs.
    fn planned(&self) -> Option<u64> {
        let planned = self.all().planned;
        planned.filter(|_| self.runs.iter().all(|run| run.planned == planned))
    }

    /// Facts common to all formats: number of records, first and last step under the name `steps`, step times, loss.
    pub fn facts(&self, steps: &str, tool_warmup_steps: usize, context: &Context) -> Facts {
        let mut facts = Facts::default();
        let all = self.all();
        facts.set("n_records", all.n);
        if let (Some(first), Some(last)) = (all.first_step, all.last_step) {
            facts.set(steps, json!([first, last]));
        }
        facts.set_optional("total_iterations_planned", self.planned());
        facts
            .set_optional("step_time_s", all.stats(&all.seconds, tool_warmup_steps, context).map(|stats| stats.json()));
        let drop = all.seconds.warmup(context.warmup, all.includes_start(), tool_warmup_steps);
        let outliers: Vec<Value> = all
            .seconds
            .outliers(drop, 100)
            .into_iter()
            .map(|(record, seconds)| json!({"record": record, "step_time_s": seconds}))
            .collect();
        if !outliers.is_empty() {
            facts.set("step_time_outliers", outliers);
        }
        facts.set_optional("global_batch_size", self.batch().map(number_to_json));
        facts.set_optional("loss", series_ends(&all.loss));
        facts.set_optional("log_interval", all.log_interval().filter(|_| self.runs.len() < 2));
        if self.runs.len() > 1 {
            facts.set("restarts", self.runs.len() - 1);
        }
        if self.copies > 0 {
            facts.set("copies_of_other_ranks", self.copies);
        }
        facts
    }

    /// Completes a reading with its runs, their common settings, and the facts that follow from its configuration.
    #[must_use]
    pub fn reading(mut self, mut reading: Reading, tool_warmup_steps: usize, context: &Context) -> Reading {
        reading.kind = if reading.kind.is_empty() { "training" } else { reading.kind };
        reading.tool_warmup_steps = tool_warmup_steps;
        for run in &mut self.runs {
            run.config.number("global_batch_size", run.batch, Origin::File);
            run.config.number("total_steps", run.planned.map(|planned| planned as f64), Origin::File);
        }
        // Settings that are the same in all runs apply to the reading.
        if let Some((first, others)) = self.runs.split_first() {
            for (name, value, origin) in first.config.iter() {
                if others.iter().all(|run| run.config.value(name) == Some(value)) {
                    reading.config.note(name, value.clone(), origin);
                }
            }
        }
        reading.config.merge(&context.settings);
        reading.config.complete();
        for (name, value, _) in reading.config.iter() {
            if reading.facts.get(name).is_none() && name != "total_steps" {
                reading.facts.set(name, value.clone());
            }
        }
        let all = self.all();
        let (settles, dropped) =
            (all.seconds.change_point(), all.seconds.warmup(context.warmup, all.includes_start(), tool_warmup_steps));
        if settles > dropped && self.runs.len() < 2 {
            reading.notes.push(format!(
                "records excluded as warm-up: {dropped}, but the step time is steady only after {settles}; use \
                 --warmup change-point to exclude those"
            ));
        }
        if self.runs.len() >= MAX_RUNS {
            reading.notes.push(format!("limit of {MAX_RUNS} runs reached: further runs are merged into the last"));
        }
        reading.runs = self.runs;
        reading
    }
}

/// Returns the number of values of a series, its first and its last value.
#[must_use]
pub fn series_ends(series: &Series) -> Option<Value> {
    Some(json!({"n": series.len(), "first": series.first()?, "last": series.last()?}))
}

/// Tokens per second, computed from batch size, sequence length and mean step time.
#[must_use]
pub fn tokens_per_second(config: &Config, batch: Option<f64>, seconds: f64) -> Option<f64> {
    let batch = batch.or_else(|| config.get("global_batch_size"))?;
    let tokens = batch * config.get("seq_len")?;
    (seconds > 0.0).then(|| tokens / seconds)
}
