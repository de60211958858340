//! Latency of one request: time to first token (TTFT), time per output token (TPOT), end to end (E2E).
//!
//! TTFT is the time from a request's arrival to its first token: waiting for a sequence slot, for the step in flight
//! and for prefills ahead, and the request's own prefill. TPOT is (E2E - TTFT) / (OSL - 1), averaged over a request's
//! tokens. ITL is the time between two successive tokens, so prompt chunks of other requests appear in its tail.

use super::admission::balancing_steps;
use super::bursts::{burst_share, later_burst_share};
use super::front_end::FrontEnd;
use super::gaps::Clump;
use super::input::{Admission, ServingInput};
use super::machine::Machine;
use super::queue;
pub use super::spread::Spread;
use super::steady_state::{self, Cycle};
use crate::constants::Constants;
use crate::parts::FirstTokenPart;
use atlas_core::math;

impl ServingInput {
    /// Mean and percentiles of the output length, tokens: uniform about the mean if the longest output is at most twice
    /// the mean, otherwise Beta(1, longest / mean - 1), as in simulations.
    #[must_use]
    pub fn output_lengths(&self) -> Spread {
        let longest = if self.osl > 1.0 { self.longest_output() } else { 1.0 };
        let at = |q: f64| match longest {
            longest if longest <= 2.0 => 1.0 + (longest - 1.0) * (2.0 * q - 1.0),
            longest => longest * (1.0 - math::powf(1.0 - q, 1.0 / (longest - 1.0))),
        };
        Spread { mean: 1.0, p50: at(0.5), p95: at(0.95), p99: at(0.99) }.map(|ratio| self.osl * ratio)
    }
}

/// Latency of whole requests with outputs of `lengths` tokens. A percentile above the median is that of requests of mean
/// length, or that of long outputs at the mean latency of a token, whichever is longer.
#[must_use]
pub fn end_to_end(lengths: Spread, ttft: Spread, tpot: Spread) -> Spread {
    let rest = lengths.map(|tokens| (tokens - 1.0).max(0.0));
    let of_long_outputs = rest.map(|tokens| ttft.mean + tokens * tpot.mean);
    let of_mean_outputs = ttft.zip(tpot, |first, each| first + rest.mean * each);
    let slower = of_mean_outputs.zip(of_long_outputs, f64::max);
    Spread { mean: of_mean_outputs.mean, p50: ttft.p50 + rest.p50 * tpot.p50, ..slower }
}

/// Parts of the time to first token.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FirstToken {
    /// Waiting for a sequence slot.
    pub slot: f64,
    /// Share of the requests that wait for a slot, for exponential times, if requests arrive at random; 0 if all wait for
    /// `slot`.
    pub slot_waits: f64,
    /// Part of `slot` that is distributed uniformly, if all requests are queued at the start.
    pub slot_even: f64,
    /// Waiting for a step boundary and for prefills ahead.
    pub queue: f64,
    /// Part of `queue` that is distributed uniformly: the steps in flight, and prompts of the same steps.
    pub queue_even: f64,
    /// Waiting because requests arrive in bursts.
    pub burst: f64,
    /// Own prefill, in steps shared with decoding sequences.
    pub prefill: f64,
    /// Acceptance of the request, tokenizing, first response.
    pub overhead: f64,
}

impl FirstToken {
    /// The parts in order of declaration.
    pub const PARTS: [FirstTokenPart; 5] = [
        FirstTokenPart::Slot,
        FirstTokenPart::Queue,
        FirstTokenPart::Burst,
        FirstTokenPart::Prefill,
        FirstTokenPart::Overhead,
    ];

    /// Values in order of declaration, s.
    pub fn values(&self) -> [f64; 5] {
        [self.slot, self.queue, self.burst, self.prefill, self.overhead]
    }

    /// Sum of all parts, s.
    pub fn total(&self) -> f64 {
        self.values().iter().sum()
    }

    /// Parts of the 99th percentile; they sum to that of [`FirstToken::spread`].
    #[must_use]
    pub fn p99(&self) -> FirstToken {
        let [burst, queue] = [
            FirstToken { burst: self.burst, ..FirstToken::default() },
            FirstToken { queue: self.queue, queue_even: self.queue_even, ..FirstToken::default() },
        ]
        .map(|part| part.spread().p99);
        FirstToken {
            burst,
            queue,
            queue_even: 0.0,
            slot: self.slot_spread().p99,
            slot_waits: 0.0,
            slot_even: 0.0,
            ..*self
        }
    }

    /// Mean and percentiles.
    pub fn spread(&self) -> Spread {
        let (even, random) = (self.burst + self.queue_even, self.queue - self.queue_even);
        let others = Spread::of(self.prefill + self.overhead, even, random);
        others.zip(self.slot_spread(), |others, slot| others + slot)
    }

    /// Mean and percentiles of the wait for a slot. In a queue with several servers, most requests may find one free, and
    /// the rest wait for an exponential time (Gross and Harris, *Fundamentals of Queueing Theory*, section 2.3).
    fn slot_spread(&self) -> Spread {
        let waits = self.slot_waits;
        if waits <= 0.0 || !self.slot.is_finite() {
            return Spread::of(self.slot - self.slot_even, self.slot_even, 0.0);
        }
        let at = |beyond: f64| self.slot / waits * math::ln(waits / beyond).max(0.0);
        Spread { mean: self.slot, p50: at(0.5), p95: at(0.05), p99: at(0.01) }
    }
}

/// TTFT if `waiting` requests per replica wait in addition to the running ones and finished requests are replaced.
pub fn closed_loop(input: &ServingInput, c: &Constants, m: &Machine, cycle: &Cycle, waiting: f64) -> FirstToken {
    let life = cycle.time.total().max(1e-12);
    let fresh = steady_state::fresh_prompt(input);
    let chunks = (fresh / input.max_num_batched_tokens.max(1.0)).max(1.0).ceil();
    // Share of the requests that find others on their replica: of b sequences per replica, 1 < b < 2, a share b - 1 of
    // the replicas has two.
    let with_others = (2.0 * (cycle.batch - 1.0) / cycle.batch.max(1.0)).clamp(0.0, 1.0);
    // Own prefill: its chunks, alone or together with decoding sequences.
    let own = steady_state::prefill_alone(m, input).total()
        + if input.chunked_prefill { with_others * chunks * cycle.decode_step * 0.5 } else { 0.0 };
    // A request arrives when another ends, which depends on the number of steps and not on time: in a mixed step every
    // decoding sequence gains one token, however long the step takes. Utilization is therefore a share of steps.
    let others = (cycle.batch - 1.0).max(0.0);
    let steps = steady_state::decode_steps(input).max(1.0);
    let more = (cycle.mixed_step - cycle.decode_step).max(0.0);
    // Waits for prompts of other sequences, at random times, and those that are at most a step with prompts.
    let (random, with_prompts) = if !input.chunked_prefill {
        (0.0, Clump::of(input, c, cycle, others, waiting > 0.0).prompts_ahead() * cycle.prefill)
    } else if steady_state::prompts_in_parallel(m, input) > 1.0 {
        // Another attention group or micro-batch is free, but only after the steps ahead, which may have prompts. The
        // prompts of sequences that ended in the same step share a step with this one.
        let step = cycle.decode_step + cycle.prefill_share * more;
        (c.boundary_steps * cycle.prefill_share * more, others / steps * cycle.prefill + rest_of_step(input, c, step))
    } else {
        // A step computes as many prompts as its token budget holds. Its time is the unit of time of the queue.
        let most = steady_state::prompts_beside(m, input, cycle.batch);
        let full_step = cycle.decode_step + most * cycle.prefill;
        let service = 1.0 / most;
        let sustained = steady_state::max_sustained_batch(m, input, cycle.batch);
        // If the budget limits the batch, requests in front of it wait for the budget, too.
        let beyond = if cycle.batch >= sustained * (1.0 - 1e-6) { waiting } else { 0.0 };
        let wait = queue::closed_wait(others + beyond, service, steps, c.variability);
        let wait = (wait - beyond * service).max(0.0) * full_step;
        // Prompts of sequences that ended in the same step share a step with this one, if it holds several.
        let same = (others / steps).min((most - 1.0).max(0.0)) * cycle.prefill;
        // A request that replaces another finds a step in flight that may have prompts. One that waits does not.
        let in_flight = if waiting > 0.0 { 0.0 } else { with_others * cycle.prefill_share * more };
        (wait, same + in_flight)
    };
    let (random, with_prompts) =
        (random.min(others * cycle.prefill * 0.5), with_prompts.min(others * cycle.prefill * 0.5));
    // The steps in flight must end first, and the scheduler runs ahead of the accelerator.
    let boundary = with_others * c.boundary_steps * cycle.decode_step;
    FirstToken {
        slot_waits: 0.0,
        slot_even: 0.0,
        slot: waiting * life / cycle.batch.max(1e-12),
        queue: random + with_prompts + boundary,
        queue_even: with_prompts + boundary,
        burst: 0.5 * others * burst_wait(input, c, m, cycle),
        prefill: own,
        overhead: FrontEnd::of(input, c).admission_delay()
            + scheduler_delay(input, c, cycle.decode_step)
            + polling_steps(input, cycle.batch) * cycle.decode_step
            + gathering(input, cycle.batch) * cycle.decode_step,
    }
}

/// By how much the rest of the step in flight exceeds half a step of `step` seconds: a request that replaces another is
/// sent when a step ends, and arrives soon after the next one has begun if steps are long.
fn rest_of_step(input: &ServingInput, c: &Constants, step: f64) -> f64 {
    (0.5 * step - FrontEnd::of(input, c).admission_delay()).max(0.0)
}

/// Delay of a first token by the scheduler's cadence, if a decode step takes `step` seconds.
pub fn scheduler_delay(input: &ServingInput, c: &Constants, step: f64) -> f64 {
    match input.admission {
        Admission::EveryStep => 0.0,
        // Prompts wait until they fill a step, or for a number of steps. A prompt that fills a step alone does not
        // wait.
        Admission::Batched => {
            let filled = steady_state::fresh_prompt(input) / input.max_num_batched_tokens.max(1.0);
            c.batched_steps * step * (1.0 - filled).max(0.0)
        }
        Admission::Polled => 0.0,
    }
}

/// Mean number of decode steps until a polling scheduler reads its request queue while `running` sequences decode: half
/// of the polling interval. An idle scheduler polls immediately (SGLang's `SchedulerRecvSkipper`).
pub fn polling_steps(input: &ServingInput, running: f64) -> f64 {
    match input.admission {
        Admission::Polled if running > 1.0 => 0.5 * (f64::from(input.recv_interval) - 1.0),
        _ => 0.0,
    }
}

/// Mean waiting time per other request of the same burst, s. The prompts of a burst fill whole steps. With mixed steps,
/// a prompt costs at most its delay of the decoding sequences.
fn burst_wait(input: &ServingInput, c: &Constants, m: &Machine, cycle: &Cycle) -> f64 {
    let (batch, steady) = (cycle.batch.max(1.0), later_burst_share(input, c));
    let packed = steady_state::prefill(m, input, batch).total() / batch;
    (burst_share(input, c) - steady) * packed + steady * packed.min(cycle.prefill)
}

/// Mean number of decode steps that a request waits for enough others to arrive while `running` sequences decode.
pub fn gathering(input: &ServingInput, running: f64) -> f64 {
    let life = steady_state::decode_steps(input).max(1.0);
    let gathered = input.gathering.map_or(0.0, |gathering| 0.5 * gathering.interval(life));
    gathered + balancing(input, running / life)
}

/// Mean number of decode steps that a request waits until every attention group has a prompt, at `arrivals` requests
/// per step.
fn balancing(input: &ServingInput, arrivals: f64) -> f64 {
    let steps = balancing_steps(input, arrivals);
    // The first request waits for all steps, the later ones for half of them.
    let others = arrivals * steps;
    steps * (1.0 + 0.5 * others) / (1.0 + others)
}
