//! Schedules: each phase scaled and queued, then averaged by duration.

use crate::estimate::{Estimate, Figures, Latency, Queue};
use crate::scenario::{Phase, Scenario};

/// Smallest scale a step time is divided by.
const SCALE_FLOOR: f64 = 1e-6;

pub(super) fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    estimate.phases.clear();
    estimate.phases.extend(scenario.phases.iter().map(|phase| scaled(scenario, phase)));
    aggregate(estimate);
}

/// A phase's figures under its scales, with its queue. Power follows the autoscaling only where the product of the
/// scales differs from one: the predecessor model's quirk.
fn scaled(scenario: &Scenario, phase: &Phase) -> Figures {
    let mut figures = super::figures(scenario, phase);
    let scale = phase.tokens_scale * phase.autoscale_factor;
    #[expect(clippy::float_cmp, reason = "the quirk is about exactly one")]
    if scale != 1.0 {
        figures.tokens_per_sec = (figures.tokens_per_sec * scale).max(1.0);
        figures.step_time_ms /= scale.max(SCALE_FLOOR);
        figures.node_power_w *= phase.autoscale_factor;
    }
    figures.queue = super::queue::queue(scenario, phase, &figures);
    figures
}

/// Duration-weighted means; peak memory is the maximum, retries are sums. A schedule that lasts no time has no means.
pub(in crate::engine) fn aggregate(estimate: &mut Estimate) {
    let phases = &estimate.phases;
    let minutes: f64 = phases.iter().map(|phase| phase.minutes).sum();
    let mean = |get: &dyn Fn(&Figures) -> f64| {
        if minutes > 0.0 { phases.iter().map(|phase| get(phase) * phase.minutes).sum::<f64>() / minutes } else { 0.0 }
    };
    let latency = |get: &dyn Fn(&Figures) -> Latency| Latency {
        p50: mean(&|phase| get(phase).p50),
        p95: mean(&|phase| get(phase).p95),
        p99: mean(&|phase| get(phase).p99),
        ttft: mean(&|phase| get(phase).ttft),
    };
    let queued = |get: &dyn Fn(&Queue) -> f64| mean(&|phase| phase.queue.as_ref().map_or(0.0, get));
    let service = latency(&|phase| phase.latency);
    let total_latency = latency(&|phase| phase.queue.map_or(phase.latency, |queue| queue.latency));
    let total = Figures {
        tokens_per_sec: mean(&|phase| phase.tokens_per_sec),
        flop_utilization: mean(&|phase| phase.flop_utilization).min(1.0),
        hbm_bw_util: mean(&|phase| phase.hbm_bw_util).min(1.0),
        comm_compute_ratio: mean(&|phase| phase.comm_compute_ratio),
        step_time_ms: mean(&|phase| phase.step_time_ms),
        latency: total_latency,
        peak_mem_gb: phases.iter().map(|phase| phase.peak_mem_gb).fold(0.0, f64::max),
        node_power_w: mean(&|phase| phase.node_power_w),
        retries: phases.iter().map(|phase| phase.retries).sum(),
        failures: phases.iter().map(|phase| phase.failures).sum(),
        minutes,
        queue: None,
    };
    let queue = Queue {
        arrival_rate: queued(&|queue| queue.arrival_rate),
        servers: queued(&|queue| queue.servers),
        service_mean_ms: queued(&|queue| queue.service_mean_ms),
        service_cv: queued(&|queue| queue.service_cv),
        arrival_cv: queued(&|queue| queue.arrival_cv),
        utilization: queued(&|queue| queue.utilization),
        latency: total_latency,
        wait: latency(&|phase| phase.queue.map_or(Latency::default(), |queue| queue.wait)),
        waiting_fraction_p99: queued(&|queue| queue.waiting_fraction_p99),
    };
    estimate.total_minutes = minutes;
    estimate.total = total;
    estimate.service = service;
    estimate.queue = queue;
}
