//! Separate pools for prefill and decode: a closed network of two stations and a transfer of the KV cache between them
//! (DistServe, arXiv 2401.09670).

use super::front_end::FrontEnd;
use super::input::{Load, Pools, ServingInput};
use super::latency::{FirstToken, Spread};
use super::machine::Machine;
use super::shape::Shape;
use super::spread::{NORMAL_P95, NORMAL_P99};
use super::terms::{Rate, TokenTime};
use super::{ServingEstimate, backlog, kv, metrics_at_rate, steady_state};
use crate::constants::Constants;
use atlas_core::count::Count;

/// Bandwidth (bytes/s) and latency (s) of one rank's link between the pools: the network, or the scale-up fabric if
/// both pools are in one domain and the KV cache is sent over it.
pub fn transfer_link(input: &ServingInput, pools: &Pools, c: &Constants) -> (f64, f64) {
    let acc = &input.accelerator;
    let together = pools.prefill.accelerators() + pools.decode.accelerators() <= acc.domain.max(1.0);
    if input.scale_up_kv_transfer && together {
        return (acc.effective_link_bw(c), c.link_latency);
    }
    ((acc.nic_bw * acc.network.any_node_share() * c.nic_fraction).max(1e6), c.nic_latency)
}

/// Number of requests that all start together; `None` for other loads.
fn at_once(input: &ServingInput) -> Option<f64> {
    match input.load {
        Load::Static { batch } | Load::PrefillOnly { batch } => Some(batch),
        Load::Burst { requests } => Some(requests).filter(|requests| requests.is_finite()),
        Load::DecodeOnly { .. } | Load::Closed { .. } | Load::Open { .. } => None,
    }
}

/// Maximum number of iterations for the distribution of requests over the two pools, and the relative tolerance.
const MAX_ROUNDS: u32 = 60;
const TOLERANCE: f64 = 1e-5;

/// Estimates a disaggregated deployment.
pub fn estimate(input: &ServingInput, pools: &Pools, c: &Constants) -> ServingEstimate {
    // The prompts of every attention group of the prefill pool are known, and none has more than its token budget.
    let prefill = Machine::new(input, &pools.prefill, c).without_group_excess();
    let draft = Machine::of_draft_model(input, &pools.decode, c);
    let decode = Machine::new(input, &pools.decode, c).with_draft_model(input, draft.as_ref());
    let capacity = kv::capacity(input, &pools.decode, &decode.shape, c);
    let max_sequences = input.max_sequences() * pools.decode.attention_dp.max(Count::ONE);
    let limit = capacity.sequences.max(1.0).min(max_sequences);
    let (servers, workers) = (pools.prefill.dp.max(Count::ONE), pools.decode.dp.max(Count::ONE));
    // Attention groups and pipeline stages of a prefill replica work on different prompts concurrently.
    let abreast = pools.prefill.attention_dp.max(Count::ONE) * pools.prefill.pp.max(Count::ONE);
    // The token budget applies to each attention group of the pool, which keeps a prompt until it is transferred.
    let own = ServingInput { layout: pools.prefill, osl: 1.0, ..*input };
    let prompt_capacity = kv::capacity(&own, &pools.prefill, &prefill.shape, c);
    let own = ServingInput { osl: input.osl, ..own };
    // Prompts that wait share steps, up to the token budget.
    let budget = steady_state::prompt_token_budget(&prefill, &own, f64::INFINITY);
    let filling = budget / steady_state::fresh_prompt(&own);
    let filling = if input.chunked_prefill { filling } else { filling.floor() };
    let most_prompts = input.max_sequences() * pools.prefill.attention_dp.max(Count::ONE);
    let together = abreast.max(filling.min(most_prompts)).min(prompt_capacity.sequences.max(1.0));
    let prompts = |at_once: f64| steady_state::prefill(&prefill, &own, at_once).total();
    let least_service = prompts(together) / together;
    // The iteration starts from below, to find the least latency that is consistent with the number of concurrent
    // prompts.
    let alone = prompts(1.0);
    let mut latency = alone;
    // Each prefill rank sends its share of the KV cache over its own NIC, and each decode rank receives its own.
    let moved = |shape: &Shape| shape.keys_cached(input.isl, input.full_window_cache) * shape.kv_bytes_token;
    let (link, delay) = transfer_link(input, pools, c);
    let [sent, received] = [&prefill.shape, &decode.shape].map(|shape| moved(shape) / link + delay);
    let transfer = sent.max(received);
    // Transfers of one attention group are serialized, on both sides.
    let [senders, receivers] =
        [&pools.prefill, &pools.decode].map(|pool| pool.dp.max(Count::ONE) * pool.attention_dp.max(Count::ONE));
    let links = Rate::KvLinks { links: senders, seconds: sent };
    let links = links.or(Rate::KvLinks { links: receivers, seconds: received });
    let steps = steady_state::decode_steps(input);
    let step_at = |batch: f64| decode.decode_step(&steady_state::decode_tokens(input, batch));
    let most = (servers / least_service).min(links.per_second());
    let (offered, open_rate) = match input.load {
        Load::Closed { concurrency, .. } => (concurrency, f64::INFINITY),
        Load::Static { batch } | Load::DecodeOnly { batch } | Load::PrefillOnly { batch } => (batch, f64::INFINITY),
        Load::Burst { requests } => (requests.min(1e6), f64::INFINITY),
        Load::Open { rate } => ((limit * workers).min(input.max_in_flight), rate),
    };
    // No more prompts share a step than a prefill replica has requests.
    let together = together.min(offered / servers).max(1.0);
    let service = if together > 1.0 { prompts(together) / together } else { alone };
    // Rate X with X (wait + prefill + transfer + decode) = concurrency. The decode batch is X * decode / workers.
    let mut batch = (offered / workers).min(limit).max(offered.min(1.0));
    let mut rate = Rate::None;
    // Rate of a closed loop with the same number of concurrent requests, regardless of arrivals.
    let mut closed_rate = 0.0;
    let mut wait = 0.0;
    let apart = FrontEnd::of(input, c).admission_delay();
    let mut settled = true;
    for _ in 0..MAX_ROUNDS {
        let before = batch;
        let life = steps * step_at(batch).total();
        let seconds = life + latency + transfer;
        let free = Rate::ClosedLoop { busy: 1.0, sequences: offered, seconds, between: apart, drained: 1.0 };
        let pools = Rate::PrefillPool { replicas: f64::from(servers), seconds: service };
        let closed = free.or(pools).or(links).or(Rate::turnover(limit * workers, life.max(1e-9)));
        closed_rate = closed.per_second();
        rate = closed.or(Rate::Arrivals(open_rate));
        let per_second = rate.per_second();
        // Requests that are not decoding wait for the prefill pool.
        wait = (offered / per_second.max(1e-12) - life - latency - transfer - apart).max(0.0);
        let next = (per_second * life / workers).clamp(1e-6, limit).max((offered / workers).min(1.0));
        batch = 0.5 * (batch + next);
        if together > 1.0 {
            // The number of concurrent prompts is the number that arrive during a prefill. A lone prompt shares no
            // step.
            let found = prompts((per_second * latency / servers).clamp(1.0, together));
            (latency, settled) = (found, (found - latency).abs() <= TOLERANCE * found);
        }
        if settled && (batch - before).abs() <= TOLERANCE * batch {
            break;
        }
    }
    let in_prefill = latency;
    let step = step_at(batch);
    let life = steps * step.total();
    // Clients that hold requests back turn arrivals above the rate of a closed loop into a closed loop.
    let random = open_rate.is_finite() && (input.max_in_flight.is_infinite() || open_rate < closed_rate);
    let (mut queue, mut burst, mut slot_waits, mut slot_even) = (0.0, 0.0, 0.0, 0.0);
    if random {
        // Two stations in series: one queue for the prefill replicas, and one for the places of the decode replicas
        // (DistServe, section 3.1). Poisson arrivals are not correlated: there are no bursts.
        let per_second = rate.per_second();
        if together > 1.0 && pools.prefill.attention_dp > 1.0 && pools.prefill.pp <= 1.0 {
            // A step takes in all prompts that have arrived, and all of them end with it.
            let each = (prompts(together) - alone).max(0.0) / (together - 1.0);
            let whole = super::queue::time_in_shared_steps(per_second, alone - each, each, f64::from(servers));
            (latency, queue) = (alone, whole - alone);
        } else {
            queue = super::queue::mean_wait(per_second, service, f64::from(servers), c.variability);
            // The part of a step that does not depend on the number of prompts ends before the next prompts are taken in.
            let fixed = (alone - service).max(0.0);
            let busy = (per_second * alone / servers).min(1.0);
            queue += 0.5 * fixed * super::queue::busy_probability(busy, f64::from(servers));
        }
        if let Rate::KvLinks { links, seconds } = links {
            queue += super::queue::mean_wait(per_second, seconds, links, c.variability);
        }
        let places = limit * workers;
        wait = super::queue::mean_wait(rate.per_second(), life, places, c.variability);
        slot_waits = super::queue::busy_probability(rate.per_second() * life / places, places);
    } else if let Some(requests) = at_once(input) {
        // The prompts are computed one after another. Sequences beyond the decode places wait for others to end.
        let each = (requests / servers).max(1.0);
        let whole = prompts(each);
        let first = backlog::first_tokens_of_batch(&own, &prefill, each, whole);
        (latency, burst) = (first.prefill, first.burst);
        let (places, beyond) = (limit * workers, (requests - limit * workers).max(0.0));
        wait = 0.5 * beyond * beyond / requests * (life / places - service / servers).max(0.0);
        slot_even = wait;
        let seconds = whole.max(requests / links.per_second()).max(latency + beyond / places * life) + transfer + life;
        rate = Rate::Run { requests, seconds };
    } else if matches!(input.load, Load::Burst { .. }) {
        // The wait in an endless backlog is not defined.
        wait = 0.0;
    } else {
        burst = 0.5 * super::bursts::burst_share(input, c) * (offered / servers - 1.0).max(0.0) * service;
    }
    let first = FirstToken {
        slot: wait,
        slot_waits,
        slot_even,
        queue,
        queue_even: 0.0,
        burst,
        // The first token is handed out by the decode replica, once it has the KV cache.
        prefill: latency + transfer,
        overhead: apart
            + super::latency::scheduler_delay(input, c, step.total())
            + super::latency::polling_steps(input, batch) * step.total(),
    };
    let token = TokenTime::Steps { steps, seconds: step.total(), tokens: (input.osl - 1.0).max(1.0) };
    let tpot = token.seconds();
    // By Little's law, also below one sequence.
    let running = if at_once(input).is_some() { batch } else { (rate.per_second() * life / workers).min(batch) };
    // No prompt interrupts a decode pool, so that only the number of sequences varies. Random arrivals make it a Poisson
    // number, which routing divides evenly between the replicas. Of the variance, two thirds remain in the mean over the
    // life of a request, in which one generation of sequences replaces another.
    let deviation = if random { (running / workers).sqrt() } else { 0.0 };
    let slower = step_at((batch + deviation).min(limit)).total() / step.total().max(1e-12) - 1.0;
    let varied = |share: f64| {
        let at = |deviations: f64| tpot * (1.0 + deviations * share * slower);
        Spread { mean: tpot, p50: tpot, p95: at(NORMAL_P95), p99: at(NORMAL_P99) }
    };
    let spread = varied((2.0f64 / 3.0).sqrt());
    let mut out = metrics_at_rate(input, rate, running, step, first, (token, spread));
    if out.token_time != TokenTime::None {
        out.itl = varied(1.0);
    }
    // Prompts of different attention groups and stages share a replica's time.
    out.prefill_busy = (out.requests_per_sec * in_prefill / servers).min(1.0);
    out.max_concurrency = capacity.sequences;
    out.fits = capacity.fits && prompt_capacity.fits;
    out.capacity_requests_per_sec = most.min(limit * workers / (steps * step_at(limit).total()).max(1e-9));
    if input.max_in_flight.is_finite() {
        out.capacity_requests_per_sec = out.capacity_requests_per_sec.min(closed_rate);
    } else if open_rate.is_finite() && open_rate >= out.capacity_requests_per_sec {
        // Above the capacity of both pools, the wait is unbounded.
        out.ttft = Spread::of(f64::INFINITY, 0.0, 0.0);
        out.e2e = out.ttft;
        out.first_token.slot = f64::INFINITY;
    }
    out.output_tokens_per_sec_per_accelerator = out.output_tokens_per_sec / input.accelerators().max(1.0);
    out.tokens_per_sec_per_user = if tpot > 0.0 { 1.0 / tpot } else { 0.0 };
    out
}
