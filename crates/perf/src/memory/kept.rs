//! What the layers of a micro-batch keep for their backward pass, by the token.

use atlas_core::count::Count;
use std::cell::OnceCell;

use crate::training::input::{Plan, TrainingInput};
use atlas_core::plan::Recompute;

/// Bytes a token that the parts of a layer keep for their backward pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kept {
    /// Attention with its norm and residual.
    pub(super) attention: f64,
    /// Linear mixer with its norm and residual.
    pub(super) linear: f64,
    /// Dense MLP with its norm and residual.
    pub(super) mlp: f64,
    /// Mixture of experts with its norm and residual.
    pub(super) mixture: f64,
}

impl Kept {
    pub(super) fn of(i: &TrainingInput, recompute: Recompute) -> Kept {
        let a = &i.arch;
        let split = if i.sequence_parallel { i.tp } else { Count::ONE };
        let input = 2.0 * a.hidden / split;
        if recompute == Recompute::Full {
            // A layer's input, whatever it is made of: half of it for each of two blocks.
            let blocks = a.attention_share + a.mlp_share + a.linear.map_or(0.0, |linear| linear.share);
            let each = input / blocks.max(1.0);
            return Kept { attention: each, linear: each, mlp: each, mixture: each };
        }
        // Norm inputs, and the block inputs that the projections keep (in the format they multiply); selective
        // recomputation re-runs norms and activation functions, so their outputs need not be kept.
        let kept = if i.precision.is_narrow() { i.precision.bytes() } else { 2.0 };
        let again = recompute == Recompute::Selective;
        let products = if again && i.software.alternate_recompute { 0.5 } else { 1.0 };
        let masks = if i.software.dropout { a.hidden / split } else { 0.0 };
        let plain = input + if again { 0.0 } else { kept * a.hidden / split } + masks;
        let kv = a.kv_heads.max(i.tp) * a.head_dim * 2.0;
        let gate = if a.attention_gate { a.v_width() } else { 0.0 };
        let qkv = products * 2.0 * (a.q_width() + gate + kv) / i.tp;
        let attention_out = (2.0 + if kept < 2.0 { kept } else { 0.0 }) * a.v_width() / i.tp;
        let (ups, routed) = (a.mlp_matrices() - 1.0, a.top_k * i.imbalance);
        let width = products * 2.0 * ups + if again { 0.0 } else { kept };
        // A routed copy keeps its input, the up-projections and the activation's output.
        let mixture = routed * (kept * a.expert_width() + width * a.moe_ffn) / split + width * a.shared_ffn / i.tp;
        // Scores, softmax and dropout of unfused attention: 5 bytes per head and pair of positions.
        let scores = if i.software.fused_attention || recompute == Recompute::Selective {
            4.0 * a.heads / i.tp
        } else {
            5.0 * a.heads * i.seq / (i.tp * i.cp)
        };
        let indexer = a.indexer.map_or(0.0, |x| 2.0 * (x.heads + 1.0) * x.dim + 4.0 * x.top_k);
        // Projected input, and the recurrence's output; the scan's backward pass recomputes its states.
        let linear = a.linear.map_or(0.0, |x| (2.0 * x.projected() + 2.0 * kept * x.inner()) / i.tp);
        Kept {
            attention: plain + qkv + attention_out + scores + indexer,
            linear: plain + linear,
            mlp: plain + width * a.ffn / i.tp,
            mixture: plain + mixture,
        }
    }

    /// `share` of the way to `to`.
    fn toward(&self, to: &Kept, share: f64) -> Kept {
        let mix = |a: f64, b: f64| a + share * (b - a);
        Kept {
            attention: mix(self.attention, to.attention),
            linear: mix(self.linear, to.linear),
            mlp: mix(self.mlp, to.mlp),
            mixture: mix(self.mixture, to.mixture),
        }
    }

    /// The same with MLPs and mixtures recomputed from their inputs.
    fn without_mlps(self, i: &TrainingInput) -> Kept {
        let split = if i.sequence_parallel { i.tp } else { Count::ONE };
        let input = 2.0 * i.arch.hidden / split;
        Kept { mlp: input.min(self.mlp), mixture: input.min(self.mixture), ..self }
    }

    /// The largest layer.
    pub(super) fn layer(&self, i: &TrainingInput) -> f64 {
        let a = &i.arch;
        let mixer = if a.attention_share > 0.0 { self.attention } else { 0.0 };
        let mixer = mixer.max(if a.linear.is_some() { self.linear } else { 0.0 });
        let mlp = if a.moe_layers() > 0.0 { self.mixture } else { self.mlp };
        // Where mixers and MLPs are layers of their own, the larger one is a layer.
        if a.mlp_share < 1.0 { mixer.max(mlp) } else { mixer + mlp }
    }
}

/// What layers keep at each level of recomputation, worked out where a plan requests it.
pub(super) struct Levels<'a> {
    i: &'a TrainingInput,
    /// Of layers that recompute nothing.
    pub(super) whole: Kept,
    selective: OnceCell<Kept>,
    full: OnceCell<Kept>,
}

impl<'a> Levels<'a> {
    pub(super) fn of(i: &'a TrainingInput) -> Self {
        Levels { i, whole: Kept::of(i, Recompute::None), selective: OnceCell::new(), full: OnceCell::new() }
    }

    pub(super) fn under(&self, plan: &Plan) -> Kept {
        let full = || self.full.get_or_init(|| Kept::of(self.i, Recompute::Full));
        if plan.full_share >= 1.0 {
            return *full();
        }
        let mut kept = self.whole;
        if plan.selective_share > 0.0 {
            let selective = self.selective.get_or_init(|| Kept::of(self.i, Recompute::Selective));
            kept = kept.toward(selective, plan.selective_share);
        }
        if plan.mlp_share > 0.0 {
            kept = kept.toward(&kept.without_mlps(self.i), plan.mlp_share);
        }
        if plan.full_share > 0.0 {
            kept = kept.toward(full(), plan.full_share);
        }
        kept
    }
}
