//! Models read from a Hugging Face `config.json`, to whose path `model:` of a workload may refer.
//!
//! The config states widths and counts. Properties that are only in the model's code are in `family`, by `model_type`.
//! An unknown type is read as a decoder like Llama, with a warning.

mod family;
mod quantization;
mod vision;

use std::path::Path;
use std::sync::Arc;

use self::family::{ExpertKeys, FALLBACK, Family, KNOWN};
use super::model::{Architecture, Model};
use super::transformer::{Bias, Experts, Indexer, Latent, Transformer, TransformerKind, Window};
use atlas_core::count::Count;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::node::Position;
use atlas_document::parse::parse;
use atlas_document::sources::read_text;
use atlas_document::suggestion::did_you_mean;
use atlas_document::{Diagnostic, Diagnostics, Node, Origin, Severity};

const WIDTH: Bounds = Bounds { max: 1e8, ..Bounds::COUNT };
const NATURAL: Bounds = Bounds { max: 1e10, ..Bounds::NATURAL };

/// Reads a config file.
///
/// # Errors
/// Returns all missing or invalid fields, or why the file cannot be read.
pub fn read(path: &Path) -> Result<Model, Diagnostics> {
    let file: Arc<str> = path.display().to_string().into();
    let mut problems = Diagnostics::new();
    let folder = path.parent().and_then(Path::file_name);
    let stem = path.file_stem().filter(|stem| *stem != "config");
    let id = stem.or(folder).map_or_else(|| "config".to_owned(), |name| name.to_string_lossy().into_owned());
    match read_text(path) {
        Ok(text) => match decode(&file, &id, &text, &mut problems) {
            Some(model) => Ok(Model { warnings: problems, ..model }),
            None => Err(problems),
        },
        Err(message) => {
            problems.push(whole_file(&file, message));
            Err(problems)
        }
    }
}

/// Decodes the text of a config. Problems are added to `diagnostics`. Returns `None` if there are errors.
pub fn decode(file: &Arc<str>, id: &str, text: &str, diagnostics: &mut Diagnostics) -> Option<Model> {
    // JSON is a subset of YAML except for tabs between tokens, and the YAML parser reports positions.
    let mut as_yaml = Diagnostics::new();
    let root = match parse(file, text, &mut as_yaml).filter(|_| !as_yaml.has_errors()) {
        Some(root) => root,
        None => match serde_json::from_str::<Node>(text) {
            Ok(root) => root,
            Err(error) => {
                diagnostics.push(whole_file(file, format!("not JSON: {error}")));
                return None;
            }
        },
    };
    let before = diagnostics.errors();
    let outer_type = root.get("model_type").and_then(Node::text).map(str::to_owned);
    // Multimodal models describe their language model in a separate section.
    let parts = ["text_config", "language_config", "llm_config"];
    let part = parts.iter().find_map(|key| root.get(key)).filter(|node| node.entries().is_some());
    let node = part.unwrap_or(&root);
    let model_type = node.get("model_type").and_then(Node::text).map(str::to_owned).or_else(|| outer_type.clone());
    let nvfp4 = root.get("quantization_config").is_some_and(quantization::is_nvfp4);
    let native_format = Fields::open(file, id, &root, diagnostics).and_then(|mut fields| {
        fields.all();
        let format = quantization::native_format(&mut fields);
        fields.finish();
        format
    });
    let mut fields = Fields::open(file, id, node, diagnostics)?;
    // Configs have many keys that do not describe the architecture, so unknown keys are not reported.
    fields.all();
    let family = choose_family(&mut fields, model_type.as_deref());
    let tied = root.get("tie_word_embeddings").map(|node| node.value == atlas_document::Value::Bool(true));
    let transformer = transformer(&mut fields, &family, tied);
    fields.finish();
    let images = match (transformer.as_ref(), root.get("vision_config").filter(|node| node.entries().is_some())) {
        (Some(language), Some(_)) => Fields::open(file, id, &root, diagnostics)
            .and_then(|mut fields| vision::images(&mut fields, outer_type.as_deref(), language)),
        _ => None,
    };
    if diagnostics.errors() > before {
        return None;
    }
    Some(Model {
        id: id.to_owned(),
        aliases: Vec::new(),
        name: id.to_owned(),
        family: Some(family.name.to_owned()),
        published_total_b: None,
        published_active_b: None,
        published_tokens: None,
        native_format,
        nvfp4,
        drafts: Vec::new(),
        architecture: Architecture::Transformer(Box::new(transformer?)),
        note: part.filter(|_| images.is_none()).map(|_| "language model of a multimodal model".to_owned()),
        images: images.map(Box::new),
        unknown_type: model_type.filter(|name| family::family(name).is_none()).map(Into::into),
        warnings: Diagnostics::new(),
        source: Some(file.to_string()),
        origin: Origin { file: Arc::clone(file), at: root.at },
    })
}

fn whole_file(file: &Arc<str>, message: String) -> Diagnostic {
    let (file, at) = (Arc::clone(file), Position::default());
    Diagnostic { severity: Severity::Error, file, at, path: String::new(), message, help: None }
}

fn choose_family(fields: &mut Fields<'_>, model_type: Option<&str>) -> Family {
    match model_type {
        None => fields.missing("model_type"),
        Some(name) => match family::family(name) {
            Some(family) => return family,
            None if name.starts_with("mllama") => {
                fields.error(
                    "model_type",
                    format!("found `{name}`, whose cross-attention layers are not modeled"),
                    None,
                );
            }
            None => {
                let help = did_you_mean(name, KNOWN.iter().copied());
                let message = format!("unknown type `{name}`; treating it as a Llama-like decoder");
                fields.warn("model_type", message, help);
            }
        },
    }
    FALLBACK
}

/// Returns the count under `key`, or under `other` if the former is absent.
fn count_under_either_key(
    fields: &mut Fields<'_>,
    key: &'static str,
    other: &'static str,
    bounds: Bounds,
) -> Option<Count> {
    if fields.node(key).is_some() { fields.count(key, bounds) } else { fields.count(other, bounds) }
}

/// Like [`count_under_either_key`], but reports the field as missing if neither is present.
fn required_count_under_either_key(fields: &mut Fields<'_>, key: &'static str, other: &'static str) -> Option<Count> {
    if fields.node(key).is_none() && fields.node(other).is_none() {
        fields.missing(key);
        return None;
    }
    count_under_either_key(fields, key, other, WIDTH)
}

fn transformer(fields: &mut Fields<'_>, family: &Family, tied: Option<bool>) -> Option<Transformer> {
    let hidden_size = required_count_under_either_key(fields, "hidden_size", "n_embd");
    let n_layers = required_count_under_either_key(fields, "num_hidden_layers", "n_layer");
    let n_heads = required_count_under_either_key(fields, "num_attention_heads", "n_head");
    let vocab_size = fields.required_count("vocab_size", WIDTH);
    let max_context = required_count_under_either_key(fields, "max_position_embeddings", "n_positions");
    let n_kv_heads = fields.count("num_key_value_heads", WIDTH);
    let head_dim = fields.count("head_dim", WIDTH);
    let latent = latent(fields);
    let indexer = indexer(fields);
    let gpt2 = family.learned_positions && family.kind == TransformerKind::Decoder;
    let ffn = match family.experts {
        ExpertKeys::Llama4 => count_under_either_key(fields, "intermediate_size_mlp", "intermediate_size", WIDTH),
        // The feed-forward width of GPT-2 defaults to four times the hidden size.
        _ if gpt2 => fields.count("n_inner", WIDTH).or(hidden_size.map(|hidden| Count::floor(4.0 * hidden))),
        _ => fields.required_count("intermediate_size", WIDTH),
    };
    let experts = experts(fields, family, n_layers);
    let window = window(fields, family);
    let attention_bias = match fields.boolean("attention_bias").or_else(|| fields.boolean("qkv_bias")) {
        Some(true) => family.bias_if_stated,
        // Some exports of Qwen2 state `attention_bias: false` although the model ignores the key.
        Some(false) if family.attention_bias != Bias::Qkv => Bias::None,
        _ => family.attention_bias,
    };
    let mlp_bias = fields.boolean("mlp_bias").unwrap_or(family.mlp_bias);
    let tied_embeddings = fields.boolean("tie_word_embeddings").or(tied).unwrap_or(family.tied_embeddings);
    let qk_norm = match fields.boolean("use_qk_norm") {
        Some(true) => super::transformer::QkNorm::Head,
        _ => family.qk_norm,
    };
    let (hidden_size, n_heads) = (hidden_size?, n_heads?);
    let usual_head = family.head_dim.map_or(hidden_size / n_heads, f64::from);
    let head_dim = match (&latent, head_dim) {
        (Some(latent), _) => latent.qk_nope_dim + latent.qk_rope_dim,
        (None, stated) => stated.map_or(usual_head, f64::from),
    };
    let n_kv_heads = n_kv_heads.unwrap_or(n_heads);
    if latent.is_none() && head_dim.fract() != 0.0 {
        let message = format!("found {n_heads}, expected a divisor of hidden_size ({hidden_size}), or head_dim");
        fields.error("num_attention_heads", message, None);
    }
    if latent.is_none() && f64::from(n_heads) % f64::from(n_kv_heads) != 0.0 {
        let message = format!("found {n_kv_heads}, expected a divisor of num_attention_heads ({n_heads})");
        fields.error("num_key_value_heads", message, None);
    }
    let n_layers = n_layers?;
    refuse_cross_attention(fields, n_layers)?;
    Some(Transformer {
        kind: family.kind,
        hidden_size,
        n_layers,
        n_heads,
        n_kv_heads,
        head_dim,
        latent,
        indexer,
        window,
        attention_layers: n_layers,
        mlp_layers: n_layers,
        linear: None,
        residual_streams: Count::ONE,
        attention_gate: false,
        attention_bias,
        ffn_hidden_size: ffn?,
        gated_mlp: family.gated_mlp,
        mlp_bias,
        experts,
        vocab_size: Some(vocab_size?),
        max_context: max_context?,
        tied_embeddings,
        learned_positions: family.learned_positions,
        norm: family.norm,
        norms_per_layer: family.norms_per_layer,
        qk_norm,
        patches: None,
    })
}

/// Rejects layers that only attend to images: their KV cache does not grow with the text, which [`Transformer`] cannot
/// represent.
fn refuse_cross_attention(fields: &mut Fields<'_>, layers: Count) -> Option<()> {
    let across = fields.node("cross_attention_layers").and_then(Node::items).map_or(0, <[Node]>::len);
    if across == 0 {
        return Some(());
    }
    let message = format!(
        "{across} of {layers} layers attend only to images (as in Llama 3.2 Vision), which is not supported; expected layers that \
         attend to the text"
    );
    let own = (layers - across as f64).max(0.0);
    let help = format!(
        "text without images skips these layers: for text only, remove the field and set num_hidden_layers: {own}"
    );
    fields.error("cross_attention_layers", message, Some(help));
    None
}

fn latent(fields: &mut Fields<'_>) -> Option<Latent> {
    let kv_lora_rank = fields.count("kv_lora_rank", WIDTH)?;
    let q_lora_rank = fields.count("q_lora_rank", NATURAL).and_then(Count::nonzero);
    let qk_nope_dim = fields.required_count("qk_nope_head_dim", WIDTH);
    let qk_rope_dim = fields.required_count("qk_rope_head_dim", WIDTH);
    let v_head_dim = fields.required_count("v_head_dim", WIDTH);
    Some(Latent {
        q_lora_rank,
        kv_lora_rank,
        qk_nope_dim: qk_nope_dim?,
        qk_rope_dim: qk_rope_dim?,
        v_head_dim: v_head_dim?,
        direct: false,
        output: None,
    })
}

fn indexer(fields: &mut Fields<'_>) -> Option<Indexer> {
    let heads = fields.count("index_n_heads", WIDTH);
    let dim = fields.count("index_head_dim", WIDTH);
    let top_k = fields.count("index_topk", WIDTH).unwrap_or(Count::new(2048));
    Some(Indexer { heads: heads?, dim: dim?, top_k })
}

fn experts(fields: &mut Fields<'_>, family: &Family, n_layers: Option<Count>) -> Option<Experts> {
    let (count, width) = match family.experts {
        ExpertKeys::None => return None,
        ExpertKeys::Local | ExpertKeys::Llama4 => {
            (fields.required_count("num_local_experts", WIDTH), fields.required_count("intermediate_size", WIDTH))
        }
        ExpertKeys::Qwen => {
            (fields.required_count("num_experts", WIDTH), fields.required_count("moe_intermediate_size", WIDTH))
        }
        ExpertKeys::DeepSeek => {
            (fields.required_count("n_routed_experts", WIDTH), fields.required_count("moe_intermediate_size", WIDTH))
        }
    };
    let per_token = required_count_under_either_key(fields, "num_experts_per_tok", "experts_per_token");
    let (mut first_dense_layers, mut layer_step) = (Count::ZERO, Count::ONE);
    let (mut shared_ffn_hidden_size, mut shared_gate) = (Count::ZERO, false);
    match family.experts {
        ExpertKeys::Llama4 => {
            layer_step = fields.count("interleave_moe_layer_step", WIDTH).unwrap_or(Count::ONE);
            shared_ffn_hidden_size = width.unwrap_or(Count::ZERO);
        }
        ExpertKeys::Qwen => {
            layer_step = fields.count("decoder_sparse_step", WIDTH).unwrap_or(Count::ONE);
            first_dense_layers = fields.node("mlp_only_layers").and_then(Node::items).map_or(Count::ZERO, count_of);
            if let Some(shared) = fields.count("shared_expert_intermediate_size", NATURAL) {
                (shared_ffn_hidden_size, shared_gate) = (shared, shared > Count::ZERO);
            }
        }
        ExpertKeys::DeepSeek => {
            first_dense_layers = fields.count("first_k_dense_replace", NATURAL).unwrap_or(Count::ZERO);
            layer_step = fields.count("moe_layer_freq", WIDTH).unwrap_or(Count::ONE);
            let shared = fields.count("n_shared_experts", NATURAL).unwrap_or(Count::ZERO);
            shared_ffn_hidden_size = Count::floor(shared * width.unwrap_or(Count::ZERO));
        }
        ExpertKeys::None | ExpertKeys::Local => {}
    }
    if let (Some(count), Some(per_token)) = (count, per_token)
        && per_token > count
    {
        let message = format!("found {per_token}, more than the {count} experts of the model");
        fields.error("num_experts_per_tok", message, None);
    }
    if n_layers.is_some_and(|layers| first_dense_layers > layers) {
        fields.error("first_k_dense_replace", "more dense layers than layers in the model", None);
    }
    Some(Experts {
        count: count?,
        per_token: per_token?,
        ffn_hidden_size: width?,
        shared_ffn_hidden_size,
        shared_gate,
        first_dense_layers,
        layer_step,
        hidden_size: None,
    })
}

fn window(fields: &mut Fields<'_>, family: &Family) -> Option<Window> {
    if fields.node("use_sliding_window").is_some() && fields.boolean("use_sliding_window") == Some(false) {
        return None;
    }
    let chunked = fields.node("attention_chunk_size").is_some() && fields.node("sliding_window").is_none();
    let size =
        count_under_either_key(fields, "sliding_window", "attention_chunk_size", NATURAL).and_then(Count::nonzero)?;
    let types = fields.node("layer_types").and_then(Node::items).filter(|types| !types.is_empty());
    let pattern = count_under_either_key(fields, "sliding_window_pattern", "_sliding_window_pattern", WIDTH);
    let share = match (types, pattern) {
        (Some(types), _) => {
            let full = types.iter().filter(|kind| kind.text() == Some("full_attention")).count();
            1.0 - full as f64 / count_of(types)
        }
        // Every n-th layer has full attention.
        (None, Some(pattern)) => 1.0 - 1.0 / pattern,
        (None, None) => family.window_share,
    };
    (share > 0.0).then_some(Window { size, share, chunked })
}

fn count_of(items: &[Node]) -> Count {
    Count::floor(items.len() as f64)
}
