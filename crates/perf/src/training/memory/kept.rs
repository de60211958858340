//! Activations that the layers of a micro-batch keep for the backward pass, per token.

use atlas_core::count::Count;
use std::cell::OnceCell;

use crate::accelerator::Precision;
use crate::training::input::{Plan, TrainingInput};
use atlas_core::plan::Recompute;

/// Bytes per token that the parts of a layer keep for the backward pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct KeptActivations {
    /// Attention, including its norm and residual.
    pub(super) attention: f64,
    /// Linear mixer, including its norm and residual.
    pub(super) linear: f64,
    /// Dense MLP, including its norm and residual.
    pub(super) mlp: f64,
    /// Mixture of experts, including its norm and residual.
    pub(super) mixture: f64,
}

impl KeptActivations {
    /// Bytes kept by layers in `precision`.
    fn of(i: &TrainingInput, precision: Precision, recompute: Recompute) -> KeptActivations {
        let a = &i.arch;
        let split = if i.sequence_parallel { i.tp } else { Count::ONE };
        let wide = i.element_bytes();
        let input = wide * a.hidden / split;
        if recompute == Recompute::Full {
            // The input of a layer, whatever the layer consists of, split evenly over its blocks.
            let blocks = a.attention_share + a.mlp_share + a.linear.map_or(0.0, |linear| linear.share);
            let each = input / blocks.max(1.0);
            return KeptActivations { attention: each, linear: each, mlp: each, mixture: each };
        }
        // Inputs of norms, and the block inputs that the projections keep (in the format of their GEMMs). Selective
        // recomputation recomputes norms and activation functions, so their outputs are not kept.
        let kept = if precision.is_narrow() { precision.bytes() } else { wide };
        let again = recompute == Recompute::Selective;
        // Shares of the outputs of dense and grouped products that are kept.
        let how = i.software.selective_recompute;
        let (products, grouped) = match (again && how.alternates(), precision.is_narrow()) {
            (false, _) => (1.0, 1.0),
            (true, true) => (1.0 - how.share_of_8_bit(), 1.0 - how.share_of_grouped()),
            (true, false) => (0.5, 1.0 - how.share_of_grouped()),
        };
        let masks = if i.software.dropout { a.hidden / split } else { 0.0 };
        // A multiplication keeps its input only for the gradient of its weights or of their adapters.
        let [of_attention, of_others] = i.trained_matrices().map(|trained| if trained { kept } else { 0.0 });
        let plain = |kept: f64| input + if again { 0.0 } else { kept * a.hidden / split } + masks;
        let kv = a.kv_heads.max(i.tp) * a.head_dim * 2.0;
        let gate = if a.attention_gate { a.v_width() } else { 0.0 };
        let qkv = products * wide * (a.q_width() + gate + kv) / i.tp;
        // The backward pass of attention needs its output, too.
        let attention_out = (wide + if kept < 2.0 { of_attention } else { 0.0 }) * a.v_width() / i.tp;
        let (ups, routed) = (a.mlp_matrices() - 1.0, a.top_k * i.imbalance);
        let width = |products: f64| products * wide * ups + if again { 0.0 } else { of_others };
        // A routed copy keeps its input, the up-projections and the output of the activation function. Ranks that share
        // an expert all keep the input.
        let mixture = routed * (of_others * a.expert_width() * i.etp + width(grouped) * a.moe_ffn) / split
            + width(products) * a.shared_ffn / i.tp;
        // Scores, softmax and dropout mask of unfused attention: 5 bytes per head and pair of positions in 16 bit.
        let scores = if i.software.fused_attention || recompute == Recompute::Selective {
            4.0 * a.heads / i.tp
        } else {
            (2.0 * wide + 1.0) * a.heads * i.seq / (i.tp * i.cp)
        };
        let indexer = a.indexer.map_or(0.0, |x| 2.0 * (x.heads + 1.0) * x.dim + 4.0 * x.top_k);
        // Projected input, and the output of the recurrence. The backward pass of the scan recomputes its states.
        let linear =
            a.linear.map_or(0.0, |x| (wide * x.input_projection_width() + 2.0 * kept * x.inner_width()) / i.tp);
        KeptActivations {
            attention: plain(of_attention) + qkv + attention_out + scores + indexer,
            linear: plain(of_others) + linear,
            mlp: plain(of_others) + width(products) * a.ffn / i.tp,
            mixture: plain(of_others) + mixture,
        }
    }

    /// Interpolates from `self` (`share` = 0) to `to` (`share` = 1).
    fn interpolate(&self, to: &KeptActivations, share: f64) -> KeptActivations {
        let mix = |a: f64, b: f64| a + share * (b - a);
        KeptActivations {
            attention: mix(self.attention, to.attention),
            linear: mix(self.linear, to.linear),
            mlp: mix(self.mlp, to.mlp),
            mixture: mix(self.mixture, to.mixture),
        }
    }

    /// The bytes with MLPs and mixtures recomputed from their inputs.
    fn without_mlps(self, i: &TrainingInput) -> KeptActivations {
        let split = if i.sequence_parallel { i.tp } else { Count::ONE };
        let input = i.element_bytes() * i.arch.hidden / split;
        KeptActivations { mlp: input.min(self.mlp), mixture: input.min(self.mixture), ..self }
    }

    /// Bytes per token of the largest layer.
    pub(super) fn layer(&self, i: &TrainingInput) -> f64 {
        let a = &i.arch;
        let mixer = if a.attention_share > 0.0 { self.attention } else { 0.0 };
        let mixer = mixer.max(if a.linear.is_some() { self.linear } else { 0.0 });
        let mlp = if a.moe_layers() > 0.0 { self.mixture } else { self.mlp };
        // If mixers and MLPs are separate layers, the larger one is the largest layer.
        if a.mlp_share < 1.0 { mixer.max(mlp) } else { mixer + mlp }
    }
}

/// Kept bytes of layers in one format at each level of recomputation, computed on demand.
struct RecomputeLevels<'a> {
    i: &'a TrainingInput,
    precision: Precision,
    /// Layers without recomputation.
    whole: KeptActivations,
    selective: OnceCell<KeptActivations>,
    full: OnceCell<KeptActivations>,
}

impl<'a> RecomputeLevels<'a> {
    fn of(i: &'a TrainingInput, precision: Precision) -> Self {
        RecomputeLevels {
            i,
            precision,
            whole: KeptActivations::of(i, precision, Recompute::None),
            selective: OnceCell::new(),
            full: OnceCell::new(),
        }
    }

    fn under(&self, plan: &Plan) -> KeptActivations {
        let full = || self.full.get_or_init(|| KeptActivations::of(self.i, self.precision, Recompute::Full));
        if plan.full_share >= 1.0 {
            return *full();
        }
        let mut kept = self.whole;
        if plan.selective_share > 0.0 {
            let selective =
                self.selective.get_or_init(|| KeptActivations::of(self.i, self.precision, Recompute::Selective));
            kept = kept.interpolate(selective, plan.selective_share);
        }
        if plan.mlp_share > 0.0 {
            kept = kept.interpolate(&kept.without_mlps(self.i), plan.mlp_share);
        }
        if plan.full_share > 0.0 {
            kept = kept.interpolate(full(), plan.full_share);
        }
        kept
    }
}

/// Kept bytes of all layers, some of which may be computed in 16 bit.
pub(super) struct LayerLevels<'a> {
    own: RecomputeLevels<'a>,
    bf16: Option<RecomputeLevels<'a>>,
    /// Share of the model's layers that are computed in 16 bit.
    bf16_share: f64,
}

impl<'a> LayerLevels<'a> {
    pub(super) fn of(i: &'a TrainingInput) -> Self {
        let bf16_share = i.bf16_ends().iter().sum::<f64>() / i.arch.depth().max(1.0);
        LayerLevels {
            own: RecomputeLevels::of(i, i.precision),
            bf16: (bf16_share > 0.0).then(|| RecomputeLevels::of(i, Precision::Bf16)),
            bf16_share,
        }
    }

    /// Bytes of a layer of which the share `bf16_share` is computed in 16 bit.
    fn mixed(&self, bf16_share: f64, of: impl Fn(&RecomputeLevels<'a>) -> KeptActivations) -> KeptActivations {
        match &self.bf16 {
            Some(bf16) => of(&self.own).interpolate(&of(bf16), bf16_share),
            None => of(&self.own),
        }
    }

    /// The mean layer of the model without recomputation.
    pub(super) fn whole(&self) -> KeptActivations {
        self.mixed(self.bf16_share, |levels| levels.whole)
    }

    /// The mean layer of the model.
    pub(super) fn under(&self, plan: &Plan) -> KeptActivations {
        self.mixed(self.bf16_share, |levels| levels.under(plan))
    }

    /// The mean layer of a stage that computes the share `bf16_share` of its layers in 16 bit.
    pub(super) fn of_stage(&self, bf16_share: f64, plan: &Plan) -> KeptActivations {
        self.mixed(bf16_share, |levels| levels.under(plan))
    }
}
