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

/// Prompt tokens that are computed again, in terms of those computed for the first time; 0 if memory does not limit a
/// batch of `batch` sequences. Evicted sequences wait until the token budget of a step has room beside those that decode,
/// so that fewer run and are evicted where it has none.
fn recomputed_share(m: &Machine, input: &ServingInput, batch: f64) -> f64 {
    if batch < m.sequences_in_memory * (1.0 - 1e-9) {
        return 0.0;
    }
    let evicted = recomputed_tokens(input) / steady_state::fresh_prompt(input);
    evicted.min(steady_state::spare_prompts(m, input, batch))
}

/// Cycle of a full batch of `batch` sequences in front of which requests wait. Evicted prompts are computed again
/// together with those that are admitted for the first time.
pub(super) fn full_cycle(m: &Machine, input: &ServingInput, batch: f64) -> Cycle {
    steady_state::cycle_with_recomputation(m, input, batch, recomputed_share(m, input, batch))
}

/// Time per request that preemption adds to a full cycle, s.
pub(super) fn seconds_per_request(m: &Machine, input: &ServingInput, cycle: &Cycle) -> f64 {
    let share = recomputed_share(m, input, cycle.batch);
    share / (1.0 + share) * cycle.prefill
}
