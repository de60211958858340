//! Advice rules, by the knobs that they change.

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

/// Minimum relative gain in throughput per doubling of the concurrency to count as below the knee. With less,
/// additional requests mostly wait for each other.
const MIN_GAIN_PER_DOUBLING: f64 = 0.25;

/// All rules, in the order in which they are tried.
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

/// Rule of the fixes that [`super::fit`] proposes for scenarios that cannot run.
pub(super) static MAKE_IT_FIT: Rule = Rule {
    name: "make it fit",
    reason: "the scenario cannot run as it is; this is one of the smallest changes that make it run",
    source: "the engine's upper bound of memory and its layout checks",
    mode: None,
    engine: None,
    propose: |_, _| {},
    worth: any_gain,
};

/// No minimum gain.
fn any_gain(_: &Case<'_>, _: &Changes) -> f64 {
    0.0
}

/// Minimum gain of additional concurrency: [`MIN_GAIN_PER_DOUBLING`] per doubling.
fn min_concurrency_gain(case: &Case<'_>, changes: &Changes) -> f64 {
    let more = changes.iter().find_map(|(knob, setting)| match (knob, setting) {
        (Knob::Concurrency, Setting::Number(more)) => Some(*more),
        _ => None,
    });
    let doublings = math::log2((more.unwrap_or_default() / case.concurrency()).max(1.0));
    math::powf(1.0 + MIN_GAIN_PER_DOUBLING, doublings) - 1.0
}

type Propose = fn(&Case<'_>, &mut Vec<Changes>);

/// Rule for training whose effect the analytical engine can estimate.
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

/// Rule for serving whose effect the analytical engine can estimate.
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

/// Rule for both modes whose effect the analytical engine can estimate.
const fn both(name: &'static str, reason: &'static str, source: &'static str, propose: Propose) -> Rule {
    Rule { name, reason, source, mode: None, engine: Some(Engine::Analytical), propose, worth: any_gain }
}
