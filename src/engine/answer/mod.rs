//! A scenario put to the analytical engine: inputs made of it, its answers told in the words that all engines share.

mod limits;
pub mod power;
mod schedule;
pub mod serving;
pub mod training;

use crate::estimate::{Detail, Estimate, Figures, Latency, Queue};
use crate::scenario::{Phase, Scenario};
use crate::spec::Mode;

/// Answers a scenario. One that lacks machine or model, which [`Scenario::check`] refuses, is answered by nothing.
pub fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    estimate_unscheduled_into(scenario, estimate);
    if !scenario.phases.is_empty() {
        schedule::estimate_into(scenario, estimate);
        price(scenario, estimate);
    }
}

/// Prices the whole: tokens of a layout that asks for more accelerators than there are cost what those would.
fn price(scenario: &Scenario, estimate: &mut Estimate) {
    estimate.cost = super::cost(scenario, &estimate.total);
    estimate.cost.usd_per_1k_tokens *= estimate.shortfall();
}

/// As [`estimate_into`], without the schedule.
pub fn estimate_unscheduled_into(scenario: &Scenario, estimate: &mut Estimate) {
    estimate.phases.clear();
    estimate.service = Latency::default();
    estimate.queue = Queue::default();
    estimate.total_minutes = scenario.base.minutes;
    (estimate.total, estimate.detail) = match phase(scenario, &scenario.base) {
        Some((figures, detail)) => (figures, Some(detail)),
        None => (Figures::default(), None),
    };
    price(scenario, estimate);
}

/// One phase, before the schedule scales it.
fn phase(scenario: &Scenario, phase: &Phase) -> Option<(Figures, Detail)> {
    match phase.shape.mode {
        Mode::Training => training::answer(scenario, phase),
        Mode::Inference => serving::answer(scenario, phase),
    }
}
