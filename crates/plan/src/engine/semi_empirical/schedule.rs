//! Schedules: estimates each phase with scaling and queueing, then averages them by duration.

use crate::estimate::{Estimate, Figures, Latency, Queue};
use crate::scenario::{Phase, Scenario};

/// Lower bound of the scale that a step time is divided by.
const SCALE_FLOOR: f64 = 1e-6;

pub(super) fn estimate_into(scenario: &Scenario, estimate: &mut Estimate) {
    estimate.phases.clear();
    estimate.phases.extend(scenario.phases.iter().map(|phase| scaled(scenario, phase)));
    aggregate(estimate);
}

/// Metrics of a phase with its scales applied, and its queue. As in the predecessor's model, power follows the
/// autoscaling factor only if the product of both scales is not one.
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

/// Aggregates the phases: means weighted by duration, the maximum of peak memory, and sums of retries and failures. The
/// means of a schedule without duration are 0.
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
