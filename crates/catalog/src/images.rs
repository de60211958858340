//! Image input of language models: an encoder of patches, whose output is projected to tokens of the prompt.

use super::transformer::{Patches, Transformer};
use atlas_core::count::Count;
use atlas_document::decode::{Bounds, Fields};

const WIDTH: Bounds = Bounds { max: 1e8, ..Bounds::COUNT };

/// Image sizes that an encoder accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ImageSizes {
    /// Any size. The number of patches depends on the size.
    #[default]
    Any,
    /// One fixed size, to which images are scaled.
    Fixed,
    /// Any size. The image is split into tiles of the encoder's size, to which a scaled-down image is added.
    Tiles,
}

/// Layers between encoder and language model: one matrix, or two with an activation in between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Projector {
    /// Input width for one token. `None`: the outputs of all patches of the token.
    pub input_size: Option<Count>,
    /// Width between the two matrices. `None` if there is only one matrix.
    pub hidden_size: Option<Count>,
    /// Number of projectors: one, plus those of intermediate encoder layers (DeepStack, arXiv 2406.04334).
    pub count: Count,
}

/// Image input of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    /// The encoder of patches.
    pub encoder: Transformer,
    /// Side of the square of patches that are merged into one token.
    pub merge: Count,
    /// Accepted image sizes.
    pub sizes: ImageSizes,
    /// Maximum number of tiles of an image, without the scaled-down image.
    pub most_tiles: Count,
    /// The projector after the encoder.
    pub projector: Projector,
}

/// Division of an image for the encoder.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ImageTiling {
    /// Number of pieces, which are encoded separately.
    pub pieces: f64,
    /// Patches per piece.
    pub patches: f64,
    /// Tokens per piece.
    pub tokens: f64,
}

impl Images {
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<Images> {
        let encoder = fields.required_map("encoder", &["hidden_size", "n_layers"], Transformer::decode).flatten();
        let merge = fields.count("merge", WIDTH).unwrap_or(Count::ONE);
        let sizes = [("any", ImageSizes::Any), ("fixed", ImageSizes::Fixed), ("tiles", ImageSizes::Tiles)];
        let sizes = fields.choice("sizes", &sizes).unwrap_or_default();
        let most_tiles = fields.count("most_tiles", WIDTH).unwrap_or(Count::ONE);
        let projector = fields.map("projector", |projector| Projector {
            input_size: projector.count("input_size", WIDTH),
            hidden_size: projector.count("hidden_size", WIDTH),
            count: projector.count("count", WIDTH).unwrap_or(Count::ONE),
        });
        let encoder = encoder?;
        if encoder.patches.is_none() {
            fields.error("encoder", "an encoder requires `vision` with image_size and patch_size", None);
        }
        let projector = projector.unwrap_or(Projector { input_size: None, hidden_size: None, count: Count::ONE });
        Some(Images { encoder, merge, sizes, most_tiles, projector })
    }

    /// Default image size of the encoder: width and height in pixels.
    #[must_use]
    pub fn default_image_size(&self) -> Count {
        self.encoder.patches.map_or(Count::ONE, |patches| patches.image_size)
    }

    /// Divides a square image of `side` pixels. The size is rounded to whole tokens, as image processors do.
    #[must_use]
    pub fn tiling(&self, side: f64) -> ImageTiling {
        let patch = self.encoder.patches.map_or(Count::ONE, |Patches { patch_size, .. }| patch_size);
        let (usual, pixels) = (f64::from(self.default_image_size()), patch * self.merge);
        let of = |side: f64| (side / pixels).round().max(1.0);
        let across = if self.sizes == ImageSizes::Any { of(side) } else { of(usual) };
        let pieces = match self.sizes {
            ImageSizes::Any | ImageSizes::Fixed => 1.0,
            ImageSizes::Tiles => {
                let tiles = (side / usual).round().clamp(1.0, f64::from(self.most_tiles).sqrt().floor().max(1.0));
                if tiles > 1.0 { tiles * tiles + 1.0 } else { 1.0 }
            }
        };
        let tokens = across * across;
        ImageTiling { pieces, patches: tokens * self.merge * self.merge, tokens }
    }

    /// Parameters of all projectors to a language model with hidden size `language`.
    #[must_use]
    pub fn projector_parameters(&self, language: Count) -> f64 {
        let Projector { input_size, hidden_size, count } = self.projector;
        let input = input_size.map_or(self.encoder.hidden_size * self.merge * self.merge, f64::from);
        let one = match hidden_size {
            Some(hidden) => input * hidden + hidden * language,
            None => input * language,
        };
        count * one
    }

    /// Parameters of encoder and projectors.
    #[must_use]
    pub fn parameters(&self, language: Count) -> f64 {
        self.encoder.parameters() + self.projector_parameters(language)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Catalog;

    fn images(model: &str) -> Images {
        *Catalog::built_in().model(model).unwrap().images.clone().unwrap()
    }

    fn tokens(model: &str, side: f64) -> f64 {
        let cut = images(model).tiling(side);
        cut.pieces * cut.tokens
    }

    #[test]
    fn image_token_counts_match_published_values() {
        // arXiv 2502.13923, section 2.1.1: patches of 14 pixels, 2 by 2 patches per token.
        assert_eq!(tokens("qwen2.5-vl-7b", 1008.0), 36.0 * 36.0);
        // Patches of 16 pixels, 2 by 2 patches per token.
        assert_eq!(tokens("qwen3-vl-8b", 1024.0), 32.0 * 32.0);
        // arXiv 2310.03744: 336 pixels, 576 tokens.
        assert_eq!(tokens("llava-1.5-7b", 1024.0), 576.0);
        // arXiv 2503.19786, section 2.1: 896 pixels, 256 vectors.
        assert_eq!(tokens("gemma-3-27b", 896.0), 256.0);
        // arXiv 2504.10479, section 2.1: a tile of 448 pixels is 256 tokens.
        assert_eq!(tokens("internvl3-8b", 448.0), 256.0);
        assert_eq!(tokens("internvl3-8b", 896.0), 5.0 * 256.0);
        // arXiv 2410.07073, section 2: 16 by 16 pixels per token.
        assert_eq!(tokens("pixtral-12b", 1024.0), 4096.0);
    }

    #[test]
    fn parameter_counts_match_published_values() {
        // Parameters in safetensors files on Hugging Face, in billions.
        for (model, published) in [
            ("qwen2.5-vl-7b", 8.292),
            ("qwen2.5-vl-72b", 73.41),
            ("qwen3-vl-8b", 8.767),
            ("qwen3-vl-30b-a3b", 31.07),
            ("llava-1.5-7b", 7.063),
            ("internvl3-8b", 7.944),
            ("pixtral-12b", 12.68),
        ] {
            let own = Catalog::built_in().model(model).unwrap().parameters() / 1e9;
            assert!((own / published - 1.0).abs() < 0.01, "{model}: {own}");
        }
    }
}
