//! Framework for training logs that print one line or block per step.
//!
//! A format implements [`StepFormat`]. Its [`Spec`] states its name, the trigger words of its lines and the series that
//! it reports. The format parses lines, and adds what is specific to it to the [`Summary`]. [`StepReader`] does the
//! rest.

use serde_json::Value;

use super::lines::Line;
use super::observation::Observation;
use super::reading::{Config, Context, Facts, Importance, Reading};
use super::recognizer::{Outcome, Recognizer};
use super::series::{Series, Stats};
use super::training::{DuplicateDetection, Run, Step, Training};

/// Selects one of the series of a run.
pub type SeriesSelector = fn(&Run) -> &Series;

/// Constant properties of a format.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Tool that writes the format; see [`Reading::tool`].
    pub tool: &'static str,
    /// See [`Reading::format`].
    pub format: &'static str,
    /// See [`Recognizer::triggers`].
    pub triggers: &'static [&'static str],
    /// Name of the fact with the numbers of the first and the last step, in the terms of the tool.
    pub counter: &'static str,
    /// Series whose statistics become facts, by name of the fact.
    pub series: &'static [(&'static str, SeriesSelector)],
    /// Number of steps that always count as warm-up.
    pub warmup: usize,
    /// Whether the tool compiles at startup, so that every start has a warm-up; see [`Training::find_cold_starts`].
    pub compiles_at_start: bool,
    /// How to detect lines repeated by other ranks.
    pub copies: DuplicateDetection,
    /// See [`Reading::importance`].
    pub importance: Importance,
    /// Notes added to every reading.
    pub notes: &'static [&'static str],
}

impl Spec {
    /// Properties common to most formats.
    pub const DEFAULT: Spec = Spec {
        tool: "",
        format: "",
        triggers: &[],
        counter: "steps",
        series: &[],
        warmup: 1,
        compiles_at_start: false,
        copies: DuplicateDetection::Identical,
        importance: Importance::Steps,
        notes: &[],
    };
}

/// Tokens per second and accelerator.
pub const TOKENS_PER_GPU: (&str, SeriesSelector) = ("tokens_per_s_per_gpu", |run| &run.tokens);
/// TFLOP/s per accelerator, as reported by the tool.
pub const TFLOPS_PER_GPU: (&str, SeriesSelector) = ("tflops_per_gpu_reported", |run| &run.tflops);
/// MFU in percent, as reported by the tool.
pub const MFU_PERCENT: (&str, SeriesSelector) = ("mfu_percent", |run| &run.mfu);

/// A format of step logs.
pub trait StepFormat: Default + Send {
    /// Constant properties of the format.
    const SPEC: Spec;

    /// Reads a line.
    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome;

    /// See [`Recognizer::read_same_layout`].
    fn read_same_layout(&mut self, _line: Line<'_>, _log: &mut StepLog) -> bool {
        false
    }

    /// See [`Recognizer::json`].
    fn json(&mut self, _document: &Value, _line: u64, _log: &mut StepLog) -> Outcome {
        Outcome::NotRecognized
    }

    /// See [`Recognizer::in_block`].
    fn in_block(&self) -> bool {
        false
    }

    /// Called at the end of the log, to add a step that is still incomplete.
    fn close(&mut self, _log: &mut StepLog) {}

    /// Adds facts, settings and notes to the common ones. Only called if there are steps.
    fn summarize(self, _summary: &mut Summary<'_>) {}
}

/// State of reading a log.
#[derive(Debug, Default)]
pub struct StepLog {
    /// Steps.
    pub training: Training,
    /// Settings.
    pub config: Config,
}

impl StepLog {
    /// Adds a step. Returns whether it is new, not a copy.
    pub fn push(&mut self, step: Step) -> bool {
        self.training.push(step)
    }

    /// Whether no step has been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.training.is_empty()
    }
}

/// A reading under construction.
#[derive(Debug)]
pub struct Summary<'a> {
    /// The steps.
    pub training: Training,
    /// Context and options from the caller.
    pub context: &'a Context,
    /// Name of the tool; may be changed if it depends on the log.
    pub tool: &'static str,
    /// Name of the format; may be changed if it depends on the log.
    pub format: &'static str,
    /// Facts so far: the common ones, and the series of the [`Spec`].
    pub facts: Facts,
    /// Settings so far.
    pub config: Config,
    /// Notes so far, initially those of the [`Spec`].
    pub notes: Vec<String>,
    warmup: usize,
}

impl Summary<'_> {
    /// All runs combined into one.
    #[must_use]
    pub fn all(&self) -> &Run {
        self.training.all()
    }

    /// Statistics of a series with one value per step, without warm-up.
    #[must_use]
    pub fn stats(&self, series: &Series) -> Option<Stats> {
        self.all().stats(series, self.warmup, self.context)
    }

    /// Adds the statistics of a series with one value per step as a fact.
    pub fn series(&mut self, name: &'static str, series: &Series) {
        let stats = self.stats(series).map(|stats| stats.json());
        self.facts.set_optional(name, stats);
    }

    /// Adds the statistics of one of the common series as a fact.
    pub fn add_series_statistics(&mut self, (name, pick): (&'static str, SeriesSelector)) {
        let stats = self.stats(pick(self.all())).map(|stats| stats.json());
        self.facts.set_optional(name, stats);
    }
}

/// Recognizer of a [`StepFormat`].
#[derive(Debug)]
pub struct StepReader<F> {
    format: F,
    log: StepLog,
}

impl<F: StepFormat> Default for StepReader<F> {
    fn default() -> Self {
        let log = StepLog { training: Training::new(F::SPEC.copies), config: Config::default() };
        StepReader { format: F::default(), log }
    }
}

impl<F: StepFormat> Recognizer for StepReader<F> {
    fn triggers(&self) -> &'static [&'static str] {
        F::SPEC.triggers
    }

    fn line(&mut self, line: Line<'_>) -> Outcome {
        self.format.line(line, &mut self.log)
    }

    fn read_same_layout(&mut self, line: Line<'_>) -> bool {
        self.format.read_same_layout(line, &mut self.log)
    }

    fn in_block(&self) -> bool {
        self.format.in_block()
    }

    fn json(&mut self, document: &Value, line: u64) -> Outcome {
        self.format.json(document, line, &mut self.log)
    }

    fn append_observations(&mut self, out: &mut Vec<Observation>) {
        self.log.training.append_observations(out);
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let StepReader { mut format, mut log } = *self;
        format.close(&mut log);
        if log.is_empty() {
            return Vec::new();
        }
        let (spec, StepLog { mut training, config }) = (F::SPEC, log);
        if spec.compiles_at_start {
            training.find_cold_starts();
        }
        let facts = training.facts(spec.counter, spec.warmup, context);
        let mut summary = Summary {
            training,
            context,
            tool: spec.tool,
            format: spec.format,
            facts,
            config,
            notes: spec.notes.iter().map(|note| (*note).to_owned()).collect(),
            warmup: spec.warmup,
        };
        spec.series.iter().for_each(|series| summary.add_series_statistics(*series));
        format.summarize(&mut summary);
        let Summary { training, tool, format, facts, config, notes, .. } = summary;
        let reading = Reading { tool, format, importance: spec.importance, facts, config, notes, ..Reading::default() };
        vec![training.reading(reading, spec.warmup, context)]
    }
}

/// Creates the recognizer of a [`StepFormat`].
#[must_use]
pub fn reader<F: StepFormat + 'static>() -> Box<dyn Recognizer> {
    Box::<StepReader<F>>::default()
}
