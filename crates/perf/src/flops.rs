//! Model FLOPs by kind of operator.

use crate::arch::Architecture;

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

impl Architecture {
    /// Model FLOPs per token, forward and backward, in the PaLM convention (arXiv 2204.02311, appendix B):
    /// 6 N + 12 L H Q T, where N is the number of weights that a token multiplies (without embedding look-ups) and T
    /// the sequence length.
    ///
    /// If `halved`, attention counts only what causal masks and windows leave. The state of a linear mixer counts as in
    /// common frameworks. In an encoder-decoder, a token is one of the encoder; the FLOPs of the decoder's `target`
    /// tokens per sequence are added to it.
    pub fn flops_per_token(&self, seq: f64, target: f64, halved: bool) -> f64 {
        self.token_flops(seq, target, halved).total()
    }

    /// Parts of [`Architecture::flops_per_token`].
    #[must_use]
    pub fn token_flops(&self, seq: f64, target: f64, halved: bool) -> TokenFlops {
        self.token_flops_with(self.matmul_params(), seq, target, halved)
    }

    /// As [`Architecture::token_flops`], with [`Architecture::matmul_params`] given, for callers that share it.
    pub(crate) fn token_flops_with(&self, multiplied: f64, seq: f64, target: f64, halved: bool) -> TokenFlops {
        if let Some(network) = &self.convolutions {
            return TokenFlops { products: network.flops(), ..TokenFlops::default() };
        }
        let context = if halved { self.mean_context(seq) } else { seq };
        let pair = 6.0 * (self.q_width() + self.v_width());
        let head_width = self.head_width() * self.hidden;
        if self.encoder_layers > 0.0 {
            let per_input = target / seq.max(1.0);
            let encoder = self.encoder_layers * (6.0 * self.encoder_layer_params() + pair * seq);
            let own = if halved { 0.5 * target } else { target };
            // Keys and values of cross attention are projected from the encoder's tokens.
            let cross = 6.0 * self.layers * self.hidden * self.kv_width();
            let products = 6.0 * self.layers * (2.0 * self.attention_params() - self.hidden * self.kv_width())
                + 6.0 * self.layers * self.mlp_params(f64::from(self.ffn))
                + 6.0 * head_width;
            return TokenFlops {
                products: per_input * products,
                attention: per_input * (self.layers * pair * (own + seq)),
                encoder: encoder + cross,
                ..TokenFlops::default()
            };
        }
        let indexing = if halved { 0.5 * seq } else { seq };
        let indexer = self.indexer.map_or(0.0, |x| 6.0 * indexing * x.heads * x.dim);
        let unused = (1.0 - self.head_share(seq)) * head_width;
        TokenFlops {
            products: 6.0 * (multiplied - unused),
            attention: self.attention_layers() * (context * pair + indexer),
            mixers: self.linear.map_or(0.0, |linear| self.linear_layers() * linear.model_flops()),
            ..TokenFlops::default()
        }
    }

    /// As [`Architecture::flops_per_token`], for networks without an encoder-decoder structure.
    pub fn palm_flops_per_token(&self, seq: f64, halved: bool) -> f64 {
        self.flops_per_token(seq, seq, halved)
    }
}
