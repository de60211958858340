//! Continuous batching at steady state: how prefill and decode share the accelerator.

use super::admission::admission_interval;
use super::input::ServingInput;
use super::machine::Machine;
use super::speculative;
use super::step::{StepTime, Tokens};
use crate::constants::documented::BATCH_BUCKET;
use atlas_core::count::Count;
use atlas_core::math;

/// One cycle of a replica, in which every running sequence is prefilled once and generates its whole output.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cycle {
    /// Number of running sequences.
    pub batch: f64,
    /// Time of the cycle by cause, s.
    pub time: StepTime,
    /// Time of a step with decode only, s.
    pub decode_step: f64,
    /// Time of a step with a prompt chunk, s.
    pub mixed_step: f64,
    /// Ratio of steps with a prompt chunk to decode steps, at most 1.
    pub prefill_share: f64,
    /// Time that the prefill of one request adds to the cycle, s.
    pub prefill: f64,
}

/// Number of sequences computed for `batch` sequences by graphs of fixed shapes, the largest of which has `largest`.
#[must_use]
pub fn padded_batch(batch: f64, largest: f64, buckets: bool) -> f64 {
    if !buckets {
        return batch.max(largest);
    }
    // Tolerance, so that rounding errors do not select the next graph.
    let power = math::exp2((math::log2(batch.max(1.0)) - 1e-9).ceil());
    let multiple = (batch / BATCH_BUCKET - 1e-9).ceil() * BATCH_BUCKET;
    power.min(multiple.max(1.0)).min(largest).max(batch)
}

/// Number of sequences that a decode step of `batch` sequences computes.
fn decode_slots(input: &ServingInput, batch: f64) -> f64 {
    input.compiled_batch.map_or(batch, |largest| padded_batch(batch, largest.into(), input.batch_buckets))
}

/// Prompt tokens to compute, without those in the prefix cache.
pub fn fresh_prompt(input: &ServingInput) -> f64 {
    (input.computed(input.isl) * (1.0 - input.prefix_hit.clamp(0.0, 1.0))).max(1.0)
}

/// Mean number of keys that a prompt token attends to: the cached prefix and half of the remaining prompt.
fn prompt_context(input: &ServingInput) -> f64 {
    let fresh = fresh_prompt(input);
    if input.compiled_batch.is_some() {
        // Compiled graphs compute the scores above the diagonal and mask them.
        return input.computed(input.isl);
    }
    // Without a causal mask, every token attends to the whole prompt.
    let masked = if input.arch.causal { 0.5 * fresh } else { 0.0 };
    input.computed(input.isl) - masked
}

/// Number of tokens over which the numbers of keys of a prompt's tokens extend.
fn prompt_span(input: &ServingInput) -> f64 {
    let masked = input.arch.causal && input.compiled_batch.is_none();
    if masked { fresh_prompt(input) } else { 0.0 }
}

/// Mean number of keys that a decoding sequence attends to.
pub fn mean_context(input: &ServingInput) -> f64 {
    if input.compiled_batch.is_some() {
        return input.computed(input.isl + input.osl);
    }
    input.isl + input.mean_age() * input.osl
}

/// Number of decode steps of a sequence.
pub fn decode_steps(input: &ServingInput) -> f64 {
    ((input.osl - 1.0).max(0.0) / speculative::tokens_per_step(&input.speculation)).max(0.0)
}

/// Tokens of a step that only decodes `batch` sequences.
pub fn decode_tokens(input: &ServingInput, batch: f64) -> Tokens {
    Tokens {
        decode: decode_slots(input, batch) * input.beams.max(Count::ONE),
        context: mean_context(input),
        verified: tokens_per_decode_step(input),
        ..Tokens::default()
    }
}

/// Time of a step that prefills `tokens` prompt tokens and does not decode. The prompts are from `requests` requests,
/// which limits the number of busy attention groups.
fn prefill_step(m: &Machine, input: &ServingInput, tokens: f64, requests: f64) -> StepTime {
    m.step_with_intake(&prompts(input, tokens, requests))
}

/// Tokens of a step that prefills `tokens` prompt tokens from `requests` requests.
pub fn prompts(input: &ServingInput, tokens: f64, requests: f64) -> Tokens {
    let (fresh, chunk) = (fresh_prompt(input), largest_chunk(input).min(tokens));
    let (prompts, chunks) = (tokens / fresh, fresh / chunk.max(1e-9));
    let cached = (input.computed(input.isl) - fresh).max(0.0);
    // Chunks before a chunk that has any cached keys.
    let whole = (chunks - 1e-9).ceil();
    let before = if cached > 0.0 || whole <= 1.0 { 0.5 * (whole - 1.0) } else { 0.5 * whole };
    Tokens {
        prefill: tokens,
        prefill_context: prompt_context(input),
        prefill_span: prompt_span(input),
        earlier: prompts * (chunks * cached + 0.5 * (chunks - 1.0) * fresh),
        prefix: prompts.max(1.0) * (cached + before * chunk),
        prompts,
        prefill_groups: requests.max(1.0),
        chunk,
        ..Tokens::default()
    }
}

/// Prompt tokens of a request in one micro-batch: the whole prompt or the token budget.
fn largest_chunk(input: &ServingInput) -> f64 {
    fresh_prompt(input).min(input.max_num_batched_tokens.max(1.0))
}

/// Number of prompts that a step computes in about the time of one: in different attention groups, and in different
/// micro-batches of a pipeline, if they are shorter than a step's token budget.
pub fn prompts_in_parallel(m: &Machine, input: &ServingInput) -> f64 {
    (input.layout.attention_dp.max(Count::ONE) * m.stages() * largest_chunk(input) / fresh_prompt(input)).max(1.0)
}

/// Factor by which a random number of prompts with mean `prompts` loads the busiest of `parallel` micro-batches more than
/// that number itself: E[max(parallel, n)] / max(parallel, E[n]) for a Poisson n, where E|n - parallel| is of the order
/// of that of a normal distribution.
fn uneven_share(parallel: f64, prompts: f64) -> f64 {
    if parallel <= 1.0 {
        return 1.0;
    }
    let apart = ((prompts - parallel).powi(2) + std::f64::consts::FRAC_2_PI * prompts).sqrt();
    0.5 * (parallel + prompts + apart) / prompts.max(parallel)
}

/// Maximum number of prompt tokens in a step with the prompts of `requests` requests. The token budget applies to each
/// of the micro-batches in the pipeline, and to each attention group, which is an engine rank with its own scheduler.
pub fn prompt_token_budget(m: &Machine, input: &ServingInput, requests: f64) -> f64 {
    input.max_num_batched_tokens.max(1.0)
        * m.stages()
        * requests.clamp(1.0, f64::from(input.layout.attention_dp.max(Count::ONE)))
}

/// Maximum number of sequences that a scheduler sustains if it fills its token budget with prompts. Decoding sequences
/// take their tokens first. Each sequence runs for steps + 1 steps and needs fresh + steps tokens in total, which
/// limits the number of running sequences independently of memory. Infinite if prefill runs in separate steps.
pub fn max_sustained_batch(m: &Machine, input: &ServingInput, requests: f64) -> f64 {
    if !input.chunked_prefill {
        return f64::INFINITY;
    }
    let steps = decode_steps(input);
    prompt_token_budget(m, input, requests) * (steps + 1.0) / (fresh_prompt(input) + scheduled_tokens(input) * steps)
}

/// Prompt tokens for which the token budget has room beside a cycle of `batch` sequences, in terms of those of the cycle.
pub fn spare_prompts(m: &Machine, input: &ServingInput, batch: f64) -> f64 {
    let (fresh, decoded) = (fresh_prompt(input), scheduled_tokens(input) * decode_steps(input));
    let spare = max_sustained_batch(m, input, batch) / batch.max(1e-9) - 1.0;
    (spare * (fresh + decoded) / fresh).max(0.0)
}

/// Number of prompts that the token budget of a step holds beside `batch` sequences that decode; below 1 if a prompt takes
/// several steps.
pub fn prompts_beside(m: &Machine, input: &ServingInput, batch: f64) -> f64 {
    let steps = decode_steps(input);
    let decoding = if input.chunked_prefill { batch * scheduled_tokens(input) * steps / (steps + 1.0) } else { 0.0 };
    (prompt_token_budget(m, input, batch) - decoding).max(1.0) / fresh_prompt(input)
}

/// Tokens of a decoding sequence in a step, including drafted ones.
fn tokens_per_decode_step(input: &ServingInput) -> f64 {
    1.0 + input.speculation.tokens
}

/// Tokens that a decoding request takes from the budget of a step: those of all of its beams.
fn scheduled_tokens(input: &ServingInput) -> f64 {
    tokens_per_decode_step(input) * input.beams.max(Count::ONE)
}

/// Prefill time of `requests` whole prompts, in steps of at most `max_num_batched_tokens`. The end of one prompt shares
/// a step with the start of the next.
pub fn prefill(m: &Machine, input: &ServingInput, requests: f64) -> StepTime {
    let total = fresh_prompt(input) * requests;
    let steps = (total / prompt_token_budget(m, input, requests)).max(1.0);
    let time = prefill_step(m, input, total / steps, requests).scaled(steps);
    if m.stages() <= 1.0 {
        return time;
    }
    let alone = prefill_alone(m, input);
    if alone.total() > time.total() { alone } else { time }
}

/// Prefill time of one prompt that shares no step with others: full steps, and one with the rest, which reads the
/// weights once more however short it is. In a pipeline, a chunk enters the first stage when the previous one leaves it
/// (`_update_after_schedule` in vLLM's scheduler), so that n chunks take n + stages - 1 stage times.
pub fn prefill_alone(m: &Machine, input: &ServingInput) -> StepTime {
    let (fresh, most) = (fresh_prompt(input), input.max_num_batched_tokens.max(1.0));
    // Tolerance, so that rounding errors do not add a step.
    let full = (fresh / most + 1e-9).floor();
    let rest = fresh - full * most;
    let short = if rest > 1e-6 * most { prefill_step(m, input, rest, 1.0) } else { StepTime::default() };
    if full < 1.0 {
        return short;
    }
    let passes = (full + m.stages() - 1.0) / m.stages();
    prefill_step(m, input, most, 1.0).scaled(passes).add(&short, 1.0 / m.stages())
}

/// Computes the cycle of `batch` sequences, each of which is replaced when it ends.
pub fn cycle(m: &Machine, input: &ServingInput, batch: f64) -> Cycle {
    cycle_of(m, input, batch, None, 0.0)
}

/// Computes the cycle of `batch` sequences with `rate` random arrivals per second.
pub fn cycle_at_rate(m: &Machine, input: &ServingInput, batch: f64, rate: f64) -> Cycle {
    cycle_of(m, input, batch, Some(rate), 0.0)
}

/// Computes the cycle of `batch` sequences if `again` times the tokens of their prompts are computed once more.
pub fn cycle_with_recomputation(m: &Machine, input: &ServingInput, batch: f64, again: f64) -> Cycle {
    cycle_of(m, input, batch, None, again)
}

fn cycle_of(m: &Machine, input: &ServingInput, batch: f64, arrivals: Option<f64>, again: f64) -> Cycle {
    let steps = decode_steps(input).max(1e-9);
    let decode = decode_tokens(input, batch);
    let decode_time = m.decode_step(&decode);
    let fresh = fresh_prompt(input);
    // Chunk: whole prompts, as many as are admitted together, limited by the token budget that decoding sequences leave.
    let decoding = if input.chunked_prefill { batch * scheduled_tokens(input) * steps / (steps + 1.0) } else { 0.0 };
    let parallel = prompts_in_parallel(m, input);
    let step_of = |admitted: f64| {
        let together = admitted * (1.0 + again);
        let room = (prompt_token_budget(m, input, together) - decoding).max(1.0);
        let chunk = (together * fresh).min(room);
        let prompts = prompts(input, chunk, together);
        let tokens = decode.with(&Tokens { chunk: prompts.chunk * uneven_share(parallel, together), ..prompts });
        let alone = m.step_with_intake(&Tokens { decode: 0.0, ..tokens });
        let mixed = if input.chunked_prefill { m.step_with_intake(&tokens) } else { decode_time.add(&alone, 1.0) };
        // After its last chunks, a step without prompts waits until they have left the pipeline.
        let tail = m.pipeline_tail(&tokens, 1.0) / admitted;
        (chunk, alone, mixed, tail)
    };
    let (mut chunk, mut alone, mut mixed_time, mut tail) = step_of(prompts_ending_together(m, input, batch, steps));
    if let Some(rate) = arrivals {
        let prompts = if input.chunked_prefill { mixed_time.total() } else { alone.total() };
        let together = prompts_arriving_together(rate, decode_time.total(), prompts);
        (chunk, alone, mixed_time, tail) = step_of(together.clamp(1.0, batch.max(1.0)));
    }
    let chunks = batch * fresh * (1.0 + again) / chunk;
    let shared = chunks.min(steps);
    let tails = batch * tail * (1.0 - shared / steps);
    let mut time = decode_time.scaled(steps - shared).add(&mixed_time, shared).add(&alone, chunks - shared + tails);
    if m.stages() > 1.0 {
        // Other sequences fill the stages that a prompt does not occupy, but do not shorten its own way through them.
        let least = prefill_alone(m, input).total() + steps * decode_time.total();
        time = time.scaled((least / time.total().max(1e-12)).max(1.0));
    }
    Cycle {
        batch,
        time,
        decode_step: decode_time.total(),
        mixed_step: mixed_time.total(),
        prefill_share: shared / steps,
        prefill: ((mixed_time.total() - decode_time.total()).max(0.0) * chunks + tails * alone.total())
            / batch.max(1e-9),
    }
}

/// Mean number of prompts that are admitted together in a closed loop, where each replaces a sequence that has ended:
/// those that end in the same step, given that at least one does. With attention groups, prompts that are held back
/// until others arrive are computed in parallel, and so are those of a burst.
fn prompts_ending_together(m: &Machine, input: &ServingInput, batch: f64, steps: f64) -> f64 {
    let batch = batch.max(1.0);
    let groups = input.layout.attention_dp > 1.0;
    let interval = match groups {
        true => admission_interval(input, batch / steps.max(1.0), steps.max(1.0)),
        false => 1.0,
    };
    let ends = (interval / steps.max(1.0)).min(1.0);
    let some = (1.0 - math::powf(1.0 - ends, batch)).max(1e-12);
    let together = batch * ends / some;
    // Decoding sequences stall for whole prompts, so that those of a burst stay together.
    let packed = groups && !input.chunked_prefill;
    if packed { together.max(1.0 + m.later_bursts * (batch - 1.0)) } else { together }
}

/// Mean number of Poisson arrivals that a step with prompts takes in: those during the step before. Steps with prompts
/// take `prompts` seconds, the others `decode`, and are followed by a step with prompts with probability
/// 1 - exp(-rate x duration): a Markov chain of two states.
fn prompts_arriving_together(rate: f64, decode: f64, prompts: f64) -> f64 {
    let [after_decode, none_after_prompts] = [1.0 - math::exp(-rate * decode), math::exp(-rate * prompts)];
    // Steps without prompts per step with prompts.
    let others = none_after_prompts / after_decode.max(1e-12);
    (rate * (prompts + others * decode)).max(1.0)
}

/// Decode time of the sequences of a cycle without the prompts of others, s.
pub fn undisturbed_decoding(cycle: &Cycle) -> f64 {
    (cycle.time.total() - cycle.batch * cycle.prefill).max(0.0)
}

/// Number of decoding sequences at `rate` requests per second, if that is below the capacity of a full batch of `limit`
/// sequences, whose cycle takes `full` seconds: the batch b with b = rate x duration(b) (Little's law).
pub fn decoding_at_rate(m: &Machine, input: &ServingInput, rate: f64, limit: f64, full: f64) -> f64 {
    // cycle(b) = decoding(b) + b x prefill(b), so that b = rate x cycle(b) has the same solution as
    // b = rate x decoding(b) / (1 - rate x prefill(b)), without a pole.
    let excess = |batch: f64| rate * cycle_at_rate(m, input, batch, rate).time.total() - batch;
    let least = 1.0f64.min(limit);
    let (mut low, mut high) = ((least, excess(least)), (limit, rate * full - limit));
    if low.1 <= 0.0 {
        let one = cycle_at_rate(m, input, least, rate);
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
