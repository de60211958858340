//! Adapter to the calibrated model of the predecessor system: converts scenarios to its inputs and its outputs to
//! estimates. [`super::notes`] lists what the model does not include.

mod queue;
pub(in crate::engine) mod schedule;

use crate::estimate::{Cost, Estimate, Latency, Metrics};
use crate::scenario::{Phase, Scenario};
use atlas_config::Mode;
use atlas_legacy::semi_empirical::coefficients::Coefficient;
use atlas_legacy::semi_empirical::{Quantity, Source, Switches, answer};

/// Estimates a scenario.
#[must_use]
pub fn estimate(scenario: &Scenario) -> Estimate {
    let mut estimate = Estimate::default();
    estimate_into(scenario, &mut estimate);
    estimate
}

/// Like [`estimate`], but writes to an existing estimate. Does not allocate once `phases` has the capacity.
pub fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    if scenario.phases.is_empty() {
        estimate_unscheduled_into(scenario, estimate);
        return;
    }
    schedule::estimate_into(scenario, estimate);
    estimate.cost = cost(scenario, &estimate.total);
    estimate.detail = None;
}

/// Estimates a scenario, ignoring its schedule. The hill climb compares these estimates.
pub fn estimate_unscheduled_into(scenario: &Scenario, estimate: &mut Estimate) {
    estimate.phases.clear();
    estimate.detail = None;
    estimate.total = metrics(scenario, &scenario.base);
    estimate.total_minutes = scenario.base.minutes;
    estimate.service = None;
    estimate.queue = None;
    estimate.cost = cost(scenario, &estimate.total);
}

/// Provides the inputs of the model as plain numbers.
struct Plain<'a> {
    scenario: &'a Scenario,
    phase: &'a Phase,
}

impl Source for Plain<'_> {
    type Number = f64;

    fn coefficient(&self, of: &Coefficient) -> f64 {
        (of.get)(&self.scenario.coefficients)
    }

    fn quantity(&self, of: Quantity) -> f64 {
        quantity(self.scenario, self.phase, of)
    }
}

/// Value of an input of the model for a phase of a scenario.
#[must_use]
pub fn quantity(scenario: &Scenario, phase: &Phase, of: Quantity) -> f64 {
    let shape = &phase.shape;
    match of {
        Quantity::Accelerators => scenario.accelerators(),
        Quantity::Tp => f64::from(shape.tp),
        Quantity::Pp => f64::from(shape.pp),
        Quantity::Dp => f64::from(shape.dp),
        Quantity::Microbatch => f64::from(scenario.microbatch),
        Quantity::Prompt => shape.prompt,
        Quantity::Generate => shape.generate,
        // `Scenario::check` reports a missing factor before the engine runs.
        Quantity::Fabric => scenario.fabric_factor.unwrap_or(f64::NAN),
        Quantity::NodeWatts => scenario.node_watts,
        Quantity::MemoryGb => scenario.memory_gb_per_accel,
        Quantity::Hidden => f64::from(shape.hidden),
        Quantity::Layers => f64::from(shape.layers),
        Quantity::Draw => phase.draw,
    }
}

/// Switches of the model for a phase.
#[must_use]
pub fn switches(scenario: &Scenario, phase: &Phase) -> Switches {
    Switches {
        inference: phase.shape.mode == Mode::Inference,
        cuda_graphs: scenario.cuda_graphs,
        gpudirect_rdma: scenario.gpudirect_rdma,
        sriov: scenario.sriov,
        noise: scenario.noise,
    }
}

/// Estimates one phase, before the schedule scales it.
#[must_use]
pub fn metrics(scenario: &Scenario, phase: &Phase) -> Metrics {
    let on = switches(scenario, phase);
    let of = answer(&Plain { scenario, phase }, on);
    let latency = Latency { p50: of.p50, p95: of.p95, p99: of.p99, ttft: of.ttft };
    Metrics {
        tokens_per_sec: of.tokens_per_sec,
        flop_utilization: of.flop_utilization,
        hbm_bw_util: of.memory_utilization,
        comm_compute_ratio: of.communication,
        step_time_ms: (!on.inference).then_some(of.step_ms),
        latency: on.inference.then_some(latency),
        peak_mem_gb: of.memory_gb,
        node_power_w: of.node_watts,
        retries: u32::from(of.overhead >= scenario.coefficients.overhead_threshold),
        failures: 0,
        minutes: phase.minutes,
        queue: None,
    }
}

/// Hourly cost and cost per token. The predecessor system divides ONE node's cost by the tokens of ALL nodes; that
/// value is kept as `usd_per_1k_tokens_parity`.
#[must_use]
pub fn cost(scenario: &Scenario, metrics: &Metrics) -> Cost {
    let energy = metrics.node_power_w * scenario.pue / 1000.0 * scenario.energy_usd_per_kwh();
    let node = scenario.usd_node_hour().unwrap_or(0.0) + if scenario.energy_is_included() { 0.0 } else { energy };
    let thousands_per_hour = (metrics.tokens_per_sec * 3.6).max(1e-6);
    Cost {
        usd_per_hour: node * scenario.num_nodes,
        energy_usd_per_hour: energy * scenario.num_nodes,
        usd_per_1k_tokens: node * scenario.num_nodes / thousands_per_hour,
        usd_per_1k_tokens_parity: node / thousands_per_hour,
    }
}
