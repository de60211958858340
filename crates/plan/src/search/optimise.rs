//! The best point of a space under conditions: every point is looked at where that can be done, and the answer says so.
//!
//! Layouts that cannot be (see [`Rule`]) are cut off as whole branches before anything is estimated; what is left costs
//! about a microsecond a candidate. Where even that is too much, many local searches start at random places, and the answer says how far
//! it looked.

mod answer;
mod local;
mod tally;
mod walk;

use std::time::Instant;

use super::condition::{Condition, fits};
use super::figure;
use super::gauge::{Gauge, workers};
use super::hill_climb::hill_climb;
use super::rule::Rule;
use super::space::{Axis, Space};
use crate::engine::estimate_into;
use crate::estimate::Metric;
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario};
use atlas_config::Mode;

pub use answer::{Bound, Candidate, Looked, Optimum, Proof};

/// Candidates that are estimated at most: some twenty seconds' work on two cores.
pub const MOST: u64 = 20_000_000;

/// What is sought.
#[derive(Debug, Clone)]
pub struct Problem<'p> {
    /// The scenario whose knobs are turned; see [`freed`].
    pub start: &'p Scenario,
    /// What it is made of.
    pub parts: &'p Parts,
    /// What is turned.
    pub space: Space,
    /// The figure to improve, in the direction that is better for it.
    pub objective: &'static Metric,
    /// What must hold, besides that the scenario can run.
    pub conditions: Vec<Condition>,
    /// Whether accelerators may idle; else tp × pp × cp × dp is all of them.
    pub idle: bool,
    /// Two or three figures whose best compromises are wanted; none where empty.
    pub front: Vec<&'static Metric>,
    /// How many of the next best are wanted.
    pub runners_up: usize,
    /// Candidates that are estimated at most; more are searched locally.
    pub most: u64,
}

impl<'p> Problem<'p> {
    /// The usual search for that figure: the usual knobs, two figures traded off, five runners-up.
    #[must_use]
    pub fn of(start: &'p Scenario, parts: &'p Parts, objective: &'static Metric) -> Problem<'p> {
        let space = usual(start, objective);
        let front = usual_front(start, objective);
        let idle = objective == &figure::ACCELERATORS;
        Problem { start, parts, space, objective, conditions: Vec::new(), idle, front, runners_up: 5, most: MOST }
    }
}

/// The starting point with what a search must be free to change set free: replicas that a file fixes fill the target
/// again, unless `held`, and the global batch that would follow from the layout stays what it is at the start, so that
/// every candidate trains the same model.
#[must_use]
pub fn freed(start: &Scenario, held: &dyn Fn(Knob) -> bool, parts: &Parts) -> Scenario {
    let mut scenario = start.clone();
    if scenario.mode() == Mode::Training {
        let global = scenario.global(&scenario.base);
        scenario.base.plan.global.get_or_insert(global);
    }
    if !held(Knob::Dp) {
        scenario.base.plan.dp = None;
        for phase in &mut scenario.phases {
            phase.plan.dp = None;
        }
        // Turning any knob to what it is lets replicas fill the target.
        let tp = scenario.get(Knob::Tp);
        let _ = scenario.set(Knob::Tp, &tp, parts);
    }
    scenario
}

/// The knobs that a search turns where nobody says which: the layout and what trades memory for time. What changes the
/// model's quality (formats, the global batch) or is a property of the software stays as it is.
#[must_use]
pub fn usual(start: &Scenario, objective: &Metric) -> Space {
    let model = start.model.unwrap_or_default();
    let devices = start.accelerators() * start.machine.map_or(1.0, |machine| machine.dies);
    let doubling = |most: f64| {
        let mut value = 1.0;
        std::iter::from_fn(move || {
            let now = value;
            value *= 2.0;
            (now <= most).then_some(now)
        })
    };
    // Without a model nothing says how far a layout can go but the accelerators there are.
    let up_to = |count: f64| if count > 0.0 { count.min(devices) } else { devices };
    let words = |knob: Knob, words: &[&str]| Axis {
        knob,
        values: words.iter().map(|word| Setting::Choice((*word).into())).collect(),
    };
    let toggle = |knob: Knob| Axis { knob, values: vec![Setting::Toggle(false), Setting::Toggle(true)] };
    let mut axes = Vec::new();
    if objective == &figure::ACCELERATORS {
        axes.push(Axis::of(Knob::NumNodes, (1..=64).map(f64::from).filter(|nodes| *nodes <= start.num_nodes)));
    }
    axes.push(Axis::of(Knob::Tp, divisors_within(model.heads, up_to(model.heads))));
    axes.push(Axis::of(Knob::Pp, divisors_within(model.layers, up_to(model.layers))));
    match start.mode() {
        Mode::Training => {
            axes.push(Axis::of(Knob::Cp, doubling(16.0_f64.min(devices))));
            if model.is_moe() {
                axes.push(Axis::of(Knob::Ep, divisors_within(model.experts, up_to(model.experts))));
            }
            axes.push(Axis::of(Knob::Microbatch, doubling(start.global(&start.base).min(64.0))));
            axes.push(Axis::of(Knob::Vpp, divisors_within(model.layers, model.layers.clamp(1.0, 20.0))));
            axes.push(words(Knob::Sharding, &["none", "zero1", "zero2", "zero3"]));
            axes.push(words(Knob::Recompute, &["none", "selective", "full"]));
            axes.push(toggle(Knob::Sp));
        }
        Mode::Inference => {
            if model.is_moe() {
                axes.push(Axis::of(Knob::Ep, divisors_within(model.experts, up_to(model.experts))));
            }
            let rated = start.base.plan.serving.request_rate.is_some_and(|rate| rate > 0.0);
            let latency = objective.section == crate::estimate::Section::Latency;
            // How many requests are let in is a choice where throughput or cost is sought; else it is the load.
            if !rated && !latency && objective != &figure::ACCELERATORS {
                axes.push(Axis::of(Knob::Concurrency, doubling(16_384.0)));
            }
            axes.push(Axis::of(Knob::MaxNumSeqs, doubling(4096.0).filter(|seqs| *seqs >= 16.0)));
            axes.push(Axis::of(Knob::MaxNumBatchedTokens, doubling(32_768.0).filter(|tokens| *tokens >= 1024.0)));
            axes.push(toggle(Knob::ChunkedPrefill));
        }
    }
    axes.push(toggle(Knob::CudaGraphs));
    axes.push(toggle(Knob::GpudirectRdma));
    axes.push(words(Knob::Virt, &["bare", "sriov"]));
    axes.retain(|axis| start.heeds(axis.knob) && axis.values.len() > 1);
    Space::of(axes).unwrap_or_default()
}

/// The divisors of a count up to `most`; powers of two where there is no such count.
fn divisors_within(count: f64, most: f64) -> Vec<f64> {
    let count = if count >= 1.0 { count } else { most.max(1.0).log2().floor().exp2() };
    super::space::divisors(count).filter(|divisor| *divisor <= most).collect()
}

/// What is usually traded off: throughput against interactivity in serving, against free memory in training.
fn usual_front(start: &Scenario, objective: &'static Metric) -> Vec<&'static Metric> {
    let names = match start.mode() {
        Mode::Training => ["tokens_per_sec", "headroom"],
        Mode::Inference => ["tokens_per_sec_per_accel", "tokens_per_sec_per_user"],
    };
    let known = names.iter().filter_map(|name| figure::named(name)).filter(|metric| metric.applies_to(start));
    let mut front: Vec<&'static Metric> = known.collect();
    // On one target throughput and what follows from it rise and fall together.
    let follows = ["tokens_per_sec", "dollar_per_1m_tokens", "time_to_train_h"].contains(&objective.name);
    if !follows && !front.contains(&objective) {
        front.insert(0, objective);
    }
    front
}

/// Looks for the best point. `gauge` tells how far it is, and stops it.
#[must_use]
pub fn optimise(problem: &Problem<'_>, gauge: &Gauge) -> Optimum {
    let began = Instant::now();
    let search = walk::Search::of(problem);
    let admissible = search.count(gauge);
    let exhaustive = admissible <= u128::from(problem.most);
    #[expect(clippy::cast_possible_truncation, reason = "smaller than a u64")]
    gauge.expect(admissible.min(u128::from(problem.most)) as u64);
    let tally = if exhaustive { search.everywhere(workers(), gauge) } else { local::search(&search, workers(), gauge) };
    let proof = match (gauge.cancelled(), exhaustive) {
        (true, _) => Proof::Cancelled,
        (false, true) => Proof::Exhaustive,
        (false, false) => Proof::Local { starts: tally.starts },
    };
    answer::told(
        problem,
        tally,
        Looked { space: problem.space.size(), admissible, estimated: 0, proof, seconds: 0.0 },
        began,
    )
}
