//! The work of one rank: bytes of weights, FLOPs per token, and bytes of KV cache, for one pipeline stage of one
//! replica.

use super::input::{Formats, Layout, ServingInput};
use crate::arch::{Architecture, Attention, Linear};
use crate::constants::documented::INDEXED_KEY_SHARE;
use atlas_core::count::Count;
use atlas_core::math;

/// Quantities of one rank and one pipeline stage. Linear layers are grouped into attention projections, dense and
/// shared MLPs, routed experts, and the output layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Layers of the stage.
    pub layers: f64,
    /// Layers of the fullest stage, relative to the mean.
    pub fullest_stage: f64,
    /// Layers of the last stage, which also has the output layer, relative to the mean.
    pub last_stage: f64,
    /// Sequence mixers of the stage: attention and linear ones.
    pub mixers: f64,
    /// Mixers and MLPs of the stage, each of which reads and writes the residual stream and is all-reduced: two per
    /// layer, or one if they are layers of their own.
    pub blocks: f64,
    /// Number of those that are mixtures of experts.
    pub moe_layers: f64,
    /// Width of the residual stream.
    pub hidden: f64,
    /// Width of the tokens that routed experts receive and return.
    pub expert_width: f64,
    /// Bytes of the weights of attention projections on this rank.
    pub projection_bytes: f64,
    /// FLOPs of attention projections per token of this attention group.
    pub projection_flops: f64,
    /// Bytes of the weights of dense MLPs and shared experts.
    pub mlp_bytes: f64,
    /// FLOPs of dense MLPs and shared experts per token.
    pub mlp_flops: f64,
    /// Bytes of the weights of one routed expert over all MoE layers, divided by the ranks that share the experts.
    pub expert_bytes: f64,
    /// FLOPs of routed experts on this rank per token of the replica.
    pub expert_flops: f64,
    /// Number of routed experts in a layer.
    pub experts: f64,
    /// Mean number of copies of an expert, including redundant ones.
    pub expert_copies: f64,
    /// Routed experts per token.
    pub top_k: f64,
    /// Bytes of the weights of the output layer.
    pub head_bytes: f64,
    /// FLOPs of the output layer per sampled token.
    pub head_flops: f64,
    /// Bytes of KV cache per token on this rank, over all layers of the stage; window and selection reduce the number
    /// of tokens.
    pub kv_bytes_token: f64,
    /// Bytes of recurrent state per sequence on this rank, over all layers of the stage.
    pub state_bytes: f64,
    /// Bytes read and written per prompt token by the convolutions and scans of linear mixers.
    pub scan_bytes: f64,
    /// FLOPs of those scans per prompt token on matrix units.
    pub scan_flops: f64,
    /// As `scan_flops`, on vector units.
    pub scan_vector_flops: f64,
    /// FLOPs per query-key pair in decode on this rank, over all layers of the stage.
    pub decode_pair_flops: f64,
    /// As `decode_pair_flops`, in prefill (latent attention multiplies in the expanded space).
    pub prefill_pair_flops: f64,
    /// FLOPs on this rank of expanding the latent vector of an earlier key, over all layers of the stage. In prefill, the
    /// vectors that earlier chunks or prompts have cached are expanded again for each chunk (vLLM's
    /// `_compute_prefill_context`; SGLang's `_chunked_prefix_attn_mha`). Sparse attention does not expand them.
    pub expansion_flops: f64,
    /// Cached keys of a step from which they are expanded. Fewer are multiplied directly, as in decode.
    pub expanded_prefix: f64,
    /// Keys in the window of a sliding-window layer.
    pub window: f64,
    /// Share of the layers with a window.
    pub window_share: f64,
    /// Whether the windows are chunks that do not slide.
    pub chunked: bool,
    /// Number of keys that an indexer selects; `None` without an indexer.
    pub selected_keys: Option<f64>,
    /// Hidden vectors that a layer reads and writes for its residual streams, beyond a plain residual.
    pub stream_passes: f64,
    /// Width of a rank's slice: weights of one layer on this rank divided by the hidden size.
    pub slice_width: f64,
    /// Width of a rank's slice of one expert: its weights on this rank divided by the width of its tokens.
    pub expert_slice_width: f64,
    /// Kernels per step of this stage in engines with fused kernels: five for attention (norm, QKV, rotary and cache,
    /// attention, output), three for an MLP (norm, up, down with activation), five more for a mixture (route, permute,
    /// two grouped GEMMs, combine), four for its shared experts, four for latent attention (second projection, norms,
    /// absorption twice), and those of linear mixers.
    pub kernels: f64,
    /// Number of those that run only for prompts longer than the indexer's selection.
    pub index_kernels: f64,
    /// Additional kernels of a prefill: linear mixers compute it in chunks.
    pub chunk_kernels: f64,
    /// Bytes of all weights on a rank of the fullest stage, including the embedding on the first.
    pub resident_bytes: f64,
}

impl Shape {
    /// Computes the quantities of one rank of a deployment, whose KV cache may be sharded.
    pub fn of(input: &ServingInput, layout: &Layout) -> Shape {
        let mut shape = Shape::new(&input.arch, &input.formats, layout);
        shape.kv_bytes_token /= kv_ranks(input, layout);
        shape.expanded_prefix = f64::from(input.expanded_prefix);
        shape
    }

    /// Computes the quantities of one rank.
    pub fn new(a: &Architecture, f: &Formats, l: &Layout) -> Shape {
        let (tp, pp, adp) = (l.tp.max(Count::ONE), l.pp.max(Count::ONE), l.attention_dp.max(Count::ONE));
        let ranks = tp * adp;
        let layers = a.layers / pp;
        let moe_layers = a.moe_layers() / pp;
        let (attention, linear, mlps) = (a.attention_layers() / pp, a.linear_layers() / pp, a.mlp_layers() / pp);
        let dense_layers = (mlps - moe_layers).max(0.0);
        let shared = if a.shared_ffn > 0.0 { a.mlp_params(f64::from(a.shared_ffn)) } else { 0.0 };
        let mixers = a.attention_layers() * a.attention_params() + a.linear_layers() * a.linear_params();
        let projections = mixers / pp / tp;
        // With data-parallel attention the dense MLPs are replicated with it (arXiv 2412.19437, section 3.4).
        // Projections to the width of the experts and back.
        let latent = 2.0 * a.hidden * a.moe_hidden.unwrap_or(Count::ZERO);
        let mlp = (dense_layers * a.mlp_params(f64::from(a.ffn)) + moe_layers * (shared + latent)) / tp;
        let router = moe_layers * a.hidden * a.experts / tp;
        let expert = if a.is_moe() { a.expert_params() / a.experts } else { 0.0 };
        let copies = if a.is_moe() { 1.0 + l.redundant / a.experts } else { 1.0 };
        let (kv_width, decode_pair, prefill_pair) = attention_widths(a, f64::from(tp));
        // Models without generation have no output layer, and do not keep a KV cache after the prefill.
        let (head, kv_width) = if a.causal { (a.vocab * a.hidden / tp / pp, kv_width) } else { (0.0, 0.0) };
        // Layers without attention have no KV cache: either no state, or the fixed-size state of a linear mixer.
        let (window, windowed) = match (a.is_hybrid(), a.window) {
            (true, _) => (0.0, 1.0 - a.attention_share),
            (false, Some(window)) => (f64::from(window.size), window.share),
            (false, None) => (0.0, 0.0),
        };
        let blocks = attention + linear + mlps;
        // Heads of linear mixers are split over the ranks, as those of attention are.
        let of_mixers = |of: fn(&Linear) -> f64| a.linear.map_or(0.0, |mixer| linear * of(&mixer)) / tp;
        // Kernels of an indexer: two projections, norm, rotary, quantization, cache, scores, selection.
        let index_kernels = if a.indexer.is_some() { 8.0 * attention } else { 0.0 };
        let (fullest_stage, last_stage) = uneven_stages(f64::from(a.layers), f64::from(pp));
        let experts = moe_layers * expert * a.experts * copies / ranks;
        let layer_bytes = (projections + router) * f.dense_bytes + (mlp + experts) * f.expert_bytes;
        let embedding = a.vocab * a.hidden / tp * f.end_bytes;
        let output = head * pp * f.end_bytes;
        let resident_bytes = if pp > 1.0 {
            // Stages that do not fill up evenly leave the first and the last one with fewer layers, except that with all
            // but one stage full, the first is as well. Tied matrices are on both.
            let first = if (a.layers % pp) + 1.0 == pp { fullest_stage } else { last_stage };
            let ends = f64::max(first * layer_bytes + embedding, last_stage * layer_bytes + output);
            ends.max(if pp > 2.0 { fullest_stage * layer_bytes } else { 0.0 })
        } else {
            layer_bytes + output + if a.tied && a.causal { 0.0 } else { embedding }
        };
        Shape {
            layers,
            fullest_stage,
            last_stage,
            mixers: attention + linear,
            blocks,
            moe_layers,
            hidden: f64::from(a.hidden),
            expert_width: a.expert_width(),
            projection_bytes: (projections + router) * f.dense_bytes,
            projection_flops: 2.0 * (projections + router),
            // Checkpoints of mixtures quantize shared experts and dense MLPs like routed experts.
            mlp_bytes: mlp * f.expert_bytes,
            mlp_flops: 2.0 * mlp,
            expert_bytes: moe_layers * expert * f.expert_bytes / ranks,
            expert_flops: 2.0 * moe_layers * expert * a.top_k / ranks,
            experts: f64::from(a.experts),
            expert_copies: copies,
            top_k: f64::from(a.top_k),
            head_bytes: head * f.end_bytes,
            head_flops: 2.0 * head,
            kv_bytes_token: layers * kv_width * f.kv_bytes,
            state_bytes: of_mixers(Linear::state_bytes),
            scan_bytes: 2.0 * of_mixers(Linear::scan_elements),
            scan_flops: of_mixers(Linear::matrix_flops),
            scan_vector_flops: of_mixers(Linear::vector_flops),
            decode_pair_flops: layers * decode_pair,
            prefill_pair_flops: layers * prefill_pair,
            expansion_flops: match a.attention {
                Attention::Latent { kv_rank, nope, value, direct: false, .. } if a.indexer.is_none() => {
                    attention * 2.0 * kv_rank * (a.heads / tp) * (nope + value)
                }
                _ => 0.0,
            },
            expanded_prefix: 0.0,
            window,
            window_share: windowed,
            chunked: a.window.is_some_and(|window| window.chunked),
            selected_keys: a.indexer.map(|indexer| f64::from(indexer.top_k)),
            // Both sublayers mix the streams in and out: about four passes over each (arXiv 2512.24880).
            stream_passes: if a.streams > 1.0 { 8.0 * a.streams } else { 0.0 },
            slice_width: (projections + mlp + router) / (0.5 * blocks).max(1.0) / a.hidden.max(Count::ONE),
            // Divided by the ranks that share one expert, if experts are spread over some of the ranks.
            expert_slice_width: expert / a.expert_width().max(1.0) / (ranks / l.ep.max(Count::ONE)).max(1.0),
            index_kernels,
            chunk_kernels: a.linear.map_or(0.0, |mixer| linear * mixer.chunk_kernels()),
            kernels: 5.0 * attention
                + 3.0 * mlps
                + 5.0 * moe_layers
                + a.linear.map_or(0.0, |mixer| linear * mixer.step_kernels())
                + index_kernels
                // Residual streams: norm, projection, normalization of the mixing matrix, three mixes, in both
                // sublayers. Models with streams also compress keys before attention: projection, gate, norm, rotary.
                + if a.streams > 1.0 { 8.0 * blocks } else { 0.0 }
                + if a.shared_ffn > 0.0 { 4.0 * moe_layers } else { 0.0 }
                + if a.moe_hidden.is_some() { 2.0 * moe_layers } else { 0.0 }
                + if matches!(a.attention, Attention::Latent { .. }) { 4.0 * attention } else { 0.0 },
            resident_bytes,
        }
    }

    /// Number of keys that a query at position `context` reads, averaged over layers.
    pub fn keys_read(&self, context: f64) -> f64 {
        if let Some(selected) = self.selected_keys.filter(|selected| context > *selected) {
            return selected + INDEXED_KEY_SHARE * context;
        }
        // Sequences are at a random place in their chunk.
        self.keys_within(context, if self.chunked { 0.5 * self.window } else { self.window })
    }

    /// Keys averaged over layers, those with a window having `local` keys once `context` exceeds it.
    fn keys_within(&self, context: f64, local: f64) -> f64 {
        if self.window_share <= 0.0 || context <= self.window {
            return context;
        }
        self.window_share * local + (1.0 - self.window_share) * context
    }

    /// Mean number of keys that queries at positions around `context` read, averaged over layers. The positions extend
    /// evenly over `span` tokens.
    pub fn mean_keys_read(&self, context: f64, span: f64) -> f64 {
        let (first, last) = (context - 0.5 * span, context + 0.5 * span);
        // Share of the positions beyond `most`, and the mean of min(position, most).
        let within = |most: f64| {
            let beyond = ((last - most) / span.max(1e-9)).clamp(0.0, 1.0);
            let below = 0.5 * (1.0 - beyond) * (first + last.min(most));
            (beyond, below + beyond * most)
        };
        if let Some(selected) = self.selected_keys {
            let (beyond, keys) = within(selected);
            return keys + INDEXED_KEY_SHARE * beyond * 0.5 * (first.max(selected) + last);
        }
        let local = match self.chunked {
            true if self.window > 0.0 => {
                // Sum over all earlier positions: those of whole chunks, and of a part of one.
                let up_to = |at: f64| {
                    let (chunks, rest) = ((at / self.window).floor(), at % self.window);
                    0.5 * (chunks * self.window * self.window + rest * rest)
                };
                if span > 0.0 { (up_to(last) - up_to(first.max(0.0))) / span } else { context % self.window }
            }
            _ => within(self.window).1,
        };
        self.window_share * local + (1.0 - self.window_share) * context
    }

    /// Number of keys cached for a sequence of `context` tokens, averaged over layers. A layer with an indexer keeps
    /// all keys, and those of the indexer.
    pub fn keys_cached(&self, context: f64, full_window_cache: bool) -> f64 {
        if self.selected_keys.is_some() {
            return (1.0 + INDEXED_KEY_SHARE) * context;
        }
        // Layers without attention have window 0 and keep nothing. Those with chunks have room for a whole one.
        if full_window_cache && self.window > 0.0 { context } else { self.keys_within(context, self.window) }
    }

    /// Bytes on this rank that a sequence of `context` tokens keeps: its keys and recurrent states.
    pub fn sequence_bytes(&self, context: f64, full_window_cache: bool) -> f64 {
        self.keys_cached(context, full_window_cache) * self.kv_bytes_token + self.state_bytes
    }

    /// Expected number of distinct experts that `tokens` tokens are routed to (uniform routing).
    pub fn active_experts(&self, tokens: f64) -> f64 {
        if self.experts <= 0.0 {
            return 0.0;
        }
        let miss = 1.0 - (self.top_k / self.experts).min(1.0);
        // (1 - k/E)^T; exp/ln make it cheap for fractional T.
        self.experts * (1.0 - math::exp(tokens * math::ln(miss.max(1e-12))))
    }
}

/// Layers of the fullest and of the last of `stages` stages, relative to the mean. Layers left over go to stages before
/// the last one (vLLM's and SGLang's `get_pp_indices`).
fn uneven_stages(layers: f64, stages: f64) -> (f64, f64) {
    let mean = layers / stages;
    if mean <= 1.0 { (1.0, 1.0) } else { (mean.ceil() / mean, mean.floor() / mean) }
}

/// Ranks over which the KV cache of a sequence is sharded; at most the number of ranks that would hold copies of it.
pub(super) fn kv_ranks(input: &ServingInput, layout: &Layout) -> f64 {
    let alike = match input.arch.attention {
        Attention::Latent { .. } => f64::from(layout.tp),
        Attention::Grouped => layout.tp / input.arch.kv_heads.max(Count::ONE),
    };
    f64::from(input.context_ranks).min(alike).max(1.0)
}

/// Returns the KV elements per token and layer on one rank, and the FLOPs per query-key pair in decode and in prefill.
fn attention_widths(a: &Architecture, tp: f64) -> (f64, f64, f64) {
    match a.attention {
        Attention::Grouped => {
            let kv_heads = (a.kv_heads / tp).max(1.0);
            let pair = 4.0 * a.heads * a.head_dim / tp;
            (2.0 * kv_heads * a.head_dim, pair, pair)
        }
        // Latent attention caches one compressed vector for all heads, on every rank. Decode multiplies it directly
        // (weight absorption, arXiv 2405.04434, section 2.1.2).
        Attention::Latent { kv_rank, nope, rope, value, direct, .. } => {
            let heads = a.heads / tp;
            let expanded = 2.0 * heads * (nope + rope + value);
            (kv_rank + rope, if direct { expanded } else { 2.0 * heads * (2.0 * kv_rank + rope) }, expanded)
        }
    }
}
