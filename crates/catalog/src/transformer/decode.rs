//! A transformer as `models.yaml` describes it.

use super::{Bias, Experts, Indexer, Kind, Latent, Linear, LinearKind, NormKind, Patches, QkNorm, Transformer, Window};
use atlas_document::decode::{Bounds, Fields};

const WIDTH: Bounds = Bounds { max: 1e8, ..Bounds::COUNT };
const NATURAL: Bounds = Bounds { max: 1e8, ..Bounds::NATURAL };

impl Transformer {
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Transformer> {
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
            // DeepSeek-V3.2 trains and serves with 2048 (arXiv 2512.02556, section 2.1).
            let top_k = indexer.number("top_k", WIDTH).unwrap_or(2048.0);
            Some(Indexer { heads: heads?, dim: dim?, top_k })
        });
        let window = fields.map("window", |window| {
            let size = window.required_number("size", WIDTH);
            let share = window.number("share", Bounds::SHARE).unwrap_or(1.0);
            size.map(|size| Window { size, share })
        });
        let linear = fields.map("linear", Linear::decode).flatten();
        let attention_layers = fields.number("attention_layers", Bounds { max: 1e4, ..NATURAL });
        let mlp_layers = fields.number("mlp_layers", Bounds { max: 1e4, ..NATURAL });
        let attention_gate = fields.boolean("attention_gate").unwrap_or(false);
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
        let n_layers = n_layers?;
        let linear_layers = linear.as_ref().map_or(0.0, |linear| linear.layers);
        for (key, count) in [("attention_layers", attention_layers), ("mlp_layers", mlp_layers)] {
            if let Some(count) = count.filter(|count| *count > n_layers) {
                fields.error(key, format!("found {count}, more than the {n_layers} layers there are"), None);
            }
        }
        if linear_layers > n_layers {
            let message = format!("found {linear_layers} layers, more than the {n_layers} there are");
            fields.error("linear", message, None);
        }
        let (norm, norms_per_layer, qk_norm) = norm.unwrap_or((NormKind::default(), 2.0, QkNorm::default()));
        Some(Transformer {
            kind,
            hidden_size,
            n_layers,
            n_heads,
            n_kv_heads: n_kv_heads.unwrap_or(n_heads),
            head_dim: head_dim.unwrap_or(hidden_size / n_heads),
            latent,
            indexer: indexer.flatten(),
            window: window.flatten(),
            attention_layers: attention_layers.unwrap_or((n_layers - linear_layers).max(0.0)),
            mlp_layers: mlp_layers.unwrap_or(n_layers),
            linear,
            attention_gate,
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
        let q_lora_rank = mla.number("q_lora_rank", NATURAL).filter(|rank| *rank > 0.0);
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
        let hidden_size = moe.number("hidden_size", NATURAL).filter(|width| *width > 0.0);
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
            hidden_size,
        })
    }
}

impl Linear {
    fn decode(linear: &mut Fields<'_>) -> Option<Linear> {
        let kinds = [("mamba1", LinearKind::Mamba1), ("mamba2", LinearKind::Mamba2), ("delta", LinearKind::GatedDelta)];
        let kind = linear.choice("type", &kinds).unwrap_or_default();
        let layers = linear.required_number("layers", Bounds { max: 1e4, ..WIDTH });
        let heads = linear.required_number("heads", WIDTH);
        let head_dim = linear.required_number("head_dim", WIDTH);
        let state = linear.required_number("state", WIDTH);
        let groups = linear.number("groups", WIDTH).unwrap_or(1.0);
        let taps = linear.number("taps", WIDTH).unwrap_or(4.0);
        Some(Linear { kind, layers: layers?, heads: heads?, head_dim: head_dim?, state: state?, groups, taps })
    }
}
