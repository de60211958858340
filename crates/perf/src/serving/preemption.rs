//! Preemption: a scheduler that allocates the KV cache as sequences grow fills it with prompts as soon as a sequence ends,
//! and evicts the youngest sequences until the next one ends. Their prompts are computed again (vLLM's scheduler).

use super::input::{HostOverlap, ServingInput};
use super::machine::Machine;
use super::steady_state::{self, Cycle};

/// Tokens that are computed again per request, if requests wait for memory: between the ends of two sequences, the others
/// grow by one mean output, for which as many tokens are evicted. Schedulers that run ahead of the accelerator cache
/// prefixes, so that an evicted sequence loses only the tokens that were overwritten before it is admitted again: half of
/// the sequence that was evicted last.
fn recomputed_tokens(input: &ServingInput) -> f64 {
    let (isl, grown) = (input.isl.max(1.0), (input.osl - 1.0).max(0.0));
    if input.host == HostOverlap::None {
        return grown;
    }
    if grown < isl { 0.5 * grown * grown / isl } else { grown - 0.5 * isl }
}

/// Prefill time that preemption adds to a cycle, in terms of that of all its prompts; 0 if memory does not limit the batch.
fn added_share(m: &Machine, input: &ServingInput, batch: f64) -> f64 {
    let limited = batch >= m.sequences_in_memory * (1.0 - 1e-9);
    if limited { recomputed_tokens(input) / steady_state::fresh_prompt(input) } else { 0.0 }
}

/// Cycle of a full batch of `batch` sequences in front of which requests wait.
pub(super) fn full_cycle(m: &Machine, input: &ServingInput, batch: f64) -> Cycle {
    let mut cycle = steady_state::cycle(m, input, batch);
    let share = added_share(m, input, batch);
    if share > 0.0 {
        let decoding =
            m.decode_step(&steady_state::decode_tokens(input, batch)).scaled(steady_state::decode_steps(input));
        let prompts = cycle.time.add(&decoding, -1.0);
        cycle.time = cycle.time.add(&prompts, share);
    }
    cycle
}

/// Prefill time that preemption adds per request of a batch of `batch` sequences, s.
pub(super) fn seconds_per_request(m: &Machine, input: &ServingInput, cycle: &Cycle) -> f64 {
    added_share(m, input, cycle.batch) * cycle.prefill
}
