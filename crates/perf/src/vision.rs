//! What a language model's encoder of images takes for the images of a request or a sequence: sums over its layers, which
//! are those of any other transformer ([`crate::ops::layer`]). They are worked out once a scenario, so that estimates of models
//! without images carry nothing of them but an absent value.

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
