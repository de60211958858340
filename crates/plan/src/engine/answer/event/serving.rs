//! Serving simulation, request by request: applies arrivals and lengths of the knobs, and converts the distributions to
//! metrics.

use super::Events;
use crate::estimate::{Simulated, SimulatedServing};
use crate::scenario::Simulation;
use atlas_core::count::Count;
use atlas_core::plan;
use atlas_perf::constants::Constants;
use atlas_perf::constants::documented::TURNS_IN_STEP;
use atlas_perf::serving::latency::{FirstToken, Spread};
use atlas_perf::serving::{Load, ServingEstimate, ServingInput, bottleneck, estimate, reuse};
use atlas_sim::kernel::{Distribution, Progress, Quantiles, Tally};
use atlas_sim::serving::{Arrivals, Input, Output, Router, Slo, simulate};

/// Minimum number of requests that a run with random draws counts: ten of them determine the 99th percentile.
const MIN_REQUESTS: f64 = 1000.0;
/// Minimum number of times that a run replaces all concurrent requests ("turns").
const MIN_TURNS: f64 = 6.0;
/// Number of turns before requests are counted.
const WARM_UP_TURNS: f64 = 2.0;
/// Maximum number of engine steps per run, by default: about half a second of computing.
const MAX_STEPS: f64 = 2e6;
/// Maximum number of tokens per run, by default.
const MAX_TOKENS: f64 = 50e6;
/// Minimum number of turns per run, regardless of the limits on steps and tokens.
const ABSOLUTE_MIN_TURNS: f64 = 2.0;
/// Number of waiting requests under an endless backlog, as a share of running ones.
const BACKLOG: f64 = 0.5;
/// Growth of the number of requests in the system, relative to arrivals, above which the load counts as an overload.
const GROWTH: f64 = 0.05;

/// Result for a phase: the simulated load, its metrics, and the additional results of the simulation.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Deployment with the load and arrivals that the knobs request, if it was simulated.
    changed: Option<Box<ServingInput>>,
    /// Metrics, in the format of the closed form.
    pub estimate: ServingEstimate,
    /// Additional results of the simulation; `None` for a closed form or if the input could not be simulated.
    pub simulated: Option<Simulated>,
}

impl Answer {
    /// Result of the closed form, without a simulation.
    #[must_use]
    pub fn closed(estimate: ServingEstimate) -> Answer {
        Answer { changed: None, estimate, simulated: None }
    }

    /// Deployment that was simulated, which differs from `requested` where the knobs change it; `requested` for a
    /// closed form.
    #[must_use]
    pub fn input<'i>(&'i self, requested: &'i ServingInput) -> &'i ServingInput {
        self.changed.as_deref().unwrap_or(requested)
    }
}

/// Simulates a deployment under its own load, for comparison with measurements. A finite load is simulated from
/// beginning to end. `None` if it cannot be simulated for lack of memory.
#[must_use]
pub fn figures(system: &ServingInput) -> Option<ServingEstimate> {
    let constants = Constants::default();
    let closed = estimate(system, &constants);
    let progress = Progress::new();
    let settings = Simulation::measured(system);
    let (answer, _) = answer(&settings, system, &constants, closed, &Events::alone(&progress));
    answer.simulated.map(|_| answer.estimate)
}

/// Returns the deployment with the load that the knobs request. Open arrivals without a rate use the rate at which the
/// closed load would be served.
fn loaded(
    settings: &Simulation,
    input: &ServingInput,
    constants: &Constants,
    closed: &ServingEstimate,
) -> ServingInput {
    use plan::Arrivals as Stated;
    let in_flight = match input.load {
        Load::Closed { concurrency, .. } => concurrency,
        Load::Static { batch } => batch,
        _ => (closed.batch * input.layout.dp).max(1.0),
    };
    let load = match (settings.arrivals, input.load) {
        // The arrival process does not apply to static batches and loads of a single phase.
        (_, Load::Static { .. } | Load::DecodeOnly { .. } | Load::PrefillOnly { .. }) => input.load,
        (Stated::Closed, Load::Closed { .. }) | (Stated::Poisson | Stated::Gamma, Load::Open { .. }) => input.load,
        (Stated::Closed, _) => Load::Closed { concurrency: in_flight.round().max(1.0), requests: f64::INFINITY },
        (Stated::Poisson | Stated::Gamma, _) => Load::Open { rate: closed.requests_per_sec.max(1e-9) },
        (Stated::Burst, Load::Burst { .. }) => input.load,
        (Stated::Burst, _) => {
            let requested = settings.requests.map_or(in_flight, f64::from);
            Load::Burst { requests: requested.max(1.0) }
        }
    };
    with_hits_of_conversations(&ServingInput { load, ..*input }, constants, closed)
}

/// Returns the deployment with the prefix hit rate that the closed form finds for its conversations, their common prefix
/// and the tiers of the KV cache, with the same number of running sequences.
#[must_use]
pub fn with_hits_of_conversations(
    input: &ServingInput,
    constants: &Constants,
    closed: &ServingEstimate,
) -> ServingInput {
    let Some(talk) = input.conversations else { return *input };
    let layout = input.pools.map_or(input.layout, |pools| pools.prefill);
    let running = if input.pools.is_some() { 0.0 } else { closed.batch };
    let found = reuse::prefix_cache_hits(input, &talk, &layout, running, constants);
    ServingInput { prefix_hit: found.share, loading: found.loading, ..*input }
}

/// Log-normal lengths, at most `most`.
#[must_use]
pub fn log_normal(mean: f64, cv: f64, most: Option<Count>) -> Distribution {
    match most {
        Some(most) => Distribution::clipped_log_normal(mean, cv, most.into()),
        None => Distribution::LogNormal { mean, cv },
    }
}

/// Input of the simulation: the deployment under the requested load.
#[must_use]
pub fn input(settings: &Simulation, system: &ServingInput, constants: &Constants, closed: &ServingEstimate) -> Input {
    let system = loaded(settings, system, constants, closed);
    let mut input = Input::of(&system, constants, 1);
    input.long_prefill_token_threshold = settings.long_prefill_token_threshold;
    input.router = match settings.routing {
        plan::Routing::Least => Router::LeastRequests,
        plan::Routing::RoundRobin => Router::RoundRobin,
        plan::Routing::Random => Router::Random,
        plan::Routing::TwoChoices => Router::TwoChoices,
        plan::Routing::Prefix => Router::PrefixAffinity,
    };
    if let (plan::Arrivals::Gamma, Load::Open { rate }) = (settings.arrivals, system.load) {
        input.arrivals = Arrivals::Gamma { rate, cv: settings.arrival_cv };
    }
    // If output lengths vary, prompt lengths vary too: so they do in conversation data sets, and in the random data
    // sets of vLLM's and SGLang's benchmarks (`--random-range-ratio`).
    let spread = system.longest_output();
    let lengths = |mean: f64, cv: f64, most: Option<Count>| match cv > 0.0 {
        true => log_normal(mean, cv, most),
        false if spread > 1.0 => Distribution::Bounded { mean, most: spread * mean },
        false => Distribution::Constant(mean),
    };
    input.lengths.isl = lengths(system.isl, settings.prompt_cv, None);
    input.lengths.osl = lengths(system.osl, settings.generate_cv, system.osl_max);
    let [ttft, tpot, e2e] = settings.slo_ms.map(|limit| limit.map(|ms| 1e-3 * ms));
    input.slo = Slo { ttft, tpot, e2e };
    let drawn = is_drawn(&input);
    // Identical requests that start at the same time would finish at the same time forever. Real services do not stay
    // in lockstep: outputs have different lengths, and clients come and go.
    input.staggered = match system.load {
        Load::Closed { concurrency, requests } => !drawn && requests >= TURNS_IN_STEP * concurrency,
        _ => false,
    };
    let replicas = system.layout.dp.max(Count::ONE);
    match system.load {
        // A finite run is simulated to its end.
        Load::Closed { requests, .. } if requests.is_finite() => input.requests = count(requests),
        Load::Open { .. } if system.arrivals.is_finite() => input.requests = count(system.arrivals),
        Load::Closed { concurrency, .. } => {
            let mut in_flight = concurrency.round().max(1.0);
            if !drawn {
                // Identical, equally loaded replicas behave identically, so one represents all.
                if let Some(one) = alone(&system, in_flight) {
                    in_flight = one;
                    input.system.layout.dp = Count::ONE;
                    input.arrivals = Arrivals::Closed { concurrency: one as u32 };
                }
            }
            let turns = if drawn { (MIN_REQUESTS / in_flight).ceil().max(MIN_TURNS) } else { MIN_TURNS };
            let affordable = MAX_STEPS / (system.osl * input.system.layout.dp).max(1.0);
            let affordable = affordable.min(MAX_TOKENS / (system.osl * in_flight).max(1.0));
            let turns = turns.min(affordable.floor().max(ABSOLUTE_MIN_TURNS));
            // Round up to whole turns, so that no turn is counted partially.
            let turns = match settings.requests {
                None => turns,
                Some(stated) => (f64::from(stated) / in_flight).ceil().max(1.0),
            };
            input.warm_up = count(WARM_UP_TURNS * in_flight);
            input.requests = count((WARM_UP_TURNS + turns) * in_flight + 1.0);
        }
        Load::Burst { requests } if requests.is_infinite() => {
            // An endless backlog: a queue that never empties, in front of one replica that represents all.
            let one = if system.pools.is_some() { replicas } else { Count::ONE };
            let max_concurrency =
                (system.max_sequences() * system.layout.attention_dp).min(closed.max_concurrency).max(1.0) * one;
            let backlog = (BACKLOG * max_concurrency).ceil();
            input.system.layout.dp = one;
            input.arrivals = Arrivals::Closed { concurrency: count(max_concurrency + backlog) };
            let turns = (MIN_REQUESTS / max_concurrency).ceil().max(ABSOLUTE_MIN_TURNS);
            input.warm_up = count(WARM_UP_TURNS * max_concurrency + backlog);
            input.requests = count((WARM_UP_TURNS + turns) * max_concurrency + backlog + 1.0);
        }
        Load::Open { rate } => {
            let stay = if closed.e2e.mean.is_finite() { closed.e2e.mean } else { 0.0 };
            let max_concurrency = closed.max_concurrency.min(system.max_sequences() * system.layout.attention_dp);
            let max_concurrency = max_concurrency.max(1.0) * replicas;
            let in_flight = if stay > 0.0 { (rate * stay).min(4.0 * max_concurrency) } else { max_concurrency };
            let affordable = MAX_STEPS * (in_flight / replicas).max(1.0) / system.osl.max(1.0);
            // Bursty arrivals are correlated, so more of them are needed for the same accuracy.
            let burstiness = match input.arrivals {
                Arrivals::Gamma { cv, .. } => (0.5 * (1.0 + cv * cv)).max(1.0),
                _ => 1.0,
            };
            let minimum = MIN_TURNS * in_flight;
            let wanted = (MIN_REQUESTS * burstiness).max(minimum).min(affordable.max(minimum));
            let counted = settings.requests.map_or(wanted, f64::from);
            let warm_up = (WARM_UP_TURNS * in_flight).max(0.1 * counted);
            input.warm_up = count(warm_up);
            input.requests = count(warm_up + counted);
        }
        // Batches and finite bursts consist of a given number of requests.
        _ => {}
    }
    input
}

fn count(requests: f64) -> u32 {
    requests.clamp(1.0, 1e7) as u32
}

/// Concurrent requests per replica, if there are several replicas with the same whole number each.
fn alone(system: &ServingInput, in_flight: f64) -> Option<f64> {
    let each = in_flight / system.layout.dp.max(Count::ONE);
    (system.pools.is_none() && system.layout.dp > 1.0 && each >= 1.0 && each.fract() == 0.0).then_some(each)
}

/// Whether arrivals, lengths or drafts are random.
fn is_drawn(input: &Input) -> bool {
    let random_arrivals = match input.arrivals {
        Arrivals::Poisson { .. } => true,
        Arrivals::Gamma { cv, .. } => cv > 0.0,
        _ => false,
    };
    let drafts = input.system.speculation;
    let random_drafts = drafts.tokens > 0.0 && drafts.acceptance > 0.0 && drafts.acceptance < 1.0;
    random_arrivals || random_drafts || input.lengths.isl.cv() > 0.0 || input.lengths.osl.cv() > 0.0
}

/// Simulates the phase. The output is `None` if it could not be simulated.
pub(super) fn answer(
    settings: &Simulation,
    system: &ServingInput,
    constants: &Constants,
    closed: ServingEstimate,
    events: &Events<'_>,
) -> (Answer, Option<Output>) {
    let input = input(settings, system, constants, &closed);
    let stood_for = system.layout.dp.max(Count::ONE) / input.system.layout.dp.max(Count::ONE);
    // The whole requested deployment, even if only a part of it is simulated.
    let whole = ServingInput { load: loaded(settings, system, constants, &closed).load, ..*system };
    // Runs with different seeds differ.
    let drawn = is_drawn(&input) || input.spreads_outputs();
    let runs = if drawn { settings.replications } else { 1 };
    let ends = match whole.load {
        Load::Closed { requests, .. } | Load::Burst { requests } => requests.is_finite(),
        Load::Open { .. } => system.arrivals.is_finite(),
        Load::Static { .. } | Load::DecodeOnly { .. } | Load::PrefillOnly { .. } => true,
    };
    let decode_replicas = system.pools.map(|pools| f64::from(pools.decode.dp.max(Count::ONE)));
    let mut mean = Mean { whole: ends, decode_replicas, ..Mean::default() };
    let mut kept = None;
    for number in 0..runs {
        events.within(number, runs);
        let seed = settings.seed.wrapping_add(u64::from(number));
        let Ok(out) = simulate(&input, seed, events.progress) else {
            return (Answer { changed: Some(Box::new(whole)), estimate: closed, simulated: None }, None);
        };
        mean.add(&out);
        kept.get_or_insert(out);
        if events.progress.canceled() {
            break;
        }
    }
    let reference = estimate(&whole, constants);
    let full = mean.overloads(&whole).then(|| saturated(settings, system, constants, events.progress)).flatten();
    let figures = mean.estimate(&whole, &reference, stood_for, full);
    let mut simulated = super::simulated(settings, mean.runs, &mean.rates, drawn, mean.events);
    simulated.serving = Some(mean.serving(stood_for));
    (Answer { changed: Some(Box::new(whole)), estimate: figures, simulated: Some(simulated) }, kept)
}

/// Tokens per second of the deployment under an endless backlog. In an overload the queue takes long to fill the
/// system, so a run at the offered load would measure the transient.
fn saturated(settings: &Simulation, system: &ServingInput, constants: &Constants, progress: &Progress) -> Option<f64> {
    let settings = &Simulation { arrivals: plan::Arrivals::Burst, requests: None, ..*settings };
    let backlog = &ServingInput { load: Load::Burst { requests: f64::INFINITY }, ..*system };
    let mut input = input(settings, backlog, constants, &estimate(backlog, constants));
    // Outputs are streamed as under the original load.
    input.system.load = system.load;
    let steady = simulate(&input, settings.seed, progress).ok()?.steady;
    let stood_for = system.layout.dp.max(Count::ONE) / input.system.layout.dp.max(Count::ONE);
    (steady.seconds > 0.0).then(|| stood_for * steady.tokens as f64 / steady.seconds)
}

#[derive(Debug, Default)]
struct Mean {
    runs: u32,
    events: u64,
    rates: Tally,
    sum: ServingEstimate,
    seen: SimulatedServing,
    /// Growth of the number of requests in the system per arrival.
    growth: f64,
    /// Whether the runs are measured from beginning to end.
    whole: bool,
    /// Replicas of the decode pool, if prefill has its own.
    decode_replicas: Option<f64>,
}

impl Mean {
    fn add(&mut self, out: &Output) {
        self.runs += 1;
        self.events += out.events;
        let steady = &out.steady;
        let per_second = |n: u64| if steady.seconds > 0.0 { n as f64 / steady.seconds } else { 0.0 };
        // Of an endless run only the steady part counts, of a finite run all of it.
        let tokens = if self.whole { out.output_tokens_per_sec } else { per_second(steady.tokens) };
        self.rates.add(tokens);
        let one = |q: &Quantiles| Spread { mean: q.mean, p50: q.p50, p95: q.p95, p99: q.p99 };
        let add = |sum: &mut Spread, spread: Spread| *sum = sum.zip(spread, |sum, one| sum + one);
        let sum = &mut self.sum;
        add(&mut sum.ttft, one(&out.ttft));
        add(&mut sum.tpot, one(&out.tpot));
        add(&mut sum.itl, one(&out.itl));
        add(&mut sum.e2e, one(&out.e2e));
        let first = &out.first_token;
        sum.first_token.slot += first.slot;
        sum.first_token.queue += first.queue;
        sum.first_token.prefill += first.prefill;
        sum.first_token.overhead += first.overhead;
        sum.output_tokens_per_sec += tokens;
        let all = if steady.seconds > 0.0 { (steady.replicas / steady.seconds).max(1.0) } else { 1.0 };
        // With separate pools, sequences run on the replicas that decode.
        let replicas = self.decode_replicas.unwrap_or(all);
        sum.batch += steady.running / replicas;
        // Each step generates one token per running sequence, so the time per token is the step time.
        let sequences = if steady.stepping > 0.0 { steady.running * steady.seconds / steady.stepping } else { 0.0 };
        let per_token = if steady.tokens > 0 { sequences.max(0.0) / steady.tokens as f64 } else { 0.0 };
        sum.time = sum.time.add(&steady.work, per_token);
        let counted = out.requests.max(1) as f64;
        let seen = &mut self.seen;
        seen.requests += out.requests as f64;
        seen.arrival_rate += per_second(steady.arrived);
        seen.good_share += out.slo_share;
        seen.goodput += out.slo_share * per_second(steady.finished);
        seen.waiting += steady.waiting;
        seen.most_waiting = seen.most_waiting.max(out.max_waiting as f64);
        seen.kv += out.kv_share;
        seen.most_kv = seen.most_kv.max(out.max_kv_share);
        seen.preemptions += out.preemptions as f64 / counted;
        seen.rejected += out.rejected as f64 / (out.rejected as f64 + counted);
        seen.busy += if steady.replicas > 0.0 { steady.stepping / steady.replicas } else { 0.0 };
        self.growth += steady.growth;
    }

    fn per_run(&self) -> f64 {
        1.0 / f64::from(self.runs.max(1))
    }

    fn serving(&self, stood_for: f64) -> SimulatedServing {
        let (by, all) = (self.per_run(), self.per_run() * stood_for);
        let seen = self.seen;
        SimulatedServing {
            requests: seen.requests * by,
            arrival_rate: seen.arrival_rate * all,
            good_share: seen.good_share * by,
            goodput: seen.goodput * all,
            waiting: seen.waiting * all,
            most_waiting: seen.most_waiting * stood_for,
            kv: seen.kv * by,
            most_kv: seen.most_kv,
            preemptions: seen.preemptions * by,
            rejected: seen.rejected * by,
            busy: seen.busy * by,
        }
    }

    /// Whether the number of requests in the system of an endless service keeps growing.
    fn overloads(&self, input: &ServingInput) -> bool {
        let endless = matches!(input.load, Load::Open { .. }) && input.max_in_flight.is_infinite();
        endless && !self.whole && self.growth * self.per_run() > GROWTH
    }

    /// Converts the means to the format of the closed form; values that only the closed form yields are taken from
    /// `reference`. `full` is the throughput of a saturated system, tokens per second, if the load seems to exceed it.
    fn estimate(
        &self,
        input: &ServingInput,
        reference: &ServingEstimate,
        stood_for: f64,
        full: Option<f64>,
    ) -> ServingEstimate {
        let (by, all) = (self.per_run(), self.per_run() * stood_for);
        let scaled = |s: Spread| s.map(|sum| sum * by);
        let sum = &self.sum;
        let first = &sum.first_token;
        let mut overloaded = false;
        let tokens = match input.load {
            // In the long run, requests are served at the rate at which they arrive. The number and lengths of the
            // requests that happened to be counted must not change the throughput.
            Load::Open { rate } if !self.whole && input.max_in_flight.is_finite() => {
                (sum.output_tokens_per_sec * all).min(rate * input.osl)
            }
            Load::Open { rate } if !self.whole => {
                let requested = rate * input.osl * (1.0 - self.seen.rejected * by);
                overloaded = full.is_some_and(|full| full < requested);
                full.map_or(requested, |full| full.min(requested))
            }
            _ => sum.output_tokens_per_sec * all,
        };
        let rate = tokens / input.osl.max(1.0);
        let (tokens, all_tokens) = if input.counts_prompts() {
            (rate * input.isl, rate * input.isl)
        } else {
            (tokens, tokens + rate * input.isl)
        };
        let mut out = ServingEstimate {
            output_tokens_per_sec: tokens,
            total_tokens_per_sec: all_tokens,
            requests_per_sec: rate,
            output_tokens_per_sec_per_accelerator: tokens / input.accelerators().max(1.0),
            ttft: scaled(sum.ttft),
            first_token: FirstToken {
                slot: first.slot * by,
                slot_waits: 0.0,
                slot_even: 0.0,
                queue_even: 0.0,
                queue: first.queue * by,
                burst: 0.0,
                prefill: first.prefill * by,
                overhead: first.overhead * by,
            },
            tpot: scaled(sum.tpot),
            itl: scaled(sum.itl),
            e2e: scaled(sum.e2e),
            batch: sum.batch * by,
            time: sum.time.scaled(by),
            ..*reference
        };
        out.tokens_per_sec_per_user = if out.tpot.mean > 0.0 { 1.0 / out.tpot.mean } else { 0.0 };
        out.bottleneck = bottleneck(&out.time);
        if !matches!(input.load, Load::Open { .. }) {
            out.capacity_requests_per_sec = rate;
        } else if overloaded {
            // Waiting times grow with the length of the run: there is no steady state and no defined latency. The
            // throughput is that of a saturated system.
            out.capacity_requests_per_sec = rate;
            let endless = Spread::of(f64::INFINITY, 0.0, 0.0);
            (out.ttft, out.e2e) = (endless, endless);
            out.first_token.slot = f64::INFINITY;
        }
        out
    }
}
