//! The predecessor system's optimizer: the best single change from a starting point.
//!
//! Despite its name it does not climb: every candidate changes the STARTING knobs, changes are never combined, the
//! schedule is ignored, and candidates draw their noise from `seed + 1`, so noise can affect the result. Kept for
//! comparison as `--method hill-climb`.

use std::sync::Arc;

use crate::engine::estimate_unscheduled_into;
use crate::estimate::Estimate;
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario, first_draw};

/// Minimum factor in throughput over the best candidate so far.
const MIN_GAIN_FACTOR: f64 = 1.03;

/// Result of the search.
#[derive(Debug, Clone)]
pub struct HillClimb {
    /// Best scenario.
    pub scenario: Scenario,
    /// Its estimate without the schedule.
    pub estimate: Estimate,
    /// Estimate of the starting point without the schedule.
    pub start: Estimate,
    /// All candidates in the order in which they were tried.
    pub tried: Vec<Trial>,
}

/// One candidate.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Changed knob.
    pub knob: Knob,
    /// New setting.
    pub setting: Setting,
    /// Throughput, tokens/s; `None` if the scenario could not be resolved.
    pub tokens_per_sec: Option<f64>,
    /// p99 latency, ms; `None` in training, and if it could not be estimated.
    pub p99_ms: Option<f64>,
    /// Whether it was the best candidate so far.
    pub kept: bool,
}

/// Searches from `start`. `sla_p99_ms` is a constraint in inference only.
#[must_use]
pub fn hill_climb(start: &Scenario, parts: &Parts, sla_p99_ms: f64) -> HillClimb {
    let mut estimate = Estimate::default();
    estimate_unscheduled_into(start, &mut estimate);
    let baseline = estimate.clone();
    let mut best = start.clone();
    let mut tried = Vec::new();
    // Candidates draw their noise from `seed + 1`.
    let mut reseeded = start.clone();
    reseeded.reseed(start.seed.saturating_add(1), first_draw);
    for (knob, setting) in candidates(start).into_iter().filter(|(knob, _)| start.uses(*knob)) {
        let mut candidate = reseeded.clone();
        let changed = candidate.set(knob, &setting, parts);
        if changed.is_err() || candidate.check(parts).is_err() {
            tried.push(Trial { knob, setting, tokens_per_sec: None, p99_ms: None, kept: false });
            continue;
        }
        let mut trial = Estimate::default();
        estimate_unscheduled_into(&candidate, &mut trial);
        let faster = trial.total.tokens_per_sec > MIN_GAIN_FACTOR * estimate.total.tokens_per_sec;
        let p99_ms = trial.total.latency.map(|latency| latency.p99);
        let within = p99_ms.is_none_or(|ms| ms <= sla_p99_ms.max(1.0));
        let kept = faster && within;
        tried.push(Trial { knob, setting, tokens_per_sec: Some(trial.total.tokens_per_sec), p99_ms, kept });
        if kept {
            estimate = trial;
            best = candidate;
        }
    }
    // The result has the seed of the request.
    best.reseed(start.seed, first_draw);
    HillClimb { scenario: best, estimate, start: baseline, tried }
}

fn candidates(start: &Scenario) -> [(Knob, Setting); 6] {
    let word = |word: &str| Setting::Choice(Arc::from(word));
    [
        (Knob::CudaGraphs, Setting::Toggle(true)),
        (Knob::GpudirectRdma, Setting::Toggle(true)),
        (Knob::Microbatch, Setting::Number(start.microbatch * 2.0)),
        (Knob::Fabric, word("IB")),
        (Knob::Virt, word("bare")),
        (Knob::Microbatch, Setting::Number(start.microbatch * 4.0)),
    ]
}
