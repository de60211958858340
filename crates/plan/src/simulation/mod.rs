//! Simulation studies with the event engine.
//!
//! A [`Plan`] is a complete description in plain data: a training job or a deployment under load, a seed and a number
//! of independent runs. [`run`] executes it and returns the metrics of every run, their confidence intervals, the
//! measured time breakdown, and the bottlenecks.
//!
//! * [`words`], [`options`] – options on the command line and in files
//! * [`config`] – configuration files: those of the predecessor, and ours
//! * [`plan`] – from a scenario to a plan
//! * [`part`] – runs that other machines compute
//! * [`training`], [`serving`] – a single run and its measurements
//! * [`metric`] – metrics of a run
//! * [`bottleneck`] – bottlenecks, by the predecessor's thresholds
//! * [`goodput`] – failures and checkpoints over weeks
//! * [`scale`] – strong and weak scaling
//! * [`jobs`] – several jobs and a scheduler
//! * [`replay`] – replay of a recorded step on other hardware
//! * [`progress`] – progress of all runs

pub mod bottleneck;
pub mod config;
mod fields;
pub mod goodput;
pub mod jobs;
pub mod metric;
pub mod options;
pub mod part;
pub mod plan;
mod predecessor;
pub mod progress;
pub mod replay;
pub mod scale;
pub mod serving;
pub mod trace;
pub mod training;
pub mod words;

use atlas_sim::kernel::{Interval, Progress, Tally};
use bottleneck::Bottleneck;
pub use metric::{MetricRuns, SimulationMetric, Unit};
pub use options::Options;
pub use plan::Plan;
pub use progress::RunsProgress;
use serde::Serialize;

/// Note on a simulation of a calibrated target.
const UNCALIBRATED: &str = "the calibration of this target is not applied to simulations, nor to the closed form that they are \
                            compared with";

/// Confidence level of all intervals.
pub const CONFIDENCE_LEVEL: f64 = 0.95;

fn interval(values: impl Iterator<Item = f64>) -> Interval {
    let mut tally = Tally::default();
    values.for_each(|value| tally.add(value));
    Interval::of(&tally, CONFIDENCE_LEVEL)
}

/// Measurements of one run.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Training: optimizer steps.
    Training(Box<training::Measured>),
    /// Serving: requests.
    Serving(Box<serving::Measured>),
}

/// Result of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Metrics over all completed runs.
    pub metrics: Vec<MetricRuns>,
    /// Measurements of the first run.
    pub first: Measured,
    /// Possible bottlenecks of the first run; see [`bottleneck::of`].
    pub bottlenecks: Vec<Bottleneck>,
    /// Number of events of all runs.
    pub events: u64,
    /// Whether the simulation was canceled before all runs were completed.
    pub canceled: bool,
}

impl Outcome {
    /// A metric; `None` if this kind of simulation does not have it.
    #[must_use]
    pub fn metric(&self, metric: SimulationMetric) -> Option<&MetricRuns> {
        self.metrics.iter().find(|found| found.metric == metric)
    }

    /// Mean tokens per second over all runs: of a serving simulation without its ends.
    #[must_use]
    pub fn tokens_per_sec(&self) -> Option<f64> {
        let steady = self.metric(SimulationMetric::SteadyTokensPerSec);
        Some(steady.or_else(|| self.metric(SimulationMetric::TokensPerSec))?.interval().mean)
    }
}

/// Cost of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Cost {
    /// Rent and energy of all accelerators, or of the replicas that run on average with autoscaling, USD per hour.
    pub usd_per_hour: f64,
    /// USD per million tokens: trained tokens in training, output tokens in serving, prompt tokens if none are generated.
    pub usd_per_million_tokens: f64,
    /// USD per optimizer step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usd_per_iteration: Option<f64>,
}

impl Cost {
    /// Cost at the simulated throughput; `None` if no price is known or the throughput is 0.
    #[must_use]
    pub fn of(plan: &Plan, outcome: &Outcome) -> Option<Cost> {
        // With autoscaling, only the replicas that run are paid for.
        let running = match (&plan.work, outcome.metric(SimulationMetric::Replicas)) {
            (plan::Work::Serving(work), Some(replicas)) => replicas.interval().mean / work.held,
            _ => 1.0,
        };
        let usd_per_hour = running * plan.usd_per_hour?;
        let rate = outcome.tokens_per_sec()?;
        let usd_per_iteration = match &outcome.first {
            Measured::Training(m) => Some(usd_per_hour * m.output.step.mean / 3600.0),
            Measured::Serving(_) => None,
        };
        let usd_per_million_tokens = usd_per_hour / 3600.0 / rate * 1e6;
        usd_per_million_tokens.is_finite().then_some(Cost { usd_per_hour, usd_per_million_tokens, usd_per_iteration })
    }
}

/// Why a plan cannot be run: all invalid values.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Problems(pub Vec<String>);

impl<T: std::fmt::Display> From<Vec<T>> for Problems {
    fn from(problems: Vec<T>) -> Self {
        Problems(problems.iter().map(ToString::to_string).collect())
    }
}

/// Result of one run of a plan.
struct Run {
    metrics: Vec<(SimulationMetric, f64)>,
    /// Only for the first run, since the records of thousands of runs would exhaust the memory.
    measured: Option<Measured>,
    events: u64,
    canceled: bool,
}

/// Runs a plan with each of its seeds, as many at a time as there are cores. The result does not depend on the number
/// of cores.
///
/// # Errors
///
/// All invalid values of the plan, or if it was canceled before the first run.
pub fn run(plan: &Plan, gauge: &RunsProgress) -> Result<Outcome, Problems> {
    let runs = gauge.each(plan.replications, |number, progress| one(plan, number, progress));
    let mut runs = runs.into_iter().collect::<Result<Vec<Run>, Problems>>()?.into_iter();
    let Some((first, measured)) =
        runs.next().and_then(|mut run| Some((run.measured.take()?, run))).map(|(m, r)| (r, m))
    else {
        return Err(Problems(vec!["interrupted before the first run".to_owned()]));
    };
    let mut metrics: Vec<MetricRuns> =
        first.metrics.iter().map(|(metric, value)| MetricRuns { metric: *metric, runs: vec![*value] }).collect();
    let mut canceled = first.canceled || gauge.canceled();
    let mut events = first.events;
    for run in runs {
        events += run.events;
        canceled |= run.canceled;
        // Canceled runs are not part of the sample.
        if !run.canceled {
            for (metric, (_, value)) in metrics.iter_mut().zip(&run.metrics) {
                metric.runs.push(*value);
            }
        }
    }
    let bottlenecks = bottleneck::of(&measured);
    Ok(Outcome { metrics, first: measured, bottlenecks, events, canceled })
}

fn one(plan: &Plan, number: u32, progress: &Progress) -> Result<Run, Problems> {
    let seed = plan.seed.wrapping_add(u64::from(number));
    match &plan.work {
        plan::Work::Training(work) => training::run(work, seed, progress, number == 0),
        plan::Work::Serving(work) => serving::run(work, seed, progress, number == 0),
    }
}

/// Difference of a metric between two results (`other` minus `one`), paired by run. Both use the same seeds, so common
/// random variation cancels out. `None` if the metric is missing or the numbers of runs differ.
#[must_use]
pub fn difference(one: &Outcome, other: &Outcome, metric: SimulationMetric) -> Option<Interval> {
    let (a, b) = (one.metric(metric)?, other.metric(metric)?);
    (a.runs.len() == b.runs.len()).then(|| interval(a.runs.iter().zip(&b.runs).map(|(a, b)| b - a)))
}
