//! Strong and weak scaling over nodes: constant work or work proportional to the size, by simulation and by the closed
//! form.

use super::options::Options;
use super::plan::Plan;
use super::training::Parts;
use super::words::ArrivalsWord;
use super::{Cost, Measured, Problems, RunsProgress, UNCALIBRATED, run};
use crate::engine;
use crate::estimate::{TimePart, Verdict};
use crate::knob::{Knob, Overrides, Setting};
use crate::scenario::{ActiveCorrections, Parts as Documents, Scenario};
use atlas_catalog::Catalog;
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::Engine;
use atlas_core::sort;
use atlas_legacy::simulator::Predecessor;
use atlas_sim::scaling::{DEFAULT_EFFICIENCY_LIMIT, Run, Scaling, Work, scaling};

/// Subject of the study.
#[derive(Debug, Clone)]
pub enum StudySubject<'a> {
    /// Configuration of the predecessor simulator.
    Predecessor(&'a Predecessor),
    /// Target and workload.
    Scenario(&'a Documents, &'a Overrides),
}

/// Result for one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Number of nodes.
    pub nodes: f64,
    /// Number of accelerators.
    pub accelerators: f64,
    /// Result, or the reason why there is none.
    pub answer: Result<Answer, String>,
}

/// Metrics of one size.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Metrics of the mode.
    pub mode: ModeAnswer,
    /// Tokens per second.
    pub rate: f64,
    /// Tokens per second according to the closed form.
    pub analytical_rate: f64,
    /// Share of the time in which stages compute, or replicas execute steps.
    pub busy: f64,
    /// Scaling efficiency: speedup over the smallest size that runs, relative to the ideal one.
    pub efficiency: f64,
    /// Scaling efficiency according to the closed form.
    pub analytical_efficiency: f64,
    /// Cost, if a price is known.
    pub cost: Option<Cost>,
}

/// Metrics of one size that only training or only serving has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ModeAnswer {
    /// Training.
    Training {
        /// Step time, s.
        step: f64,
        /// Time breakdown of a step.
        parts: Parts,
    },
    /// Serving.
    Serving {
        /// Requests that run on a replica at a time, mean.
        running: f64,
    },
}

impl Answer {
    /// Step time, s, and its breakdown; `None` for serving.
    #[must_use]
    pub fn step(&self) -> Option<(f64, Parts)> {
        match self.mode {
            ModeAnswer::Training { step, parts } => Some((step, parts)),
            ModeAnswer::Serving { .. } => None,
        }
    }
}

/// Scaling curve.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Whether the work is constant or grows with the size.
    pub work: Work,
    /// Results by size, ascending.
    pub points: Vec<Point>,
    /// Number of nodes at which the efficiency first falls below the limit.
    pub inefficient_at: Option<f64>,
    /// Reason for it.
    pub reason: Option<String>,
    /// Largest number of nodes above the limit.
    pub recommended: Option<f64>,
    /// Efficiency limit.
    pub limit: f64,
    /// Notes that apply to all sizes.
    pub notes: Vec<String>,
}

/// Default efficiency limit.
pub const LIMIT: f64 = DEFAULT_EFFICIENCY_LIMIT;

/// Computes a scaling curve.
///
/// # Errors
///
/// Errors that apply to every size, such as options of the other mode.
pub fn curve(
    base: &StudySubject<'_>,
    catalog: &Catalog,
    nodes: &[f64],
    work: Work,
    limit: f64,
    options: &Options,
    gauge: &RunsProgress,
) -> Result<Curve, Problems> {
    let mut nodes = nodes.to_vec();
    sort::numbers(&mut nodes);
    nodes.dedup();
    let mut points = Vec::new();
    for count in nodes {
        if gauge.canceled() {
            break;
        }
        let (accelerators, plan) = match base {
            StudySubject::Predecessor(config) => predecessor(config, catalog, count, work, options, gauge),
            StudySubject::Scenario(parts, overrides) => scenario(parts, overrides, count, work, options),
        };
        let answer = match plan {
            Ok(plan) => answer(&plan, gauge),
            Err(SizeError::ThisSize(why)) => Err(why),
            Err(SizeError::AllSizes(problems)) => return Err(problems),
        };
        points.push(Point { nodes: count, accelerators, answer });
    }
    let calibrated = matches!(base, StudySubject::Scenario(parts, _) if ActiveCorrections::of(parts).is_some());
    let notes = calibrated.then(|| UNCALIBRATED.to_owned()).into_iter().collect();
    Ok(Curve { notes, ..judged(points, work, limit) })
}

enum SizeError {
    /// This size cannot be run.
    ThisSize(String),
    /// No size can be run.
    AllSizes(Problems),
}

fn answer(plan: &Plan, gauge: &RunsProgress) -> Result<Answer, String> {
    let outcome = run(plan, gauge).map_err(|problems| problems.0.join("; "))?;
    if outcome.canceled {
        return Err("interrupted".to_owned());
    }
    let rate = outcome.tokens_per_sec().unwrap_or(0.0);
    let cost = Cost::of(plan, &outcome);
    Ok(match &outcome.first {
        Measured::Training(m) => Answer {
            mode: ModeAnswer::Training { step: m.output.step.mean, parts: m.parts },
            rate,
            analytical_rate: m.system.global * m.system.seq / m.analytical_step.max(1e-12),
            busy: m.output.busy,
            efficiency: 0.0,
            analytical_efficiency: 0.0,
            cost,
        },
        Measured::Serving(m) => Answer {
            mode: ModeAnswer::Serving { running: m.output.running / m.system.layout.dp.max(Count::ONE) },
            rate,
            analytical_rate: m.analytical_tokens_per_sec,
            busy: m.output.busy,
            efficiency: 0.0,
            analytical_efficiency: 0.0,
            cost,
        },
    })
}

/// Plan of the predecessor configuration on `nodes` nodes, with the same total number of sequences or the same number
/// per accelerator.
fn predecessor(
    config: &Predecessor,
    catalog: &Catalog,
    nodes: f64,
    work: Work,
    options: &Options,
    gauge: &RunsProgress,
) -> (f64, Result<Plan, SizeError>) {
    let mut here = config.clone();
    here.training.num_nodes = nodes;
    let accelerators = here.accelerators();
    if work == Work::Fixed {
        let all = config.training.batch_size_per_gpu * config.accelerators();
        let each = all / accelerators;
        if each < 1.0 || each.fract() != 0.0 {
            let why = format!("{all} sequences do not divide evenly over {accelerators} accelerators");
            return (accelerators, Err(SizeError::ThisSize(why)));
        }
        here.training.batch_size_per_gpu = each;
    }
    // With uniform hosts all iterations are equal, so a few suffice.
    let options = Options { steps: options.steps.or(Some(3)), ..options.clone() };
    (accelerators, Plan::of_predecessor(&here, catalog, &options, None, gauge).map_err(SizeError::AllSizes))
}

/// Plan of the scenario on `nodes` nodes, filled with replicas.
fn scenario(
    parts: &Documents,
    overrides: &Overrides,
    nodes: f64,
    work: Work,
    options: &Options,
) -> (f64, Result<Plan, SizeError>) {
    let everywhere = |problem: String| SizeError::AllSizes(Problems(vec![problem]));
    let resolved = resolve(parts, overrides).and_then(|files| {
        let mut here = files.clone();
        here.set(Knob::NumNodes, &Setting::Number(nodes), parts).map_err(|error| error.to_string())?;
        Ok((files, here))
    });
    let (files, mut here) = match resolved {
        Ok(both) => both,
        Err(problem) => return (0.0, Err(everywhere(problem))),
    };
    let accelerators = here.accelerators();
    let mut set = |knob: Knob, value: f64| {
        let _ = here.set(knob, &Setting::Number(value), parts);
    };
    let dies = files.machine.map_or(1.0, |machine| machine.dies);
    let replica = files.base.shape.tp * files.base.shape.pp * files.base.plan.cp.unwrap_or(Count::ONE);
    let replicas = (accelerators * dies / replica).floor();
    if replicas < 1.0 {
        let why = format!("a replica needs {} accelerators, but there are only {accelerators}", replica / dies);
        return (accelerators, Err(SizeError::ThisSize(why)));
    }
    set(Knob::Dp, replicas);
    let grown = if work == Work::Fixed { 1.0 } else { accelerators / files.accelerators() };
    let mut options = options.clone();
    match files.mode() {
        Mode::Training => {
            let micro = files.microbatch;
            let all = files.global(&files.base) * grown;
            let smallest = replicas * micro;
            // Growing work is rounded to whole micro-batches per replica; fixed work is not changed.
            let all = if work == Work::Fixed { all } else { (all / smallest).round().max(1.0) * smallest };
            if all < smallest {
                let why = format!(
                    "{all} sequences per step are too few for {replicas} replicas with micro-batches of {micro}"
                );
                return (accelerators, Err(SizeError::ThisSize(why)));
            }
            set(Knob::Global, all);
            options.steps = options.steps.or(Some(3));
        }
        Mode::Inference => {
            // Every size would serve an open load below its capacity completely; only a closed load distinguishes them.
            let all = (files.concurrency(&files.base) * grown).round().max(1.0);
            set(Knob::Concurrency, all);
            set(Knob::RequestRate, 0.0);
            options.arrivals = options.arrivals.or(Some(ArrivalsWord::Closed(Some(all as u32))));
        }
    }
    // The closed form determines within microseconds whether the size can run.
    let requested = Scenario { engine: Engine::Analytical, ..here.clone() };
    let verdict = engine::estimate(&requested).detail.map(|detail| detail.verdict);
    let impossible = |v: &Verdict| !matches!(v, Verdict::Fits | Verdict::Overload { .. });
    if let Some(verdict) = verdict.filter(impossible) {
        return (accelerators, Err(SizeError::ThisSize(verdict.describe())));
    }
    let name = format!("{} × {}", parts.target.name, parts.workload.name);
    (accelerators, Plan::of(name, &here, &options, None).map_err(SizeError::AllSizes))
}

/// Resolves the scenario from files and knobs, with the event engine.
fn resolve(parts: &Documents, overrides: &Overrides) -> Result<Scenario, String> {
    let mut scenario = Scenario::from_files(parts);
    for (knob, setting) in overrides {
        scenario.set(*knob, setting, parts).map_err(|error| error.to_string())?;
    }
    scenario.engine = Engine::Event;
    scenario.check(parts).map_err(|error| error.to_string())?;
    Ok(scenario)
}

/// Computes efficiencies, where they fall below the limit, and why.
fn judged(mut points: Vec<Point>, work: Work, limit: f64) -> Curve {
    // Time per unit of work: a step if the work is fixed, otherwise a step per accelerator.
    let series = |of: fn(&Answer) -> f64| -> Scaling {
        let run = |point: &Point| {
            let rate = point.answer.as_ref().map_or(0.0, of);
            let work = if work == Work::Fixed { 1.0 } else { point.accelerators };
            Run { accelerators: point.accelerators, seconds: if rate > 0.0 { work / rate } else { 0.0 } }
        };
        scaling(&points.iter().map(run).collect::<Vec<_>>(), work, limit)
    };
    let (simulated, closed) = (series(|answer| answer.rate), series(|answer| answer.analytical_rate));
    let at = |scaling: &Scaling, accelerators: f64| {
        scaling.efficiencies.iter().find(|(count, _)| *count == accelerators).map_or(0.0, |(_, share)| *share)
    };
    for point in &mut points {
        if let Ok(answer) = &mut point.answer {
            answer.efficiency = at(&simulated, point.accelerators);
            answer.analytical_efficiency = at(&closed, point.accelerators);
        }
    }
    let nodes = |accelerators: Option<f64>| {
        points.iter().find(|point| Some(point.accelerators) == accelerators).map(|point| point.nodes)
    };
    let why = simulated.inefficient_at.and_then(|accelerators| inefficiency_reason(&points, accelerators, work));
    Curve {
        inefficient_at: nodes(simulated.inefficient_at),
        recommended: nodes(simulated.largest_efficient),
        reason: why,
        work,
        limit,
        points,
        notes: Vec::new(),
    }
}

/// Requests per replica, as a share of those at the smallest size, below which their number explains a loss.
const SMALLER_BATCH: f64 = 0.9;

/// Describes the part of a step that grew most relative to ideal scaling.
fn inefficiency_reason(points: &[Point], accelerators: f64, work: Work) -> Option<String> {
    let answered = || points.iter().filter_map(|point| Some((point.accelerators, point.answer.as_ref().ok()?)));
    let (base_count, base) = answered().next()?;
    let (count, broken) = answered().find(|(count, _)| *count == accelerators)?;
    let (before, now, step) = match (base.mode, broken.mode) {
        (ModeAnswer::Training { parts: before, .. }, ModeAnswer::Training { parts: now, step }) => (before, now, step),
        (ModeAnswer::Serving { running: before }, ModeAnswer::Serving { running: now })
            if now < SMALLER_BATCH * before =>
        {
            return Some(format!(
                "{now:.1} instead of {before:.1} requests run on a replica at a time, and a step reads the weights for fewer of them",
            ));
        }
        _ => {
            return Some(format!(
                "replicas are busy {:.0} % of the time, compared with {:.0} % at the smallest size: there is too little work for each, or too \
             much waiting in the batch",
                100.0 * broken.busy,
                100.0 * base.busy
            ));
        }
    };
    let ideal = if work == Work::Fixed { base_count / count } else { 1.0 };
    let worst = before
        .list()
        .into_iter()
        .zip(now.list())
        .map(|((part, before), (_, now))| (part, now - ideal * before, now))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (part, more, now_s) = worst;
    let described = match part {
        TimePart::Compute => "smaller shards compute less efficiently",
        TimePart::Communication => "communication is no longer hidden",
        TimePart::Stragglers => "more hosts wait for the slowest",
        TimePart::PipelineBubble => "too few micro-batches to fill the pipeline",
        TimePart::Optimizer => "optimizer time does not shrink with the work",
        _ => "data loading is too slow",
    };
    Some(format!(
        "{described}: {} takes {:.0} % of the step, {:.1} ms more than if all scaled",
        part.name(),
        100.0 * now_s / step.max(1e-12),
        1e3 * more
    ))
}
