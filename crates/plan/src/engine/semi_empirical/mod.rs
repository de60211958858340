//! The calibrated model of the predecessor system, reproduced to 1e-9 relative, noise included.
//!
//! Faithful also where it is weak: throughput does not depend on the size of the model, memory is clipped rather than
//! checked, the median latency is a constant for any accelerator faster than `lat_base_coeff / lat_min`. [`super::notes`]
//! says so beside the numbers.

mod queue;
pub(in crate::engine) mod schedule;

use crate::estimate::{Cost, Estimate, Figures, Latency};
use crate::scenario::{Phase, Scenario};
use atlas_config::Mode;

/// Answers a scenario.
#[must_use]
pub fn estimate(scenario: &Scenario) -> Estimate {
    let mut estimate = Estimate::default();
    estimate_into(scenario, &mut estimate);
    estimate
}

/// Answers a scenario into an estimate whose memory is used again: no allocation once its phases have room.
pub fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    if scenario.phases.is_empty() {
        estimate_unscheduled_into(scenario, estimate);
        return;
    }
    schedule::estimate_into(scenario, estimate);
    estimate.cost = cost(scenario, &estimate.total);
    estimate.detail = None;
}

/// Answers a scenario as if it had no schedule: what the hill-climb compares.
pub fn estimate_unscheduled_into(scenario: &Scenario, estimate: &mut Estimate) {
    estimate.phases.clear();
    estimate.detail = None;
    estimate.total = figures(scenario, &scenario.base);
    estimate.total_minutes = scenario.base.minutes;
    estimate.service = Latency::default();
    estimate.queue = crate::estimate::Queue::default();
    estimate.cost = cost(scenario, &estimate.total);
}

/// One phase, before the schedule scales it. Symbols as in the calibration guide.
#[must_use]
pub fn figures(scenario: &Scenario, phase: &Phase) -> Figures {
    let c = &scenario.coefficients;
    let shape = &phase.shape;
    let infer = shape.mode == Mode::Inference;
    let n = scenario.accelerators();
    let on = |flag: bool, value: f64| if flag { value } else { 0.0 };

    let rho = (c.rho_base
        + on(scenario.cuda_graphs, c.delta_rho_cuda)
        + on(scenario.gpudirect_rdma, c.delta_rho_gpudirect)
        + on(infer, c.delta_rho_infer))
    .min(c.rho_max);
    let chi = (c.chi_base + c.chi_tp * (shape.tp - 1.0) + c.chi_pp * (shape.pp - 1.0))
        * if infer { c.chi_infer_scale } else { 1.0 };
    let gamma_jitter = 1.0 + on(scenario.sriov, c.jitter_sriov);
    let gamma_gpudirect = if scenario.gpudirect_rdma { c.gamma_gpudirect } else { 1.0 };
    let omega_comm = (chi * scenario.fabric_factor * gamma_jitter * gamma_gpudirect).max(c.omega_min);

    let f_vendor = if infer { c.f_inference } else { c.f_training };
    let rate = f_vendor * rho * n * c.b_base;
    let mut throughput = rate / (1.0 + c.omega * omega_comm);

    let p50 = (c.lat_base_coeff / (rate / n).max(1.0)).max(c.lat_min);
    let tail = 1.0 + c.tail_comm * omega_comm + on(scenario.sriov, c.tail_sriov);
    let sequence = shape.prompt + shape.generate;
    if infer && shape.generate > 0.0 {
        throughput *= shape.generate / sequence.max(1.0);
    }

    let noise = if scenario.noise { (phase.draw - 0.5) * c.sigma_noise } else { 0.0 };
    throughput *= 1.0 + noise;
    let tail_noise = 1.0 + noise * c.sigma_tail;

    let latency = if infer {
        Latency {
            p50,
            p95: p50 * c.m95 * tail * tail_noise,
            p99: p50 * c.m99 * tail * tail_noise,
            ttft: p50 * c.r_ttft,
        }
    } else {
        Latency::default()
    };
    Figures {
        tokens_per_sec: throughput.max(1.0),
        flop_utilization: (rho * (1.0 - c.kappa_comm * omega_comm)).clamp(0.0, 1.0),
        hbm_bw_util: (c.hbm_base + c.hbm_seq_scale * sequence / c.hbm_seq_norm).min(c.hbm_max).clamp(0.0, 1.0),
        comm_compute_ratio: (omega_comm / (1.0 + omega_comm)).clamp(0.01, 0.99),
        step_time_ms: if infer {
            0.0
        } else {
            1000.0 * (shape.dp * scenario.microbatch * sequence).max(1.0) / throughput.max(1.0)
        },
        latency,
        peak_mem_gb: (c.peak_tokens_factor * shape.hidden * shape.layers).min(scenario.memory_gb_per_accel),
        node_power_w: scenario.node_watts * (c.phi_idle + c.phi_util * rho),
        retries: u32::from(omega_comm >= c.overhead_threshold),
        failures: 0,
        minutes: phase.minutes,
        queue: None,
    }
}

/// What hours cost, over tokens. The predecessor system divides ONE node's cost by the tokens of ALL nodes; that figure
/// is kept beside ours as `parity`.
#[must_use]
pub fn cost(scenario: &Scenario, figures: &Figures) -> Cost {
    let energy = figures.node_power_w * scenario.pue / 1000.0 * scenario.energy_usd_per_kwh();
    let node = scenario.usd_node_hour() + if scenario.energy_is_included() { 0.0 } else { energy };
    let thousands_per_hour = (figures.tokens_per_sec * 3.6).max(1e-6);
    Cost {
        usd_per_hour: node * scenario.num_nodes,
        energy_usd_per_hour: energy * scenario.num_nodes,
        usd_per_1k_tokens: node * scenario.num_nodes / thousands_per_hour,
        usd_per_1k_tokens_parity: node / thousands_per_hour,
    }
}
