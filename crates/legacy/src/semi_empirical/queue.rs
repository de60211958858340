//! Queueing: the predecessor model's form of the Allen–Cunneen approximation.
//!
//! Two departures from the textbook are kept for parity: utilization is capped before it is divided among the servers,
//! and the form for several servers has `(ca + cs)/2` without squares and without the division by `m`.

use atlas_core::math;

/// Coefficients of variation are clamped to this range.
const CV_RANGE: (f64, f64) = (0.1, 5.0);
/// Upper bound on utilization. At one, the queue would grow without bound.
const MAX_UTILIZATION: f64 = 0.999;
/// From this utilization on, the service time is stretched and the utilization is set to `STRETCHED_UTILIZATION`.
const STRETCH_UTILIZATION: f64 = 0.99;
const STRETCHED_UTILIZATION: f64 = 0.98;

/// Inputs of the queueing model for one phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrivals {
    /// Tokens per request.
    pub tokens: f64,
    /// Service rate, tokens per second.
    pub tokens_per_sec: f64,
    /// Arrival rate in requests per second, if stated.
    pub requests_per_sec: Option<f64>,
    /// Ratio of the arrival rate to the capacity; used if `requests_per_sec` is absent or not positive.
    pub load_factor: f64,
    /// Parallel servers.
    pub servers: f64,
    /// Coefficient of variation of the service time.
    pub service_cv: f64,
    /// Coefficient of variation of the interarrival time.
    pub arrival_cv: f64,
    /// Latencies without queueing, ms: median, 95th and 99th percentile.
    pub alone: [f64; 3],
}

/// Results of the queueing model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waiting {
    /// Arrival rate, requests per second.
    pub arrival_rate: f64,
    /// Parallel servers.
    pub servers: f64,
    /// Mean service time, ms.
    pub service_mean_ms: f64,
    /// Coefficient of variation of the service time, clamped.
    pub service_cv: f64,
    /// Coefficient of variation of the interarrival time, clamped.
    pub arrival_cv: f64,
    /// Utilization of the servers.
    pub utilization: f64,
    /// Waiting times, ms: median, 95th and 99th percentile.
    pub wait: [f64; 3],
}

/// Computes the waiting times of the requests of a phase.
#[must_use]
pub fn waiting(of: &Arrivals) -> Waiting {
    let mut service = 1000.0 * of.tokens / of.tokens_per_sec;
    let natural = of.tokens_per_sec / of.tokens * of.load_factor;
    let arrival_rate = of.requests_per_sec.filter(|rate| *rate > 0.0).unwrap_or(natural);
    let servers = of.servers.max(1.0);
    let [service_cv, arrival_cv] = [of.service_cv, of.arrival_cv].map(|cv| cv.clamp(CV_RANGE.0, CV_RANGE.1));

    let mut rho = ((arrival_rate * service / 1000.0).min(MAX_UTILIZATION) / servers).min(MAX_UTILIZATION);
    if rho >= STRETCH_UTILIZATION {
        service *= rho / STRETCHED_UTILIZATION;
        rho = STRETCHED_UTILIZATION;
    }
    let mean_wait = if servers == 1.0 {
        (arrival_cv.powi(2) + service_cv.powi(2)) / 2.0 * rho / (1.0 - rho) * service
    } else {
        (arrival_cv + service_cv) / 2.0 * math::powf(rho, (2.0 * (servers + 1.0)).sqrt()) / (1.0 - rho) * service
    };
    let [p50, p95, p99] = of.alone;
    let w50 = mean_wait.min(0.5 * p50);
    let w95 = (1.5 * mean_wait).max(w50).min(0.8 * p95);
    let w99 = (2.0 * mean_wait).max(w95).min(0.9 * p99);
    Waiting {
        arrival_rate,
        servers,
        service_mean_ms: service,
        service_cv,
        arrival_cv,
        utilization: rho,
        wait: [w50, w95, w99],
    }
}
