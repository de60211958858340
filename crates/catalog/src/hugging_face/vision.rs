//! Decodes the `vision_config` of a config: how the model processes images.

use crate::images::{ImageSizes, Images, Projector};
use crate::transformer::{Bias, NormKind, Patches, QkNorm, Transformer, TransformerKind};
use atlas_core::count::Count;
use atlas_document::decode::{Bounds, Fields};
use atlas_document::node::Node;

const WIDTH: Bounds = Bounds { max: 1e8, ..Bounds::COUNT };

/// Properties of an encoder that are in its code rather than in its config.
#[derive(Clone, Copy)]
struct EncoderDefaults {
    gated: bool,
    biases: bool,
    norm: NormKind,
    /// Whether position embeddings are learned, one for each patch of an image of the default size.
    learned_positions: bool,
}

/// CLIP (arXiv 2103.00020) and SigLIP (arXiv 2303.15343).
const CLIP: EncoderDefaults =
    EncoderDefaults { gated: false, biases: true, norm: NormKind::LayerNorm, learned_positions: true };
/// Pixtral (arXiv 2410.07073, section 2.1).
const PIXTRAL: EncoderDefaults =
    EncoderDefaults { gated: true, biases: false, norm: NormKind::RmsNorm, learned_positions: false };
/// Qwen2.5-VL (arXiv 2502.13923, section 2.1.1). Its successor has a SigLIP encoder again.
const QWEN: EncoderDefaults =
    EncoderDefaults { gated: true, biases: true, norm: NormKind::RmsNorm, learned_positions: false };

/// Decodes the vision encoder of a config with a `vision_config`. Returns `None` and adds a warning for unknown types.
pub(super) fn images(root: &mut Fields<'_>, model_type: Option<&str>, language: &Transformer) -> Option<Images> {
    root.all();
    let inner = root.node("vision_config").and_then(|node| node.get("model_type")).and_then(Node::text);
    let language_size = Some(language.hidden_size);
    let scalar = |fields: &mut Fields<'_>, key| count(fields, key);
    let merged = Projector { input_size: None, hidden_size: None, count: Count::ONE };
    let two_matrices = Projector { hidden_size: language_size, ..merged };
    match (model_type, inner) {
        (Some("qwen2_5_vl"), _) => {
            let (encoder, merge) = encoder(root, QWEN, "depth", Some(Count::new(1008)))?;
            let hidden_size = merge.map(|merge| Count::floor(encoder.hidden_size * merge * merge));
            Some(build_images(
                encoder,
                merge.unwrap_or(Count::new(2)),
                ImageSizes::Any,
                Projector { hidden_size, ..merged },
            ))
        }
        (Some("qwen3_vl" | "qwen3_vl_moe"), _) => {
            // The outputs of some intermediate layers are projected, too (DeepStack, arXiv 2406.04334).
            let inside = root.node("vision_config").and_then(|node| node.get("deepstack_visual_indexes"));
            let inside = Count::floor(inside.and_then(Node::items).map_or(0, <[Node]>::len) as f64);
            let (encoder, merge) = encoder(root, CLIP, "depth", Some(Count::new(768)))?;
            let hidden_size = merge.map(|merge| Count::floor(encoder.hidden_size * merge * merge));
            let projector = Projector { hidden_size, count: Count::floor(1.0 + inside), ..merged };
            Some(build_images(encoder, merge.unwrap_or(Count::new(2)), ImageSizes::Any, projector))
        }
        (Some("llava" | "mistral3" | "pixtral"), Some("pixtral")) => {
            let merge = scalar(root, "spatial_merge_size").unwrap_or(Count::ONE);
            let (encoder, _) = encoder(root, PIXTRAL, "num_hidden_layers", None)?;
            Some(build_images(encoder, merge, ImageSizes::Any, two_matrices))
        }
        (Some("llava"), _) => {
            let (encoder, _) = encoder(root, CLIP, "num_hidden_layers", None)?;
            Some(build_images(encoder, Count::ONE, ImageSizes::Fixed, two_matrices))
        }
        (Some("gemma3"), _) => {
            let tokens = scalar(root, "mm_tokens_per_image").unwrap_or(Count::new(256));
            let (encoder, _) = encoder(root, CLIP, "num_hidden_layers", None)?;
            let patches = encoder.patches.map_or(1.0, |of| of.image_size / of.patch_size.max(Count::ONE));
            let merge = Count::floor((patches / f64::from(tokens).sqrt()).round()).max(Count::ONE);
            let pooled = Projector { input_size: Some(encoder.hidden_size), ..merged };
            Some(build_images(encoder, merge, ImageSizes::Fixed, pooled))
        }
        (Some("internvl_chat" | "internvl"), _) => {
            let ratio = root.number("downsample_ratio", Bounds::SHARE).unwrap_or(0.5);
            let most_tiles = scalar(root, "max_dynamic_patch").unwrap_or(Count::new(12));
            let (encoder, _) = encoder(root, CLIP, "num_hidden_layers", None)?;
            let merge = Count::floor((1.0 / ratio.max(0.01)).round());
            Some(Images { most_tiles, ..build_images(encoder, merge, ImageSizes::Tiles, two_matrices) })
        }
        (other, _) => {
            let kind = other.unwrap_or("none");
            let message = format!("the image input of type `{kind}` is not supported; using only the language model");
            root.warn("vision_config", message, None);
            None
        }
    }
}

fn build_images(encoder: Transformer, merge: Count, sizes: ImageSizes, projector: Projector) -> Images {
    Images { encoder, merge, sizes, most_tiles: Count::ONE, projector }
}

/// Returns a count, which some configs state as a list of width and height.
fn count(fields: &mut Fields<'_>, key: &'static str) -> Option<Count> {
    let first = fields.node(key).and_then(Node::items).and_then(|items| items.first()).and_then(Node::number);
    match first {
        Some(value) => Count::from_exact(value).filter(|count| WIDTH.contains(f64::from(*count))),
        None => fields.count(key, WIDTH),
    }
}

/// Decodes the encoder, and, if stated, the side of the square of patches that are merged into one token.
fn encoder(
    root: &mut Fields<'_>,
    known: EncoderDefaults,
    depth: &'static str,
    default_image_size: Option<Count>,
) -> Option<(Transformer, Option<Count>)> {
    root.map("vision_config", |vision| {
        vision.all();
        let hidden_size = vision.required_count("hidden_size", WIDTH);
        let n_layers = vision.required_count(depth, Bounds { max: 1e4, ..WIDTH });
        let heads = if vision.node("num_heads").is_some() { "num_heads" } else { "num_attention_heads" };
        let n_heads = vision.required_count(heads, WIDTH);
        let ffn_hidden_size = vision.required_count("intermediate_size", WIDTH);
        let patch_size = count(vision, "patch_size").unwrap_or(Count::new(14));
        let image_size = count(vision, "image_size").or(default_image_size).unwrap_or(Count::new(448));
        let merge = vision.count("spatial_merge_size", WIDTH);
        let window = vision.count("window_size", WIDTH);
        let whole = vision.node("fullatt_block_indexes").and_then(Node::items).map(<[Node]>::len);
        let (hidden_size, n_layers, n_heads) = (hidden_size?, n_layers?, n_heads?);
        let across = Count::floor((image_size / patch_size.max(Count::ONE)).floor());
        let encoder = Transformer {
            kind: TransformerKind::Vision,
            hidden_size,
            n_layers,
            n_heads,
            n_kv_heads: n_heads,
            head_dim: hidden_size / n_heads.max(Count::ONE),
            latent: None,
            indexer: None,
            // Windows are squares of `side` pixels. `size` is half of the patches of a square, because a patch attends
            // to that many others on either side.
            window: window.zip(whole).map(|(side, whole)| {
                let across = (side / patch_size.max(Count::ONE)).floor().max(1.0);
                let size = Count::floor((0.5 * across * across).ceil());
                let share = (1.0 - whole as f64 / n_layers).clamp(0.0, 1.0);
                crate::transformer::Window { size, share, chunked: false }
            }),
            attention_layers: n_layers,
            mlp_layers: n_layers,
            linear: None,
            residual_streams: Count::ONE,
            attention_gate: false,
            attention_bias: if known.biases { Bias::All } else { Bias::None },
            ffn_hidden_size: ffn_hidden_size?,
            gated_mlp: known.gated,
            mlp_bias: known.biases,
            experts: None,
            vocab_size: None,
            max_context: Count::floor(across * across + 1.0),
            tied_embeddings: false,
            learned_positions: known.learned_positions,
            norm: known.norm,
            norms_per_layer: Count::new(2),
            qk_norm: QkNorm::None,
            patches: Some(Patches { image_size, patch_size, classes: Count::ZERO }),
        };
        Some((encoder, merge))
    })
    .flatten()
}
