//! The operators of a layer, with FLOPs, bytes and kernels: forward, backward and decode.
//!
//! FLOP conventions: a multiply-add counts as two. *Model* FLOPs (MFU; PaLM, arXiv 2204.02311, appendix B) exclude
//! recomputation, *hardware* FLOPs (HFU; Korthikanti et al., arXiv 2205.05198, section 4.4) include it.

use crate::arch::{Architecture, Attention, Head};
use crate::roofline::Gemm;
use crate::traits::TokenSplit;
use atlas_core::count::Count;
use atlas_core::math;

/// Kind of operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpName {
    /// Normalization.
    Norm,
    /// Projections to queries, keys and values (in latent attention: the compressions).
    QueryKeyValue,
    /// Up-projection from the compressed vector to keys and values in latent attention.
    KeyValueUp,
    /// Rotary position embedding and reshapes.
    Rotary,
    /// Scores, softmax and weighted values.
    Attention,
    /// Projections and scores of the indexer of sparse attention.
    Indexer,
    /// Input projections of a linear mixer.
    MixerIn,
    /// Short convolution, recurrence and norm of a linear mixer.
    Recurrence,
    /// Output projection of a linear mixer.
    MixerOut,
    /// Attention's output projection.
    OutputProjection,
    /// Residual addition.
    Residual,
    /// Router: scores of the experts.
    Router,
    /// Top-k, permutation and unpermutation of tokens.
    Dispatch,
    /// Up (and gate) projection.
    MlpUp,
    /// Activation function and gate.
    Activation,
    /// Down projection.
    MlpDown,
    /// Projections to and from the width of experts that is smaller than the hidden size.
    Latent,
    /// Shared experts' up projection.
    SharedUp,
    /// Shared experts' down projection.
    SharedDown,
    /// Embedding look-up.
    Embedding,
    /// Output layer.
    Logits,
    /// Cross entropy.
    Loss,
}

/// Work of an operator, from which its time is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// Dense or batched (grouped) matrix multiplication; the bytes follow from the shape.
    Gemm(Gemm),
    /// Fused attention: FLOPs at the attention's share of the peak, or memory traffic.
    Attention {
        /// Floating-point operations.
        flops: f64,
        /// Device-memory traffic, bytes.
        bytes: f64,
    },
    /// Arithmetic in fp32 on vector units.
    Vector {
        /// Floating-point operations.
        flops: f64,
    },
    /// Element-wise, normalization, gather, scatter: memory traffic only.
    Traffic {
        /// Device-memory traffic, bytes.
        bytes: f64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
/// One operator of a layer.
pub struct Op {
    /// Kind of operator.
    pub name: OpName,
    /// Work, from which its time is computed.
    pub work: Work,
    /// Kernels of the forward pass.
    pub kernels: f64,
}

impl Op {
    /// Floating-point operations.
    pub fn flops(&self) -> f64 {
        match self.work {
            Work::Gemm(g) => g.flops(),
            Work::Attention { flops, .. } | Work::Vector { flops } => flops,
            Work::Traffic { .. } => 0.0,
        }
    }
}

/// Receives operators in order.
pub trait OpSink {
    /// Receives one operator.
    fn push(&mut self, op: Op);
}

impl OpSink for Vec<Op> {
    fn push(&mut self, op: Op) {
        Vec::push(self, op);
    }
}

fn push(sink: &mut impl OpSink, name: OpName, work: Work, kernels: f64) {
    sink.push(Op { name, work, kernels });
}

/// The slice of a layer that one accelerator computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slice {
    /// Input tokens (after context parallelism, before tensor parallelism).
    pub tokens: f64,
    /// Mean number of keys per token (see [`Architecture::mean_context`]).
    pub context: f64,
    /// Mean number of keys per token that an indexer scores.
    pub scored: f64,
    /// Distinct sequences among the tokens, each with its own KV cache.
    pub sequences: f64,
    /// Tensor-parallel ranks.
    pub tp: f64,
    /// Whether norms, residuals and dropout are also split over the tensor-parallel ranks.
    pub sequence_parallel: bool,
    /// What tensor-parallel ranks compute for their own tokens only under sequence parallelism.
    pub token_split: TokenSplit,
    /// Expert-parallel ranks.
    pub ep: f64,
    /// Tensor-parallel ranks inside an expert.
    pub etp: f64,
    /// Load of the experts of the busiest rank relative to the mean.
    pub imbalance: f64,
    /// Bytes of an element of an activation.
    pub act_bytes: f64,
    /// Bytes of an element of the KV cache.
    pub kv_bytes: f64,
    /// Whether the slice is a decode step, which reads the KV cache: latent attention is absorbed, attention is bound
    /// by the cache.
    pub decode: bool,
}

impl Default for Slice {
    fn default() -> Self {
        Slice {
            tokens: 1.0,
            context: 1.0,
            scored: 1.0,
            sequences: 1.0,
            tp: 1.0,
            sequence_parallel: false,
            token_split: TokenSplit::Routing,
            ep: 1.0,
            etp: 1.0,
            imbalance: 1.0,
            act_bytes: 2.0,
            kv_bytes: 2.0,
            decode: false,
        }
    }
}

fn push_gemm(sink: &mut impl OpSink, name: OpName, m: f64, n: f64, k: f64) {
    push(sink, name, Work::Gemm(Gemm::new(m, n, k)), 1.0);
}

/// Attention block: norm, projections, rotary embedding, attention, output projection, residual.
pub fn attention(sink: &mut impl OpSink, a: &Architecture, s: &Slice) {
    let (h, t, b) = (f64::from(a.hidden), s.tokens, s.act_bytes);
    let plain = t * h * b / if s.sequence_parallel { s.tp } else { 1.0 };
    push(sink, OpName::Norm, Work::Traffic { bytes: 2.0 * plain }, 1.0);
    // Key-value heads are replicated if there are fewer than tensor-parallel ranks.
    let kv_heads = (a.kv_heads / s.tp).max(1.0);
    match a.attention {
        Attention::Grouped => {
            let gate = if a.attention_gate { a.v_width() } else { 0.0 };
            let n = (a.q_width() + gate) / s.tp + 2.0 * kv_heads * a.head_dim;
            push_gemm(sink, OpName::QueryKeyValue, t, n, h);
            push(sink, OpName::Rotary, Work::Traffic { bytes: 2.0 * t * n * b }, 2.0);
        }
        Attention::Latent { q_rank, kv_rank, nope, rope, value, direct, .. } => {
            // The compressions are small, and computed on every tensor-parallel rank unless tokens are split.
            let splits = s.sequence_parallel && s.token_split == TokenSplit::RoutingAndCompressions;
            let own = if splits { t / s.tp } else { t };
            push_gemm(sink, OpName::QueryKeyValue, own, q_rank.unwrap_or(Count::ZERO) + kv_rank + rope, h);
            push_gemm(sink, OpName::QueryKeyValue, t, a.q_width() / s.tp, a.query_source());
            let heads = a.heads / s.tp;
            if direct {
                // All heads attend to the compressed vector.
            } else if s.decode {
                // Absorbed: queries are projected to the latent space, and latent outputs to values, head by head.
                let up = Gemm { m: t, n: f64::from(kv_rank), k: f64::from(nope), batch: heads };
                let down = Gemm { m: t, n: f64::from(value), k: f64::from(kv_rank), batch: heads };
                push(sink, OpName::KeyValueUp, Work::Gemm(up), 1.0);
                push(sink, OpName::KeyValueUp, Work::Gemm(down), 1.0);
            } else {
                push_gemm(sink, OpName::KeyValueUp, t, heads * (nope + value), f64::from(kv_rank));
            }
            let n = (a.q_width() + a.v_width()) / s.tp;
            push(sink, OpName::Rotary, Work::Traffic { bytes: 2.0 * t * n * b }, 4.0);
        }
    }
    if let Some(x) = a.indexer {
        // Small, and computed on every tensor-parallel rank: queries, key and weights, then a score per head and key.
        push_gemm(sink, OpName::Indexer, t, x.heads * x.dim, a.query_source());
        push_gemm(sink, OpName::Indexer, t, x.dim + x.heads, h);
        let bytes = t * (x.heads + 1.0) * x.dim * b + t * x.top_k * 4.0;
        push(sink, OpName::Indexer, Work::Attention { flops: 2.0 * t * s.scored * x.heads * x.dim, bytes }, 2.0);
    }
    push(sink, OpName::Attention, attention_work(a, s, kv_heads), 1.0);
    if let Attention::Latent { output: Some(x), .. } = a.attention {
        // One GEMM per group, all of the same shape.
        let ranks = x.rank * x.groups / s.tp;
        push_gemm(sink, OpName::OutputProjection, t, ranks, a.v_width() / x.groups);
        push_gemm(sink, OpName::OutputProjection, t, h, ranks);
    } else {
        push_gemm(sink, OpName::OutputProjection, t, h, a.v_width() / s.tp);
    }
    push(sink, OpName::Residual, residual(a, plain), residual_kernels(a));
}

/// Adds a block's output to the residual. With several residual streams, these are mixed into the block's input and out
/// of its output: about four passes over each (hyper-connections, arXiv 2512.24880).
fn residual(a: &Architecture, plain: f64) -> Work {
    let streams = if a.streams > 1.0 { 4.0 * a.streams } else { 0.0 };
    Work::Traffic { bytes: (3.0 + streams) * plain }
}

/// Number of kernels of [`residual`]. With several streams: norm, projection, normalization of the mixing matrix, three
/// mixes.
fn residual_kernels(a: &Architecture) -> f64 {
    if a.streams > 1.0 { 7.0 } else { 1.0 }
}

fn attention_work(a: &Architecture, s: &Slice, kv_heads: f64) -> Work {
    let (t, b) = (s.tokens, s.act_bytes);
    let (width, cached) = match a.attention {
        Attention::Latent { kv_rank, rope, direct: false, .. } if s.decode => {
            (a.heads / s.tp * (2.0 * kv_rank + rope), kv_rank + rope)
        }
        Attention::Latent { kv_rank, rope, direct: true, .. } => ((a.q_width() + a.v_width()) / s.tp, kv_rank + rope),
        Attention::Latent { .. } => ((a.q_width() + a.v_width()) / s.tp, (a.q_width() + a.v_width()) / s.tp),
        Attention::Grouped => ((a.q_width() + a.v_width()) / s.tp, 2.0 * kv_heads * a.head_dim),
    };
    let flops = 2.0 * t * s.context * width;
    let cache = if s.decode { s.sequences * s.context * cached * s.kv_bytes } else { t * cached * s.kv_bytes };
    Work::Attention { flops, bytes: cache + 2.0 * t * a.q_width() / s.tp * b }
}

/// Cross attention of a decoder layer: keys and values are projected from `keys` encoder tokens; each query attends to
/// `s.context` of them.
pub fn cross_attention(sink: &mut impl OpSink, a: &Architecture, s: &Slice, keys: f64) {
    let (h, t, b) = (f64::from(a.hidden), s.tokens, s.act_bytes);
    let plain = t * h * b / if s.sequence_parallel { s.tp } else { 1.0 };
    push(sink, OpName::Norm, Work::Traffic { bytes: 2.0 * plain }, 1.0);
    let (q, kv) = (a.q_width() / s.tp, a.kv_width() / s.tp);
    push_gemm(sink, OpName::QueryKeyValue, t, q, h);
    push_gemm(sink, OpName::QueryKeyValue, keys, kv, h);
    let flops = 2.0 * t * s.context * (a.q_width() + a.v_width()) / s.tp;
    push(sink, OpName::Attention, Work::Attention { flops, bytes: (2.0 * t * q + keys * kv) * b }, 1.0);
    push_gemm(sink, OpName::OutputProjection, t, h, a.v_width() / s.tp);
    push(sink, OpName::Residual, Work::Traffic { bytes: 3.0 * plain }, 1.0);
}

/// Block of a linear mixer: norm, projection, convolution and recurrence, projection, residual.
pub fn linear(sink: &mut impl OpSink, a: &Architecture, s: &Slice) {
    let Some(x) = a.linear else { return };
    let (h, t, b) = (f64::from(a.hidden), s.tokens, s.act_bytes);
    let plain = t * h * b / if s.sequence_parallel { s.tp } else { 1.0 };
    push(sink, OpName::Norm, Work::Traffic { bytes: 2.0 * plain }, 1.0);
    push_gemm(sink, OpName::MixerIn, t, x.input_projection_width() / s.tp, h);
    let bytes = t * x.scan_elements() * b / s.tp;
    push(sink, OpName::Recurrence, Work::Traffic { bytes }, 4.0);
    if x.matrix_flops() > 0.0 {
        push(sink, OpName::Recurrence, Work::Attention { flops: t * x.matrix_flops() / s.tp, bytes: 0.0 }, 4.0);
    }
    if x.vector_flops() > 0.0 {
        push(sink, OpName::Recurrence, Work::Vector { flops: t * x.vector_flops() / s.tp }, 1.0);
    }
    push_gemm(sink, OpName::MixerOut, t, h, x.inner_width() / s.tp);
    push(sink, OpName::Residual, Work::Traffic { bytes: 3.0 * plain }, 1.0);
}

/// MLP block of a dense layer: norm, up (and gate), activation, down, residual.
pub fn mlp(sink: &mut impl OpSink, a: &Architecture, s: &Slice) {
    let (h, t, b) = (f64::from(a.hidden), s.tokens, s.act_bytes);
    let plain = t * h * b / if s.sequence_parallel { s.tp } else { 1.0 };
    let ffn = a.ffn / s.tp;
    let ups = a.mlp_matrices() - 1.0;
    push(sink, OpName::Norm, Work::Traffic { bytes: 2.0 * plain }, 1.0);
    push_gemm(sink, OpName::MlpUp, t, ups * ffn, h);
    push(sink, OpName::Activation, Work::Traffic { bytes: (ups + 1.0) * t * ffn * b }, 1.0);
    push_gemm(sink, OpName::MlpDown, t, h, ffn);
    push(sink, OpName::Residual, residual(a, plain), residual_kernels(a));
}

/// MLP block of a MoE layer: norm, router, dispatch, grouped experts, combine, shared experts, residual.
pub fn mixture(sink: &mut impl OpSink, a: &Architecture, s: &Slice) {
    let (h, b) = (f64::from(a.hidden), s.act_bytes);
    let t = s.tokens;
    let plain = t * h * b / if s.sequence_parallel { s.tp } else { 1.0 };
    let ups = a.mlp_matrices() - 1.0;
    // Tokens are split over the tensor-parallel ranks before dispatch.
    let own = if s.sequence_parallel { t / s.tp } else { t };
    push(sink, OpName::Norm, Work::Traffic { bytes: 2.0 * plain }, 1.0);
    let routed = if s.token_split == TokenSplit::Norms { t } else { own };
    push_gemm(sink, OpName::Router, routed, f64::from(a.experts), h);
    // Top-k, sort, permute and unpermute: every routed copy is written and read twice.
    let e = a.expert_width();
    if a.moe_hidden.is_some() {
        push_gemm(sink, OpName::Latent, own, e, h);
        push_gemm(sink, OpName::Latent, own, h, e);
    }
    push(sink, OpName::Dispatch, Work::Traffic { bytes: 4.0 * own * a.top_k * e * b }, 4.0);
    // The tokens of all tensor-parallel ranks are spread over ep * etp ranks; the mean share of a rank is unchanged.
    let shards = (s.ep * s.etp).max(1.0);
    let local = (a.experts / s.ep).max(1.0);
    let sent = own * a.top_k * s.imbalance * if s.sequence_parallel { s.etp } else { s.etp.max(1.0) };
    // In decode, only the experts chosen by the few tokens are read.
    let touched = local * (1.0 - math::powf(1.0 - a.top_k / a.experts, own * shards / s.etp));
    let per_expert = sent / touched.max(1e-9);
    let ffn = a.moe_ffn / s.etp;
    let up = Gemm { m: per_expert, n: ups * ffn, k: e, batch: touched };
    let down = Gemm { m: per_expert, n: e, k: ffn, batch: touched };
    push(sink, OpName::MlpUp, Work::Gemm(up), 1.0);
    push(sink, OpName::Activation, Work::Traffic { bytes: (ups + 1.0) * sent * ffn * b }, 1.0);
    push(sink, OpName::MlpDown, Work::Gemm(down), 1.0);
    if a.shared_ffn > 0.0 {
        let shared = a.shared_ffn / s.tp;
        push_gemm(sink, OpName::SharedUp, t, ups * shared, h);
        push_gemm(sink, OpName::SharedDown, t, h, shared);
    }
    push(sink, OpName::Residual, residual(a, plain), residual_kernels(a));
}

/// Operators of the output layer and the loss, for `tokens` positions that pass it, with `element` bytes per activation.
pub fn head(sink: &mut impl OpSink, a: &Architecture, tokens: f64, tp: f64, element: f64) {
    let vocab = a.head_width() / tp;
    push(sink, OpName::Norm, Work::Traffic { bytes: 2.0 * element * tokens * a.hidden }, 1.0);
    if a.head == Head::Masked {
        // A square matrix, its activation function and norm precede the logits.
        push_gemm(sink, OpName::Logits, tokens, f64::from(a.hidden), f64::from(a.hidden));
        push(sink, OpName::Activation, Work::Traffic { bytes: 4.0 * element * tokens * a.hidden }, 2.0);
    }
    push_gemm(sink, OpName::Logits, tokens, vocab, f64::from(a.hidden));
    // Cross entropy in fp32: logits are read for the maximum, the sum and the gradient.
    push(sink, OpName::Loss, Work::Traffic { bytes: 2.0 * element * tokens * vocab }, 6.0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FLOPs of a layer with attention.
    fn layer_flops(a: &Architecture, s: &Slice) -> f64 {
        let mut ops = Vec::new();
        attention(&mut ops, a, s);
        if a.is_moe() {
            mixture(&mut ops, a, s)
        } else {
            mlp(&mut ops, a, s)
        }
        ops.iter().map(Op::flops).sum()
    }

    #[test]
    fn forward_flops_are_twice_the_weights_plus_attention() {
        let a = Architecture::default();
        let s = Slice { tokens: 4096.0, context: 2048.0, ..Slice::default() };
        let per_layer = a.attention_params() + a.mlp_params(f64::from(a.ffn));
        let expected = 4096.0 * (2.0 * per_layer + 4.0 * 2048.0 * a.q_width());
        assert!((layer_flops(&a, &s) / expected - 1.0).abs() < 1e-9);
    }

    #[test]
    fn tensor_parallel_ranks_share_the_flops() {
        let a = Architecture::default();
        let one = Slice { tokens: 4096.0, context: 2048.0, ..Slice::default() };
        let eight = Slice { tp: 8.0, ..one };
        let ratio = layer_flops(&a, &one) / layer_flops(&a, &eight);
        assert!((ratio - 8.0).abs() < 1e-9);
    }

    #[test]
    fn expert_flops_do_not_depend_on_expert_parallelism() {
        let a = Architecture {
            experts: Count::new(64),
            top_k: Count::new(8),
            moe_ffn: Count::new(1024),
            ..Architecture::default()
        };
        let one = Slice { tokens: 8192.0, context: 4096.0, ..Slice::default() };
        let eight = Slice { ep: 8.0, ..one };
        let (x, y) = (layer_flops(&a, &one), layer_flops(&a, &eight));
        assert!((x / y - 1.0).abs() < 1e-9);
    }
}
