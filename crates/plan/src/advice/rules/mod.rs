//! The rules, by what they turn.

mod calibrated;
mod experts;
mod hardware;
mod parallelism;
mod scheduler;
mod serving;
mod target;
mod training;

use super::{Case, Changes, Rule};
use crate::knob::{Knob, Setting};
use atlas_config::Mode;
use atlas_core::math;
use atlas_core::plan::Engine;

/// Throughput that a doubling of the requests in flight must bring, so that it is still below the knee: with less,
/// most of what a request adds is its own waiting.
const KNEE: f64 = 0.25;

/// Every rule, in the order in which they are tried.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let all = [
        parallelism::RULES,
        training::RULES,
        serving::RULES,
        experts::RULES,
        scheduler::RULES,
        hardware::RULES,
        target::RULES,
        calibrated::RULES,
    ];
    all.into_iter().flatten()
}

/// What [`super::fit`] proposes, where the scenario cannot run.
pub(super) static MAKE_IT_FIT: Rule = Rule {
    name: "make it fit",
    reason: "the scenario cannot run as it is; this is one of the smallest changes that make it run",
    source: "the engine's upper bound of memory and its layout checks",
    mode: None,
    engine: None,
    propose: |_, _| {},
    worth: any_gain,
};

/// Any gain will do.
fn any_gain(_: &Case<'_>, _: &Changes) -> f64 {
    0.0
}

/// What requests in flight must bring, at [`KNEE`] a doubling.
fn up_to_the_knee(case: &Case<'_>, changes: &Changes) -> f64 {
    let more = changes.iter().find_map(|(knob, setting)| match (knob, setting) {
        (Knob::Concurrency, Setting::Number(more)) => Some(*more),
        _ => None,
    });
    let doublings = math::log2((more.unwrap_or_default() / case.concurrency()).max(1.0));
    math::powf(1.0 + KNEE, doublings) - 1.0
}

type Propose = fn(&Case<'_>, &mut Vec<Changes>);

/// A rule of training that the analytical engine can judge.
const fn training(name: &'static str, reason: &'static str, source: &'static str, propose: Propose) -> Rule {
    Rule {
        name,
        reason,
        source,
        mode: Some(Mode::Training),
        engine: Some(Engine::Analytical),
        propose,
        worth: any_gain,
    }
}

/// A rule of serving that the analytical engine can judge.
const fn serving(name: &'static str, reason: &'static str, source: &'static str, propose: Propose) -> Rule {
    Rule {
        name,
        reason,
        source,
        mode: Some(Mode::Inference),
        engine: Some(Engine::Analytical),
        propose,
        worth: any_gain,
    }
}

/// A rule of both modes that the analytical engine can judge.
const fn both(name: &'static str, reason: &'static str, source: &'static str, propose: Propose) -> Rule {
    Rule { name, reason, source, mode: None, engine: Some(Engine::Analytical), propose, worth: any_gain }
}
