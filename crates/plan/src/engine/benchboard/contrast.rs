//! Comparison of the dashboard's estimator with the analytical engine: factors whose product is the difference.

use super::estimator::{self, Input};
use crate::engine;
use crate::estimate::Estimate;
use crate::scenario::{Parts, Scenario, ScenarioError};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::Engine;
use atlas_perf::accelerator::Precision;

/// One cause of the difference.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Factor {
    /// Quantity that differs.
    pub what: &'static str,
    /// Value of the dashboard's estimator.
    pub dashboard: f64,
    /// Value of the analytical engine.
    pub analytical: f64,
    /// Resulting factor on the throughput, from dashboard to analytical.
    pub factor: f64,
    /// Explanation.
    pub why: &'static str,
}

/// Results of both engines for one scenario.
#[derive(Debug, Clone)]
pub struct Contrast {
    /// Input of the dashboard's estimator.
    pub input: Input,
    /// Result of the dashboard's estimator.
    pub dashboard: estimator::Answer,
    /// Result of the analytical engine, or its error.
    pub analytical: Result<(Scenario, Estimate), ScenarioError>,
    /// Factors whose product is the ratio of analytical to dashboard throughput. Empty in inference, where the two
    /// engines do not estimate the same quantity.
    pub factors: Vec<Factor>,
}

/// Estimates a scenario with both engines.
///
/// # Errors
///
/// If inputs of the dashboard's estimator are missing.
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
    // Peak rate and number of devices that the analytical utilization refers to.
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
            i.batch / i.computed_sequences(),
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
