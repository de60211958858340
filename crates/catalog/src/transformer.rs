//! Transformers: widths and counts, with the names of `config.json` files.

mod decode;

use atlas_core::count::Count;
pub use atlas_perf::arch::{Indexer, LinearKind, LowRank, Window};

/// Arrangement of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransformerKind {
    /// Causal layers over tokens: GPT, Llama …
    #[default]
    Decoder,
    /// Bidirectional layers over tokens: BERT.
    Encoder,
    /// The same number of encoder and decoder layers, the latter with cross-attention: T5.
    EncoderDecoder,
    /// Bidirectional layers over patches of an image: ViT.
    Vision,
}

/// Attention projections that have a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bias {
    /// None.
    #[default]
    None,
    /// Projections of queries, keys and values.
    Qkv,
    /// All projections, including the output.
    All,
}

/// Kind of norm, as far as it affects the number of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NormKind {
    /// A scale.
    #[default]
    RmsNorm,
    /// A scale and a shift.
    LayerNorm,
    /// A layer norm with its scale only.
    LayerNormNoBias,
}

impl NormKind {
    /// Number of weights per element.
    #[must_use]
    pub fn weights(self) -> f64 {
        if self == NormKind::LayerNorm { 2.0 } else { 1.0 }
    }
}

/// Normalization of queries and keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QkNorm {
    /// None.
    #[default]
    None,
    /// Per head, with the same weights for all heads.
    Head,
    /// Over all heads together.
    Full,
}

/// How keys and values are shared among query heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Each query head has its own: MHA.
    MultiHead,
    /// Groups of query heads share them: GQA.
    GroupedQuery,
    /// All query heads share them: MQA.
    MultiQuery,
    /// All are projected from one compressed vector: MLA.
    Latent,
}

impl Sharing {
    /// Returns the usual abbreviation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Sharing::MultiHead => "MHA",
            Sharing::GroupedQuery => "GQA",
            Sharing::MultiQuery => "MQA",
            Sharing::Latent => "MLA",
        }
    }
}

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Latent {
    /// Rank of the query compression. `None` if queries are projected directly.
    pub q_lora_rank: Option<Count>,
    /// Rank of the joint compression of keys and values.
    pub kv_lora_rank: Count,
    /// Width of queries and keys per head, without the rotary part.
    pub qk_nope_dim: Count,
    /// Width of the rotary part, whose key is shared by all heads.
    pub qk_rope_dim: Count,
    /// Width of values per head.
    pub v_head_dim: Count,
    /// Whether all heads attend to the compressed vector itself, without projections of keys and values (DeepSeek-V4).
    pub direct: bool,
    /// Low-rank output projection, if any.
    pub output: Option<LowRank>,
}

/// Mixers whose cost is linear in the sequence length, in some or all layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// Recurrence.
    pub kind: LinearKind,
    /// Number of layers with a linear mixer.
    pub layers: Count,
    /// Number of heads (delta rule: of value heads).
    pub heads: Count,
    /// Width of a head.
    pub head_dim: Count,
    /// State size of a head (delta rule: width of a key).
    pub state: Count,
    /// Number of groups of heads that share the input and output projections of the state (delta rule: number of key
    /// heads).
    pub groups: Count,
    /// Length of the short convolution before the recurrence.
    pub taps: Count,
}

/// Mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Experts {
    /// Routed experts per layer.
    pub count: Count,
    /// Active routed experts per token.
    pub per_token: Count,
    /// FFN width of a routed expert.
    pub ffn_hidden_size: Count,
    /// Total FFN width of the shared experts.
    pub shared_ffn_hidden_size: Count,
    /// Whether the shared experts have their own gate.
    pub shared_gate: bool,
    /// Number of leading layers with a dense MLP.
    pub first_dense_layers: Count,
    /// Among the other layers, every n-th one is a mixture of experts.
    pub layer_step: Count,
    /// Input and output width of routed experts, if tokens are projected to a smaller width for them.
    pub hidden_size: Option<Count>,
}

/// Input and output of a vision transformer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patches {
    /// Width and height of the image, pixels.
    pub image_size: Count,
    /// Width and height of a patch, pixels.
    pub patch_size: Count,
    /// Number of classes; 0 if the output is the input of a language model.
    pub classes: Count,
}

/// Architecture of a transformer.
#[derive(Debug, Clone, PartialEq)]
pub struct Transformer {
    /// Arrangement of the layers.
    pub kind: TransformerKind,
    /// Width of the residual stream.
    pub hidden_size: Count,
    /// Number of layers. Of an encoder-decoder, the number in each half.
    pub n_layers: Count,
    /// Number of query heads.
    pub n_heads: Count,
    /// Number of key-value heads.
    pub n_kv_heads: Count,
    /// Width of a query head. May be a fraction if it is not stated and the hidden size is not a multiple of the heads.
    pub head_dim: f64,
    /// Latent attention, which replaces plain projections.
    pub latent: Option<Latent>,
    /// The indexer of sparse attention.
    pub indexer: Option<Indexer>,
    /// Sliding or chunked window.
    pub window: Option<Window>,
    /// Number of residual streams (hyper-connections, arXiv 2512.24880); 1 for a plain residual.
    pub residual_streams: Count,
    /// Number of layers with attention: all, except in hybrids.
    pub attention_layers: Count,
    /// Number of layers with an MLP or a mixture of experts: all, unless mixers and MLPs are separate layers.
    pub mlp_layers: Count,
    /// Linear mixers of the layers without attention.
    pub linear: Option<Linear>,
    /// Whether the attention output is multiplied by a gate of the width of the queries.
    pub attention_gate: bool,
    /// Biases of the attention projections.
    pub attention_bias: Bias,
    /// Width of the dense MLP.
    pub ffn_hidden_size: Count,
    /// Whether the MLP is gated (SwiGLU, GeGLU): three matrices rather than two.
    pub gated_mlp: bool,
    /// Whether the MLP's projections have biases.
    pub mlp_bias: bool,
    /// Mixture of experts, which replaces the dense MLP.
    pub experts: Option<Experts>,
    /// Size of the vocabulary; `None` for vision transformers.
    pub vocab_size: Option<Count>,
    /// Maximum context length, tokens.
    pub max_context: Count,
    /// Whether the output layer shares its weights with the embedding.
    pub tied_embeddings: bool,
    /// Whether position embeddings are learned, one for each of `max_context`.
    pub learned_positions: bool,
    /// Kind of norm.
    pub norm: NormKind,
    /// Number of norms per layer.
    pub norms_per_layer: Count,
    /// Normalization of queries and keys.
    pub qk_norm: QkNorm,
    /// Input and output of a vision transformer.
    pub patches: Option<Patches>,
}

impl Transformer {
    /// How keys and values are shared.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        match self.latent {
            Some(_) => Sharing::Latent,
            None if self.n_kv_heads >= self.n_heads => Sharing::MultiHead,
            None if self.n_kv_heads <= Count::ONE => Sharing::MultiQuery,
            None => Sharing::GroupedQuery,
        }
    }
}
