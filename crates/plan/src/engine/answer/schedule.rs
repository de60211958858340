//! Schedules: estimates each phase under its own load, then averages them by duration.

use super::{Physics, serving, throttle};
use crate::engine::semi_empirical::schedule::aggregate;
use crate::estimate::{Estimate, Figures, Latency, Queue, Serving};
use crate::scenario::{Phase, Scenario};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_perf::serving::latency::Spread;
use atlas_perf::serving::{Load, ServingInput, estimate};

/// Estimates all phases and averages them.
pub(super) fn estimate_into(scenario: &Scenario, physics: &mut impl Physics, estimate: &mut Estimate) {
    let mut mean = Mean::default();
    estimate.phases.extend(scenario.phases.iter().map(|phase| match phase.shape.mode {
        Mode::Training => {
            let mut answer = super::phase(scenario, phase, physics);
            if let (Some(_), Some((figures, detail))) = (&scenario.corrections, &mut answer) {
                super::corrected::correct(scenario, phase, figures, detail);
            }
            scaled(answer.map(|(figures, _)| figures).unwrap_or_default(), phase)
        }
        Mode::Inference => {
            let Some((figures, serving)) = served(scenario, phase, physics) else { return Figures::default() };
            mean.add(&serving, phase.minutes);
            figures
        }
    }));
    aggregate(estimate);
    if let (Some(detail), Some(serving)) = (&mut estimate.detail, mean.of()) {
        // Memory and time breakdown remain those of the workload as a whole; request metrics are means over the phases.
        detail.serving = Some(serving);
    }
}

/// Scales the metrics of a phase that runs at reduced throughput: a warm-up, or fewer accelerators.
fn scaled(mut figures: Figures, phase: &Phase) -> Figures {
    let scale = phase.tokens_scale * phase.autoscale_factor;
    figures.tokens_per_sec *= scale;
    figures.step_time_ms /= scale.max(1e-6);
    figures.node_power_w *= phase.autoscale_factor;
    figures
}

/// Estimates a serving phase. Replicas follow the autoscaling factor, and requests arrive at the phase's own rate or at
/// the load factor of its profile times the capacity.
fn served(scenario: &Scenario, phase: &Phase, physics: &mut impl Physics) -> Option<(Figures, Serving)> {
    let mut input = serving::input(scenario, phase)?;
    let constants = throttle::serving(scenario, &input);
    let replicas = phase.arrival.dp_override.unwrap_or(phase.shape.dp) * phase.autoscale_factor;
    input.layout.dp = Count::floor(replicas.round()).max(Count::ONE);
    let full = estimate(&ServingInput { load: Load::Burst { requests: f64::INFINITY }, ..input }, &constants);
    let capacity = full.requests_per_sec.max(1e-12);
    let rate =
        phase.arrival.requests_per_sec.filter(|rate| *rate > 0.0).unwrap_or(capacity * phase.traffic.load_factor);
    let rho = rate / capacity;
    // An overload lasts only for the phase: the queue is modeled as a fluid that grows until its end.
    let overload = (rho - 1.0).max(0.0) * phase.minutes * 60.0;
    // Just below capacity, where the admitted requests still have a steady state.
    const NEAR_CAPACITY: f64 = 0.98;
    input.load = Load::Open { rate: rate.min(NEAR_CAPACITY * capacity) };
    let answer = physics.serving(scenario, phase, &input, estimate(&input, &constants));
    let out = answer.estimate;
    let (mut figures, detail) = serving::described(scenario, phase, answer.input(&input), &answer, &constants);
    let mut serving = detail.serving?;
    let wait_ms = 1e3 * out.first_token.slot;
    let waited = |q: f64| wait_ms + 1e3 * q * overload;
    let wait = Latency { p50: waited(0.5), p95: waited(0.95), p99: waited(0.99), ttft: waited(0.5) };
    let scale = if phase.tokens_scale > 0.0 { phase.tokens_scale } else { 1.0 };
    figures.tokens_per_sec = rate.min(capacity) * input.osl * scale;
    let alone = figures.latency;
    figures.latency = Latency {
        p50: alone.p50 - wait_ms,
        p95: alone.p95 - wait_ms,
        p99: alone.p99 - wait_ms,
        ttft: alone.ttft - wait_ms,
    };
    let whole = Latency {
        p50: figures.latency.p50 + wait.p50,
        p95: figures.latency.p95 + wait.p95,
        p99: figures.latency.p99 + wait.p99,
        ttft: figures.latency.ttft + wait.ttft,
    };
    figures.queue = Some(Queue {
        arrival_rate: rate,
        servers: input.layout.dp * out.max_concurrency.min(input.max_sequences()).max(1.0),
        service_mean_ms: serving.e2e_ms.mean - wait_ms,
        service_cv: phase.arrival.service_cv.unwrap_or(phase.traffic.cv),
        arrival_cv: phase.arrival.arrival_cv.unwrap_or(phase.traffic.cv),
        utilization: rho.min(1.0),
        latency: whole,
        wait,
        waiting_fraction_p99: if whole.p99 > 0.0 { wait.p99 / whole.p99 } else { 0.0 },
    });
    serving.requests_per_sec = rate.min(capacity);
    serving.total_tokens_per_sec = serving.requests_per_sec * (input.isl + input.osl) * scale;
    let queued = Spread { mean: overload / 2.0, p50: overload / 2.0, p95: 0.95 * overload, p99: 0.99 * overload };
    for latency in [&mut serving.ttft_ms, &mut serving.e2e_ms] {
        *latency = latency.zip(queued, |own, wait| own + 1e3 * wait);
    }
    Some((figures, serving))
}

/// Mean over phases, weighted by their minutes.
#[derive(Debug, Default)]
struct Mean {
    sum: Option<Serving>,
    minutes: f64,
}

impl Mean {
    fn add(&mut self, phase: &Serving, minutes: f64) {
        let mut sum = self.sum.unwrap_or(phase.map(|_| 0.0));
        sum.combine(phase, |sum, value| sum + minutes * value);
        self.minutes += minutes;
        self.sum = Some(sum);
    }

    fn of(&self) -> Option<Serving> {
        self.sum.filter(|_| self.minutes > 0.0).map(|sum| sum.map(|value| value / self.minutes))
    }
}
