//! Formats of training logs that print one line, or one block, a step.
//!
//! Such a format states in its [`Spec`] what it is called, by what words its lines are found, and which series it
//! reports; it reads a line, and adds to the [`Summary`] what it alone knows. [`StepReader`] does the rest.

use serde_json::Value;

use super::lines::Line;
use super::observation::Observation;
use super::reading::{Config, Context, Facts, Reading, Weight};
use super::recognizer::{Outcome, Recognizer};
use super::series::{Series, Stats};
use super::training::{Copies, Run, Step, Training};

/// One of the series of a run.
pub type Pick = fn(&Run) -> &Series;

/// What is constant about a format.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// The tool that writes it; see [`Reading::tool`].
    pub tool: &'static str,
    /// See [`Reading::format`].
    pub format: &'static str,
    /// See [`Recognizer::triggers`].
    pub triggers: &'static [&'static str],
    /// The fact that holds the first and the last step, under the tool's name for steps.
    pub counter: &'static str,
    /// Series of which the statistics are facts, by the name of the fact.
    pub series: &'static [(&'static str, Pick)],
    /// Steps that always count as warm-up.
    pub warmup: usize,
    /// Whether the tool compiles when it starts, so that every start has a warm-up; see [`Training::find_cold_starts`].
    pub compiles: bool,
    /// How lines that other ranks repeat are recognized.
    pub copies: Copies,
    /// See [`Reading::weight`].
    pub weight: Weight,
    /// Notes of every reading.
    pub notes: &'static [&'static str],
}

impl Spec {
    /// What most formats have in common.
    pub const DEFAULT: Spec = Spec {
        tool: "",
        format: "",
        triggers: &[],
        counter: "steps",
        series: &[],
        warmup: 1,
        compiles: false,
        copies: Copies::Identical,
        weight: Weight::Steps,
        notes: &[],
    };
}

/// Tokens per second and accelerator.
pub const TOKENS_PER_GPU: (&str, Pick) = ("tokens_per_s_per_gpu", |run| &run.tokens);
/// TFLOP/s per accelerator as the tool counts them.
pub const TFLOPS_PER_GPU: (&str, Pick) = ("tflops_per_gpu_reported", |run| &run.tflops);
/// MFU as the tool counts it, percent.
pub const MFU_PERCENT: (&str, Pick) = ("mfu_percent", |run| &run.mfu);

/// A format of step lines.
pub trait StepFormat: Default + Send {
    /// What is constant about it.
    const SPEC: Spec;

    /// Reads a line.
    fn line(&mut self, line: Line<'_>, log: &mut StepLog) -> Outcome;

    /// See [`Recognizer::again`].
    fn again(&mut self, _line: Line<'_>, _log: &mut StepLog) -> bool {
        false
    }

    /// See [`Recognizer::json`].
    fn json(&mut self, _document: &Value, _line: u64, _log: &mut StepLog) -> Outcome {
        Outcome::No
    }

    /// See [`Recognizer::open`].
    fn open(&self) -> bool {
        false
    }

    /// The log has ended: adds a step that waits for its last line.
    fn close(&mut self, _log: &mut StepLog) {}

    /// Adds facts, settings and notes to those that all formats have. Only called if there are steps.
    fn summarize(self, _summary: &mut Summary<'_>) {}
}

/// What has been read of a log.
#[derive(Debug, Default)]
pub struct StepLog {
    /// Its steps.
    pub training: Training,
    /// Its settings.
    pub config: Config,
}

impl StepLog {
    /// Adds a step; returns whether it is new.
    pub fn push(&mut self, step: Step) -> bool {
        self.training.push(step)
    }

    /// Whether no step was read yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.training.is_empty()
    }
}

/// A reading in the making.
#[derive(Debug)]
pub struct Summary<'a> {
    /// The steps.
    pub training: Training,
    /// The caller's information and options.
    pub context: &'a Context,
    /// The tool, if it depends on the log.
    pub tool: &'static str,
    /// The format, if it depends on the log.
    pub format: &'static str,
    /// Facts so far: those of all formats and the series of the [`Spec`].
    pub facts: Facts,
    /// Settings so far.
    pub config: Config,
    /// Notes so far: those of the [`Spec`].
    pub notes: Vec<String>,
    warmup: usize,
}

impl Summary<'_> {
    /// All runs as one.
    #[must_use]
    pub fn all(&self) -> &Run {
        self.training.all()
    }

    /// Statistics of a series with a value for each step, warm-up left out.
    #[must_use]
    pub fn stats(&self, series: &Series) -> Option<Stats> {
        self.all().stats(series, self.warmup, self.context)
    }

    /// Adds the statistics of such a series as a fact.
    pub fn series(&mut self, name: &'static str, series: &Series) {
        let stats = self.stats(series).map(|stats| stats.json());
        self.facts.some(name, stats);
    }

    /// Adds the statistics of one of the series that all formats have.
    pub fn picked(&mut self, (name, pick): (&'static str, Pick)) {
        let stats = self.stats(pick(self.all())).map(|stats| stats.json());
        self.facts.some(name, stats);
    }
}

/// Recognizes a format of step lines.
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

    fn again(&mut self, line: Line<'_>) -> bool {
        self.format.again(line, &mut self.log)
    }

    fn open(&self) -> bool {
        self.format.open()
    }

    fn json(&mut self, document: &Value, line: u64) -> Outcome {
        self.format.json(document, line, &mut self.log)
    }

    fn observed(&mut self, out: &mut Vec<Observation>) {
        self.log.training.observed(out);
    }

    fn finish(self: Box<Self>, context: &Context) -> Vec<Reading> {
        let StepReader { mut format, mut log } = *self;
        format.close(&mut log);
        if log.is_empty() {
            return Vec::new();
        }
        let (spec, StepLog { mut training, config }) = (F::SPEC, log);
        if spec.compiles {
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
        spec.series.iter().for_each(|series| summary.picked(*series));
        format.summarize(&mut summary);
        let Summary { training, tool, format, facts, config, notes, .. } = summary;
        let reading = Reading { tool, format, weight: spec.weight, facts, config, notes, ..Reading::default() };
        vec![training.reading(reading, spec.warmup, context)]
    }
}

/// The recognizer of a format of step lines.
#[must_use]
pub fn reader<F: StepFormat + 'static>() -> Box<dyn Recognizer> {
    Box::<StepReader<F>>::default()
}
