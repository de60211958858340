//! The work of one rank: bytes of weights, FLOPs per token, bytes of KV, for one pipeline stage of one replica.

use super::input::{Formats, Layout};
use crate::arch::{Architecture, Attention};
use atlas_core::count::Count;
use atlas_core::math;

/// What an indexer reads of a key, over what attention reads: 132 bytes of 1,152 (arXiv 2512.02556: 128 values in 8 bit
/// with a scale, against 576 in 16 bit).
const INDEX_SHARE: f64 = 0.115;

/// Per-rank quantities of one pipeline stage. Linear layers are grouped: attention projections, dense and shared
/// MLPs, routed experts, output layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Layers of a stage.
    pub layers: f64,
    /// Of which mixtures of experts.
    pub moe_layers: f64,
    /// Width of the residual stream.
    pub hidden: f64,
    /// Bytes of attention projections on this rank.
    pub projection_bytes: f64,
    /// FLOPs of attention projections per token of this attention group.
    pub projection_flops: f64,
    /// Bytes and FLOPs per token of dense MLPs and shared experts.
    pub mlp_bytes: f64,
    /// FLOPs of the dense MLPs per token.
    pub mlp_flops: f64,
    /// Bytes of one routed expert over all MoE layers, divided by the ranks that share the experts.
    pub expert_bytes: f64,
    /// FLOPs per token of the replica of routed experts on this rank.
    pub expert_flops: f64,
    /// Routed experts of a layer.
    pub experts: f64,
    /// Copies of an expert on average: one, and those of busy ones.
    pub copies: f64,
    /// Routed experts per token.
    pub top_k: f64,
    /// Bytes and FLOPs per sampled token of the output layer.
    pub head_bytes: f64,
    /// FLOPs of the output layer per token.
    pub head_flops: f64,
    /// Bytes of KV per token on this rank, all layers of the stage that keep all tokens, and per windowed layer share.
    pub kv_bytes_token: f64,
    /// Bytes of fixed-size state per sequence on this rank, all layers of the stage.
    pub state_bytes: f64,
    /// FLOPs of one query against one key, all layers of the stage, this rank, in decode.
    pub decode_pair_flops: f64,
    /// The same in prefill (latent attention multiplies in the expanded space).
    pub prefill_pair_flops: f64,
    /// Keys a windowed layer looks back on.
    pub window: f64,
    /// Share of the layers with the window.
    pub window_share: f64,
    /// Keys that an indexer selects.
    pub selected: Option<f64>,
    /// Hidden vectors that the residual streams of a layer read and write beyond a plain residual.
    pub stream_passes: f64,
    /// Width of a rank's slice: weights of one layer on this rank over the hidden size.
    pub slice: f64,
    /// Ranks that one expert is cut over.
    pub expert_slice: f64,
    /// Kernels of one step of this stage, as fused engines launch them: eight a layer (norm, QKV, rotary and cache,
    /// attention, output, norm, up, down with activation), five more for a mixture (route, permute, two grouped GEMMs,
    /// combine), four for its shared experts, four for latent attention (second projection, norms, absorption twice).
    pub kernels: f64,
    /// Those of them that only prompts longer than the indexer's selection need.
    pub index_kernels: f64,
    /// Kernels that only prompts need: linear mixers compute them in chunks.
    pub chunk_kernels: f64,
    /// Bytes of all weights on one rank, embedding counted.
    pub resident_bytes: f64,
}

impl Shape {
    /// What one rank holds and computes.
    pub fn new(a: &Architecture, f: &Formats, l: &Layout) -> Shape {
        let (tp, pp, adp) = (l.tp.max(Count::ONE), l.pp.max(Count::ONE), l.attention_dp.max(Count::ONE));
        let ranks = tp * adp;
        let layers = a.layers / pp;
        let moe_layers = a.moe_layers() / pp;
        let dense_layers = (a.mlp_layers() / pp - moe_layers).max(0.0);
        let shared = if a.shared_ffn > 0.0 { a.mlp_params(f64::from(a.shared_ffn)) } else { 0.0 };
        let mixers = a.attention_layers() * a.attention_params() + a.linear_layers() * a.linear_params();
        let projections = mixers / pp / tp;
        // With data-parallel attention the dense MLPs are replicated with it (arXiv 2412.19437, section 3.4).
        let mlp = (dense_layers * a.mlp_params(f64::from(a.ffn)) + moe_layers * shared) / tp;
        let router = moe_layers * a.hidden * a.experts / tp;
        let expert = if a.is_moe() { a.expert_params() / a.experts } else { 0.0 };
        let copies = if a.is_moe() { 1.0 + l.redundant / a.experts } else { 1.0 };
        let (kv_width, decode_pair, prefill_pair) = attention_widths(a, f64::from(tp));
        // What generates nothing has no output layer, and keeps no keys once a prompt is through.
        let (head, kv_width) = if a.causal { (a.vocab * a.hidden / tp / pp, kv_width) } else { (0.0, 0.0) };
        // Layers without attention keep no keys: none at all, or a linear mixer's fixed-size state.
        let (window, windowed) = match (a.is_hybrid(), a.window) {
            (true, _) => (0.0, 1.0 - a.attention_share),
            (false, Some(window)) => (f64::from(window.size), window.share),
            (false, None) => (0.0, 0.0),
        };
        let state = a.linear.map_or(0.0, |linear| linear.share * linear.state_bytes());
        // Indexer: two projections, norm, rotary, quantization, cache, scores, selection.
        let index_kernels = if a.indexer.is_some() { 8.0 * layers } else { 0.0 };
        let embedding = if a.tied && a.causal { 0.0 } else { a.vocab * a.hidden / tp / pp };
        Shape {
            layers,
            moe_layers,
            hidden: f64::from(a.hidden),
            projection_bytes: (projections + router) * f.dense_bytes,
            projection_flops: 2.0 * (projections + router),
            // Checkpoints of mixtures quantize shared experts and dense MLPs as they do routed experts.
            mlp_bytes: mlp * f.expert_bytes,
            mlp_flops: 2.0 * mlp,
            expert_bytes: moe_layers * expert * f.expert_bytes / ranks,
            expert_flops: 2.0 * moe_layers * expert * a.top_k / ranks,
            experts: f64::from(a.experts),
            copies,
            top_k: f64::from(a.top_k),
            head_bytes: head * 2.0,
            head_flops: 2.0 * head,
            kv_bytes_token: layers * kv_width * f.kv_bytes,
            state_bytes: layers * state / tp,
            decode_pair_flops: layers * decode_pair,
            prefill_pair_flops: layers * prefill_pair,
            window,
            window_share: windowed,
            selected: a.indexer.map(|indexer| f64::from(indexer.top_k)),
            // Both sublayers mix the streams in and out: about four passes over each (arXiv 2512.24880).
            stream_passes: if a.streams > 1.0 { 8.0 * a.streams } else { 0.0 },
            slice: (projections + mlp + router) / layers.max(1.0) / a.hidden.max(Count::ONE),
            // The ranks that share one expert, where experts are spread over a part of them.
            expert_slice: expert / a.hidden.max(Count::ONE) / (ranks / l.ep.max(Count::ONE)).max(1.0),
            index_kernels,
            chunk_kernels: a.linear.map_or(0.0, |linear| layers * linear.share * linear.chunk_kernels()),
            kernels: 8.0 * layers
                + 5.0 * moe_layers
                // Layers with a fixed-size state (linear attention, state space): convolution, gates, scan, norm.
                + if state > 0.0 { 6.0 * layers * windowed } else { 0.0 }
                + index_kernels
                // Streams: norm, projection, normalization of the mixing matrix, three mixes, at both sublayers; models with
                // them compress keys before they attend: projection, gate, norm, rotary.
                + if a.streams > 1.0 { 16.0 * layers } else { 0.0 }
                + if a.shared_ffn > 0.0 { 4.0 * moe_layers } else { 0.0 }
                + if matches!(a.attention, Attention::Latent { .. }) { 4.0 * layers } else { 0.0 },
            resident_bytes: (projections + router) * f.dense_bytes
                + mlp * f.expert_bytes
                + moe_layers * expert * a.experts * copies * f.expert_bytes / ranks
                + (head + embedding) * 2.0,
        }
    }

    /// Keys that a query at position `context` reads, averaged over layers.
    pub fn seen(&self, context: f64) -> f64 {
        if let Some(selected) = self.selected.filter(|selected| context > *selected) {
            return selected + INDEX_SHARE * context;
        }
        if self.window_share <= 0.0 || context <= self.window {
            return context;
        }
        self.window_share * self.window + (1.0 - self.window_share) * context
    }

    /// Keys that a sequence of `context` tokens keeps, averaged over layers. A selecting layer keeps all that it selects
    /// from, and the keys of its indexer.
    pub fn kept(&self, context: f64, whole_windows: bool) -> f64 {
        if self.selected.is_some() {
            return (1.0 + INDEX_SHARE) * context;
        }
        // Layers without attention have no window, and keep nothing.
        if whole_windows && self.window > 0.0 { context } else { self.seen(context) }
    }

    /// Distinct experts that `tokens` tokens touch, of all experts (uniform routing).
    pub fn touched(&self, tokens: f64) -> f64 {
        if self.experts <= 0.0 {
            return 0.0;
        }
        let miss = 1.0 - (self.top_k / self.experts).min(1.0);
        // (1 - k/E)^T; exp/ln keep it cheap for fractional T.
        self.experts * (1.0 - math::exp(tokens * math::ln(miss.max(1e-12))))
    }
}

/// KV elements per token and layer on one rank, FLOPs per query-key pair in decode and in prefill.
fn attention_widths(a: &Architecture, tp: f64) -> (f64, f64, f64) {
    match a.attention {
        Attention::Grouped => {
            let kv_heads = (a.kv_heads / tp).max(1.0);
            let pair = 4.0 * a.heads * a.head_dim / tp;
            (2.0 * kv_heads * a.head_dim, pair, pair)
        }
        // Latent attention keeps one compressed vector for all heads, on every rank; decode multiplies it directly
        // (weight absorption, arXiv 2405.04434, section 2.1.2).
        Attention::Latent { kv_rank, nope, rope, value, direct, .. } => {
            let heads = a.heads / tp;
            let expanded = 2.0 * heads * (nope + rope + value);
            (kv_rank + rope, if direct { expanded } else { 2.0 * heads * (2.0 * kv_rank + rope) }, expanded)
        }
    }
}
