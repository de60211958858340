//! Images in a scenario: the work of the vision encoder per request or sequence.

use super::{Parts, Phase, Scenario};
use atlas_catalog::datasheet;
use atlas_catalog::images::{ImageSizes, Images as Reader};
use atlas_config::Mode;
use atlas_core::plan::Trained;
use atlas_perf::arch::Architecture;
use atlas_perf::training::images;
use atlas_perf::vision::{EncoderInput, Images};

/// Vision encoder of the model of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Vision {
    /// Description in the catalog.
    reader: Reader,
    /// Architecture of the encoder, as used by the engines.
    encoder: Architecture,
    /// Parameters of the projector between the encoder and the language model.
    projector: f64,
}

impl Vision {
    /// Vision encoder of the model, if it has one.
    pub(super) fn of(parts: &Parts) -> Option<Vision> {
        let model = parts.model.as_deref()?;
        let (reader, language) = (model.images.as_deref()?, model.transformer()?);
        Some(Vision {
            encoder: datasheet::encoder(reader),
            projector: reader.projector_parameters(language.hidden_size),
            reader: reader.clone(),
        })
    }

    /// Native side length of the encoder's images, pixels.
    #[must_use]
    pub fn default_size(&self) -> f64 {
        f64::from(self.reader.default_image_size())
    }

    /// Whether the model scales all images to one size, so that each yields the same number of tokens.
    #[must_use]
    pub fn scales_images(&self) -> bool {
        self.reader.sizes == ImageSizes::Fixed
    }

    /// Work and tokens of `count` images with side length `side`, in pixels.
    fn images(&self, count: f64, side: f64, trained: bool) -> Images {
        let cut = self.reader.tiling(side);
        let encoded = EncoderInput {
            pieces: count * cut.pieces,
            patches: cut.patches,
            tokens: cut.tokens,
            projector: self.projector,
        };
        images::image_work(&self.encoder, &encoded, trained)
    }
}

impl Scenario {
    /// Stated number of images per request or sequence, if positive.
    #[must_use]
    pub fn images_stated(phase: &Phase) -> Option<f64> {
        phase.plan.images.filter(|count| *count > 0.0)
    }

    /// Work and tokens of the images of a request or a sequence; `None` without images, or if the model has no vision
    /// encoder.
    #[must_use]
    pub fn images(&self, phase: &Phase) -> Option<Images> {
        let count = Scenario::images_stated(phase)?;
        let vision = self.vision.as_deref()?;
        let side = phase.plan.image_size.map_or(vision.default_size(), f64::from);
        let frozen = phase.plan.freeze_vision.unwrap_or(false) || phase.plan.trained == Some(Trained::Projector);
        let trained = phase.shape.mode == Mode::Training && !frozen;
        Some(vision.images(count, side, trained))
    }

    /// Parameters of the projector between the vision encoder and the language model; 0 without a vision encoder.
    #[must_use]
    pub fn projector_params(&self) -> f64 {
        self.vision.as_deref().map_or(0.0, |vision| vision.projector)
    }

    /// Tokens that images add to a prompt. In training they are included in the sequence length.
    #[must_use]
    pub fn image_tokens(&self, phase: &Phase) -> f64 {
        match phase.shape.mode {
            Mode::Training => 0.0,
            Mode::Inference => self.images(phase).map_or(0.0, |images| images.tokens),
        }
    }

    /// Describes what is missing to process the stated images or to train their projector, if anything.
    pub(super) fn missing_image_support(&self) -> Option<String> {
        let phase = &self.base;
        let projector = phase.shape.mode == Mode::Training && phase.plan.trained == Some(Trained::Projector);
        let Some(count) = Scenario::images_stated(phase) else {
            return projector
                .then(|| "images in the training sequences, to train the projector (images: 1)".to_owned());
        };
        let Some(images) = self.images(phase) else {
            return Some(format!("a model with a vision encoder for images: {count}, or images: 0"));
        };
        let sequence = phase.shape.prompt + phase.shape.generate;
        (phase.shape.mode == Mode::Training && images.tokens > sequence)
            .then(|| format!("sequences of at least the {} tokens of their images (prompt: {sequence})", images.tokens))
    }
}
