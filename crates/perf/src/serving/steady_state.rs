//! Continuous batching at steady state: how steps of prefill and decode share the accelerator.

use super::input::ServingInput;
use super::machine::Machine;
use super::speculative;
use super::step::{StepTime, Tokens};
use atlas_core::count::Count;
use atlas_core::math;

/// One cycle of a replica: every running sequence is prefilled once and generates its whole output.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cycle {
    /// Sequences that run together.
    pub batch: f64,
    /// Seconds by cause over the cycle.
    pub time: StepTime,
    /// Seconds of a decode-only step.
    pub decode_step: f64,
    /// Seconds of a step that also carries a prompt chunk.
    pub mixed_step: f64,
    /// Steps with a prompt chunk, over decode steps, at most 1.
    pub prefill_share: f64,
    /// Seconds that one request's prefill adds to the cycle.
    pub prefill: f64,
}

/// Prompt tokens to compute after the prefix cache.
pub fn fresh_prompt(input: &ServingInput) -> f64 {
    (input.computed(input.isl) * (1.0 - input.prefix_hit.clamp(0.0, 1.0))).max(1.0)
}

/// Keys that prompt tokens see on average: the cached prefix and half of the fresh part.
fn prompt_context(input: &ServingInput) -> f64 {
    let fresh = fresh_prompt(input);
    if input.compiled_batch.is_some() {
        // Scores beyond the diagonal are computed and masked.
        return input.computed(input.isl);
    }
    // Without a mask every token sees the whole prompt.
    let masked = if input.arch.causal { 0.5 * fresh } else { 0.0 };
    input.computed(input.isl) - masked
}

/// Mean keys a decoding sequence sees over its life.
pub fn mean_context(input: &ServingInput) -> f64 {
    if input.compiled_batch.is_some() {
        return input.computed(input.isl + input.osl);
    }
    input.isl + input.mean_age() * input.osl
}

/// Steps that a sequence decodes for.
pub fn decode_steps(input: &ServingInput) -> f64 {
    ((input.osl - 1.0).max(0.0) / speculative::tokens_per_step(&input.speculation)).max(0.0)
}

/// Tokens of a pure decode step of `batch` sequences.
pub fn decode_tokens(input: &ServingInput, batch: f64) -> Tokens {
    Tokens {
        decode: batch.max(f64::from(input.compiled_batch.unwrap_or(Count::ZERO))) * input.beams.max(Count::ONE),
        context: mean_context(input),
        verified: verified(input),
        ..Tokens::default()
    }
}

/// A step that prefills `tokens` prompt tokens of `prompts` requests and decodes nothing. `requests` are there in all: they
/// lie on no more attention groups.
fn prefill_step(m: &Machine, input: &ServingInput, tokens: f64, requests: f64) -> StepTime {
    m.step_taking_in(&prompts(input, tokens, requests))
}

/// Tokens of a step that prefills as many of the prompts of `requests` requests.
pub fn prompts(input: &ServingInput, tokens: f64, requests: f64) -> Tokens {
    Tokens {
        prefill: tokens,
        prefill_context: prompt_context(input),
        prompts: tokens / fresh_prompt(input),
        prefill_groups: requests.max(1.0),
        ..Tokens::default()
    }
}

/// Most tokens of a step with the prompts of `requests` requests: the limit holds for each of the batches that follow one
/// another through the stages, and for each attention group, which is an engine rank with a scheduler of its own.
pub fn budget(m: &Machine, input: &ServingInput, requests: f64) -> f64 {
    input.max_num_batched_tokens.max(1.0)
        * m.stages()
        * requests.clamp(1.0, f64::from(input.layout.attention_dp.max(Count::ONE)))
}

/// Sequences that find room in the steps of a scheduler that fills its budget up with prompts: decoding ones take their
/// tokens first, so that of n that live for steps + 1 steps and need fresh + steps tokens in all no more run, however many
/// places there are. Infinite where prompts have steps of their own.
pub fn sustained(m: &Machine, input: &ServingInput, requests: f64) -> f64 {
    if !input.chunked_prefill {
        return f64::INFINITY;
    }
    let steps = decode_steps(input);
    budget(m, input, requests) * (steps + 1.0) / (fresh_prompt(input) + verified(input) * steps)
}

/// Tokens of a decoding sequence in a step: its own, and those drafted.
fn verified(input: &ServingInput) -> f64 {
    1.0 + input.speculation.tokens
}

/// Prefill of `requests` whole prompts, in steps of at most `max_num_batched_tokens`: the rest of one shares a step with the next.
pub fn prefill(m: &Machine, input: &ServingInput, requests: f64) -> StepTime {
    let total = fresh_prompt(input) * requests;
    let steps = (total / budget(m, input, requests)).max(1.0);
    prefill_step(m, input, total / steps, requests).scaled(steps)
}

/// Prefill of one prompt that no other shares a step with: full steps, and one with the rest, which reads the weights once more
/// however short it is.
pub fn prefill_alone(m: &Machine, input: &ServingInput) -> StepTime {
    let (fresh, most) = (fresh_prompt(input), budget(m, input, 1.0));
    // Rounding makes no step of its own.
    let full = (fresh / most + 1e-9).floor();
    let rest = fresh - full * most;
    let short = if rest > 1e-6 * most { prefill_step(m, input, rest, 1.0) } else { StepTime::default() };
    if full < 1.0 { short } else { prefill_step(m, input, most, 1.0).scaled(full).add(&short, 1.0) }
}

/// The cycle of `batch` sequences with an endless supply of requests.
pub fn cycle(m: &Machine, input: &ServingInput, batch: f64) -> Cycle {
    let factor = speculative::draft_factor(&input.speculation);
    let steps = decode_steps(input).max(1e-9);
    let decode = decode_tokens(input, batch);
    let decode_time = m.step(&decode).scaled(factor);
    let fresh = fresh_prompt(input);
    // Chunk: whole prompts, as many as sequences end in the same step where at least one does, cut at what decoding sequences
    // leave of the token budget.
    let decoding = if input.chunked_prefill { batch * verified(input) * steps / (steps + 1.0) } else { 0.0 };
    let room = (budget(m, input, batch) - decoding).max(1.0);
    let ends = 1.0 / steps.max(1.0);
    let some = (1.0 - math::powf(1.0 - ends, batch.max(1.0))).max(1e-12);
    let chunk = (batch.max(1.0) * ends / some * fresh).min(room);
    let chunks = batch * fresh / chunk;
    let alone = prefill_step(m, input, chunk, batch);
    let mixed = decode.with(&prompts(input, chunk, batch));
    let mixed_time = if input.chunked_prefill { m.step_taking_in(&mixed) } else { decode_time.add(&alone, 1.0) };
    let shared = chunks.min(steps);
    let time = decode_time.scaled(steps - shared).add(&mixed_time, shared).add(&alone, chunks - shared);
    Cycle {
        batch,
        time,
        decode_step: decode_time.total(),
        mixed_step: mixed_time.total(),
        prefill_share: shared / steps,
        prefill: (mixed_time.total() - decode_time.total()).max(0.0) * chunks / batch.max(1e-9),
    }
}
