//! The work of encoding the images of a request or training sequence for a language model: sums over the layers of the
//! image encoder, which are computed as those of any transformer ([`crate::ops`]). The sums are computed once
//! per scenario. Estimates of models without images only carry a `None`.

/// How the images of one request or training sequence are encoded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EncoderInput {
    /// Pieces that are encoded separately: images, or tiles of them.
    pub pieces: f64,
    /// Patches per piece.
    pub patches: f64,
    /// Tokens per piece in the language model's sequence.
    pub tokens: f64,
    /// Weights of the projector between encoder and language model; each token multiplies each of them once.
    pub projector: f64,
}

/// The work of encoding the images of one request or training sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Images {
    /// Tokens in the language model's sequence.
    pub tokens: f64,
    /// Patches of all pieces.
    pub patches: f64,
    /// Weights of encoder and projector.
    pub params: f64,
    /// FLOPs of the GEMMs in a forward pass.
    pub product_flops: f64,
    /// FLOPs of attention in a forward pass.
    pub attention_flops: f64,
    /// Bytes that attention reads and writes in a forward pass.
    pub attention_bytes: f64,
    /// Bytes of activations read and written by norms, residuals and activation functions.
    pub traffic: f64,
    /// Kernels of a forward pass over all pieces at once.
    pub kernels: f64,
    /// Number of pieces.
    pub pieces: f64,
    /// Layers of the encoder.
    pub layers: f64,
    /// Width of the encoder's residual stream.
    pub hidden: f64,
    /// Width of the encoder's MLP.
    pub ffn: f64,
    /// Width of an attention head.
    pub head_dim: f64,
    /// Bytes of activations kept for the backward pass.
    pub kept: f64,
    /// As `kept`, if every layer is recomputed from its input.
    pub kept_input_bytes: f64,
    /// Whether the encoder's weights are trained.
    pub trained: bool,
}

impl Images {
    /// FLOPs of a forward pass.
    #[must_use]
    pub fn flops(&self) -> f64 {
        self.product_flops + self.attention_flops
    }

    /// Cost of all passes relative to a forward pass: 3 if the weights are trained (forward, and two gradients), else
    /// 1.
    #[must_use]
    pub fn passes(&self) -> f64 {
        if self.trained { 3.0 } else { 1.0 }
    }

    /// Number of weights with gradients and optimizer states.
    #[must_use]
    pub fn trained_params(&self) -> f64 {
        if self.trained { self.params } else { 0.0 }
    }
}
