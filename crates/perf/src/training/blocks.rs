//! The blocks of a layer: mixers and MLPs, each with its own norm and residual connection.

use super::{Plan, TrainingInput};
use crate::ops;
use crate::ops::{OpSink, Slice};

/// Kind of block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BlockKind {
    /// Self-attention.
    Attention,
    /// Cross attention to the encoder's tokens.
    CrossAttention {
        /// Encoder tokens on one accelerator.
        keys: f64,
    },
    /// Linear mixer.
    Linear,
    /// Dense MLP.
    Mlp,
    /// Mixture of experts.
    Mixture,
}

/// A kind of block in the mean layer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Kind of block.
    pub kind: BlockKind,
    /// Share of the layers that contain it.
    pub share: f64,
    /// The part of it that one accelerator computes for one micro-batch.
    pub slice: Slice,
}

impl Block {
    /// Passes the forward operators of one accelerator to `sink`.
    pub fn operators(&self, i: &TrainingInput, sink: &mut impl OpSink) {
        let (a, s) = (&i.arch, &self.slice);
        match self.kind {
            BlockKind::Attention => ops::attention(sink, a, s),
            BlockKind::CrossAttention { keys } => ops::cross_attention(sink, a, s, keys),
            BlockKind::Linear => ops::linear(sink, a, s),
            BlockKind::Mlp => ops::mlp(sink, a, s),
            BlockKind::Mixture => ops::mixture(sink, a, s),
        }
    }

    /// Share of the blocks of this kind that are recomputed from their input, so that their collectives are repeated.
    #[must_use]
    pub fn recomputed(&self, plan: Plan) -> f64 {
        match self.kind {
            BlockKind::Mlp | BlockKind::Mixture => plan.recomputed_mlps(),
            BlockKind::Attention | BlockKind::CrossAttention { .. } | BlockKind::Linear => plan.full_share,
        }
    }
}

/// Slice of a layer that one accelerator computes for one micro-batch.
pub fn slice(i: &TrainingInput) -> Slice {
    Slice {
        tokens: i.micro * i.seq / i.cp,
        context: i.arch.mean_context(i.seq),
        scored: if i.arch.causal { 0.5 * i.seq } else { i.seq },
        sequences: i.micro,
        tp: f64::from(i.tp),
        sequence_parallel: i.sequence_parallel,
        token_split: i.software.token_split,
        ep: f64::from(i.ep),
        etp: f64::from(i.etp),
        imbalance: i.imbalance,
        act_bytes: i.element_bytes(),
        kv_bytes: i.element_bytes(),
        ..Slice::default()
    }
}

/// The blocks of the mean layer in order of execution, those of an encoder first.
pub fn blocks(i: &TrainingInput) -> impl Iterator<Item = Block> {
    let a = &i.arch;
    let whole = slice(i);
    let encoder = Slice { context: i.seq, ..whole };
    let decoder = Slice { tokens: i.micro * i.target() / i.cp, context: a.mean_context(i.target()), ..whole };
    let cross = BlockKind::CrossAttention { keys: whole.tokens };
    let crossing = if a.encoder_layers > 0.0 { f64::from(a.layers) } else { 0.0 };
    let (depth, moe) = (a.depth().max(1.0), a.moe_layers());
    [
        (BlockKind::Attention, f64::from(a.encoder_layers), true),
        (BlockKind::Mlp, f64::from(a.encoder_layers), true),
        (cross, crossing, false),
        (BlockKind::Attention, a.attention_layers(), false),
        (BlockKind::Linear, a.linear_layers(), false),
        (BlockKind::Mlp, a.mlp_layers() - moe, false),
        (BlockKind::Mixture, moe, false),
    ]
    .into_iter()
    .filter(|(_, layers, _)| *layers > 0.0)
    .map(move |(kind, layers, encodes)| {
        let slice = match kind {
            BlockKind::CrossAttention { .. } => Slice { context: i.seq, ..decoder },
            _ if encodes => encoder,
            _ => decoder,
        };
        Block { kind, share: layers / depth, slice }
    })
}
