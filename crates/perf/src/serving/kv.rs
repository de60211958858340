//! Number of sequences that fit in memory: what weights and the engine's own needs leave for the KV cache.

use super::input::{Layout, ServingInput};
use super::shape::Shape;
use crate::constants::Constants;
use atlas_core::count::Count;

/// KV-cache capacity of one replica.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// Bytes per rank left for the KV cache; negative if the weights do not fit.
    pub free_bytes: f64,
    /// Number of tokens that fit in the KV cache of one replica.
    pub tokens: f64,
    /// Number of sequences of mean length that fit in the KV cache of one replica.
    pub sequences: f64,
    /// Bytes per rank that the engine may use.
    pub usable_bytes: f64,
    /// Bytes per rank for context, graphs and workspace.
    pub reserve_bytes: f64,
    /// Bytes per rank of weights.
    pub weight_bytes: f64,
    /// Bytes per rank of a prefix that all sequences share.
    pub shared_bytes: f64,
    /// Bytes per rank of one sequence at its mean length, without the shared prefix.
    pub mean_sequence: f64,
    /// Number of attention groups, each with its own KV cache.
    pub groups: f64,
    /// Bytes per rank of one sequence at its full length, without the shared prefix.
    pub whole_sequence: f64,
    /// Whether the weights and at least one sequence fit in memory.
    pub fits: bool,
}

/// Capacity of one replica of `layout`.
pub fn capacity(input: &ServingInput, layout: &Layout, shape: &Shape, c: &Constants) -> Capacity {
    let acc = &input.accelerator;
    let usable_bytes = acc.capacity() * input.memory_utilization.clamp(0.05, 1.0);
    let reserve_bytes = c.reserve_bytes + c.reserve_share * acc.mem_bytes;
    let weight_bytes = shape.resident_bytes + input.image_bytes(layout) + input.draft_bytes(layout);
    // A draft model caches keys of the same tokens.
    let draft_token = input
        .of_draft_model(layout)
        .map_or(0.0, |draft| Shape::new(&draft.arch, &draft.formats, &draft.layout).kv_bytes_token);
    // The fullest pipeline stage limits the number of tokens.
    let layer_token = shape.fullest_stage * shape.kv_bytes_token;
    let token = layer_token + draft_token;
    let bytes = |length: f64| shape.keys_cached(length, input.full_window_cache) * layer_token + length * draft_token;
    let free_bytes = usable_bytes - reserve_bytes - weight_bytes;
    // Beams share the KV cache of the prompt, but not that of the output.
    // A scheduler without preemption reserves the whole output at admission; a paged one allocates it as it grows.
    let filled = if input.reserve_output { 2.0 } else { 1.0 } * input.mean_age();
    // Blocks of a shared prefix are stored once.
    let shared = input.shared_prefix();
    let shared_bytes = if shared > 0.0 { bytes(shared) } else { 0.0 };
    let prompt = input.isl - shared;
    let length = prompt + filled * input.osl * input.beams.max(Count::ONE);
    let mean_sequence = (bytes(length) + shape.fullest_stage * shape.state_bytes).max(1.0);
    let groups = layout.attention_dp.max(Count::ONE);
    // Callers assume that at least one sequence runs: measured runs did run even if the model seems not to fit.
    let sequences = ((free_bytes - shared_bytes) / mean_sequence).max(0.0) * groups;
    Capacity {
        free_bytes,
        tokens: (free_bytes / token.max(1e-9)).max(0.0) * groups,
        sequences,
        usable_bytes,
        reserve_bytes,
        weight_bytes,
        shared_bytes,
        mean_sequence,
        groups: f64::from(groups),
        whole_sequence: bytes(prompt + input.osl * input.beams.max(Count::ONE))
            + shape.fullest_stage * shape.state_bytes,
        fits: sequences >= 1.0,
    }
}
