//! Engines: pure functions from a scenario to an estimate. No I/O, no clock, no globals, no allocation on the hot path.
//!
//! Two kinds of engine answer: closed forms within microseconds, and [`answer::event`], which runs a simulation for
//! milliseconds to seconds. [`estimate`] and its like ask the one that the scenario names, however long it takes. Who asks
//! thousands of times or waits at a screen looks at [`Engine::simulates`] first, asks [`at_once`] for the same physics in
//! closed form, and leaves the simulation to a thread with [`answer::event::run`], which tells its progress and can be
//! cancelled.
//!
//! * [`atlas_perf`] – closed forms: plain inputs to plain answers, without files or scenarios
//! * [`semi_empirical`] – the predecessor system's calibrated model
//! * [`benchboard`] – the predecessor dashboard's estimator
//! * [`atlas_sim`] – the same as it happens: contention, queues, failures
//! * [`answer`] – a scenario put to the physics
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

/// As [`estimate`], into one whose memory is used again: no allocation once its phases have room.
pub fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    estimate_with(scenario, None, estimate);
}

/// As [`estimate_into`], to the last bit, for who turns knobs and asks again: `memo` holds what is the same as the last time.
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

/// The scenario as an engine answers it that takes microseconds: itself, but where its own engine simulates the same in
/// closed form.
#[must_use]
pub fn at_once(scenario: &Scenario) -> Scenario {
    Scenario { engine: scenario.engine.at_once(), ..scenario.clone() }
}

/// What figures cost: rental and energy of all nodes over tokens.
#[must_use]
pub fn cost(scenario: &Scenario, figures: &Figures) -> Cost {
    semi_empirical::cost(scenario, figures)
}
