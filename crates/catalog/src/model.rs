//! Models: neural networks and their architectures.

use atlas_core::count::Count;
use std::sync::Arc;

use super::collection::same_name;
use super::convolution::Convolutional;
use super::images::Images;
use super::transformer::{Transformer, TransformerKind};
use atlas_core::plan::{DraftMethod, Format, Preset};
use atlas_document::decode::{Bounds, Fields};
use atlas_document::{Diagnostics, Node, Origin};

/// Acceptance of a method of speculative decoding for a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draft {
    /// Method of speculative decoding.
    pub method: DraftMethod,
    /// Probability that the first draft token is accepted.
    pub acceptance: f64,
    /// Relative decrease of the probability from one position to the next.
    pub decline: f64,
}

/// A model, and the source of its data.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Unique id: `llama-3-70b`.
    pub id: String,
    /// Alternative spellings, and models with the same architecture.
    pub aliases: Vec<String>,
    /// Full name.
    pub name: String,
    /// Model series.
    pub family: Option<String>,
    /// Published number of parameters, in billions. See [`Model::parameters`] for the computed one.
    pub published_total_b: Option<f64>,
    /// Published number of active parameters per token, in billions. Vendors differ in whether embeddings are included.
    pub published_active_b: Option<f64>,
    /// Published number of training tokens.
    pub published_tokens: Option<f64>,
    /// Format of the published weights; bf16 by default.
    pub native_format: Option<Format>,
    /// Whether `native_format` is NVFP4 rather than another 4-bit floating-point format.
    pub nvfp4: bool,
    /// Methods of speculative decoding with published acceptance for this model.
    pub drafts: Vec<Draft>,
    /// Architecture.
    pub architecture: Architecture,
    /// Image input, if supported.
    pub images: Option<Box<Images>>,
    /// Source of the data.
    pub source: Option<String>,
    /// Remarks on the data.
    pub note: Option<String>,
    /// `model_type` of a `config.json` with an unknown architecture, which is treated as a Llama-like decoder.
    pub unknown_type: Option<Arc<str>>,
    /// Warnings about a `config.json`.
    pub warnings: Diagnostics,
    /// File that the entry is from.
    pub origin: Origin,
}

/// Kinds of networks in the catalog.
#[derive(Debug, Clone, PartialEq)]
pub enum Architecture {
    /// Layers of attention and MLP.
    Transformer(Box<Transformer>),
    /// Residual convolutional network.
    Convolutional(Convolutional),
}

impl Model {
    /// Whether `name`, without the organization, is the id or an alias.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let bare = name.rsplit('/').next().unwrap_or(name);
        std::iter::once(&self.id).chain(&self.aliases).any(|known| same_name(known, bare))
    }

    /// Number of parameters computed from the architecture, including those for image input.
    #[must_use]
    pub fn parameters(&self) -> f64 {
        self.language_parameters() + self.image_parameters()
    }

    /// Number of parameters of image encoder and projectors.
    #[must_use]
    pub fn image_parameters(&self) -> f64 {
        match (&self.images, self.transformer()) {
            (Some(images), Some(language)) => images.parameters(language.hidden_size),
            _ => 0.0,
        }
    }

    /// Number of parameters without those for image input.
    #[must_use]
    pub fn language_parameters(&self) -> f64 {
        match &self.architecture {
            Architecture::Transformer(transformer) => transformer.parameters(),
            Architecture::Convolutional(network) => network.parameters(),
        }
    }

    /// Number of active parameters per token: includes embeddings and output layer, excludes inactive experts and those
    /// for image input.
    #[must_use]
    pub fn active_parameters(&self) -> f64 {
        match &self.architecture {
            Architecture::Transformer(transformer) => transformer.active_parameters(),
            Architecture::Convolutional(network) => network.parameters(),
        }
    }

    /// Maximum context length that the model was trained for. `None` if it has no token positions.
    #[must_use]
    pub fn max_context(&self) -> Option<Count> {
        let transformer = self.transformer().filter(|transformer| transformer.kind != TransformerKind::Vision)?;
        Some(transformer.max_context)
    }

    /// Returns the transformer, if the model is one.
    #[must_use]
    pub fn transformer(&self) -> Option<&Transformer> {
        match &self.architecture {
            Architecture::Transformer(transformer) => Some(transformer),
            Architecture::Convolutional(_) => None,
        }
    }

    /// Decodes one entry of `models.yaml`. Problems are added to `diagnostics`. Returns `None` if there are errors.
    pub fn decode(file: &Arc<str>, node: &Node, diagnostics: &mut Diagnostics) -> Option<Model> {
        let before = diagnostics.errors();
        let label = node.get("id").and_then(Node::text).unwrap_or("model");
        let mut fields = Fields::open(file, label, node, diagnostics)?;
        let at = fields.at();
        let id = fields.required_text("id");
        let aliases = fields.texts("aliases");
        let name = fields.text("name");
        let family = fields.text("family");
        let published = fields.map("published_params", |published| {
            (published.number("total_b", Bounds::POSITIVE), published.number("active_b", Bounds::POSITIVE))
        });
        let budget = fields.map("published_tokens", |budget| {
            budget.text("source");
            budget.required_number("tokens", Bounds { min: 1.0, max: 1e18, whole: false })
        });
        let mut nvfp4 = false;
        let native_format = fields.text("native_format").and_then(|written| {
            nvfp4 = Preset::named(&written).is_some_and(|preset| preset.nvfp4 == Some(true));
            let known = Format::named(&written);
            if known.is_none() {
                let expected = format!("found \"{written}\", expected one of {}", Format::NAMES.join(", "));
                fields.error("native_format", expected, None);
            }
            known
        });
        let drafts = fields.map("drafts", |drafts| {
            let known = DraftMethod::WORDS.iter().filter_map(|(word, method)| {
                drafts.map(word, |draft| {
                    draft.text("source");
                    Some(Draft {
                        method: *method,
                        acceptance: draft.required_number("acceptance", Bounds::SHARE)?,
                        decline: draft.number("decline", Bounds::SHARE).unwrap_or(0.0),
                    })
                })
            });
            known.flatten().collect()
        });
        let convolutional = node.get("kind").and_then(Node::text) == Some("convolutional");
        let architecture = if convolutional {
            fields.text("kind");
            Convolutional::decode(&mut fields).map(Architecture::Convolutional)
        } else {
            Transformer::decode(&mut fields).map(|transformer| Architecture::Transformer(Box::new(transformer)))
        };
        let images = fields.map("images", Images::decode).flatten();
        let source = fields.text("source");
        let note = fields.text("note");
        fields.finish();
        if diagnostics.errors() > before {
            return None;
        }
        let id = id?;
        let (published_total_b, published_active_b) = published.unwrap_or_default();
        Some(Model {
            name: name.unwrap_or_else(|| id.clone()),
            id,
            aliases,
            family,
            published_total_b,
            published_active_b,
            published_tokens: budget.flatten(),
            native_format,
            nvfp4,
            drafts: drafts.unwrap_or_default(),
            architecture: architecture?,
            images: images.map(Box::new),
            source,
            note,
            unknown_type: None,
            warnings: Diagnostics::new(),
            origin: Origin { file: Arc::clone(file), at },
        })
    }
}
