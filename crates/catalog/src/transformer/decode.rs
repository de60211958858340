//! Decodes transformers from `models.yaml`.

use super::{
    Bias, Experts, Indexer, Latent, Linear, LinearKind, LowRank, NormKind, Patches, QkNorm, Transformer,
    TransformerKind, Window,
};
use atlas_core::count::Count;
use atlas_document::decode::{Bounds, Fields};

const WIDTH: Bounds = Bounds { max: 1e8, ..Bounds::COUNT };
const NATURAL: Bounds = Bounds { max: 1e8, ..Bounds::NATURAL };

impl Transformer {
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Transformer> {
        let kinds = [
            ("decoder", TransformerKind::Decoder),
            ("encoder", TransformerKind::Encoder),
            ("encoder_decoder", TransformerKind::EncoderDecoder),
            ("vision", TransformerKind::Vision),
        ];
        let kind = fields.choice("kind", &kinds).unwrap_or_default();
        let hidden_size = fields.required_count("hidden_size", WIDTH);
        let n_layers = fields.required_count("n_layers", Bounds { max: 1e4, ..WIDTH });
        let heads = fields.required_map("heads", &["query"], |heads| {
            let query = heads.required_count("query", WIDTH);
            (query, heads.count("kv", WIDTH), heads.count("dim", WIDTH))
        });
        let latent = fields.map("mla", Latent::decode).flatten();
        let indexer = fields.map("indexer", indexer).flatten();
        let window = fields.map("window", window).flatten();
        let residual_streams = fields.count("residual_streams", Bounds { max: 64.0, ..Bounds::COUNT });
        let linear = fields.map("linear", Linear::decode).flatten();
        let attention_layers = fields.count("attention_layers", Bounds { max: 1e4, ..NATURAL });
        let mlp_layers = fields.count("mlp_layers", Bounds { max: 1e4, ..NATURAL });
        let attention_gate = fields.boolean("attention_gate").unwrap_or(false);
        let biases = [("none", Bias::None), ("qkv", Bias::Qkv), ("all", Bias::All)];
        let attention_bias = fields.choice("attention_bias", &biases).unwrap_or_default();
        let mlp = fields.required_map("mlp", &["ffn_hidden_size", "gated"], |mlp| {
            let ffn_hidden_size = mlp.required_count("ffn_hidden_size", WIDTH);
            let gated = mlp.boolean("gated");
            if gated.is_none() {
                mlp.missing("gated");
            }
            (ffn_hidden_size, gated, mlp.boolean("bias").unwrap_or(false))
        });
        let experts = fields.map("moe", Experts::decode).flatten();
        let vocab_size = match kind {
            TransformerKind::Vision => None,
            _ => fields.required_count("vocab_size", WIDTH),
        };
        let max_context = fields.required_count("max_context", Bounds { max: 1e10, ..WIDTH });
        let tied_embeddings = fields.boolean("tied_embeddings").unwrap_or(false);
        let learned_positions = fields.boolean("learned_positions").unwrap_or(false);
        let norm = fields.map("norm", |norm| {
            let kinds = [
                ("rmsnorm", NormKind::RmsNorm),
                ("layernorm", NormKind::LayerNorm),
                ("layernorm_no_bias", NormKind::LayerNormNoBias),
            ];
            let kind = norm.choice("type", &kinds).unwrap_or_default();
            let per_layer = norm.count("per_layer", Bounds { max: 16.0, ..NATURAL }).unwrap_or(Count::new(2));
            let of = [("none", QkNorm::None), ("head", QkNorm::Head), ("full", QkNorm::Full)];
            (kind, per_layer, norm.choice("qk", &of).unwrap_or_default())
        });
        let patches = fields.map("vision", Patches::decode).flatten();
        let (n_heads, n_kv_heads, head_dim) = heads?;
        let (ffn_hidden_size, gated_mlp, mlp_bias) = mlp?;
        let (hidden_size, n_heads) = (hidden_size?, n_heads?);
        let n_layers = n_layers?;
        let linear_layers = linear.as_ref().map_or(Count::ZERO, |linear| linear.layers);
        for (key, count) in [("attention_layers", attention_layers), ("mlp_layers", mlp_layers)] {
            if let Some(count) = count.filter(|count| *count > n_layers) {
                fields.error(key, format!("found {count}, more than the {n_layers} layers of the model"), None);
            }
        }
        if linear_layers > n_layers {
            let message = format!("found {linear_layers} layers, more than the {n_layers} of the model");
            fields.error("linear", message, None);
        }
        let (norm, norms_per_layer, qk_norm) = norm.unwrap_or((NormKind::default(), Count::new(2), QkNorm::default()));
        Some(Transformer {
            kind,
            hidden_size,
            n_layers,
            n_heads,
            n_kv_heads: n_kv_heads.unwrap_or(n_heads),
            head_dim: head_dim.map_or(hidden_size / n_heads, f64::from),
            latent,
            indexer,
            window,
            residual_streams: residual_streams.unwrap_or(Count::ONE),
            attention_layers: attention_layers.unwrap_or(Count::floor(n_layers - linear_layers)),
            mlp_layers: mlp_layers.unwrap_or(n_layers),
            linear,
            attention_gate,
            attention_bias,
            ffn_hidden_size: ffn_hidden_size?,
            gated_mlp: gated_mlp?,
            mlp_bias,
            experts,
            // If it is missing, an error is reported.
            vocab_size,
            max_context: max_context?,
            tied_embeddings,
            learned_positions,
            norm,
            norms_per_layer,
            qk_norm,
            patches,
        })
    }
}

fn indexer(fields: &mut Fields<'_>) -> Option<Indexer> {
    let heads = fields.required_count("heads", WIDTH);
    let dim = fields.required_count("dim", WIDTH);
    // DeepSeek-V3.2 trains and serves with 2048 (arXiv 2512.02556, section 2.1).
    let top_k = fields.count("top_k", WIDTH).unwrap_or(Count::new(2048));
    Some(Indexer { heads: heads?, dim: dim?, top_k })
}

fn window(fields: &mut Fields<'_>) -> Option<Window> {
    let size = fields.required_count("size", WIDTH);
    let share = fields.number("share", Bounds::SHARE).unwrap_or(1.0);
    let chunked = fields.boolean("chunked").unwrap_or(false);
    size.map(|size| Window { size, share, chunked })
}

impl Patches {
    fn decode(vision: &mut Fields<'_>) -> Option<Patches> {
        let image_size = vision.required_count("image_size", WIDTH);
        let patch_size = vision.required_count("patch_size", WIDTH);
        let classes = vision.count("classes", NATURAL).unwrap_or(Count::ZERO);
        Some(Patches { image_size: image_size?, patch_size: patch_size?, classes })
    }
}

impl Latent {
    fn decode(mla: &mut Fields<'_>) -> Option<Latent> {
        let q_lora_rank = mla.count("q_lora_rank", NATURAL).and_then(Count::nonzero);
        let kv_lora_rank = mla.required_count("kv_lora_rank", WIDTH);
        let qk_nope_dim = mla.required_count("qk_nope_dim", WIDTH);
        let qk_rope_dim = mla.required_count("qk_rope_dim", WIDTH);
        let v_head_dim = mla.required_count("v_head_dim", WIDTH);
        let direct = mla.boolean("direct").unwrap_or(false);
        let rank = mla.count("o_lora_rank", WIDTH);
        let groups = mla.count("o_groups", WIDTH);
        if rank.is_none() && groups.is_some() {
            mla.missing("o_lora_rank");
        }
        Some(Latent {
            q_lora_rank,
            kv_lora_rank: kv_lora_rank?,
            qk_nope_dim: qk_nope_dim?,
            qk_rope_dim: qk_rope_dim?,
            v_head_dim: v_head_dim?,
            direct,
            output: rank.map(|rank| LowRank { rank, groups: groups.unwrap_or(Count::ONE) }),
        })
    }
}

impl Experts {
    fn decode(moe: &mut Fields<'_>) -> Option<Experts> {
        let count = moe.required_count("experts", WIDTH);
        let per_token = moe.required_count("per_token", WIDTH);
        let ffn_hidden_size = moe.required_count("ffn_hidden_size", WIDTH);
        let shared = moe.count("shared_experts", NATURAL).unwrap_or(Count::ZERO);
        let shared_width = moe.count("shared_ffn_hidden_size", NATURAL);
        let shared_gate = moe.boolean("shared_gate").unwrap_or(false);
        let first_dense_layers = moe.count("first_dense_layers", NATURAL).unwrap_or(Count::ZERO);
        let layer_step = moe.count("layer_step", WIDTH).unwrap_or(Count::ONE);
        let hidden_size = moe.count("hidden_size", NATURAL).and_then(Count::nonzero);
        if let (Some(count), Some(per_token)) = (count, per_token)
            && per_token > count
        {
            moe.error("per_token", format!("found {per_token}, more than the {count} experts of the model"), None);
        }
        let ffn_hidden_size = ffn_hidden_size?;
        Some(Experts {
            count: count?,
            per_token: per_token?,
            ffn_hidden_size,
            shared_ffn_hidden_size: Count::floor(shared * shared_width.unwrap_or(ffn_hidden_size)),
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
        let layers = linear.required_count("layers", Bounds { max: 1e4, ..WIDTH });
        let heads = linear.required_count("heads", WIDTH);
        let head_dim = linear.required_count("head_dim", WIDTH);
        let state = linear.required_count("state", WIDTH);
        let groups = linear.count("groups", WIDTH).unwrap_or(Count::ONE);
        let taps = linear.count("taps", WIDTH).unwrap_or(Count::new(4));
        Some(Linear { kind, layers: layers?, heads: heads?, head_dim: head_dim?, state: state?, groups, taps })
    }
}
