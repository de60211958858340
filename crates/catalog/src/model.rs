//! Models: architectures of neural networks.

use atlas_core::count::Count;
use std::sync::Arc;

use super::collection::same;
use super::convolution::Convolutional;
use super::images::Images;
use super::transformer::{Transformer, TransformerKind};
use atlas_core::plan::{DraftMethod, Format};
use atlas_document::decode::{Bounds, Fields};
use atlas_document::{Diagnostics, Node, Origin};

/// How well a method drafts for a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draft {
    /// The method.
    pub method: DraftMethod,
    /// Probability that the first drafted token is accepted.
    pub acceptance: f64,
    /// Share of it that each position loses against the one before.
    pub decline: f64,
}

/// One model and where its figures come from.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Unique id: `llama-3-70b`.
    pub id: String,
    /// Other spellings, and models of the same architecture.
    pub aliases: Vec<String>,
    /// Its full name.
    pub name: String,
    /// The series it belongs to.
    pub family: Option<String>,
    /// Parameters as published, in billions; compare with [`Model::parameters`].
    pub published_total_b: Option<f64>,
    /// Parameters that one token passes, as published, in billions; vendors differ in whether embeddings count.
    pub published_active_b: Option<f64>,
    /// Tokens that it was trained on, as published.
    pub published_tokens: Option<f64>,
    /// Format of the published weights; bf16 by default.
    pub native_format: Option<Format>,
    /// Methods of speculative decoding of which it is published how well they draft for it.
    pub drafts: Vec<Draft>,
    /// Its architecture.
    pub architecture: Architecture,
    /// How it reads images, where it does.
    pub images: Option<Box<Images>>,
    /// Where the figures were read.
    pub source: Option<String>,
    /// Caveats.
    pub note: Option<String>,
    /// Where it was written.
    pub origin: Origin,
}

/// The two kinds of networks that the catalog describes.
#[derive(Debug, Clone, PartialEq)]
pub enum Architecture {
    /// Layers of attention and MLP.
    Transformer(Box<Transformer>),
    /// A residual network of convolutions.
    Convolutional(Convolutional),
}

impl Model {
    /// Whether a name, without the organization before it, is the id or an alias.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let bare = name.rsplit('/').next().unwrap_or(name);
        std::iter::once(&self.id).chain(&self.aliases).any(|known| same(known, bare))
    }

    /// All parameters, added up from the architecture, those that read images with them.
    #[must_use]
    pub fn parameters(&self) -> f64 {
        self.language_parameters() + self.image_parameters()
    }

    /// Parameters that read images.
    #[must_use]
    pub fn image_parameters(&self) -> f64 {
        match (&self.images, self.transformer()) {
            (Some(images), Some(language)) => images.parameters(language.hidden_size),
            _ => 0.0,
        }
    }

    /// Parameters of the model without what reads images.
    #[must_use]
    pub fn language_parameters(&self) -> f64 {
        match &self.architecture {
            Architecture::Transformer(transformer) => transformer.parameters(),
            Architecture::Convolutional(network) => network.parameters(),
        }
    }

    /// Parameters that one token passes: embeddings and output layer included, experts it is not routed to and what reads
    /// images left out.
    #[must_use]
    pub fn active_parameters(&self) -> f64 {
        match &self.architecture {
            Architecture::Transformer(transformer) => transformer.active_parameters(),
            Architecture::Convolutional(network) => network.parameters(),
        }
    }

    /// Positions that it was trained for; `None` if tokens have none.
    #[must_use]
    pub fn max_context(&self) -> Option<Count> {
        let transformer = self.transformer().filter(|transformer| transformer.kind != TransformerKind::Vision)?;
        Some(transformer.max_context)
    }

    /// The transformer, if it is one.
    #[must_use]
    pub fn transformer(&self) -> Option<&Transformer> {
        match &self.architecture {
            Architecture::Transformer(transformer) => Some(transformer),
            Architecture::Convolutional(_) => None,
        }
    }

    /// Decodes one entry of `models.yaml`. Problems go to `diagnostics`; `None` means that one of them is an error.
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
        let native_format = fields.text("native_format").and_then(|written| {
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
            drafts: drafts.unwrap_or_default(),
            architecture: architecture?,
            images: images.map(Box::new),
            source,
            note,
            origin: Origin { file: Arc::clone(file), at },
        })
    }
}
