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

/// Passes the blocks of the mean layer to `visit` in order of execution, those of an encoder first.
pub fn for_each_block(i: &TrainingInput, mut visit: impl FnMut(&Block)) {
    let a = &i.arch;
    let whole = slice(i);
    let (depth, moe) = (a.depth().max(1.0), a.moe_layers());
    let mut block = |kind, layers: f64, slice: &Slice| {
        if layers > 0.0 {
            visit(&Block { kind, share: layers / depth, slice: *slice });
        }
    };
    let decoder = if a.encoder_layers > 0.0 {
        let encoder = Slice { context: i.seq, ..whole };
        block(BlockKind::Attention, f64::from(a.encoder_layers), &encoder);
        block(BlockKind::Mlp, f64::from(a.encoder_layers), &encoder);
        let decoder = Slice { tokens: i.micro * i.target() / i.cp, context: a.mean_context(i.target()), ..whole };
        let cross = BlockKind::CrossAttention { keys: whole.tokens };
        block(cross, f64::from(a.layers), &Slice { context: i.seq, ..decoder });
        decoder
    } else {
        whole
    };
    block(BlockKind::Attention, a.attention_layers(), &decoder);
    block(BlockKind::Linear, a.linear_layers(), &decoder);
    block(BlockKind::Mlp, a.mlp_layers() - moe, &decoder);
    block(BlockKind::Mixture, moe, &decoder);
}
