//! Builds engine inputs from a scenario and converts the results to estimates.
//!
//! * [`training`], [`serving`] – inputs and metrics of a phase
//! * `schedule` – phases under their own loads
//! * [`corrected`] – corrections by measurements of the cluster
//! * [`event`] – times and rates from a simulation
//! * [`power`] – power of the accelerators and the node
//! * [`throttle`] – effect of power caps and clock limits

pub mod corrected;
pub mod event;
mod limits;
pub mod power;
mod schedule;
pub mod serving;
pub mod throttle;
pub mod training;

use crate::estimate::{Detail, Estimate, Metrics, Verdict};
use crate::scenario::{Phase, Scenario};
use atlas_config::Mode;
use atlas_perf::accelerator::{Accelerator, Precision};
use atlas_perf::serving::{ServingEstimate, ServingInput};
use atlas_perf::training::{Memo, TrainingEstimate, TrainingInput};

/// Verdict on NVFP4 weights on a device that multiplies only MX formats.
fn refused_nvfp4(nvfp4: bool, device: &Accelerator) -> Option<Verdict> {
    let lacks = nvfp4 && device.supports(Precision::Fp4) && !device.multiplies_nvfp4();
    lacks.then_some(Verdict::Format { format: "nvfp4", instead: "mxfp4" })
}

/// Computes times and rates of a phase. `closed` is the result of the closed form.
trait Physics {
    /// The cache of intermediate results, if there is one.
    fn memo(&mut self) -> Option<&mut Memo> {
        None
    }

    /// Estimates an optimizer step.
    fn training(
        &mut self,
        scenario: &Scenario,
        phase: &Phase,
        input: &TrainingInput,
        closed: TrainingEstimate,
    ) -> event::training::Answer;

    /// Estimates a deployment under load.
    fn serving(
        &mut self,
        scenario: &Scenario,
        phase: &Phase,
        input: &ServingInput,
        closed: ServingEstimate,
    ) -> event::serving::Answer;
}

/// Returns the results of the closed form unchanged.
struct ClosedForm<'m> {
    memo: Option<&'m mut Memo>,
}

impl Physics for ClosedForm<'_> {
    fn memo(&mut self) -> Option<&mut Memo> {
        self.memo.as_deref_mut()
    }

    fn training(
        &mut self,
        _: &Scenario,
        _: &Phase,
        _: &TrainingInput,
        closed: TrainingEstimate,
    ) -> event::training::Answer {
        event::training::Answer::closed(closed)
    }

    fn serving(
        &mut self,
        _: &Scenario,
        _: &Phase,
        _: &ServingInput,
        closed: ServingEstimate,
    ) -> event::serving::Answer {
        event::serving::Answer::closed(closed)
    }
}

/// Estimates a scenario by closed forms. The estimate is empty without machine or model, which [`Scenario::check`]
/// reports.
pub fn estimate_into(scenario: &Scenario, memo: Option<&mut Memo>, estimate: &mut Estimate) {
    estimate_with(scenario, &mut ClosedForm { memo }, estimate);
}

/// Like [`estimate_into`], but ignores the schedule.
pub fn estimate_unscheduled_into(scenario: &Scenario, estimate: &mut Estimate) {
    estimate_unscheduled_with(scenario, &mut ClosedForm { memo: None }, estimate);
}

fn estimate_with(scenario: &Scenario, physics: &mut impl Physics, estimate: &mut Estimate) {
    estimate_unscheduled_with(scenario, physics, estimate);
    if !scenario.phases.is_empty() {
        schedule::estimate_into(scenario, physics, estimate);
        price(scenario, estimate);
    }
}

/// Computes the cost. A layout that needs more accelerators than there are is priced at the number it needs.
fn price(scenario: &Scenario, estimate: &mut Estimate) {
    estimate.cost = super::cost(scenario, &estimate.total);
    estimate.cost.usd_per_1k_tokens *= estimate.shortfall();
}

fn estimate_unscheduled_with(scenario: &Scenario, physics: &mut impl Physics, estimate: &mut Estimate) {
    estimate.phases.clear();
    estimate.service = None;
    estimate.queue = None;
    estimate.total_minutes = scenario.base.minutes;
    let results = Results { metrics: &mut estimate.total, detail: &mut estimate.detail };
    phase(scenario, &scenario.base, physics, results);
    price(scenario, estimate);
}

/// Where the results of a phase are written. They are large, and copies of them would take a tenth of an estimate.
struct Results<'e> {
    metrics: &'e mut Metrics,
    detail: &'e mut Option<Detail>,
}

/// Estimates one phase, before the schedule scales it. Without machine or model, the results are empty.
fn phase(scenario: &Scenario, phase: &Phase, physics: &mut impl Physics, mut results: Results<'_>) {
    let answered = match phase.shape.mode {
        Mode::Training => training::answer(scenario, phase, physics, &mut results),
        Mode::Inference => serving::answer(scenario, phase, physics, &mut results),
    };
    let Results { metrics, detail } = results;
    let (Some(()), Some(detail)) = (answered, &mut *detail) else {
        (*metrics, *detail) = (Metrics::default(), None);
        return;
    };
    let power = detail.power;
    detail.verdict = detail.verdict.or(|| power::over_rack(scenario, &power?));
    let prompt = phase.shape.prompt + scenario.image_tokens(phase);
    let requested = prompt + phase.shape.generate;
    let reads = if phase.shape.mode == Mode::Training { requested } else { prompt };
    // Convolutional networks process images, which have no length.
    if reads == 0.0 && scenario.model.is_some_and(|model| model.convolutions.is_none()) {
        detail.verdict = Verdict::NoTokens;
    }
    // The maximum sequence length of the model takes precedence over the hardware's verdict.
    let limit = scenario.max_context.filter(|_| !scenario.extends_context(phase));
    if let Some(limit) = limit.filter(|limit| requested > *limit) {
        detail.verdict = Verdict::Context { requested, most: f64::from(limit) };
    }
    if scenario.corrections.is_some() {
        corrected::correct(scenario, phase, metrics, detail);
    }
}

#[cfg(test)]
mod adapters;
#[cfg(test)]
mod encoders;
#[cfg(test)]
mod images;
#[cfg(test)]
mod measured_passes;
#[cfg(test)]
mod published;
#[cfg(test)]
mod published_training;
#[cfg(test)]
mod tests;
