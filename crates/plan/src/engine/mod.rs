//! Engines: pure functions from a scenario to an estimate. No I/O, no clock, no globals, no allocation on the hot path.
//!
//! There are two kinds of engines: closed forms, which take microseconds, and [`answer::event`], which runs a
//! simulation for milliseconds to seconds. [`estimate`] and its variants run the engine that the scenario selects,
//! however long it takes. Interactive and batch callers check [`Engine::simulates`] first, use [`analytical_scenario`]
//! for the same physics in closed form, and run the simulation on a thread with [`answer::event::run`], which reports
//! progress and can be canceled.
//!
//! * [`atlas_perf`] – closed forms, independent of files and scenarios
//! * [`semi_empirical`] – the calibrated model of the predecessor system
//! * [`benchboard`] – the estimator of the predecessor dashboard
//! * [`atlas_sim`] – event simulation: contention, queues, failures
//! * [`answer`] – applies the physics engines to a scenario
//! * [`notes`] – assumptions and limitations of an estimate

pub mod answer;
pub mod benchboard;
#[cfg(test)]
mod breadth;
mod idle;
pub mod notes;
pub mod semi_empirical;

pub use atlas_perf::training::Memo;

use crate::estimate::{Cost, Estimate, Metrics};
use crate::scenario::Scenario;
use atlas_core::plan::Engine;

/// Estimates a scenario with the engine that it selects.
#[must_use]
pub fn estimate(scenario: &Scenario) -> Estimate {
    let mut estimate = Estimate::default();
    estimate_into(scenario, &mut estimate);
    estimate
}

/// Like [`estimate`], but writes to an existing estimate. Does not allocate once `phases` has the capacity.
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

/// Like [`estimate_into`], but ignores the schedule. Searches compare these estimates.
pub fn estimate_unscheduled_into(scenario: &Scenario, estimate: &mut Estimate) {
    match scenario.engine {
        Engine::SemiEmpirical => semi_empirical::estimate_unscheduled_into(scenario, estimate),
        Engine::Analytical => answer::estimate_unscheduled_into(scenario, estimate),
        Engine::Event => answer::event::estimate_unscheduled_into(scenario, estimate),
        Engine::Benchboard => benchboard::estimate_into(scenario, estimate),
    }
}

/// Returns the scenario with an engine that answers within microseconds: the closed form if its own engine simulates.
#[must_use]
pub fn analytical_scenario(scenario: &Scenario) -> Scenario {
    Scenario { engine: scenario.engine.analytical(), ..scenario.clone() }
}

/// Cost of a scenario: rent and energy of all nodes, per hour and per token.
#[must_use]
pub fn cost(scenario: &Scenario, metrics: &Metrics) -> Cost {
    semi_empirical::cost(scenario, metrics)
}
