//! Transformers: widths and counts, under the names that `config.json` files use.

mod decode;

use atlas_core::count::Count;

/// How its layers are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransformerKind {
    /// Causal layers over tokens: GPT, Llama …
    #[default]
    Decoder,
    /// Bidirectional layers over tokens: BERT.
    Encoder,
    /// As many layers of each, the decoder's with cross attention: T5.
    EncoderDecoder,
    /// Bidirectional layers over patches of an image: ViT.
    Vision,
}

/// Which projections of attention have a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bias {
    /// None of them.
    #[default]
    None,
    /// Those to queries, keys and values.
    Qkv,
    /// The output's too.
    All,
}

/// The kind of norm, as far as it decides how many weights it has.
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
    /// Weights for each element of the width.
    #[must_use]
    pub fn weights(self) -> f64 {
        if self == NormKind::LayerNorm { 2.0 } else { 1.0 }
    }
}

/// Whether queries and keys are normalized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum QkNorm {
    /// They are not.
    #[default]
    None,
    /// Head by head, with one set of weights for all heads.
    Head,
    /// Over all heads together.
    Full,
}

/// How keys and values are shared among query heads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Every query head has its own: MHA.
    MultiHead,
    /// A group of query heads shares them: GQA.
    GroupedQuery,
    /// All query heads share one: MQA.
    MultiQuery,
    /// All are expanded from one compressed vector: MLA.
    Latent,
}

impl Sharing {
    /// The literature's abbreviation.
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
    /// Rank of the queries' compression, where they are not projected directly.
    pub q_lora_rank: Option<Count>,
    /// Rank of the joint compression of keys and values.
    pub kv_lora_rank: Count,
    /// Width of a head's query and key without position.
    pub qk_nope_dim: Count,
    /// Width of the rotary part, one key for all heads.
    pub qk_rope_dim: Count,
    /// Width of a head's value.
    pub v_head_dim: Count,
    /// Whether all heads attend to the compressed vector itself, which no projection expands (DeepSeek-V4).
    pub direct: bool,
    /// Attention's output is projected in two steps, where it has a low rank.
    pub output: Option<LowRank>,
}

/// A projection in two steps: groups of columns to a small rank each, all ranks together to the hidden size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowRank {
    /// Columns that a group is projected to.
    pub rank: Count,
    /// Groups of heads.
    pub groups: Count,
}

/// The indexer of sparse attention, which picks the keys that queries attend to (DeepSeek-V3.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Indexer {
    /// Its heads.
    pub heads: Count,
    /// Width of one.
    pub dim: Count,
    /// Keys that it picks.
    pub top_k: Count,
}

/// Which recurrence a linear mixer runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LinearKind {
    /// Mamba (arXiv 2312.00752).
    Mamba1,
    /// Mamba-2 (arXiv 2405.21060).
    #[default]
    Mamba2,
    /// Gated delta rule (arXiv 2412.06464).
    GatedDelta,
}

/// Mixers whose cost is linear in the sequence, in some layers or all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Linear {
    /// Which recurrence.
    pub kind: LinearKind,
    /// Layers that have it.
    pub layers: Count,
    /// Heads (delta rule: value heads).
    pub heads: Count,
    /// Width of one.
    pub head_dim: Count,
    /// Width of a head's state (delta rule: of a key).
    pub state: Count,
    /// Groups of heads that share what reads and writes the state (delta rule: key heads).
    pub groups: Count,
    /// Taps of the short convolution before it.
    pub taps: Count,
}

/// Attention that looks back only so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Tokens looked back on.
    pub size: Count,
    /// Share of the layers that have the window.
    pub share: f64,
}

/// Mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Experts {
    /// Routed experts of one layer.
    pub count: Count,
    /// Routed experts that one token passes.
    pub per_token: Count,
    /// Width of one routed expert.
    pub ffn_hidden_size: Count,
    /// Width of all shared experts together.
    pub shared_ffn_hidden_size: Count,
    /// Whether the shared experts have a gate of their own.
    pub shared_gate: bool,
    /// Leading layers with a dense MLP.
    pub first_dense_layers: Count,
    /// Every n-th of the other layers is a mixture of experts.
    pub layer_step: Count,
    /// Width that routed experts read and write, where tokens are projected down for them.
    pub hidden_size: Option<Count>,
}

/// Patches in, classes out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patches {
    /// Side of the square image, pixels.
    pub image_size: Count,
    /// Side of a patch, pixels.
    pub patch_size: Count,
    /// Classes described apart; none where a language model reads what comes out.
    pub classes: Count,
}

/// A transformer in plain numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Transformer {
    /// How its layers are arranged.
    pub kind: TransformerKind,
    /// Width of the residual stream.
    pub hidden_size: Count,
    /// Layers; of each half where encoder and decoder are two.
    pub n_layers: Count,
    /// Query heads.
    pub n_heads: Count,
    /// Key-value heads.
    pub n_kv_heads: Count,
    /// Width of a query head; a fraction where heads do not divide the hidden size and nothing is stated.
    pub head_dim: f64,
    /// Compressed attention in place of plain projections.
    pub latent: Option<Latent>,
    /// The indexer of sparse attention.
    pub indexer: Option<Indexer>,
    /// Sliding or chunked window.
    pub window: Option<Window>,
    /// Residual streams that blocks read from and write to (hyper-connections, arXiv 2512.24880); 1: a plain residual.
    pub residual_streams: Count,
    /// Layers that have attention: all but in hybrids.
    pub attention_layers: Count,
    /// Layers that have an MLP or a mixture of experts: all unless mixers and MLPs are layers of their own.
    pub mlp_layers: Count,
    /// Linear mixers of the layers without attention.
    pub linear: Option<Linear>,
    /// Whether attention's output passes a gate as wide as the queries.
    pub attention_gate: bool,
    /// Biases of attention's projections.
    pub attention_bias: Bias,
    /// Width of the dense MLP.
    pub ffn_hidden_size: Count,
    /// Whether the MLP is gated (SwiGLU, GeGLU): three matrices rather than two.
    pub gated_mlp: bool,
    /// Whether the MLP's projections have biases.
    pub mlp_bias: bool,
    /// Mixture of experts in place of the dense MLP.
    pub experts: Option<Experts>,
    /// Tokens of the vocabulary; 0 for vision.
    pub vocab_size: Count,
    /// Longest sequence, tokens.
    pub max_context: Count,
    /// Whether the output layer is the embedding's matrix.
    pub tied_embeddings: bool,
    /// Whether positions are learned, a row for each of `max_context`.
    pub learned_positions: bool,
    /// Kind of norm.
    pub norm: NormKind,
    /// Norms of one layer.
    pub norms_per_layer: Count,
    /// Norm of queries and keys.
    pub qk_norm: QkNorm,
    /// The frame of a vision transformer.
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
