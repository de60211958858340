//! Images of a scenario: what the model's encoder takes for those of a request or a sequence.

use super::{Parts, Phase, Scenario};
use crate::engine::datasheet;
use atlas_catalog::images::{Images as Reader, Sizes};
use atlas_config::Mode;
use atlas_perf::arch::Architecture;
use atlas_perf::training::images;
use atlas_perf::vision::{Encoded, Images};

/// How the model of a scenario reads images.
#[derive(Debug, Clone, PartialEq)]
pub struct Vision {
    /// As the catalog describes it.
    reader: Reader,
    /// The encoder as the engines see it.
    encoder: Architecture,
    /// Weights between it and the language model.
    projector: f64,
}

impl Vision {
    /// Of a model that reads images.
    pub(super) fn of(parts: &Parts) -> Option<Vision> {
        let model = parts.model.as_deref()?;
        let (reader, language) = (model.images.as_deref()?, model.transformer()?);
        Some(Vision {
            encoder: datasheet::encoder(reader),
            projector: reader.projector_parameters(language.hidden_size),
            reader: reader.clone(),
        })
    }

    /// Side of the images that it was made for, pixels.
    #[must_use]
    pub fn usual_size(&self) -> f64 {
        f64::from(self.reader.usual_size())
    }

    /// Whether images of all sizes become the same number of tokens.
    #[must_use]
    pub fn scales_images(&self) -> bool {
        self.reader.sizes == Sizes::Fixed
    }

    /// What this many images of this side take.
    fn images(&self, count: f64, side: f64, trained: bool) -> Images {
        let cut = self.reader.cut(side);
        let encoded =
            Encoded { pieces: count * cut.pieces, patches: cut.patches, tokens: cut.tokens, projector: self.projector };
        images::encoded(&self.encoder, &encoded, trained)
    }
}

impl Scenario {
    /// Images of a request or a sequence, as stated.
    #[must_use]
    pub fn images_stated(phase: &Phase) -> Option<f64> {
        phase.plan.images.filter(|count| *count > 0.0)
    }

    /// What the images of a request or a sequence take; `None` without images, or if the model cannot read any.
    #[must_use]
    pub fn images(&self, phase: &Phase) -> Option<Images> {
        let count = Scenario::images_stated(phase)?;
        let vision = self.vision.as_deref()?;
        let side = phase.plan.image_size.map_or(vision.usual_size(), f64::from);
        let trained = phase.shape.mode == Mode::Training && !phase.plan.freeze_vision.unwrap_or(false);
        Some(vision.images(count, side, trained))
    }

    /// Tokens that images add to a prompt; in training they are among those of the sequence.
    #[must_use]
    pub fn image_tokens(&self, phase: &Phase) -> f64 {
        match phase.shape.mode {
            Mode::Training => 0.0,
            Mode::Inference => self.images(phase).map_or(0.0, |images| images.tokens),
        }
    }

    /// Why the images that are stated cannot be read, if they cannot.
    pub(super) fn lacks_of_images(&self) -> Option<String> {
        let phase = &self.base;
        let count = Scenario::images_stated(phase)?;
        let Some(images) = self.images(phase) else {
            return Some(format!("a model with a vision encoder for images: {count}, or images: 0"));
        };
        let sequence = phase.shape.prompt + phase.shape.generate;
        (phase.shape.mode == Mode::Training && images.tokens > sequence).then(|| {
            format!(
                "sequences of at least {} tokens, which the images of one become (prompt: {sequence})",
                images.tokens
            )
        })
    }
}
