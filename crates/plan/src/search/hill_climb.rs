//! The predecessor system's optimizer: the best single change from a starting point.
//!
//! It is called hill-climb but does not climb: every candidate changes the STARTING knobs, changes are never combined, the
//! schedule is ignored, and candidates draw their noise from `seed + 1`, so that noise can decide. Kept for
//! comparison under `--method hill-climb`.

use std::sync::Arc;

use crate::engine::estimate_unscheduled_into;
use crate::estimate::Estimate;
use crate::knob::{Knob, Setting};
use crate::scenario::{Parts, Scenario, first_draw};
use atlas_config::Mode;

/// A change must beat the best so far by this factor to be kept.
const GAIN: f64 = 1.03;

/// What the search found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The scenario of the answer.
    pub scenario: Scenario,
    /// Its estimate, schedule ignored.
    pub estimate: Estimate,
    /// The starting point's estimate, schedule ignored.
    pub start: Estimate,
    /// Every candidate in the order tried: the change, its throughput and p99, and whether it became the best so far.
    pub tried: Vec<Trial>,
}

/// One candidate.
#[derive(Debug, Clone)]
pub struct Trial {
    /// The knob changed.
    pub knob: Knob,
    /// To what.
    pub setting: Setting,
    /// Its tokens/s; `None` if the scenario could not be resolved.
    pub tokens_per_sec: Option<f64>,
    /// Its p99, ms.
    pub p99_ms: f64,
    /// Whether it became the best so far.
    pub kept: bool,
}

/// Searches from `start`. `sla_p99_ms` binds inference only.
#[must_use]
pub fn hill_climb(start: &Scenario, parts: &Parts, sla_p99_ms: f64) -> Found {
    let mut estimate = Estimate::default();
    estimate_unscheduled_into(start, &mut estimate);
    let baseline = estimate.clone();
    let mut best = start.clone();
    let mut tried = Vec::new();
    // Noise of the candidates comes from seed + 1; the answer keeps the seed it was asked with.
    let mut reseeded = start.clone();
    reseeded.reseed(start.seed.saturating_add(1), first_draw);
    for (knob, setting) in candidates(start).into_iter().filter(|(knob, _)| start.heeds(*knob)) {
        let mut candidate = reseeded.clone();
        let changed = candidate.set(knob, &setting, parts);
        if changed.is_err() || candidate.check(parts).is_err() {
            tried.push(Trial { knob, setting, tokens_per_sec: None, p99_ms: 0.0, kept: false });
            continue;
        }
        let mut trial = Estimate::default();
        estimate_unscheduled_into(&candidate, &mut trial);
        let faster = trial.total.tokens_per_sec > GAIN * estimate.total.tokens_per_sec;
        let within = start.mode() == Mode::Training || trial.total.latency.p99 <= sla_p99_ms.max(1.0);
        let kept = faster && within;
        tried.push(Trial {
            knob,
            setting,
            tokens_per_sec: Some(trial.total.tokens_per_sec),
            p99_ms: trial.total.latency.p99,
            kept,
        });
        if kept {
            estimate = trial;
            best = candidate;
        }
    }
    // The answer is described with the seed it was asked with.
    best.reseed(start.seed, first_draw);
    Found { scenario: best, estimate, start: baseline, tried }
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
