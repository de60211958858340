//! Forms: their fields, and what is typed.

use crate::tui::line::Line;

/// What is made.
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

/// What a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// The name of the entry.
    Name,
    /// A key of the catalog of accelerators.
    Accelerator,
    /// Accelerators of a node.
    PerNode,
    /// Nodes.
    Nodes,
    /// Gigabits a second of an accelerator's network.
    Network,
    /// Dollars an hour for a node.
    Price,
    /// Watts of a node.
    Watts,
    /// Power of the building over that of the machines.
    Pue,
    /// Training or inference.
    Mode,
    /// A key of the catalog of models, or the path of a `config.json`.
    Model,
    /// Prompt tokens; the sequence's length in training.
    Prompt,
    /// Generated tokens.
    Generate,
    /// Format of the weights.
    Precision,
    /// Tensor-parallel ranks.
    Tp,
    /// Requests in flight in serving, sequences of a step in training.
    Batch,
    /// Who rents an instance out.
    Provider,
    /// Accelerators of an instance.
    Count,
    /// Dollars an hour for an instance.
    Hourly,
    /// Kind of price.
    Basis,
    /// Where a price holds.
    Region,
    /// When a price was read.
    Date,
    /// Where a price was read.
    Source,
    /// The target of a profile.
    Target,
    /// An efficiency factor in training, by its place.
    Training(usize),
    /// An efficiency factor in serving, by its place.
    Serving(usize),
}

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// What it is.
    pub key: Key,
    /// The text.
    pub line: Line,
}

/// A form.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// What is made.
    pub kind: EntryKind,
    /// The fields.
    pub fields: Vec<Field>,
    /// The field under the cursor.
    pub cursor: usize,
    /// Names that match what is typed in it.
    pub matches: Vec<String>,
    /// What is wrong.
    pub trouble: Option<String>,
}

impl Form {
    /// What is typed in a field.
    #[must_use]
    pub fn value(&self, key: Key) -> &str {
        self.fields.iter().find(|field| field.key == key).map_or("", |field| field.line.text().trim())
    }
}
