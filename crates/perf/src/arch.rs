//! A network's architecture as plain numbers; `params` counts its weights.
//!
//! A layer consists of a sequence mixer (attention, or a linear one: state space, delta rule) and an MLP (dense or a
//! mixture of experts). Hybrid models omit one of them in some layers; the shares state in how many. Only the number of
//! layers of each kind matters for the sums, not their order.

mod params;

use super::convolution::Residual;
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

/// Sliding-window or chunked attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Number of keys in the window of a query.
    pub size: Count,
    /// Share of the layers that use the window.
    pub share: f64,
    /// Whether windows do not slide: sequences are divided into chunks of `size`, and queries see the earlier keys of
    /// their chunk.
    pub chunked: bool,
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
        self.layers_with(self.mlp_share)
    }

    /// Layers that have attention.
    pub fn attention_layers(&self) -> f64 {
        self.layers_with(self.attention_share)
    }

    /// Layers that have the linear mixer.
    pub fn linear_layers(&self) -> f64 {
        self.linear.map_or(0.0, |linear| self.layers_with(linear.share))
    }

    /// Number of layers that are a share of all of them.
    fn layers_with(&self, share: f64) -> f64 {
        if share == 1.0 { f64::from(self.layers) } else { (self.layers * share).round() }
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

    /// Width of the input from which latent attention and the indexer project queries.
    pub fn query_source(&self) -> f64 {
        match self.attention {
            Attention::Latent { q_rank: Some(rank), .. } => f64::from(rank),
            _ => f64::from(self.hidden),
        }
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
        self.window.map_or(all, |window| {
            let size = f64::from(window.size);
            let local = if window.chunked && self.causal { mean_of_chunks(seq, size) } else { within(size) };
            window.share * local + (1.0 - window.share) * all
        })
    }
}

/// Mean number of earlier keys of `seq` queries in chunks of `size`.
fn mean_of_chunks(seq: f64, size: f64) -> f64 {
    let (whole, rest) = ((seq / size).floor() * size, seq % size);
    0.5 * (whole * size + rest * rest) / seq.max(1.0)
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
