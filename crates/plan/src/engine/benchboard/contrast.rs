//! Where the dashboard's figures part from the analytical engine's, and why: factors that multiply to the difference.

use super::estimator::{self, Input};
use crate::engine;
use crate::estimate::Estimate;
use crate::scenario::{Parts, Scenario, ScenarioError};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::Engine;
use atlas_perf::accelerator::Precision;

/// One cause of a difference.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Factor {
    /// What differs.
    pub what: &'static str,
    /// The dashboard's figure.
    pub dashboard: f64,
    /// The analytical engine's.
    pub analytical: f64,
    /// By what the analytical throughput is multiplied for it.
    pub factor: f64,
    /// Why.
    pub why: &'static str,
}

/// Both engines on one scenario.
#[derive(Debug, Clone)]
pub struct Contrast {
    /// The dashboard's question.
    pub input: Input,
    /// The dashboard's answer.
    pub dashboard: estimator::Answer,
    /// The analytical engine's answer, or why it failed.
    pub analytical: Result<(Scenario, Estimate), ScenarioError>,
    /// Why the throughputs differ: factors that multiply to analytical over dashboard. Empty in inference, where the
    /// two do not answer the same question.
    pub factors: Vec<Factor>,
}

/// Puts a scenario to both engines.
///
/// # Errors
/// The inputs of the dashboard's estimator that are missing.
pub fn contrast(scenario: &Scenario, parts: &Parts) -> Result<Contrast, ScenarioError> {
    let requested = Scenario { engine: Engine::Benchboard, ..scenario.clone() };
    requested.check(parts)?;
    let input = super::input(&requested, &requested.base);
    let dashboard = estimator::estimate(&input);
    let other = Scenario { engine: Engine::Analytical, ..scenario.clone() };
    let analytical = other.check(parts).map(|()| {
        let answer = engine::estimate(&other);
        (other, answer)
    });
    let factors = match &analytical {
        Ok((scenario, answer)) if scenario.mode() == Mode::Training => factors(&input, &dashboard, scenario, answer),
        _ => Vec::new(),
    };
    Ok(Contrast { input, dashboard, analytical, factors })
}

fn factors(i: &Input, ours: &estimator::Answer, scenario: &Scenario, theirs: &Estimate) -> Vec<Factor> {
    let Some(machine) = scenario.machine else { return Vec::new() };
    // The rate and the devices to which the analytical utilization refers.
    let precision = Precision::from(scenario.format(&scenario.base));
    let peak = machine.device.peak(precision) * machine.dies * 1e-12;
    let cp = scenario.base.plan.cp.unwrap_or(Count::ONE);
    let devices = i.devices() * cp / machine.dies;
    let mfu = theirs.total.flop_utilization;
    let flops = mfu * devices * peak * 1e12 / theirs.total.tokens_per_sec;
    let busy = ours.mfu * ours.compute_ms / ours.step_ms();
    let row = |what, dashboard: f64, analytical: f64, inverse: bool, why| {
        let factor = if inverse { dashboard / analytical } else { analytical / dashboard };
        Factor { what, dashboard, analytical, factor, why }
    };
    vec![
        row(
            "devices working in parallel",
            i.batch / i.worked(),
            devices,
            false,
            "the dashboard divides no work among devices: it counts the tokens of the batch and the work of one \
             micro-batch, which is as if batch / micro-batch devices worked; where software sees two devices of an \
             accelerator, as on Trainium, a rank of the analytical engine's is half of one",
        ),
        row(
            "FLOPs of a token",
            i.flops_per_token(),
            flops,
            true,
            "its second term counts the matrices again, experts that no token visits count in full, and attention \
             that grows with the sequence is missing",
        ),
        row("peak rate, TFLOP/s", i.tflops, peak, false, "it uses the 16-bit rate for every precision"),
        row(
            "utilization, communication included",
            busy,
            mfu,
            false,
            "it starts from a fixed 35 % (TPUs: 55 %), reduced for full memory, tensor parallelism and checkpointing; \
             only the all-reduce is added, without overlap; the analytical engine adds up operators, links and bubbles",
        ),
    ]
}
