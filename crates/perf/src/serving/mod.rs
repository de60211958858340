//! Serving: throughput, time to first token and time per output token of a model on an engine, from the operators of a
//! step, the scheduler's limits and the size of the KV cache.
//!
//! * [`input`] – the scenario as plain numbers
//! * [`formats`] – the formats of weights, KV cache and GEMMs
//! * [`shape`] – the work of one rank
//! * [`step`], [`time`] – the time of one engine step, and its parts
//! * [`kv`] – the number of sequences that fit in memory
//! * [`steady_state`] – how prefill and decode share the accelerator
//! * [`emptying`] – how a batch drains when finished requests are not replaced
//! * [`waves`] – the time of equal requests that are all queued at the start
//! * [`front_end`] – the cost of a request outside the steps
//! * [`latency`], [`queue`] – the waiting times of a request
//! * [`reuse`] – the share of a prompt that is found in a cache
//! * `images` – the time of encoding images
//! * [`exchange`] – the exchange of tokens between experts
//! * [`speculative`], [`disaggregated`] – speculative decoding, separate pools for prefill and decode
//! * [`terms`] – the terms from which rates and times are computed
//! * [`frontier`] – throughput against interactivity
mod collectives;
pub mod disaggregated;
pub mod emptying;
pub mod exchange;
mod fabric;
pub mod formats;
pub mod front_end;
pub mod frontier;
mod images;
pub mod input;
pub mod kv;
pub mod latency;
mod launch;
pub mod machine;
pub mod queue;
mod rates;
pub mod reuse;
pub mod shape;
pub mod speculative;
pub mod steady_state;
pub mod step;
pub mod terms;
pub mod time;
pub mod waves;

#[cfg(test)]
mod tests;

use crate::constants::Constants;
use atlas_core::count::Count;
use front_end::FrontEnd;
pub use input::{
    Admission, AllReduce, Conversations, Dispatch, ExpertSpread, Formats, Gathering, GraphCapture, HostOverlap,
    KernelLibrary, KvTier, Layout, Load, Pools, ServingInput, Speculation, Stack, StepInputs,
};
use latency::{FirstToken, Spread};
use machine::Machine;
use steady_state::Cycle;
use step::StepTime;
use terms::{Rate, TokenTime};

/// The resource that limits the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bottleneck {
    /// Reading the weights.
    #[default]
    Weights,
    /// Matrix arithmetic.
    Compute,
    /// Reading the KV cache.
    KvCache,
    /// Reading and writing activations.
    Activations,
    /// Collectives and transfers.
    Communication,
    /// Kernel launches.
    Launch,
    /// Host work between steps.
    Host,
    /// The offered load is below what the system can serve.
    Load,
}

/// Estimate of a serving scenario. Rates are totals of the whole deployment unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ServingEstimate {
    /// Generated tokens per second, all accelerators.
    pub output_tokens_per_sec: f64,
    /// Prompt and generated tokens per second, all accelerators.
    pub total_tokens_per_sec: f64,
    /// Requests finished per second.
    pub requests_per_sec: f64,
    /// Generated tokens per second per accelerator.
    pub output_tokens_per_sec_per_accelerator: f64,
    /// Interactivity: tokens per second that one user sees, 1 / TPOT.
    pub tokens_per_sec_per_user: f64,
    /// Time to first token, s.
    pub ttft: Spread,
    /// Parts of the time to first token.
    pub first_token: FirstToken,
    /// Time per output token of a request, without the first token, s.
    pub tpot: Spread,
    /// Time between two tokens of a stream, s.
    pub itl: Spread,
    /// End-to-end latency of a request, s.
    pub e2e: Spread,
    /// Sequences running per replica.
    pub batch: f64,
    /// Share of the time in which a separate prefill pool computes prompts; 0 without one.
    pub prefill_busy: f64,
    /// Number of sequences that fit in the KV cache of one replica.
    pub max_concurrency: f64,
    /// Whether weights and the KV cache of at least one sequence fit in memory.
    pub fits: bool,
    /// Time of one replica per output token, by cause, s; sums to the mean time of a step.
    pub time: StepTime,
    /// The largest part of a decode step, or [`Bottleneck::Load`].
    pub bottleneck: Bottleneck,
    /// Maximum number of requests per second of the deployment; equals `requests_per_sec` if saturated.
    pub capacity_requests_per_sec: f64,
    /// Terms of the request rate of one replica; with separate pools, of both pools.
    pub rate: Rate,
    /// Terms of the mean of `tpot`.
    pub token_time: TokenTime,
}

impl ServingEstimate {
    /// Sets the request rate to `rate` and scales the token rates accordingly.
    fn at_rate(&mut self, rate: Rate) {
        let share = rate.per_second() / self.requests_per_sec.max(1e-12);
        self.rate = rate;
        self.requests_per_sec *= share;
        self.output_tokens_per_sec *= share;
        self.total_tokens_per_sec *= share;
    }
}

/// Estimates a scenario.
pub fn estimate(input: &ServingInput, c: &Constants) -> ServingEstimate {
    let input = &input.bounded();
    // A prefill ends with its first token.
    let osl = if matches!(input.load, Load::PrefillOnly { .. }) { 1.0 } else { input.osl };
    let input = &ServingInput { osl, ..*input };
    speculative::with_batch_limit(&input.speculation, |speculation| {
        reuse::estimate_with_prefix_cache(&ServingInput { speculation, ..*input }, c, estimate_in_bounds)
    })
}

/// Estimates a scenario whose values are within bounds.
fn estimate_in_bounds(input: &ServingInput, c: &Constants) -> ServingEstimate {
    if let Some(pools) = input.pools {
        return disaggregated::estimate(input, &pools, c);
    }
    let machine = Machine::new(input, &input.layout, c);
    let capacity = kv::capacity(input, &input.layout, &machine.shape, c);
    let replicas = input.layout.dp.max(Count::ONE);
    // At least one sequence is always assumed to run: measured runs did run, and `fits` reports the shortage of memory.
    // The sequence limit applies to each attention group, which is an engine rank with its own scheduler.
    let most = input.max_sequences() * input.layout.attention_dp.max(Count::ONE);
    let limit = capacity.sequences.max(1.0).min(most);
    let max_sustained_batch = limit.min(steady_state::max_sustained_batch(&machine, input, limit).max(1.0));
    let mut out = match input.load {
        Load::Static { batch } => batch_run(input, c, &machine, batch / replicas, limit, false),
        Load::DecodeOnly { batch } => decode_only(input, &machine, batch / replicas, limit),
        Load::PrefillOnly { batch } => prefill_only(input, &machine, batch / replicas),
        Load::Closed { concurrency, requests } => {
            closed(input, c, &machine, concurrency, requests, max_sustained_batch)
        }
        Load::Burst { requests } => burst(input, c, &machine, requests / replicas, max_sustained_batch),
        Load::Open { rate } if input.max_in_flight.is_finite() => {
            client_limited(input, c, &machine, rate / replicas, max_sustained_batch)
        }
        Load::Open { rate } => open(input, c, &machine, rate / replicas, max_sustained_batch),
    };
    out.max_concurrency = capacity.sequences;
    out.fits = capacity.fits;
    finish(out, input, f64::from(replicas))
}

/// Scales one replica's rates to the deployment and derives the remaining metrics.
fn finish(mut out: ServingEstimate, input: &ServingInput, replicas: f64) -> ServingEstimate {
    out.requests_per_sec *= replicas;
    out.capacity_requests_per_sec *= replicas;
    out.output_tokens_per_sec *= replicas;
    out.total_tokens_per_sec *= replicas;
    out.output_tokens_per_sec_per_accelerator = out.output_tokens_per_sec / input.layout.accelerators().max(1.0);
    if out.token_time == TokenTime::None {
        out.itl = Spread::default();
    }
    out.tokens_per_sec_per_user = if out.tpot.mean > 0.0 { 1.0 / out.tpot.mean } else { 0.0 };
    out
}

/// Returns the largest part of a step.
pub fn bottleneck(t: &StepTime) -> Bottleneck {
    let parts = [
        (t.weights, Bottleneck::Weights),
        (t.compute + t.images, Bottleneck::Compute),
        (t.kv, Bottleneck::KvCache),
        (t.activations, Bottleneck::Activations),
        (t.communication, Bottleneck::Communication),
        (t.launch, Bottleneck::Launch),
        (t.host, Bottleneck::Host),
    ];
    parts.iter().fold((-1.0, Bottleneck::Weights), |best, &p| if p.0 > best.0 { p } else { best }).1
}

/// Computes the metrics of a replica that serves `rate` requests per second.
fn metrics_at_rate(
    input: &ServingInput,
    rate: Rate,
    batch: f64,
    time: StepTime,
    first: FirstToken,
    (token_time, tpot): (TokenTime, Spread),
) -> ServingEstimate {
    let requests_per_sec = rate.per_second();
    let ttft = first.spread();
    // Without a second token there is no time between tokens.
    let timed = input.osl > 1.0 || matches!(input.load, Load::DecodeOnly { .. });
    let (token_time, tpot) = if timed { (token_time, tpot) } else { (TokenTime::None, Spread::default()) };
    let rest = (input.osl - 1.0).max(0.0);
    let e2e = |a: f64, b: f64| a + rest * b;
    let (out, all) = if input.counts_prompts() { (input.isl, input.isl) } else { (input.osl, input.osl + input.isl) };
    ServingEstimate {
        requests_per_sec,
        capacity_requests_per_sec: requests_per_sec,
        output_tokens_per_sec: requests_per_sec * out,
        total_tokens_per_sec: requests_per_sec * all,
        rate,
        token_time,
        ttft,
        first_token: first,
        tpot,
        itl: tpot,
        e2e: Spread {
            mean: e2e(ttft.mean, tpot.mean),
            p50: e2e(ttft.p50, tpot.p50),
            p95: e2e(ttft.p95, tpot.p95),
            p99: e2e(ttft.p99, tpot.p99),
        },
        batch,
        bottleneck: bottleneck(&time),
        time,
        ..ServingEstimate::default()
    }
}

/// Estimates one batch of equal requests that are prefilled together and decoded to the longest output. A batch that
/// does not fit in memory runs in several turns. First tokens are emitted once all prompts are computed or, if
/// `as_computed`, as each prompt is.
fn batch_run(
    input: &ServingInput,
    c: &Constants,
    m: &Machine,
    share: f64,
    limit: f64,
    as_computed: bool,
) -> ServingEstimate {
    // With fewer requests than replicas some replicas are idle: a share below 1 means one sequence on some of the
    // replicas.
    let batch = share.max(1.0);
    // Equal requests end together, so a batch that does not fit in memory runs in whole turns.
    let turns = (batch / limit).max(1.0).ceil();
    let at_once = batch / turns;
    let prefill = steady_state::prefill(m, input, at_once);
    let factor = speculative::draft_factor(&input.speculation);
    let (decode, life) = emptying::drain_unreplaced_batch(m, input, at_once);
    let decode = decode.scaled(factor);
    let total = prefill.add(&decode, 1.0).scaled(turns);
    let seconds = total.total();
    let first = if as_computed {
        first_tokens_of_batch(input, m, at_once, prefill.total())
    } else {
        FirstToken { prefill: prefill.total(), ..FirstToken::default() }
    };
    let late = prefill.total() - first.total();
    let first = FirstToken { overhead: FrontEnd::of(input, c).admission_delay(), ..first };
    let token =
        TokenTime::SequenceDuration { seconds: factor * life + late, before: 0.0, tokens: (input.osl - 1.0).max(1.0) };
    let tpot = (token, Spread::of(token.seconds(), 0.0, 0.0));
    let rate = Rate::turnover(share, seconds);
    metrics_at_rate(input, rate, at_once, total.scaled(1.0 / input.osl.max(1.0)), first, tpot)
}

/// First tokens of `batch` prompts that are computed one after another in `seconds`: each in its own step, after half of
/// the others on average.
fn first_tokens_of_batch(input: &ServingInput, m: &Machine, batch: f64, seconds: f64) -> FirstToken {
    let tokens = steady_state::fresh_prompt(input) * batch;
    let steps = (tokens / steady_state::prompt_token_budget(m, input, batch)).max(1.0);
    // A prompt takes one step, or all steps of its own.
    let own = seconds / steps.min(batch.max(1.0));
    FirstToken { prefill: own, burst: 0.5 * (seconds - own), ..FirstToken::default() }
}

/// Estimates the generation phase alone.
fn decode_only(input: &ServingInput, m: &Machine, share: f64, limit: f64) -> ServingEstimate {
    let batch = share.max(1.0).min(limit.max(1.0));
    let factor = speculative::draft_factor(&input.speculation);
    let step = m.step(&steady_state::decode_tokens(input, batch)).scaled(factor);
    let tokens = speculative::tokens_per_step(&input.speculation);
    let token = TokenTime::Steps { steps: 1.0, seconds: step.total(), tokens };
    let life = token.seconds() * input.osl.max(1.0);
    let rate = Rate::ClosedLoop { busy: share.min(1.0), sequences: batch, seconds: life, between: 0.0, drained: 1.0 };
    metrics_at_rate(input, rate, batch, step, FirstToken::default(), (token, Spread::of(token.seconds(), 0.0, 0.0)))
}

/// Estimates the prefill alone: rates count prompt tokens only.
fn prefill_only(input: &ServingInput, m: &Machine, share: f64) -> ServingEstimate {
    let batch = share.max(1.0);
    let time = steady_state::prefill(m, input, batch);
    let first = FirstToken { prefill: time.total(), ..FirstToken::default() };
    let rate = Rate::turnover(share, time.total().max(1e-12));
    let none = (TokenTime::None, Spread::default());
    metrics_at_rate(input, rate, batch, time, first, none)
}

/// TPOT of a cycle in which each request spends `before` seconds before its first token.
fn cycle_tpot(input: &ServingInput, cycle: &Cycle, before: f64) -> (TokenTime, Spread) {
    let tokens = (input.osl - 1.0).max(1.0);
    let steps = steady_state::decode_steps(input);
    let token = TokenTime::SequenceDuration { seconds: cycle.time.total(), before, tokens };
    let token = token.at_least(TokenTime::Steps { steps, seconds: cycle.decode_step, tokens });
    let mean = token.seconds();
    (token, Spread { mean, p50: mean, p95: mean * 1.1, p99: mean * 1.2 })
}

/// Time between tokens: over steps with decode only, and steps with a prompt chunk of another request.
fn cycle_itl(cycle: &Cycle, tokens_per_step: f64) -> Spread {
    let per = |t: f64| t / tokens_per_step.max(1.0);
    let at = |q: f64| per(if cycle.prefill_share > 1.0 - q { cycle.mixed_step } else { cycle.decode_step });
    let s = cycle.prefill_share;
    Spread {
        mean: per(s * cycle.mixed_step + (1.0 - s) * cycle.decode_step),
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
    }
}

/// Estimates a constant number of concurrent requests, in which finished requests are replaced immediately.
fn closed(
    input: &ServingInput,
    c: &Constants,
    m: &Machine,
    concurrency: f64,
    requests: f64,
    limit: f64,
) -> ServingEstimate {
    let replicas = input.layout.dp.max(Count::ONE);
    let offered = (concurrency / replicas).max(concurrency.min(1.0)).max(1e-9);
    // With fewer requests than replicas some replicas are idle.
    let busy = (concurrency / replicas / offered).min(1.0);
    // Requests that wait to be admitted as a group do not run meanwhile.
    let decoding = steady_state::decode_steps(input).max(1.0);
    let gathered = decoding / (decoding + latency::gathering(input, offered.min(limit)));
    let wanted = (gathered * offered).max(offered.min(1.0));
    let batch = wanted.min(limit);
    // Only a full batch has a queue. Otherwise the difference is 0 but for rounding errors.
    let waiting = if wanted > limit { (offered - limit / gathered).max(0.0) } else { 0.0 };
    let front = FrontEnd::of(input, c);
    let mut cycle = steady_state::cycle(m, input, batch);
    let mut life = cycle.time.total();
    let (mut running, mut in_front) = (batch, 0.0);
    let limited = batch > (life + front.admission_delay()) * front.max_request_rate();
    if limited {
        // The front end is the bottleneck of the closed network: as many sequences run as it admits, and the rest of the
        // requests wait in it (Little's law; Denning and Buzen, Computing Surveys 10 (1978)).
        let most = front.max_request_rate();
        running = decoding_at_rate(m, input, most, batch, life);
        cycle = steady_state::cycle(m, input, running.max(1.0).min(batch));
        life = cycle.time.total();
        in_front = (offered / most - life - front.admission_delay()).max(0.0);
    }
    let waiting = if limited { 0.0 } else { waiting };
    let mut first = latency::closed_loop(input, c, m, &cycle, waiting);
    first.overhead += in_front;
    if input.osl <= 1.0 {
        // Requests whose prompts end in the same step are replaced together, and wait for all others.
        (first.queue, first.burst) = (0.0, (life - first.prefill).max(0.0));
    }
    let apart = if waiting > 0.0 { 0.0 } else { front.admission_delay() };
    // At the end of the run the batch shrinks.
    let drained = if requests.is_finite() {
        let runs = (requests / replicas / batch).max(1.0);
        runs / (runs + drain(input, m, &cycle))
    } else {
        1.0
    };
    let rate = if limited {
        Rate::FrontEnd { busy, most: front.max_request_rate(), drained }
    } else {
        Rate::ClosedLoop { busy, sequences: batch, seconds: life, between: apart, drained }
    };
    let tpot = cycle_tpot(input, &cycle, first.prefill + first.queue + first.burst);
    let mut out = metrics_at_rate(input, rate, running, cycle.time.scaled(1.0 / input.osl.max(1.0)), first, tpot);
    out.itl = cycle_itl(&cycle, speculative::tokens_per_step(&input.speculation));
    out
}

/// Number of cycles by which the drain at the end of a finite run exceeds the time of its work in a full batch.
fn drain(input: &ServingInput, m: &Machine, cycle: &Cycle) -> f64 {
    let factor = speculative::draft_factor(&input.speculation);
    let (tail, left) = emptying::drain(m, input, cycle.batch);
    (factor * tail.total() / cycle.time.total().max(1e-12) - left).clamp(0.0, 3.0)
}

/// Estimates requests that are all queued at the start. Equal requests run in waves of the largest batch; others run as
/// a continuously refilled batch and a drain.
fn burst(input: &ServingInput, c: &Constants, m: &Machine, requests: f64, limit: f64) -> ServingEstimate {
    let equal = input.longest_output() <= 1.0;
    let waves = || Rate::Run { requests, seconds: waves::run_time(m, input, requests, limit).total() };
    if requests.is_finite() && requests <= limit {
        let mut out = batch_run(input, c, m, requests, limit, true);
        if equal {
            out.at_rate(waves());
        }
        return out;
    }
    let cycle = steady_state::cycle(m, input, limit);
    let life = cycle.time.total();
    let mut rate = Rate::turnover(limit, life);
    let mut slot = 0.0;
    if requests.is_finite() {
        let runs = (requests / limit).max(1.0);
        let drained = || runs / (runs + drain(input, m, &cycle));
        rate = if equal {
            waves()
        } else {
            Rate::ClosedLoop { busy: 1.0, sequences: limit, seconds: life, between: 0.0, drained: drained() }
        };
        slot = 0.5 * (requests - limit).max(0.0) / rate.per_second();
    }
    let mut first = latency::closed_loop(input, c, m, &cycle, 0.0);
    let mut before = first.prefill + first.queue + first.burst;
    if requests.is_finite() {
        // The prompts of the first batch wait for each other. Equal requests end in the order in which they started, so
        // every later batch is as spread out as the first; others are replaced at random times.
        let begin = first_tokens_of_batch(input, m, limit, steady_state::prefill(m, input, limit).total());
        let full = (limit / requests).min(1.0);
        let together = if equal { 1.0 } else { full };
        let mean = |begin: f64, later: f64| together * begin + (1.0 - together) * later;
        first.slot = slot;
        first.burst = mean(begin.burst, 0.0);
        first.queue = mean(0.0, first.queue);
        first.prefill = mean(begin.prefill, first.prefill);
        // The prompts of the next batch delay the tokens of this one, except for the last batch.
        before = first.prefill + first.queue + full * begin.burst;
    }
    let tpot = cycle_tpot(input, &cycle, before);
    let mut out = metrics_at_rate(input, rate, limit, cycle.time.scaled(1.0 / input.osl.max(1.0)), first, tpot);
    out.itl = cycle_itl(&cycle, speculative::tokens_per_step(&input.speculation));
    out
}

/// Estimates open arrivals with a limit on concurrent requests. The client delays the excess, so that a load beyond the
/// capacity is served as in a closed loop. Delayed requests have not been sent: their delay does not count toward TTFT.
fn client_limited(input: &ServingInput, c: &Constants, m: &Machine, rate: f64, limit: f64) -> ServingEstimate {
    let (most, replicas) = (input.max_in_flight, input.layout.dp.max(Count::ONE));
    let mut full = closed(input, c, m, most, input.arrivals, limit);
    if rate >= full.requests_per_sec {
        full.capacity_requests_per_sec = full.requests_per_sec;
        return full;
    }
    let share = (most / replicas).max(1.0);
    let mut out = open(input, c, m, rate, limit.min(share));
    out.capacity_requests_per_sec = full.requests_per_sec;
    if share <= limit {
        // The limit on concurrent requests is not above the batch limit, so no request waits for a slot.
        out.first_token.slot = 0.0;
        out.ttft = out.first_token.spread();
        let rest = (input.osl - 1.0).max(0.0);
        out.e2e.mean = out.ttft.mean + rest * out.tpot.mean;
        out.e2e.p50 = out.ttft.p50 + rest * out.tpot.p50;
        out.e2e.p95 = out.ttft.p95 + rest * out.tpot.p95;
        out.e2e.p99 = out.ttft.p99 + rest * out.tpot.p99;
    }
    out
}

/// Estimates open arrivals in a run that ends with its last response. The batch is at most the number of requests.
fn open(input: &ServingInput, c: &Constants, m: &Machine, rate: f64, limit: f64) -> ServingEstimate {
    let arrivals = input.arrivals / input.layout.dp.max(Count::ONE);
    if !arrivals.is_finite() {
        return service(input, c, m, rate, limit);
    }
    let mut out = service(input, c, m, rate, limit.min(arrivals.max(1.0)));
    let mut rest = out.e2e.mean;
    if !rest.is_finite() {
        // Requests arrive faster than they can be served: equivalent to a burst.
        out = burst(input, c, m, arrivals.max(1.0), limit);
        rest = (arrivals / out.requests_per_sec.max(1e-12) - arrivals / rate).max(0.0);
    }
    out.at_rate(Rate::Run { requests: arrivals, seconds: arrivals / rate + rest });
    out
}

/// Number of decoding sequences at `rate` requests per second, if that is below the capacity of a full batch of `limit`
/// sequences, whose cycle takes `full` seconds: the batch b with b = rate x duration(b) (Little's law).
fn decoding_at_rate(m: &Machine, input: &ServingInput, rate: f64, limit: f64, full: f64) -> f64 {
    // cycle(b) = decoding(b) + b x prefill(b), so that b = rate x cycle(b) has the same solution as
    // b = rate x decoding(b) / (1 - rate x prefill(b)), without a pole.
    let excess = |batch: f64| rate * steady_state::cycle(m, input, batch).time.total() - batch;
    let least = 1.0f64.min(limit);
    let (mut low, mut high) = ((least, excess(least)), (limit, rate * full - limit));
    if low.1 <= 0.0 {
        let one = steady_state::cycle(m, input, least);
        return (rate * undisturbed_decoding(&one) / (1.0 - rate * one.prefill).max(1e-6)).clamp(1e-6, limit);
    }
    // False position with a lower and an upper bound on the batch. The weight of the bound that is kept is halved
    // (Illinois).
    let mut at = high.0;
    for _ in 0..MAX_ROUNDS {
        let before = at;
        at = (low.0 * high.1 - high.0 * low.1) / (high.1 - low.1);
        let found = excess(at);
        if (at - before).abs() <= TOLERANCE * at || found == 0.0 {
            break;
        }
        if found > 0.0 {
            (low, high.1) = ((at, found), 0.5 * high.1);
        } else {
            (high, low.1) = ((at, found), 0.5 * low.1);
        }
    }
    at.clamp(1e-6, limit)
}

/// Maximum number of iterations for the batch of an open load, and the relative tolerance.
const MAX_ROUNDS: u32 = 12;
const TOLERANCE: f64 = 1e-3;

/// Variability of arrivals and service times at a replica. Least-loaded routing over n replicas gives each of them about
/// every n-th request, whose gaps are an Erlang distribution with ca^2 = 1 / n.
fn routed_variability(input: &ServingInput, c: &Constants) -> f64 {
    (c.variability - 0.5 * (1.0 - 1.0 / input.layout.dp.max(Count::ONE))).max(0.0)
}

/// Standard deviation of the seconds of [`TokenTime::Interrupted`]: each interruption is a busy period, with second moment
/// prefill^2 / (1 - rate x prefill)^3 if all prompts are equally long (Takács, *Introduction to the Theory of Queues*,
/// 1962, chapter 1). The number of prompts behind varies with the wait, which is about exponential.
fn decoding_deviation(cycle: &Cycle, rate: f64, behind: f64, wait: f64) -> f64 {
    let idle = (1.0 - rate * cycle.prefill).max(1e-6);
    let interruptions = rate * undisturbed_decoding(cycle) + behind;
    let waited = rate * wait * cycle.prefill / idle;
    (interruptions * cycle.prefill * cycle.prefill / (idle * idle * idle) + waited * waited).sqrt()
}

/// Decode time of the sequences of a cycle without the prompts of others, s.
fn undisturbed_decoding(cycle: &Cycle) -> f64 {
    (cycle.time.total() - cycle.batch * cycle.prefill).max(0.0)
}

/// Estimates open arrivals without an end. The batch follows from Little's law. At or above the capacity, the estimate
/// is that of an endless backlog.
fn service(input: &ServingInput, c: &Constants, m: &Machine, rate: f64, limit: f64) -> ServingEstimate {
    let full = steady_state::cycle(m, input, limit);
    let most = (limit / full.time.total().max(1e-12)).min(FrontEnd::of(input, c).max_request_rate());
    if rate >= most {
        let mut out = burst(input, c, m, f64::INFINITY, limit);
        out.ttft = Spread::of(f64::INFINITY, 0.0, 0.0);
        out.e2e = out.ttft;
        out.first_token.slot = f64::INFINITY;
        return out;
    }
    let decoding = decoding_at_rate(m, input, rate, limit, full.time.total());
    let cycle = steady_state::cycle(m, input, decoding.max(1.0));
    let mut first = latency::closed_loop(input, c, m, &cycle, 0.0);
    first.burst = 0.0;
    let variability = routed_variability(input, c);
    let wait = queue::mean_wait(rate, cycle.prefill, 1.0, variability);
    // A step takes in the prompts that arrived during the one before: step = decoding + rate x step x prefill.
    let idle = (1.0 - rate * cycle.prefill).max(1e-6);
    let step = cycle.decode_step / idle;
    first.queue = wait + c.boundary_steps * step.min(cycle.mixed_step) * decoding.min(1.0);
    first.slot = queue::mean_wait(rate, cycle.time.total(), limit, variability);
    // Prompts that arrived while this one waited and was computed follow at once. Least-loaded routing spaces them out
    // as an Erlang process, in which a replica gets (1 - 1 / replicas) / 2 fewer of them (Cox, *Renewal Theory*, 4.2).
    let spacing = 0.5 * (1.0 - 1.0 / input.layout.dp.max(Count::ONE));
    let behind = (rate * (wait + first.prefill) - spacing).max(0.0);
    // Arrivals that find the batch full do not interrupt it.
    let decoding_alone = undisturbed_decoding(&cycle);
    let most_behind = (limit.max(1.0) / rate * idle - decoding_alone).max(0.0) / cycle.prefill.max(1e-12);
    let behind = behind.min(most_behind);
    let token = TokenTime::Interrupted {
        decoding: decoding_alone,
        behind: behind * cycle.prefill,
        interrupted: 1.0 - idle,
        tokens: (input.osl - 1.0).max(1.0),
    };
    let mean = token.seconds();
    let deviation = decoding_deviation(&cycle, rate, behind, wait) / (input.osl - 1.0).max(1.0);
    let at = |scale: f64, deviations: f64| (scale * mean).max(mean + deviations * deviation);
    let tpot = (token, Spread { mean, p50: mean, p95: at(1.1, 1.645), p99: at(1.2, 2.326) });
    let batch = (rate * (mean * (input.osl - 1.0).max(0.0) + first.prefill)).min(limit);
    let time = cycle.time.scaled(1.0 / input.osl.max(1.0));
    let mut out = metrics_at_rate(input, Rate::Arrivals(rate), batch, time, first, tpot);
    out.itl = cycle_itl(&cycle, speculative::tokens_per_step(&input.speculation));
    out.capacity_requests_per_sec = most;
    out.bottleneck = Bottleneck::Load;
    out
}
