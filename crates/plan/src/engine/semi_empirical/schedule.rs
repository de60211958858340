//! Schedules: estimates each phase with scaling and queueing, then averages them by duration.

use crate::estimate::{Estimate, Latency, Metrics, Queue};
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
fn scaled(scenario: &Scenario, phase: &Phase) -> Metrics {
    let mut metrics = super::metrics(scenario, phase);
    let scale = phase.tokens_scale * phase.autoscale_factor;
    #[expect(clippy::float_cmp, reason = "the quirk is about exactly one")]
    if scale != 1.0 {
        metrics.tokens_per_sec = (metrics.tokens_per_sec * scale).max(1.0);
        metrics.step_time_ms = metrics.step_time_ms.map(|ms| ms / scale.max(SCALE_FLOOR));
        metrics.node_power_w *= phase.autoscale_factor;
    }
    metrics.queue = super::queue::queue(scenario, phase, &metrics);
    metrics
}

/// Aggregates the phases: means weighted by duration, the maximum of peak memory, and sums of retries and failures. The
/// means of a schedule without duration are 0. As in the predecessor's model, a phase that trains counts with zero latency
/// and a phase that serves with zero step time.
pub(in crate::engine) fn aggregate(estimate: &mut Estimate) {
    let phases = &estimate.phases;
    let minutes: f64 = phases.iter().map(|phase| phase.minutes).sum();
    let mean = |get: &dyn Fn(&Metrics) -> f64| {
        if minutes > 0.0 { phases.iter().map(|phase| get(phase) * phase.minutes).sum::<f64>() / minutes } else { 0.0 }
    };
    let latency = |get: &dyn Fn(&Metrics) -> Option<Latency>| {
        let percentile = |of: fn(&Latency) -> f64| mean(&|phase| get(phase).as_ref().map_or(0.0, of));
        Latency {
            p50: percentile(|latency| latency.p50),
            p95: percentile(|latency| latency.p95),
            p99: percentile(|latency| latency.p99),
            ttft: percentile(|latency| latency.ttft),
        }
    };
    let queued = |get: &dyn Fn(&Queue) -> f64| mean(&|phase| phase.queue.as_ref().map_or(0.0, get));
    let trains = phases.iter().any(|phase| phase.step_time_ms.is_some());
    let serves = phases.iter().any(|phase| phase.latency.is_some());
    let total_latency = serves.then(|| latency(&Metrics::queued_latency));
    let total = Metrics {
        tokens_per_sec: mean(&|phase| phase.tokens_per_sec),
        flop_utilization: mean(&|phase| phase.flop_utilization).min(1.0),
        hbm_bw_util: mean(&|phase| phase.hbm_bw_util).min(1.0),
        comm_compute_ratio: mean(&|phase| phase.comm_compute_ratio),
        step_time_ms: trains.then(|| mean(&|phase| phase.step_time_ms.unwrap_or(0.0))),
        latency: total_latency,
        peak_mem_gb: phases.iter().map(|phase| phase.peak_mem_gb).fold(0.0, f64::max),
        node_power_w: mean(&|phase| phase.node_power_w),
        retries: phases.iter().map(|phase| phase.retries).sum(),
        failures: phases.iter().map(|phase| phase.failures).sum(),
        minutes,
        queue: None,
    };
    let queue = total_latency.map(|total_latency| Queue {
        arrival_rate: queued(&|queue| queue.arrival_rate),
        servers: queued(&|queue| queue.servers),
        service_mean_ms: queued(&|queue| queue.service_mean_ms),
        service_cv: queued(&|queue| queue.service_cv),
        arrival_cv: queued(&|queue| queue.arrival_cv),
        utilization: queued(&|queue| queue.utilization),
        latency: total_latency,
        wait: latency(&|phase| phase.queue.as_ref().map(|queue| queue.wait)),
        waiting_fraction_p99: queued(&|queue| queue.waiting_fraction_p99),
    });
    estimate.total_minutes = minutes;
    estimate.service = serves.then(|| latency(&|phase| phase.latency));
    estimate.total = total;
    estimate.queue = queue;
}
