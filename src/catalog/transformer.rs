//! Transformers: widths and counts, under the names that `config.json` files use.

use crate::spec::decode::{Bounds, Fields};

/// How its layers are arranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
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

/// Whether queries and keys are normalised.
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
    /// Rank of the queries' compression; 0 where they are projected directly.
    pub q_lora_rank: f64,
    /// Rank of the joint compression of keys and values.
    pub kv_lora_rank: f64,
    /// Width of a head's query and key without position.
    pub qk_nope_dim: f64,
    /// Width of the rotary part, one key for all heads.
    pub qk_rope_dim: f64,
    /// Width of a head's value.
    pub v_head_dim: f64,
}

/// The indexer of sparse attention, which picks the keys that queries attend to (DeepSeek-V3.2).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Indexer {
    /// Its heads.
    pub heads: f64,
    /// Width of one.
    pub dim: f64,
}

/// Attention that looks back only so far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Tokens looked back on.
    pub size: f64,
    /// Share of the layers that have the window.
    pub share: f64,
}

/// Mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Experts {
    /// Routed experts of one layer.
    pub count: f64,
    /// Routed experts that one token passes.
    pub per_token: f64,
    /// Width of one routed expert.
    pub ffn_hidden_size: f64,
    /// Width of all shared experts together; 0 without them.
    pub shared_ffn_hidden_size: f64,
    /// Whether the shared experts have a gate of their own.
    pub shared_gate: bool,
    /// Leading layers with a dense MLP.
    pub first_dense_layers: f64,
    /// Every n-th of the other layers is a mixture of experts.
    pub layer_step: f64,
}

/// Patches in, classes out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Patches {
    /// Side of the square image, pixels.
    pub image_size: f64,
    /// Side of a patch, pixels.
    pub patch_size: f64,
    /// Classes told apart.
    pub classes: f64,
}

/// A transformer in plain numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Transformer {
    /// How its layers are arranged.
    pub kind: Kind,
    /// Width of the residual stream.
    pub hidden_size: f64,
    /// Layers; of each half where encoder and decoder are two.
    pub n_layers: f64,
    /// Query heads.
    pub n_heads: f64,
    /// Key-value heads.
    pub n_kv_heads: f64,
    /// Width of a query head.
    pub head_dim: f64,
    /// Compressed attention in place of plain projections.
    pub latent: Option<Latent>,
    /// The indexer of sparse attention.
    pub indexer: Option<Indexer>,
    /// Sliding or chunked window.
    pub window: Option<Window>,
    /// Biases of attention's projections.
    pub attention_bias: Bias,
    /// Width of the dense MLP.
    pub ffn_hidden_size: f64,
    /// Whether the MLP is gated (SwiGLU, GeGLU): three matrices rather than two.
    pub gated_mlp: bool,
    /// Whether the MLP's projections have biases.
    pub mlp_bias: bool,
    /// Mixture of experts in place of the dense MLP.
    pub experts: Option<Experts>,
    /// Tokens of the vocabulary; 0 for vision.
    pub vocab_size: f64,
    /// Longest sequence, tokens.
    pub max_context: f64,
    /// Whether the output layer is the embedding's matrix.
    pub tied_embeddings: bool,
    /// Whether positions are learned, a row for each of `max_context`.
    pub learned_positions: bool,
    /// Kind of norm.
    pub norm: NormKind,
    /// Norms of one layer.
    pub norms_per_layer: f64,
    /// Norm of queries and keys.
    pub qk_norm: QkNorm,
    /// The frame of a vision transformer.
    pub patches: Option<Patches>,
}

const WIDTH: Bounds = Bounds { max: 1e8, ..Bounds::COUNT };
const NATURAL: Bounds = Bounds { max: 1e8, ..Bounds::NATURAL };

impl Transformer {
    /// How keys and values are shared.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        match self.latent {
            Some(_) => Sharing::Latent,
            None if self.n_kv_heads >= self.n_heads => Sharing::MultiHead,
            None if self.n_kv_heads <= 1.0 => Sharing::MultiQuery,
            None => Sharing::GroupedQuery,
        }
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Option<Transformer> {
        let kinds = [
            ("decoder", Kind::Decoder),
            ("encoder", Kind::Encoder),
            ("encoder_decoder", Kind::EncoderDecoder),
            ("vision", Kind::Vision),
        ];
        let kind = fields.choice("kind", &kinds).unwrap_or_default();
        let hidden_size = fields.required_number("hidden_size", WIDTH);
        let n_layers = fields.required_number("n_layers", Bounds { max: 1e4, ..WIDTH });
        let heads = fields.required_map("heads", &["query"], |heads| {
            let query = heads.required_number("query", WIDTH);
            (query, heads.number("kv", WIDTH), heads.number("dim", WIDTH))
        });
        let latent = fields.map("mla", Latent::decode).flatten();
        let indexer = fields.map("indexer", |indexer| {
            let heads = indexer.required_number("heads", WIDTH);
            let dim = indexer.required_number("dim", WIDTH);
            Some(Indexer { heads: heads?, dim: dim? })
        });
        let window = fields.map("window", |window| {
            let size = window.required_number("size", WIDTH);
            let share = window.number("share", Bounds::SHARE).unwrap_or(1.0);
            size.map(|size| Window { size, share })
        });
        let biases = [("none", Bias::None), ("qkv", Bias::Qkv), ("all", Bias::All)];
        let attention_bias = fields.choice("attention_bias", &biases).unwrap_or_default();
        let mlp = fields.required_map("mlp", &["ffn_hidden_size", "gated"], |mlp| {
            let ffn_hidden_size = mlp.required_number("ffn_hidden_size", WIDTH);
            let gated = mlp.boolean("gated");
            if gated.is_none() {
                mlp.missing("gated");
            }
            (ffn_hidden_size, gated, mlp.boolean("bias").unwrap_or(false))
        });
        let experts = fields.map("moe", Experts::decode).flatten();
        let vocab_size = match kind {
            Kind::Vision => Some(0.0),
            _ => fields.required_number("vocab_size", WIDTH),
        };
        let max_context = fields.required_number("max_context", Bounds { max: 1e10, ..WIDTH });
        let tied_embeddings = fields.boolean("tied_embeddings").unwrap_or(false);
        let learned_positions = fields.boolean("learned_positions").unwrap_or(false);
        let norm = fields.map("norm", |norm| {
            let kinds = [
                ("rmsnorm", NormKind::RmsNorm),
                ("layernorm", NormKind::LayerNorm),
                ("layernorm_no_bias", NormKind::LayerNormNoBias),
            ];
            let kind = norm.choice("type", &kinds).unwrap_or_default();
            let per_layer = norm.number("per_layer", Bounds { max: 16.0, ..NATURAL }).unwrap_or(2.0);
            let of = [("none", QkNorm::None), ("head", QkNorm::Head), ("full", QkNorm::Full)];
            (kind, per_layer, norm.choice("qk", &of).unwrap_or_default())
        });
        let patches = fields.map("vision", |vision| {
            let image_size = vision.required_number("image_size", WIDTH);
            let patch_size = vision.required_number("patch_size", WIDTH);
            let classes = vision.required_number("classes", WIDTH);
            Some(Patches { image_size: image_size?, patch_size: patch_size?, classes: classes? })
        });
        let (n_heads, n_kv_heads, head_dim) = heads?;
        let (ffn_hidden_size, gated_mlp, mlp_bias) = mlp?;
        let (hidden_size, n_heads) = (hidden_size?, n_heads?);
        let (norm, norms_per_layer, qk_norm) = norm.unwrap_or((NormKind::default(), 2.0, QkNorm::default()));
        Some(Transformer {
            kind,
            hidden_size,
            n_layers: n_layers?,
            n_heads,
            n_kv_heads: n_kv_heads.unwrap_or(n_heads),
            head_dim: head_dim.unwrap_or(hidden_size / n_heads),
            latent,
            indexer: indexer.flatten(),
            window: window.flatten(),
            attention_bias,
            ffn_hidden_size: ffn_hidden_size?,
            gated_mlp: gated_mlp?,
            mlp_bias,
            experts,
            vocab_size: vocab_size?,
            max_context: max_context?,
            tied_embeddings,
            learned_positions,
            norm,
            norms_per_layer,
            qk_norm,
            patches: patches.flatten(),
        })
    }
}

impl Latent {
    fn decode(mla: &mut Fields<'_>) -> Option<Latent> {
        let q_lora_rank = mla.number("q_lora_rank", NATURAL).unwrap_or(0.0);
        let kv_lora_rank = mla.required_number("kv_lora_rank", WIDTH);
        let qk_nope_dim = mla.required_number("qk_nope_dim", WIDTH);
        let qk_rope_dim = mla.required_number("qk_rope_dim", WIDTH);
        let v_head_dim = mla.required_number("v_head_dim", WIDTH);
        Some(Latent {
            q_lora_rank,
            kv_lora_rank: kv_lora_rank?,
            qk_nope_dim: qk_nope_dim?,
            qk_rope_dim: qk_rope_dim?,
            v_head_dim: v_head_dim?,
        })
    }
}

impl Experts {
    fn decode(moe: &mut Fields<'_>) -> Option<Experts> {
        let count = moe.required_number("experts", WIDTH);
        let per_token = moe.required_number("per_token", WIDTH);
        let ffn_hidden_size = moe.required_number("ffn_hidden_size", WIDTH);
        let shared = moe.number("shared_experts", NATURAL).unwrap_or(0.0);
        let shared_width = moe.number("shared_ffn_hidden_size", NATURAL);
        let shared_gate = moe.boolean("shared_gate").unwrap_or(false);
        let first_dense_layers = moe.number("first_dense_layers", NATURAL).unwrap_or(0.0);
        let layer_step = moe.number("layer_step", WIDTH).unwrap_or(1.0);
        if let (Some(count), Some(per_token)) = (count, per_token)
            && per_token > count
        {
            moe.error("per_token", format!("found {per_token}, more than the {count} experts there are"), None);
        }
        let ffn_hidden_size = ffn_hidden_size?;
        Some(Experts {
            count: count?,
            per_token: per_token?,
            ffn_hidden_size,
            shared_ffn_hidden_size: shared * shared_width.unwrap_or(ffn_hidden_size),
            shared_gate,
            first_dense_layers,
            layer_step,
        })
    }
}
