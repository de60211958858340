//! Serving: throughput, time to first token and time per output token of a model on an engine, from the operators of a
//! step, the scheduler's limits and the size of the KV cache.
//!
//! * [`input`] – the scenario as plain numbers
//! * [`formats`] – the formats of weights, KV cache and GEMMs
//! * [`shape`] – the work of one rank
//! * [`step`], [`time`] – the time of one engine step, and its parts
//! * [`kv`] – the number of sequences that fit in memory
//! * [`admission`] – when a scheduler admits requests
//! * [`steady_state`] – how prefill and decode share the accelerator
//! * `closed`, `open`, `backlog` – a constant number of requests, arrivals at a given rate, requests queued at the start
//! * [`bursts`] – requests that start together
//! * [`emptying`] – how a batch drains when finished requests are not replaced
//! * [`waves`] – the time of equal requests that are all queued at the start
//! * `preemption` – prompts that are computed again because the KV cache is full
//! * [`front_end`] – the cost of a request outside the steps
//! * [`latency`], [`queue`] – the waiting times of a request
//! * [`gaps`] – the time between two tokens
//! * [`reuse`] – the share of a prompt that is found in a cache
//! * `images` – the time of encoding images
//! * [`exchange`] – the exchange of tokens between experts
//! * [`speculative`], [`disaggregated`] – speculative decoding, separate pools for prefill and decode
//! * [`arithmetic`] – the arithmetic of requests relative to the peak rates
//! * [`terms`] – the terms from which rates and times are computed
//! * [`frontier`] – throughput against interactivity
pub mod admission;
pub mod arithmetic;
mod backlog;
pub mod bursts;
mod closed;
mod collectives;
pub mod disaggregated;
pub mod emptying;
pub mod exchange;
mod fabric;
pub mod formats;
pub mod front_end;
pub mod frontier;
pub mod gaps;
mod images;
pub mod input;
pub mod kv;
pub mod latency;
mod launch;
mod layout;
pub mod machine;
mod open;
mod preemption;
pub mod queue;
mod rates;
pub mod reuse;
pub mod shape;
pub mod speculative;
pub mod spread;
pub mod steady_state;
pub mod step;
pub mod terms;
pub mod time;
pub mod waves;

#[cfg(test)]
mod tests;

use crate::constants::Constants;
use atlas_core::count::Count;
use gaps::Gaps;
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
    /// Share of prompt tokens that are found in a cache rather than computed.
    pub prefix_hit: f64,
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
    let mut input = input.bounded();
    // A prefill ends with its first token.
    if matches!(input.load, Load::PrefillOnly { .. }) {
        input.osl = 1.0;
    }
    let drafting = reuse::estimate_with_prefix_cache(&input, c, estimate_in_bounds);
    if !input.speculation.exceeds_batch_limit(drafting.batch) {
        return drafting;
    }
    input.speculation = Speculation::default();
    reuse::estimate_with_prefix_cache(&input, c, estimate_in_bounds)
}

/// Estimates a scenario whose values are within bounds.
fn estimate_in_bounds(input: &ServingInput, c: &Constants) -> ServingEstimate {
    if let Some(pools) = input.pools {
        return disaggregated::estimate(input, &pools, c);
    }
    let draft = Machine::of_draft_model(input, &input.layout, c);
    let machine = Machine::new(input, &input.layout, c).with_draft_model(input, draft.as_ref());
    let capacity = kv::capacity(input, &input.layout, &machine.shape, c);
    let machine = match input.reserve_output {
        true => machine,
        false => Machine { sequences_in_memory: capacity.sequences.max(1.0), ..machine },
    };
    let replicas = input.layout.dp.max(Count::ONE);
    // At least one sequence is always assumed to run: measured runs did run, and `fits` reports the shortage of memory.
    // The sequence limit applies to each attention group, which is an engine rank with its own scheduler.
    let most = input.max_sequences() * input.layout.attention_dp.max(Count::ONE);
    let limit = capacity.sequences.max(1.0).min(most);
    let max_sustained_batch = limit.min(steady_state::max_sustained_batch(&machine, input, limit).max(1.0));
    let mut out = match input.load {
        Load::Static { batch } => backlog::batch_run(input, c, &machine, batch / replicas, limit, false),
        Load::DecodeOnly { batch } => decode_only(input, &machine, batch / replicas, limit),
        Load::PrefillOnly { batch } => prefill_only(input, &machine, batch / replicas),
        Load::Closed { concurrency, requests } => {
            closed::closed(input, c, &machine, concurrency, requests, max_sustained_batch)
        }
        Load::Burst { requests } => backlog::burst(input, c, &machine, requests / replicas, max_sustained_batch),
        Load::Open { rate } if input.max_in_flight.is_finite() => {
            open::client_limited(input, c, &machine, rate / replicas, max_sustained_batch)
        }
        Load::Open { rate } => open::open(input, c, &machine, rate / replicas, max_sustained_batch),
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
    out.output_tokens_per_sec_per_accelerator = out.output_tokens_per_sec / input.accelerators().max(1.0);
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
    let (out, all) = if input.counts_prompts() { (input.isl, input.isl) } else { (input.osl, input.osl + input.isl) };
    ServingEstimate {
        requests_per_sec,
        capacity_requests_per_sec: requests_per_sec,
        output_tokens_per_sec: requests_per_sec * out,
        total_tokens_per_sec: requests_per_sec * all,
        prefix_hit: input.prefix_hit,
        rate,
        token_time,
        ttft,
        first_token: first,
        tpot,
        itl: tpot,
        e2e: latency::end_to_end(input.output_lengths(), ttft, tpot),
        batch,
        bottleneck: bottleneck(&time),
        time,
        ..ServingEstimate::default()
    }
}

/// Estimates the generation phase alone.
fn decode_only(input: &ServingInput, m: &Machine, share: f64, limit: f64) -> ServingEstimate {
    let batch = share.max(1.0).min(limit.max(1.0));
    let step = m.decode_step(&steady_state::decode_tokens(input, batch));
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

/// Time between tokens of a sequence that decodes in `gaps` with the mean of `tpot`.
fn itl(input: &ServingInput, gaps: &Gaps, tpot: &Spread) -> Spread {
    let steps = (input.osl - 1.0).max(1.0) / steady_state::decode_steps(input).max(1e-9);
    gaps.spread(tpot.mean * steps).map(|seconds| seconds / steps)
}
