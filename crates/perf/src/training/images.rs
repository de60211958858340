//! Encoding the images of a micro-batch: the passes of the encoder's layers, in 16 bit.

use super::layer::{GemmPassTimes, gemm_pass_times};
use super::pipeline::Pass;
use super::{Plan, Software, TrainingInput};
use crate::accelerator::Precision;
use crate::arch::Architecture;
use crate::collective::{self, Fabric, Group};
use crate::constants::Constants;
use crate::constants::documented::{ATTENTION_BACKWARD_FLOPS, ELEMENTWISE_BACKWARD_TRAFFIC};
use crate::ops::{self, Slice, Work};
use crate::roofline;
use crate::roofline::{FusedAttention, Gemm};
use crate::training::memory;
use crate::vision::{EncoderInput, Images};
use atlas_core::count::Count;

/// Sums over the layers of `encoder` for the images described by `of`. `trained`: whether the encoder's weights are
/// trained.
#[must_use]
pub fn image_work(encoder: &Architecture, of: &EncoderInput, trained: bool) -> Images {
    let slice = Slice { tokens: of.patches, context: encoder.mean_context(of.patches), ..Slice::default() };
    let mut layer = Vec::new();
    ops::attention(&mut layer, encoder, &slice);
    ops::mlp(&mut layer, encoder, &slice);
    let layers = f64::from(encoder.layers);
    let mut sums = Images {
        tokens: of.pieces * of.tokens,
        patches: of.pieces * of.patches,
        params: encoder.params() + of.projector,
        // Patch embedding, and the projector.
        product_flops: 2.0
            * of.pieces
            * (of.patches * encoder.patch.unwrap_or(Count::ZERO) * encoder.hidden + of.tokens * of.projector),
        attention_flops: 0.0,
        attention_bytes: 0.0,
        traffic: 0.0,
        kernels: layers * layer.iter().map(|op| op.kernels).sum::<f64>(),
        pieces: of.pieces,
        layers,
        hidden: f64::from(encoder.hidden),
        ffn: f64::from(encoder.ffn),
        head_dim: encoder.head_dim,
        kept: 0.0,
        kept_input_bytes: 0.0,
        trained,
    };
    let times = of.pieces * layers;
    for op in layer {
        match op.work {
            Work::Gemm(g) => sums.product_flops += times * g.flops(),
            Work::Attention { flops, bytes } => {
                sums.attention_flops += times * flops;
                sums.attention_bytes += times * bytes;
            }
            Work::Vector { .. } => {}
            Work::Traffic { bytes } => sums.traffic += times * bytes,
        }
    }
    if trained {
        let alone = TrainingInput { arch: *encoder, seq: of.patches, micro: of.pieces, ..TrainingInput::default() };
        sums.kept = memory::kept(&alone, Plan::NONE);
        sums.kept_input_bytes = memory::kept(&alone, Plan::FULL);
    }
    sums
}

/// Time of encoding a micro-batch's images on the ranks of the first stage, s; zero without images.
pub fn seconds(i: &TrainingInput, c: &Constants, f: &Fabric, plan: Plan) -> Pass {
    let Some(images) = &i.images else { return Pass::default() };
    let (acc, tp) = (&i.accelerator, f64::from(i.tp.max(Count::ONE)));
    // All GEMMs are timed at the rate of those of the MLP.
    let shape = Gemm::new(i.micro * images.patches, images.ffn / tp, images.hidden);
    let times = i.micro * images.product_flops / tp / shape.flops().max(1.0);
    let GemmPassTimes { forward: product, input, weights } = gemm_pass_times(i, c, &shape, Precision::Bf16);
    let kernel = match i.software {
        Software { first_flash: true, .. } => FusedAttention::First,
        Software { native_attention: true, .. } => FusedAttention::Native,
        _ => FusedAttention::Second,
    };
    let share = roofline::fused_attention_share(acc, c, images.head_dim, kernel);
    let (flops, bytes) = (i.micro * images.attention_flops / tp, i.micro * images.attention_bytes / tp);
    let attention = roofline::attention_seconds(acc, c, flops / share, bytes);
    let fused = if i.software.fused_elementwise { c.fused_traffic } else { c.eager_traffic };
    let split = if i.sequence_parallel { tp } else { 1.0 };
    let moved = roofline::memory_seconds(acc, c, i.micro * images.traffic * fused / split);
    let gaps = images.kernels * c.kernel_gap;
    // Two all-reduces per layer and pass.
    let reduced = if tp > 1.0 {
        let bytes = i.micro * images.patches * images.hidden * 2.0;
        2.0 * images.layers * collective::all_reduce(&f.among(tp), Group::strided(tp, 1.0, i.domain), bytes)
    } else {
        0.0
    };
    let forward = times * product + attention + moved + gaps + reduced;
    if !images.trained {
        return Pass { forward, ..Pass::default() };
    }
    let again = plan.full_share * forward;
    let backward = times * input
        + ATTENTION_BACKWARD_FLOPS * c.attention_backward * attention
        + ELEMENTWISE_BACKWARD_TRAFFIC * moved
        + gaps
        + reduced;
    Pass { forward, input: backward + again, weights: times * weights + gaps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Head;

    /// ViT-H/14 of 1,024 patches.
    fn encoder() -> Architecture {
        Architecture {
            layers: Count::new(32),
            hidden: Count::new(1280),
            heads: Count::new(16),
            kv_heads: Count::new(16),
            head_dim: 80.0,
            ffn: Count::new(5120),
            gated: false,
            vocab: Count::ZERO,
            causal: false,
            head: Head::Classes(Count::ZERO),
            patch: Some(Count::new(588)),
            ..Architecture::default()
        }
    }

    fn of(pieces: f64) -> Images {
        let of = EncoderInput { pieces, patches: 1024.0, tokens: 256.0, projector: 45e6 };
        image_work(&encoder(), &of, true)
    }

    #[test]
    fn image_flops_are_two_per_weight_and_patch_plus_full_attention() {
        let one = of(1.0);
        let weights = 32.0 * (4.0 * 1280.0 * 1280.0 + 2.0 * 1280.0 * 5120.0);
        let products = 2.0 * 1024.0 * (weights + 588.0 * 1280.0) + 2.0 * 256.0 * 45e6;
        assert!((one.product_flops / products - 1.0).abs() < 1e-9, "{} {products}", one.product_flops);
        assert!((one.attention_flops / (32.0 * 4.0 * 1024.0 * 1024.0 * 1280.0) - 1.0).abs() < 1e-9);
        assert!((one.params / (weights + 45e6) - 1.0).abs() < 0.01, "{}", one.params);
    }

    #[test]
    fn image_costs_scale_with_count_and_share_the_encoder_weights() {
        let (one, four) = (of(1.0), of(4.0));
        for (a, b) in
            [(one.tokens, four.tokens), (one.flops(), four.flops()), (one.traffic, four.traffic), (one.kept, four.kept)]
        {
            assert!((b / a - 4.0).abs() < 1e-9, "{a} {b}");
        }
        assert_eq!(one.params, four.params);
        assert!(one.kept > 4.0 * one.kept_input_bytes);
    }
}
