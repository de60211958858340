//! Model FLOPs by kind of operator.

/// Model FLOPs of one token, forward and backward, by kind of operator.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TokenFlops {
    /// Matrix multiplications with weights.
    pub products: f64,
    /// Attention scores and weighted values.
    pub attention: f64,
    /// State updates of linear mixers.
    pub mixers: f64,
    /// The encoder, and the projections of its output.
    pub encoder: f64,
    /// Gradients of frozen weights, which are not computed: a negative number or 0.
    pub frozen: f64,
    /// Multi-token-prediction layers in training.
    pub predictors: f64,
}

impl TokenFlops {
    /// Names of the parts in order of declaration.
    pub const NAMES: [&'static str; 6] = [
        "GEMMs with weights",
        "attention",
        "linear mixers",
        "encoder",
        "gradients of frozen weights",
        "MTP layers (multi-token prediction)",
    ];

    /// FLOPs in order of declaration.
    #[must_use]
    pub fn values(&self) -> [f64; 6] {
        [self.products, self.attention, self.mixers, self.encoder, self.frozen, self.predictors]
    }

    /// Sum of all parts.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.values().iter().sum()
    }
}
