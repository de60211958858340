//! How many sequences fit: memory left for keys and values after weights and the engine's own needs.

use super::input::{Layout, ServingInput};
use super::shape::Shape;
use crate::constants::Constants;
use atlas_core::count::Count;

/// Room for keys and values on one replica.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacity {
    /// Bytes per rank left for KV; negative where the weights do not fit.
    pub free_bytes: f64,
    /// Tokens whose KV one replica can hold.
    pub tokens: f64,
    /// Sequences at their mean length that one replica can hold.
    pub sequences: f64,
    /// Bytes per rank that the engine may use.
    pub usable_bytes: f64,
    /// Bytes per rank of its own needs: context, graphs, workspace.
    pub reserve_bytes: f64,
    /// Bytes per rank of weights.
    pub weight_bytes: f64,
    /// Bytes per rank of one sequence at its mean length.
    pub mean_sequence: f64,
    /// Attention groups, each with keys and values of its own.
    pub groups: f64,
    /// Bytes per rank of one sequence at its full length.
    pub whole_sequence: f64,
    /// Whether the weights and at least one sequence fit.
    pub fits: bool,
}

/// Capacity of one replica of `layout`.
pub fn capacity(input: &ServingInput, layout: &Layout, shape: &Shape, c: &Constants) -> Capacity {
    let acc = &input.accelerator;
    let usable_bytes = acc.capacity() * input.memory_utilization.clamp(0.05, 1.0);
    let reserve_bytes = c.reserve_bytes + c.reserve_share * acc.mem_bytes;
    let weight_bytes = shape.resident_bytes + input.image_bytes(layout);
    let free_bytes = usable_bytes - reserve_bytes - weight_bytes;
    // Beams share the prompt's keys and values, not the output's.
    // A scheduler that never evicts reserves the whole output at admission; a paging one fills it as it grows.
    let filled = if input.reserve_output { 2.0 } else { 1.0 } * input.mean_age();
    let length = input.isl + filled * input.osl * input.beams.max(Count::ONE);
    let mean_sequence = (shape.kept(length, input.whole_windows) * shape.kv_bytes_token + shape.state_bytes).max(1.0);
    let groups = layout.attention_dp.max(Count::ONE);
    // What is published was measured, so a model that seems not to fit still ran: one sequence is always granted.
    let sequences = (free_bytes / mean_sequence).max(0.0) * groups;
    Capacity {
        free_bytes,
        tokens: (free_bytes / shape.kv_bytes_token.max(1e-9)).max(0.0) * groups,
        sequences,
        usable_bytes,
        reserve_bytes,
        weight_bytes,
        mean_sequence,
        groups: f64::from(groups),
        whole_sequence: shape.kept(input.isl + input.osl * input.beams.max(Count::ONE), input.whole_windows)
            * shape.kv_bytes_token,
        fits: sequences >= 1.0,
    }
}
