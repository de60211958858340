//! State of forms.

use crate::tui::widgets::line::Line;

/// What a form creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// An entry of `targets.yaml`.
    Target,
    /// An entry of `workloads.yaml`.
    Workload,
    /// An entry of `prices.yaml`.
    Offer,
    /// Efficiency factors of a target, in a file of their own.
    Profile,
}

/// The meaning of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The name of the entry.
    Name,
    /// A key of the catalog of accelerators.
    Accelerator,
    /// Accelerators per node.
    PerNode,
    /// Nodes.
    Nodes,
    /// Network bandwidth per accelerator, Gbit/s.
    Network,
    /// Price of a node, dollars per hour.
    Price,
    /// Power of a node, W.
    Watts,
    /// Power usage effectiveness: power of the facility divided by that of the machines.
    Pue,
    /// Training or inference.
    Mode,
    /// A key of the catalog of models, or the path of a `config.json`.
    Model,
    /// Prompt tokens; in training, the sequence length.
    Prompt,
    /// Generated tokens.
    Generate,
    /// Format of the weights.
    Precision,
    /// Tensor-parallel ranks.
    Tp,
    /// Concurrent requests in serving, sequences per step in training.
    Batch,
    /// Provider of an instance.
    Provider,
    /// Accelerators per instance.
    Count,
    /// Price of an instance, dollars per hour.
    Hourly,
    /// Kind of price.
    Basis,
    /// Region in which a price applies.
    Region,
    /// Date on which a price was read.
    Date,
    /// Source of a price.
    Source,
    /// The target of a profile.
    Target,
    /// An efficiency factor in training, by index.
    Training(usize),
    /// An efficiency factor in serving, by index.
    Serving(usize),
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its meaning.
    pub key: Key,
    /// The text.
    pub line: Line,
}

/// A form.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// What the form creates.
    pub kind: EntryKind,
    /// The fields.
    pub fields: Vec<Field>,
    /// Index of the field under the cursor.
    pub cursor: usize,
    /// Names that match the text of that field.
    pub matches: Vec<String>,
    /// The first problem of the entry.
    pub problem: Option<String>,
}

impl Form {
    /// The trimmed text of a field.
    #[must_use]
    pub fn value(&self, key: Key) -> &str {
        self.fields.iter().find(|field| field.key == key).map_or("", |field| field.line.text().trim())
    }
}
