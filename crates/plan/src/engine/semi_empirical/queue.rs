//! Queueing of an inference phase.

use crate::estimate::{Latency, Metrics, Queue};
use crate::scenario::{Phase, Scenario};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_legacy::semi_empirical::queue::{Arrivals, Waiting, waiting};

/// Queueing metrics of an inference phase. `metrics` are already scaled. `None` if no tokens are generated.
pub(super) fn queue(scenario: &Scenario, phase: &Phase, metrics: &Metrics) -> Option<Queue> {
    let shape = &phase.shape;
    if shape.mode != Mode::Inference || shape.generate <= 0.0 {
        return None;
    }
    let arrival = &phase.arrival;
    let dp = arrival.dp_override.unwrap_or(shape.dp);
    let alone = metrics.latency?;
    let Waiting { arrival_rate, servers, service_mean_ms, service_cv, arrival_cv, utilization, wait } =
        waiting(&Arrivals {
            tokens: shape.prompt + shape.generate,
            tokens_per_sec: metrics.tokens_per_sec,
            requests_per_sec: arrival.requests_per_sec,
            load_factor: phase.traffic.load_factor,
            servers: arrival.servers.and_then(Count::nonzero).map_or(dp * scenario.microbatch, f64::from),
            service_cv: arrival.service_cv.unwrap_or(phase.traffic.cv),
            arrival_cv: arrival.arrival_cv.unwrap_or(phase.traffic.cv),
            alone: [alone.p50, alone.p95, alone.p99],
        });
    let [w50, w95, w99] = wait;
    let latency = Latency { p50: alone.p50 + w50, p95: alone.p95 + w95, p99: alone.p99 + w99, ttft: alone.ttft + w50 };
    Some(Queue {
        arrival_rate,
        servers,
        service_mean_ms,
        service_cv,
        arrival_cv,
        utilization,
        latency,
        wait: Latency { p50: w50, p95: w95, p99: w99, ttft: w50 },
        waiting_fraction_p99: if latency.p99 > 0.0 { w99 / latency.p99 } else { 0.0 },
    })
}
