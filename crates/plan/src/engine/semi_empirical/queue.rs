//! Waiting in line: the predecessor model's form of the Allen–Cunneen approximation.
//!
//! Two departures from the textbook are kept for parity: utilisation is capped before it is divided among the servers,
//! and the form for several servers has `(ca + cs)/2` without squares and without the division by `m`.

use crate::estimate::{Figures, Latency, Queue};
use crate::scenario::{Phase, Scenario};

/// Coefficients of variation outside this range are taken as its ends.
const CV: (f64, f64) = (0.1, 5.0);
/// Utilisation never reaches one: queues would be endless.
const RHO_CAP: f64 = 0.999;
/// From here on the service is stretched and utilisation held at `RHO_HELD`.
const RHO_STRETCH: f64 = 0.99;
const RHO_HELD: f64 = 0.98;

/// Queueing of an inference phase whose figures are already scaled. `None` where nothing is generated.
pub(super) fn queue(scenario: &Scenario, phase: &Phase, figures: &Figures) -> Option<Queue> {
    let shape = &phase.shape;
    if shape.mode != atlas_config::Mode::Inference || shape.generate <= 0.0 {
        return None;
    }
    let arrival = &phase.arrival;
    let tokens = shape.prompt + shape.generate;
    let mut service = 1000.0 * tokens / figures.tokens_per_sec;
    let natural = figures.tokens_per_sec / tokens * phase.traffic.load_factor;
    let arrival_rate = arrival.requests_per_sec.filter(|rate| *rate > 0.0).unwrap_or(natural);
    let dp = arrival.dp_override.unwrap_or(shape.dp);
    let servers = arrival.servers.filter(|servers| *servers > 0.0).unwrap_or(dp * scenario.microbatch).max(1.0);
    let cv = |own: Option<f64>| own.unwrap_or(phase.traffic.cv).clamp(CV.0, CV.1);
    let (service_cv, arrival_cv) = (cv(arrival.service_cv), cv(arrival.arrival_cv));

    let mut rho = ((arrival_rate * service / 1000.0).min(RHO_CAP) / servers).min(RHO_CAP);
    if rho >= RHO_STRETCH {
        service *= rho / RHO_HELD;
        rho = RHO_HELD;
    }
    let mean_wait = if servers == 1.0 {
        (arrival_cv.powi(2) + service_cv.powi(2)) / 2.0 * rho / (1.0 - rho) * service
    } else {
        (arrival_cv + service_cv) / 2.0 * rho.powf((2.0 * (servers + 1.0)).sqrt()) / (1.0 - rho) * service
    };
    let alone = &figures.latency;
    let w50 = mean_wait.min(0.5 * alone.p50);
    let w95 = (1.5 * mean_wait).max(w50).min(0.8 * alone.p95);
    let w99 = (2.0 * mean_wait).max(w95).min(0.9 * alone.p99);
    let latency = Latency { p50: alone.p50 + w50, p95: alone.p95 + w95, p99: alone.p99 + w99, ttft: alone.ttft + w50 };
    Some(Queue {
        arrival_rate,
        servers,
        service_mean_ms: service,
        service_cv,
        arrival_cv,
        utilization: rho,
        latency,
        wait: Latency { p50: w50, p95: w95, p99: w99, ttft: w50 },
        waiting_fraction_p99: if latency.p99 > 0.0 { w99 / latency.p99 } else { 0.0 },
    })
}
