//! Studies with the event engine: what is run, how often, and what its events say.
//!
//! A [`Plan`] is a whole question in plain data: a training job or a deployment under load, a seed and a number of
//! independent runs. [`run`] answers it with figures of every run, their confidence intervals, where the time went as the
//! events measured it, and what holds the run back.
//!
//! * [`words`], [`options`] – what users may state, on the command line and in files
//! * [`predecessor`] – the predecessor simulator's configuration and presets
//! * [`config`] – configuration files: the predecessor ones, and ours
//! * [`plan`] – from a scenario to a plan
//! * [`part`] – runs that other machines compute
//! * [`training`], [`serving`] – one run and what is measured in it
//! * [`bottleneck`] – what holds a run back, by the predecessor thresholds
//! * [`goodput`] – failures and checkpoints over weeks
//! * [`scale`] – strong and weak scaling
//! * [`jobs`] – several jobs and a scheduler
//! * [`replay`] – a recorded step on other hardware
//! * [`gauge`] – how far all runs are

pub mod bottleneck;
pub mod config;
mod fields;
pub mod gauge;
pub mod goodput;
pub mod jobs;
pub mod options;
pub mod part;
pub mod plan;
pub mod predecessor;
pub mod replay;
pub mod scale;
pub mod serving;
pub mod trace;
pub mod training;
pub mod words;

use atlas_sim::kernel::{Interval, Progress, Tally};
use bottleneck::Bottleneck;
pub use gauge::Gauge;
pub use options::Options;
pub use plan::Plan;
use serde::Serialize;

/// Confidence of all intervals.
pub const LEVEL: f64 = 0.95;

/// What a figure of a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FigureSpec {
    /// Its name in data.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// Its unit.
    pub unit: &'static str,
}

/// One figure over all runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What it is.
    pub spec: FigureSpec,
    /// Its value in every run, in the order of their seeds.
    pub runs: Vec<f64>,
}

impl Figure {
    /// Mean and half width over the runs.
    #[must_use]
    pub fn interval(&self) -> Interval {
        interval(self.runs.iter().copied())
    }
}

fn interval(values: impl Iterator<Item = f64>) -> Interval {
    let mut tally = Tally::default();
    values.for_each(|value| tally.add(value));
    Interval::of(&tally, LEVEL)
}

/// What one run measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Optimizer steps.
    Training(Box<training::Measured>),
    /// Requests.
    Serving(Box<serving::Measured>),
}

/// The answer to a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Figures over all runs that ended.
    pub figures: Vec<Figure>,
    /// The first run in full.
    pub first: Measured,
    /// What holds it back, gravest first.
    pub bottlenecks: Vec<Bottleneck>,
    /// Events of all runs.
    pub events: u64,
    /// Whether it was ended before all runs were through.
    pub cancelled: bool,
}

/// What a run costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Rental and energy of all accelerators, USD an hour.
    pub usd_per_hour: f64,
    /// USD for a million tokens; of training they are learned, of serving generated.
    pub usd_per_million_tokens: f64,
    /// USD for an optimizer step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_iteration: Option<f64>,
}

impl Cost {
    /// What this many tokens per second cost; `None` if no price is known or nothing is computed.
    #[must_use]
    pub fn of(plan: &Plan, outcome: &Outcome) -> Option<Cost> {
        let usd_per_hour = plan.usd_per_hour?;
        let figure = |name: &str| outcome.figures.iter().find(|figure| figure.spec.name == name);
        let rate = figure("steady_tokens_per_sec").or_else(|| figure("tokens_per_sec"))?.interval().mean;
        let usd_per_iteration = match &outcome.first {
            Measured::Training(m) => Some(usd_per_hour * m.output.step.mean / 3600.0),
            Measured::Serving(_) => None,
        };
        let usd_per_million_tokens = usd_per_hour / 3600.0 / rate * 1e6;
        usd_per_million_tokens.is_finite().then_some(Cost { usd_per_hour, usd_per_million_tokens, usd_per_iteration })
    }
}

/// Why a plan cannot be run: all that makes no sense in it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Problems(pub Vec<String>);

impl<T: std::fmt::Display> From<Vec<T>> for Problems {
    fn from(problems: Vec<T>) -> Self {
        Problems(problems.iter().map(ToString::to_string).collect())
    }
}

/// One run of a plan.
struct Run {
    figures: Vec<(FigureSpec, f64)>,
    /// Of the first run only: the records of thousands would fill the memory.
    measured: Option<Measured>,
    events: u64,
    cancelled: bool,
}

/// Runs a plan under each of its seeds, as many at a time as the machine has cores; the answer does not depend on how many
/// those are.
///
/// # Errors
/// All that makes no sense in the plan.
pub fn run(plan: &Plan, gauge: &Gauge) -> Result<Outcome, Problems> {
    let runs = gauge.each(plan.replications, |number, progress| one(plan, number, progress));
    let mut runs = runs.into_iter().collect::<Result<Vec<Run>, Problems>>()?.into_iter();
    let Some((first, measured)) =
        runs.next().and_then(|mut run| Some((run.measured.take()?, run))).map(|(m, r)| (r, m))
    else {
        return Err(Problems(vec!["interrupted before the first run".to_owned()]));
    };
    let mut figures: Vec<Figure> =
        first.figures.iter().map(|(spec, value)| Figure { spec: *spec, runs: vec![*value] }).collect();
    let mut cancelled = first.cancelled || gauge.cancelled();
    let mut events = first.events;
    for run in runs {
        events += run.events;
        cancelled |= run.cancelled;
        // A run that was ended early is not part of the sample.
        if !run.cancelled {
            for (figure, (_, value)) in figures.iter_mut().zip(&run.figures) {
                figure.runs.push(*value);
            }
        }
    }
    let bottlenecks = bottleneck::of(&measured);
    Ok(Outcome { figures, first: measured, bottlenecks, events, cancelled })
}

fn one(plan: &Plan, number: u32, progress: &Progress) -> Result<Run, Problems> {
    let seed = plan.seed.wrapping_add(u64::from(number));
    match &plan.work {
        plan::Work::Training(work) => training::run(work, seed, progress, number == 0),
        plan::Work::Serving(work) => serving::run(work, seed, progress, number == 0),
    }
}

/// The difference of a figure between two answers, run by run under the same seeds: what is drawn is the same for both, so
/// that the interval is that of the difference alone. `None` if the figure or the seeds are not the same.
#[must_use]
pub fn difference(one: &Outcome, other: &Outcome, name: &str) -> Option<Interval> {
    let of = |outcome: &Outcome| outcome.figures.iter().find(|figure| figure.spec.name == name).cloned();
    let (a, b) = (of(one)?, of(other)?);
    (a.runs.len() == b.runs.len()).then(|| interval(a.runs.iter().zip(&b.runs).map(|(a, b)| b - a)))
}
