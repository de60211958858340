//! A network's architecture as plain numbers, and the parameter counts that follow from it.
//!
//! A layer consists of a sequence mixer (attention, or a linear one: state space, delta rule) and an MLP (dense or a
//! mixture of experts). Hybrid models omit one of them in some layers; the shares state in how many. Only the number of
//! layers of each kind matters for the sums, not their order.

use super::convolution::Residual;
use super::flops::TokenFlops;
pub use super::linear::{Linear, LinearKind};
use atlas_core::count::Count;

/// How attention projects keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Attention {
    /// Multi-head, grouped-query or multi-query attention, depending on the number of key-value heads.
    #[default]
    Grouped,
    /// Multi-head latent attention (arXiv 2405.04434, section 2.1).
    Latent {
        /// Rank of the query compression; `None` if queries are projected directly.
        q_rank: Option<Count>,
        /// Rank of the joint key-value compression.
        kv_rank: Count,
        /// Per-head width without positional encoding.
        nope: Count,
        /// Width of the decoupled rotary key, shared by all heads.
        rope: Count,
        /// Per-head value width.
        value: Count,
        /// All heads attend to the compressed vector itself, without an up-projection (DeepSeek-V4).
        direct: bool,
        /// Low-rank output projection, if there is one.
        output: Option<LowRank>,
    },
}

/// A projection in two steps: each group of heads to a small rank, then all groups together to the hidden size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowRank {
    /// Rank of a group.
    pub rank: Count,
    /// Groups of heads.
    pub groups: Count,
}

/// The end of the network.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Head {
    /// Logits over the vocabulary, at every position.
    #[default]
    Language,
    /// Logits over the vocabulary at masked positions only, after a square matrix and a norm (BERT, arXiv 1810.04805,
    /// section 3.1 and appendix A.2: 15 % of the tokens).
    Masked,
    /// Logits over this number of classes, at one position of a sequence.
    Classes(Count),
}

/// The indexer of sparse attention (arXiv 2512.02556, section 2.1). It scores every earlier key; attention is limited
/// to the keys with the highest scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Indexer {
    /// Heads of the indexer.
    pub heads: Count,
    /// Width of a head.
    pub dim: Count,
    /// Number of keys that it selects.
    pub top_k: Count,
}

/// Sliding-window attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Number of keys in the window of a query.
    pub size: Count,
    /// Share of the layers that use the window.
    pub share: f64,
}

/// Architecture of a network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Architecture {
    /// Number of layers; in an encoder-decoder, of the decoder ([`Architecture::encoder_layers`]).
    pub layers: Count,
    /// Width of the residual stream.
    pub hidden: Count,
    /// Query heads.
    pub heads: Count,
    /// Key-value heads.
    pub kv_heads: Count,
    /// Width of a head; fractional if it is derived from a hidden size that is not a multiple of the number of heads.
    pub head_dim: f64,
    /// Width of the dense MLP.
    pub ffn: Count,
    /// Whether the MLP is gated (SwiGLU, GeGLU): three matrices instead of two.
    pub gated: bool,
    /// Rows of the embedding.
    pub vocab: Count,
    /// Whether the output layer shares the embedding matrix.
    pub tied: bool,
    /// How keys and values are projected.
    pub attention: Attention,
    /// Sliding window of some or all layers.
    pub window: Option<Window>,
    /// Residual streams (hyper-connections, arXiv 2512.24880); 1 = a plain residual.
    pub streams: Count,
    /// Whether each query attends to earlier keys only.
    pub causal: bool,
    /// Rows of the table of learned absolute positions; 0 without one.
    pub positions: Count,
    /// Whether the projections of attention have a bias.
    pub attn_bias: bool,
    /// Whether the projections of the MLP have a bias.
    pub mlp_bias: bool,
    /// Routed experts of a MoE layer; 0 in dense models.
    pub experts: Count,
    /// Routed experts per token.
    pub top_k: Count,
    /// Width of one routed expert.
    pub moe_ffn: Count,
    /// Width of all shared experts together.
    pub shared_ffn: Count,
    /// Leading layers with a dense MLP.
    pub dense_layers: Count,
    /// Every n-th layer is a MoE layer (1 = all layers after the leading dense ones).
    pub moe_step: Count,
    /// Input and output width of routed experts, if tokens are projected down for them.
    pub moe_hidden: Option<Count>,
    /// Share of the layers that have attention (below 1 in hybrids only).
    pub attention_share: f64,
    /// Share of the layers that have an MLP (below 1 if mixers and MLPs are separate layers).
    pub mlp_share: f64,
    /// The linear mixer of the other layers.
    pub linear: Option<Linear>,
    /// Whether the output of attention passes a gate, whose projection is as wide as the queries.
    pub attention_gate: bool,
    /// The indexer of sparse attention.
    pub indexer: Option<Indexer>,
    /// Layers of an encoder; the decoder's layers then have cross attention to it.
    pub encoder_layers: Count,
    /// The end of the network.
    pub head: Head,
    /// Values of a patch if the input is images rather than tokens (3 × side²).
    pub patch: Option<Count>,
    /// Rows of the table of token types (BERT).
    pub token_types: Count,
    /// A residual convolutional network, which replaces all of the above.
    pub convolutions: Option<Residual>,
}

impl Default for Architecture {
    /// Llama 2 7B (arXiv 2307.09288).
    fn default() -> Self {
        Architecture {
            layers: Count::new(32),
            hidden: Count::new(4096),
            heads: Count::new(32),
            kv_heads: Count::new(32),
            head_dim: 128.0,
            ffn: Count::new(11008),
            gated: true,
            vocab: Count::new(32000),
            tied: false,
            attention: Attention::Grouped,
            window: None,
            streams: Count::ONE,
            causal: true,
            positions: Count::ZERO,
            attn_bias: false,
            mlp_bias: false,
            experts: Count::ZERO,
            top_k: Count::ZERO,
            moe_ffn: Count::ZERO,
            shared_ffn: Count::ZERO,
            dense_layers: Count::ZERO,
            moe_step: Count::ONE,
            moe_hidden: None,
            attention_share: 1.0,
            mlp_share: 1.0,
            linear: None,
            attention_gate: false,
            indexer: None,
            encoder_layers: Count::ZERO,
            head: Head::Language,
            patch: None,
            token_types: Count::ZERO,
            convolutions: None,
        }
    }
}

/// Maximum depth of an architecture that is derived from a number of parameters.
const MAX_DEPTH: u32 = 256;
/// Parameters below which small models share the embedding and the output matrix.
const TIED_BELOW: f64 = 4e9;

impl Architecture {
    /// Dense decoder with `params` parameters and the proportions of the Llama 3 models (arXiv 2407.21783, table 3): 128
    /// times as wide as deep, eight key-value heads, an MLP of 3.5 times the width or as much more as is left over.
    pub fn of_size(params: f64, vocab: Count) -> Architecture {
        let of_depth = |layers: u32| {
            let hidden = 128 * layers;
            Architecture {
                layers: Count::new(layers),
                hidden: Count::new(hidden),
                heads: Count::new(layers),
                kv_heads: Count::new(layers.min(8)),
                ffn: Count::new(hidden * 7 / 2),
                vocab,
                tied: params < TIED_BELOW,
                ..Architecture::default()
            }
        };
        let layers = (2..=MAX_DEPTH).take_while(|layers| of_depth(*layers).params() <= params).last().unwrap_or(1);
        let found = of_depth(layers);
        let more = (params - found.params()).max(0.0) / (3.0 * found.hidden * found.layers);
        Architecture { ffn: Count::floor(found.ffn + more), ..found }
    }

    /// Whether some layers are mixtures of experts.
    pub fn is_moe(&self) -> bool {
        self.experts > 0.0 && self.top_k > 0.0
    }

    /// Layers whose MLP is a mixture of experts.
    pub fn moe_layers(&self) -> f64 {
        if !self.is_moe() {
            return 0.0;
        }
        ((self.mlp_layers() - self.dense_layers) / self.moe_step.max(Count::ONE)).floor().max(0.0)
    }

    /// Layers that have an MLP, dense or a mixture of experts.
    pub fn mlp_layers(&self) -> f64 {
        (self.layers * self.mlp_share).round()
    }

    /// Layers that have attention.
    pub fn attention_layers(&self) -> f64 {
        (self.layers * self.attention_share).round()
    }

    /// Layers that have the linear mixer.
    pub fn linear_layers(&self) -> f64 {
        self.linear.map_or(0.0, |linear| (self.layers * linear.share).round())
    }

    /// Whether some layers lack attention, an MLP, or both.
    pub fn is_hybrid(&self) -> bool {
        self.linear.is_some() || self.attention_share < 1.0 || self.mlp_share < 1.0
    }

    /// Number of layers, including the encoder's.
    pub fn depth(&self) -> f64 {
        self.layers + self.encoder_layers
    }

    /// Input and output width of routed experts.
    pub fn expert_width(&self) -> f64 {
        f64::from(self.moe_hidden.unwrap_or(self.hidden))
    }

    /// Matrices of one MLP.
    pub fn mlp_matrices(&self) -> f64 {
        if self.gated { 3.0 } else { 2.0 }
    }

    /// Width of all query heads together.
    pub fn q_width(&self) -> f64 {
        match self.attention {
            Attention::Grouped => self.heads * self.head_dim,
            Attention::Latent { nope, rope, .. } => self.heads * (nope + rope),
        }
    }

    /// Width of the attention's output before its projection.
    pub fn v_width(&self) -> f64 {
        match self.attention {
            Attention::Grouped => self.heads * self.head_dim,
            Attention::Latent { value, .. } => self.heads * value,
        }
    }

    /// Elements of the KV cache per token and layer.
    pub fn kv_width(&self) -> f64 {
        match self.attention {
            Attention::Grouped => 2.0 * self.kv_heads * self.head_dim,
            Attention::Latent { kv_rank, rope, .. } => kv_rank + rope,
        }
    }

    /// Weights of one layer's attention, including the indexer.
    pub fn attention_params(&self) -> f64 {
        let h = self.hidden;
        let gate = if self.attention_gate { h * self.v_width() } else { 0.0 };
        let projections = match self.attention {
            Attention::Grouped => {
                let bias = if self.attn_bias { self.q_width() + self.kv_width() } else { 0.0 };
                h * (self.q_width() + self.kv_width()) + self.v_width() * h + bias
            }
            Attention::Latent { q_rank, kv_rank, nope, rope, value, direct, output } => {
                let q = q_rank.map_or(h * self.q_width(), |rank| rank * (h + self.q_width() + 1.0));
                let up = if direct { 1.0 } else { 1.0 + self.heads * (nope + value) };
                let out = output.map_or(self.v_width() * h, |x| x.rank * (self.v_width() + x.groups * h));
                q + h * (kv_rank + rope) + kv_rank * up + out
            }
        };
        projections + gate + self.indexer_params()
    }

    /// Width of the input from which latent attention and the indexer project queries.
    pub fn query_source(&self) -> f64 {
        match self.attention {
            Attention::Latent { q_rank: Some(rank), .. } => f64::from(rank),
            _ => f64::from(self.hidden),
        }
    }

    /// Weights of one layer's indexer: queries from the compressed query, one key, one weight per head.
    pub fn indexer_params(&self) -> f64 {
        self.indexer
            .map_or(0.0, |x| self.query_source() * x.heads * x.dim + self.hidden * (x.dim + x.heads) + 2.0 * x.dim)
    }

    /// Weights of one layer's linear mixer.
    pub fn linear_params(&self) -> f64 {
        self.linear.map_or(0.0, |linear| linear.params(f64::from(self.hidden)))
    }

    /// Weights of a dense MLP of width `ffn`.
    pub fn mlp_params(&self, ffn: f64) -> f64 {
        let bias = if self.mlp_bias { (self.mlp_matrices() - 1.0) * ffn + self.hidden } else { 0.0 };
        self.mlp_matrices() * self.hidden * ffn + bias
    }

    /// Weights of the routed experts in one MoE layer.
    pub fn expert_params(&self) -> f64 {
        match self.moe_hidden {
            Some(width) => self.experts * self.mlp_matrices() * width * self.moe_ffn,
            None => self.experts * self.mlp_params(f64::from(self.moe_ffn)),
        }
    }

    /// Weights of one MoE layer's router and shared experts, and of the projections to and from the experts' width.
    pub fn moe_fixed_params(&self) -> f64 {
        let shared = if self.shared_ffn > 0.0 { self.mlp_params(f64::from(self.shared_ffn)) } else { 0.0 };
        self.hidden * self.experts + shared + 2.0 * self.hidden * self.moe_hidden.unwrap_or(Count::ZERO)
    }

    /// Weights of the input embedding, and of the output layer unless tied; includes patch embedding and classifier
    /// where present.
    pub fn embedding_params(&self) -> f64 {
        let h = self.hidden;
        let copies = if self.tied { 1.0 } else { 2.0 };
        let frame = match self.head {
            Head::Language => 0.0,
            // The dense layer and bias of the masked head are omitted, as in published counts: the pooler is as large.
            Head::Masked => 2.0 * h + h * (h + 1.0),
            Head::Classes(classes) => (h + 1.0) * classes + self.patch.map_or(0.0, |patch| (patch + 1.0) * h + h),
        };
        copies * self.vocab * h + (self.positions + self.token_types) * h + frame
    }

    /// Weights of one encoder layer: attention without cross attention, and an MLP.
    fn encoder_layer_params(&self) -> f64 {
        self.attention_params() + self.mlp_params(f64::from(self.ffn)) + 2.0 * self.hidden
    }

    /// All weights of the layers that are not routed experts.
    pub fn dense_params(&self) -> f64 {
        let (mixers, mlps) = (self.attention_layers() + self.linear_layers(), self.mlp_layers());
        let moe = self.moe_layers();
        // An encoder adds its own layers, and cross attention with its norm to the decoder's layers.
        let encoder = if self.encoder_layers > 0.0 {
            self.encoder_layers * self.encoder_layer_params()
                + self.attention_layers() * (self.attention_params() + self.hidden)
        } else {
            0.0
        };
        self.attention_layers() * self.attention_params()
            + self.linear_layers() * self.linear_params()
            + (mixers + mlps) * self.hidden
            + (mlps - moe) * self.mlp_params(f64::from(self.ffn))
            + moe * self.moe_fixed_params()
            + encoder
    }

    /// Number of weights.
    pub fn params(&self) -> f64 {
        if let Some(network) = &self.convolutions {
            return network.params();
        }
        self.dense_params() + self.moe_layers() * self.expert_params() + self.embedding_params() + self.hidden
    }

    /// Weights used per token, including embeddings and output layer.
    pub fn active_params(&self) -> f64 {
        if !self.is_moe() {
            return self.params();
        }
        self.params() - self.moe_layers() * self.expert_params() * (1.0 - self.top_k / self.experts)
    }

    /// Weights that a token multiplies: active weights without the embedding look-up.
    pub fn matmul_params(&self) -> f64 {
        let looked_up =
            (if self.tied { Count::ZERO } else { self.vocab } + self.positions + self.token_types) * self.hidden;
        self.active_params() - looked_up
    }

    /// Share of the positions of a sequence of `seq` tokens that pass the output layer.
    pub fn head_share(&self, seq: f64) -> f64 {
        match self.head {
            Head::Language => 1.0,
            Head::Masked => 0.15,
            Head::Classes(_) => 1.0 / seq.max(1.0),
        }
    }

    /// Columns of the output layer.
    pub fn head_width(&self) -> f64 {
        match self.head {
            Head::Classes(classes) => f64::from(classes),
            Head::Language | Head::Masked => f64::from(self.vocab),
        }
    }

    /// Mean number of keys per query in a sequence of `seq` tokens, over all layers with attention.
    pub fn mean_context(&self, seq: f64) -> f64 {
        let all = if self.causal { 0.5 * seq } else { seq };
        let within = |w: f64| {
            if w >= seq {
                return all;
            }
            if self.causal { w - 0.5 * w * w / seq } else { (2.0 * w).min(seq) }
        };
        if let Some(indexer) = self.indexer {
            return within(f64::from(indexer.top_k));
        }
        self.window.map_or(all, |window| window.share * within(f64::from(window.size)) + (1.0 - window.share) * all)
    }

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
            products: 6.0 * (self.matmul_params() - unused),
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

#[cfg(test)]
impl Architecture {
    /// DeepSeek-V3 (arXiv 2412.19437, section 4.2), for tests.
    pub fn deepseek_v3() -> Architecture {
        Architecture {
            layers: Count::new(61),
            hidden: Count::new(7168),
            heads: Count::new(128),
            kv_heads: Count::new(128),
            ffn: Count::new(18432),
            vocab: Count::new(129280),
            attention: Attention::Latent {
                q_rank: Some(Count::new(1536)),
                kv_rank: Count::new(512),
                nope: Count::new(128),
                rope: Count::new(64),
                value: Count::new(128),
                direct: false,
                output: None,
            },
            experts: Count::new(256),
            top_k: Count::new(8),
            moe_ffn: Count::new(2048),
            shared_ffn: Count::new(2048),
            dense_layers: Count::new(3),
            ..Architecture::default()
        }
    }
}

#[cfg(test)]
mod tests;
