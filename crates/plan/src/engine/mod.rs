//! Engines: pure functions from a scenario to an estimate. No I/O, no clock, no globals, no allocation on the hot path.
//!
//! Two kinds of engine answer: closed forms within microseconds, and [`answer::event`], which runs a simulation for
//! milliseconds to seconds. [`estimate`] and its variants run the engine that the scenario names, however long it takes.
//! Interactive and batch callers check [`Engine::simulates`] first, use [`at_once`] for the same physics in closed form, and
//! run the simulation on a thread with [`answer::event::run`], which reports progress and can be canceled.
//!
//! * [`atlas_perf`] – closed forms: plain inputs to plain answers, without files or scenarios
//! * [`semi_empirical`] – the predecessor system's calibrated model
//! * [`benchboard`] – the predecessor dashboard's estimator
//! * [`atlas_sim`] – the same as it happens: contention, queues, failures
//! * [`answer`] – a scenario passed to the physics
//! * [`datasheet`] – what the catalog says of devices and models, in the numbers of the physics
//! * [`notes`] – what a reader of an engine's numbers must know

pub mod answer;
pub mod benchboard;
#[cfg(test)]
mod breadth;
pub mod datasheet;
mod idle;
pub mod notes;
pub mod semi_empirical;

pub use atlas_perf::training::Memo;

use crate::estimate::{Cost, Estimate, Figures};
use crate::scenario::Scenario;
use atlas_core::plan::Engine;

/// Answers a scenario by the engine it names.
#[must_use]
pub fn estimate(scenario: &Scenario) -> Estimate {
    let mut estimate = Estimate::default();
    estimate_into(scenario, &mut estimate);
    estimate
}

/// Like [`estimate`], into an existing estimate: allocates nothing once its phases have room.
pub fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    estimate_with(scenario, None, estimate);
}

/// Like [`estimate_into`], with bit-identical results: `memo` caches intermediate results between similar scenarios.
pub fn estimate_next(scenario: &Scenario, memo: &mut Memo, estimate: &mut Estimate) {
    estimate_with(scenario, Some(memo), estimate);
}

fn estimate_with(scenario: &Scenario, memo: Option<&mut Memo>, estimate: &mut Estimate) {
    match scenario.engine {
        Engine::SemiEmpirical => semi_empirical::estimate_into(scenario, estimate),
        Engine::Analytical => answer::estimate_into(scenario, memo, estimate),
        Engine::Event => answer::event::estimate_into(scenario, estimate),
        Engine::Benchboard => benchboard::estimate_into(scenario, estimate),
    }
}

/// As [`estimate_into`], as if the scenario had no schedule: what searches compare.
pub fn estimate_unscheduled_into(scenario: &Scenario, estimate: &mut Estimate) {
    match scenario.engine {
        Engine::SemiEmpirical => semi_empirical::estimate_unscheduled_into(scenario, estimate),
        Engine::Analytical => answer::estimate_unscheduled_into(scenario, estimate),
        Engine::Event => answer::event::estimate_unscheduled_into(scenario, estimate),
        Engine::Benchboard => benchboard::estimate_into(scenario, estimate),
    }
}

/// The scenario with an engine that answers within microseconds: the closed form if its own engine simulates.
#[must_use]
pub fn at_once(scenario: &Scenario) -> Scenario {
    Scenario { engine: scenario.engine.at_once(), ..scenario.clone() }
}

/// What figures cost: rental and energy of all nodes over tokens.
#[must_use]
pub fn cost(scenario: &Scenario, figures: &Figures) -> Cost {
    semi_empirical::cost(scenario, figures)
}
