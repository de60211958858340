//! What a language model's encoder of images takes for the images of a request or a sequence: sums over its layers, which
//! are those of any other transformer ([`ops::layer`]). They are worked out once a scenario, so that estimates of models
//! without images carry nothing of them but an absent value.

use crate::arch::Architecture;
use crate::memory;
use crate::ops::{self, Slice, Work};
use crate::training::{Plan, TrainingInput};
use atlas_core::count::Count;

/// How the images of one request or sequence are encoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Encoded {
    /// Pieces that are encoded apart: images, or tiles of them.
    pub pieces: f64,
    /// Patches of a piece.
    pub patches: f64,
    /// Tokens that a piece becomes.
    pub tokens: f64,
    /// Weights between encoder and language model, each of which a token multiplies once.
    pub projector: f64,
}

/// What the images of one request or sequence take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Images {
    /// Tokens that they are to the language model.
    pub tokens: f64,
    /// Patches of all pieces.
    pub patches: f64,
    /// Weights of encoder and projector.
    pub params: f64,
    /// FLOPs of a forward pass's matrix products.
    pub product_flops: f64,
    /// FLOPs of its attention.
    pub attention_flops: f64,
    /// Bytes that its attention reads and writes.
    pub attention_bytes: f64,
    /// Bytes of activations that its norms, residuals and activation functions move.
    pub traffic: f64,
    /// Kernels of a forward pass over all pieces at once.
    pub kernels: f64,
    /// Pieces.
    pub pieces: f64,
    /// Layers of the encoder.
    pub layers: f64,
    /// Width of its residual stream.
    pub hidden: f64,
    /// Width of its MLP.
    pub ffn: f64,
    /// Width of a head.
    pub head_dim: f64,
    /// Bytes of activations that its backward pass needs.
    pub kept: f64,
    /// The same where every layer is run again from its input.
    pub kept_inputs: f64,
    /// Whether its weights are trained.
    pub trained: bool,
}

impl Images {
    /// Of an encoder, whose weights are trained or not.
    #[must_use]
    pub fn of(encoder: &Architecture, of: &Encoded, trained: bool) -> Images {
        let slice = Slice { tokens: of.patches, context: encoder.mean_context(of.patches), ..Slice::default() };
        let list = ops::layer(encoder, &slice, false);
        let layers = f64::from(encoder.layers);
        let mut sums = Images {
            tokens: of.pieces * of.tokens,
            patches: of.pieces * of.patches,
            params: encoder.params() + of.projector,
            // Patches to vectors, and vectors to tokens.
            product_flops: 2.0
                * of.pieces
                * (of.patches * encoder.patch.unwrap_or(Count::ZERO) * encoder.hidden + of.tokens * of.projector),
            attention_flops: 0.0,
            attention_bytes: 0.0,
            traffic: 0.0,
            kernels: layers * list.kernels(),
            pieces: of.pieces,
            layers,
            hidden: f64::from(encoder.hidden),
            ffn: f64::from(encoder.ffn),
            head_dim: encoder.head_dim,
            kept: 0.0,
            kept_inputs: 0.0,
            trained,
        };
        let times = of.pieces * layers;
        for op in list.iter() {
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
            sums.kept_inputs = memory::kept(&alone, Plan::FULL);
        }
        sums
    }

    /// FLOPs of a forward pass.
    #[must_use]
    pub fn flops(&self) -> f64 {
        self.product_flops + self.attention_flops
    }

    /// Passes as long as the forward one: three where weights are trained (forward, and two gradients), else one.
    #[must_use]
    pub fn passes(&self) -> f64 {
        if self.trained { 3.0 } else { 1.0 }
    }

    /// Weights with gradients and optimizer states.
    #[must_use]
    pub fn trained_params(&self) -> f64 {
        if self.trained { self.params } else { 0.0 }
    }
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
        let encoded = Encoded { pieces, patches: 1024.0, tokens: 256.0, projector: 45e6 };
        Images::of(&encoder(), &encoded, true)
    }

    #[test]
    fn an_image_takes_two_flops_a_weight_and_patch_and_the_square_of_attention() {
        let one = of(1.0);
        let weights = 32.0 * (4.0 * 1280.0 * 1280.0 + 2.0 * 1280.0 * 5120.0);
        let products = 2.0 * 1024.0 * (weights + 588.0 * 1280.0) + 2.0 * 256.0 * 45e6;
        assert!((one.product_flops / products - 1.0).abs() < 1e-9, "{} {products}", one.product_flops);
        assert!((one.attention_flops / (32.0 * 4.0 * 1024.0 * 1024.0 * 1280.0) - 1.0).abs() < 1e-9);
        assert!((one.params / (weights + 45e6) - 1.0).abs() < 0.01, "{}", one.params);
    }

    #[test]
    fn images_add_up_and_share_the_weights() {
        let (one, four) = (of(1.0), of(4.0));
        for (a, b) in
            [(one.tokens, four.tokens), (one.flops(), four.flops()), (one.traffic, four.traffic), (one.kept, four.kept)]
        {
            assert!((b / a - 4.0).abs() < 1e-9, "{a} {b}");
        }
        assert_eq!(one.params, four.params);
        assert!(one.kept > 4.0 * one.kept_inputs);
    }
}
