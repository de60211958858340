//! Schedules: estimates each phase under its own load. Rates are averaged by duration, latencies by requests.

use super::event::serving::Answer;
use super::{Physics, Results, serving, throttle};
use crate::engine::semi_empirical::schedule::aggregate;
use crate::estimate::{Estimate, Latency, Metrics, Queue, Serving, Simulated, SimulatedServing};
use crate::scenario::{Phase, Scenario};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::math;
use atlas_perf::serving::latency::Spread;
use atlas_perf::serving::{Load, ServingInput, estimate};

/// Estimates all phases and averages them.
pub(super) fn estimate_into(scenario: &Scenario, physics: &mut impl Physics, estimate: &mut Estimate) {
    let mut all = Vec::new();
    estimate.phases.extend(scenario.phases.iter().map(|phase| match phase.shape.mode {
        Mode::Training => {
            let (mut metrics, mut detail) = (Metrics::default(), None);
            super::phase(scenario, phase, physics, Results { metrics: &mut metrics, detail: &mut detail });
            scaled(metrics, phase)
        }
        Mode::Inference => {
            let Some((metrics, served)) = served(scenario, phase, physics) else { return Metrics::default() };
            all.push(served);
            metrics
        }
    }));
    aggregate(estimate);
    let all = Together(&all);
    if all.over_requests(|_| 1.0) <= 0.0 {
        return;
    }
    estimate.service = Some(all.latency(|phase| phase.service));
    if let Some(queue) = &mut estimate.queue {
        queue.latency = all.latency(|phase| phase.queue.latency);
        queue.wait = all.latency(|phase| phase.queue.wait);
        estimate.total.latency = Some(queue.latency);
    }
    if let Some(detail) = &mut estimate.detail {
        // Memory and time breakdown remain those of the workload as a whole.
        detail.serving = all.serving();
        detail.simulated = all.simulated().or(detail.simulated);
    }
}

/// Scales the metrics of a phase that runs at reduced throughput: a warm-up, or fewer accelerators.
fn scaled(mut metrics: Metrics, phase: &Phase) -> Metrics {
    let scale = phase.tokens_scale * phase.autoscale_factor;
    metrics.tokens_per_sec *= scale;
    metrics.step_time_ms = metrics.step_time_ms.map(|ms| ms / scale.max(1e-6));
    metrics.node_power_w *= phase.autoscale_factor;
    metrics
}

/// Estimates a serving phase. Replicas follow the autoscaling factor, and requests arrive at the phase's own rate or at
/// the load factor of its profile times the capacity.
fn served(scenario: &Scenario, phase: &Phase, physics: &mut impl Physics) -> Option<(Metrics, Served)> {
    let mut input = scenario.serving_input(phase)?;
    let constants = throttle::serving(scenario, &input);
    let replicas = phase.arrival.dp_override.unwrap_or(phase.shape.dp) * phase.autoscale_factor;
    input.layout.dp = Count::floor(replicas.round()).max(Count::ONE);
    let full = estimate(&ServingInput { load: Load::Burst { requests: f64::INFINITY }, ..input }, &constants);
    let mut capacity = full.requests_per_sec.max(1e-12);
    let rate =
        phase.arrival.requests_per_sec.filter(|rate| *rate > 0.0).unwrap_or(capacity * phase.traffic.load_factor);
    // Just below capacity, where the admitted requests still have a steady state.
    const NEAR_CAPACITY: f64 = 0.98;
    let mut under = |capacity: f64| {
        input.load = Load::Open { rate: rate.min(NEAR_CAPACITY * capacity) };
        physics.serving(scenario, phase, &input, estimate(&input, &constants))
    };
    let mut answer = under(capacity);
    if !answer.estimate.e2e.mean.is_finite() {
        // A simulated deployment may serve less than the closed form estimates.
        capacity = answer.estimate.capacity_requests_per_sec.clamp(1e-12, capacity);
        answer = under(capacity);
    }
    if !answer.estimate.e2e.mean.is_finite() {
        answer = Answer::closed(estimate(&input, &constants));
    }
    let rho = rate / capacity;
    // An overload lasts only for the phase: the queue is modeled as a fluid that grows until its end.
    let overload = (rho - 1.0).max(0.0) * phase.minutes * 60.0;
    let out = answer.estimate;
    let (mut metrics, mut detail) = (Metrics::default(), None);
    let results = &mut Results { metrics: &mut metrics, detail: &mut detail };
    serving::describe(scenario, phase, answer.input(&input), &answer, &constants, results);
    let mut serving = detail?.serving?;
    let wait_ms = 1e3 * out.first_token.slot;
    let waited = |q: f64| wait_ms + 1e3 * q * overload;
    let wait = Latency { p50: waited(0.5), p95: waited(0.95), p99: waited(0.99), ttft: waited(0.5) };
    let scale = if phase.tokens_scale > 0.0 { phase.tokens_scale } else { 1.0 };
    metrics.tokens_per_sec = rate.min(capacity) * input.osl * scale;
    let alone = metrics.latency?;
    let service = Latency {
        p50: alone.p50 - wait_ms,
        p95: alone.p95 - wait_ms,
        p99: alone.p99 - wait_ms,
        ttft: alone.ttft - wait_ms,
    };
    let whole = Latency {
        p50: service.p50 + wait.p50,
        p95: service.p95 + wait.p95,
        p99: service.p99 + wait.p99,
        ttft: service.ttft + wait.ttft,
    };
    let queue = Queue {
        arrival_rate: rate,
        servers: input.layout.dp * out.max_concurrency.min(input.max_sequences()).floor().max(1.0),
        service_mean_ms: serving.e2e_ms.mean - wait_ms,
        service_cv: phase.arrival.service_cv.unwrap_or(phase.traffic.cv),
        arrival_cv: phase.arrival.arrival_cv.unwrap_or(phase.traffic.cv),
        utilization: rho.min(1.0),
        latency: whole,
        wait,
        waiting_fraction_p99: if whole.p99 > 0.0 { wait.p99 / whole.p99 } else { 0.0 },
    };
    metrics.latency = Some(service);
    metrics.queue = Some(queue);
    serving.requests_per_sec = rate.min(capacity);
    serving.total_tokens_per_sec = serving.requests_per_sec * (input.isl + input.osl) * scale;
    let queued = Spread { mean: overload / 2.0, p50: overload / 2.0, p95: 0.95 * overload, p99: 0.99 * overload };
    for latency in [&mut serving.ttft_ms, &mut serving.e2e_ms] {
        *latency = latency.zip(queued, |own, wait| own + 1e3 * wait);
    }
    let requests = rate * 60.0 * phase.minutes;
    Some((metrics, Served { minutes: phase.minutes, requests, queue, service, serving, simulated: answer.simulated }))
}

/// A serving phase with its estimate.
#[derive(Debug, Clone, Copy)]
struct Served {
    minutes: f64,
    /// Requests that arrive in the phase.
    requests: f64,
    queue: Queue,
    /// Latency without waiting for a slot.
    service: Latency,
    serving: Serving,
    simulated: Option<Simulated>,
}

/// Phases of serving. Rates are averaged over time, latencies over requests: a percentile of the schedule is that of the
/// requests of all phases together.
struct Together<'p>(&'p [Served]);

impl Together<'_> {
    fn mean(&self, weight: impl Fn(&Served) -> f64, of: impl Fn(&Served) -> f64) -> f64 {
        let all: f64 = self.0.iter().map(&weight).sum();
        if all > 0.0 { self.0.iter().map(|phase| weight(phase) * of(phase)).sum::<f64>() / all } else { 0.0 }
    }

    fn over_time(&self, of: impl Fn(&Served) -> f64) -> f64 {
        self.mean(|phase| phase.minutes, of)
    }

    fn over_requests(&self, of: impl Fn(&Served) -> f64) -> f64 {
        self.mean(|phase| phase.requests, of)
    }

    fn largest(&self, of: impl Fn(&Served) -> f64) -> f64 {
        self.0.iter().map(of).fold(0.0, f64::max)
    }

    /// Percentiles of all requests, from those of each phase.
    fn percentiles(&self, of: impl Fn(&Served) -> [f64; 3]) -> [f64; 3] {
        let parts: Vec<(f64, [f64; 3])> = self.0.iter().map(|phase| (phase.requests, of(phase))).collect();
        percentiles_of_mixture(&parts)
    }

    fn latency(&self, of: impl Fn(&Served) -> Latency) -> Latency {
        let [p50, p95, p99] = self.percentiles(|phase| [of(phase).p50, of(phase).p95, of(phase).p99]);
        Latency { p50, p95, p99, ttft: self.over_requests(|phase| of(phase).ttft) }
    }

    /// Mean and percentiles of a metric of requests.
    fn spread(&self, of: impl Fn(&Serving) -> Spread) -> Spread {
        let mean = self.over_requests(|phase| of(&phase.serving).mean);
        let [p50, p95, p99] = self.percentiles(|phase| {
            let one = of(&phase.serving);
            [one.p50, one.p95, one.p99]
        });
        Spread { mean, p50, p95, p99 }
    }

    /// Metrics of the whole schedule. The breakdown of TTFT and the intervals are those of the first phase.
    fn serving(&self) -> Option<Serving> {
        let first = self.0.first()?.serving;
        let tpot_ms = self.spread(|serving| serving.tpot_ms);
        Some(Serving {
            total_tokens_per_sec: self.over_time(|phase| phase.serving.total_tokens_per_sec),
            requests_per_sec: self.over_time(|phase| phase.serving.requests_per_sec),
            tokens_per_sec_per_user: if tpot_ms.mean > 0.0 { 1e3 / tpot_ms.mean } else { 0.0 },
            ttft_ms: self.spread(|serving| serving.ttft_ms),
            tpot_ms,
            itl_ms: self.spread(|serving| serving.itl_ms),
            e2e_ms: self.spread(|serving| serving.e2e_ms),
            batch: self.over_time(|phase| phase.serving.batch),
            max_concurrency: self.over_time(|phase| phase.serving.max_concurrency),
            capacity_requests_per_sec: self.over_time(|phase| phase.serving.capacity_requests_per_sec),
            ..first
        })
    }

    /// Results of the simulations of all phases; `None` if one was not simulated.
    fn simulated(&self) -> Option<Simulated> {
        let mut all = self.0.first()?.simulated?;
        for phase in self.0.get(1..)? {
            let simulated = phase.simulated?;
            all.events += simulated.events;
            all.half_width = all.half_width.zip(simulated.half_width).map(|(a, b)| a.max(b));
        }
        let of = |get: fn(&SimulatedServing) -> f64| {
            move |phase: &Served| phase.simulated.and_then(|simulated| simulated.serving).as_ref().map_or(0.0, get)
        };
        all.serving = Some(SimulatedServing {
            requests: self.0.iter().map(of(|seen| seen.requests)).sum(),
            arrival_rate: self.over_time(of(|seen| seen.arrival_rate)),
            good_share: self.over_requests(of(|seen| seen.good_share)),
            goodput: self.over_time(of(|seen| seen.goodput)),
            waiting: self.over_time(of(|seen| seen.waiting)),
            most_waiting: self.largest(of(|seen| seen.most_waiting)),
            kv: self.over_time(of(|seen| seen.kv)),
            most_kv: self.largest(of(|seen| seen.most_kv)),
            preemptions: self.over_requests(of(|seen| seen.preemptions)),
            rejected: self.over_requests(of(|seen| seen.rejected)),
            busy: self.over_time(of(|seen| seen.busy)),
        });
        Some(all)
    }
}

/// The percentiles of [`percentiles_of_mixture`], and -ln(1 - q) of each: the latencies of an open load have nearly
/// exponential tails, so they are linear in it.
const SHARES: [f64; 3] = [0.5, 0.95, 0.99];
const TAILS: [f64; 3] = [std::f64::consts::LN_2, 2.995_732_273_553_991, 4.605_170_185_988_091];

/// Share of requests of a phase that take at most `limit`, interpolated between its percentiles.
fn share_within(limit: f64, [p50, p95, p99]: [f64; 3]) -> f64 {
    let [low, middle, high] = TAILS;
    let line = |(from, at): (f64, f64), (to, above): (f64, f64)| from + (limit - at) / (above - at) * (to - from);
    let tail = if limit >= p99 {
        if p99 > p95 { line((middle, p95), (high, p99)) } else { f64::INFINITY }
    } else if limit >= p95 {
        line((middle, p95), (high, p99))
    } else if limit >= p50 || p95 > p50 {
        line((low, p50), (middle, p95))
    } else {
        0.0
    };
    1.0 - math::exp(-tail.max(0.0))
}

/// Median, 95th and 99th percentile of requests of several phases together, each with its weight and its percentiles.
fn percentiles_of_mixture(parts: &[(f64, [f64; 3])]) -> [f64; 3] {
    let all: f64 = parts.iter().map(|(weight, _)| weight).sum();
    let within = |limit: f64| {
        parts.iter().map(|(weight, percentiles)| weight * share_within(limit, *percentiles)).sum::<f64>() / all
    };
    let mut found = [0.0; 3];
    for (at, (found, share)) in found.iter_mut().zip(SHARES).enumerate() {
        // The percentile lies between those of the phases.
        let each = || parts.iter().filter(|(weight, _)| *weight > 0.0).filter_map(|(_, own)| own.get(at).copied());
        let (mut low, mut high) = (each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max));
        // 50 halvings of the interval are as precise as a number.
        for _ in 0..50 {
            if low >= high || !high.is_finite() {
                break;
            }
            let middle = 0.5 * (low + high);
            if within(middle) < share { low = middle } else { high = middle }
        }
        *found = high;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_phases_together_are_not_means_of_their_percentiles() {
        // Equal phases have the percentiles of each.
        let exponential = TAILS.map(|tail| 10.0 * tail);
        for (found, own) in
            percentiles_of_mixture(&[(1.0, exponential), (3.0, exponential)]).into_iter().zip(exponential)
        {
            assert!((found - own).abs() < 1e-9, "{found} {own}");
        }
        // 10 % of the requests take 100 ms, the rest 1 ms: so do the median, and the 95th percentile.
        let found = percentiles_of_mixture(&[(9.0, [1.0; 3]), (1.0, [100.0; 3])]);
        assert!(found.into_iter().zip([1.0, 100.0, 100.0]).all(|(found, own)| (found - own).abs() < 1e-9), "{found:?}");
        // Exponential with means 1 and 10, in equal parts: S(t) = (exp(-t) + exp(-t / 10)) / 2.
        let [p50, p95, p99] = percentiles_of_mixture(&[(1.0, TAILS), (1.0, exponential)]);
        for (found, left) in [(p50, 0.5), (p95, 0.05), (p99, 0.01)] {
            let survives = 0.5 * (math::exp(-found) + math::exp(-found / 10.0));
            assert!((survives - left).abs() < 1e-6, "{found}: {survives}");
        }
        assert_eq!(percentiles_of_mixture(&[(0.0, TAILS), (1.0, exponential)])[2], exponential[2]);
    }
}
