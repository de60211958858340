//! Parts of the catalog for which users may have files, and how to identify and check these files.

use std::sync::Arc;

use super::collection::Item;
use super::{Accelerator, Model, Price};
use atlas_document::node::Position;
use atlas_document::{BrokenEntries, Diagnostic, Diagnostics, Node, Severity};

/// Parts of the catalog, by file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// `accelerators/*.yaml`
    Accelerators,
    /// `models.yaml`
    Models,
    /// `prices.yaml`
    Prices,
}

/// Entries of one file, in file order.
#[derive(Debug, Clone)]
pub(super) enum Entries {
    Accelerators(Vec<Arc<Accelerator>>),
    Models(Vec<Arc<Model>>),
    Prices(Vec<Arc<Price>>),
}

impl Part {
    /// Name of the part, which may also be the key of the list in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Accelerators => "accelerators",
            Part::Models => "models",
            Part::Prices => "prices",
        }
    }

    /// Identifies the part that a document contains, by keys that only occur in entries of that part.
    #[must_use]
    pub fn of(root: &Node) -> Option<Part> {
        let telling: [(Part, &str, &[&str]); 3] = [
            (Part::Accelerators, "id", &["dense_tflops", "memory", "scale_up", "tdp_w"]),
            (Part::Models, "id", &["hidden_size", "n_layers", "heads", "mlp", "convolutions"]),
            (Part::Prices, "hourly_usd", &["accelerator", "provider"]),
        ];
        let found = telling.iter().find(|(part, key, others)| {
            let root = root.get(part.name()).unwrap_or(root);
            let entries = root.items().unwrap_or(std::slice::from_ref(root));
            let tells = |entry: &Node| entry.get(key).is_some() && others.iter().any(|key| entry.get(key).is_some());
            entries.iter().any(tells)
        });
        found.map(|(part, _, _)| *part)
    }

    /// Decodes all entries of a document, adds problems to `diagnostics`, and returns the number of valid entries.
    pub fn check(self, file: &Arc<str>, root: &Node, diagnostics: &mut Diagnostics) -> usize {
        match self.decode(file, root, diagnostics, &mut BrokenEntries::default()) {
            Entries::Accelerators(all) => all.len(),
            Entries::Models(all) => all.len(),
            Entries::Prices(all) => all.len(),
        }
    }

    pub(super) fn decode(
        self,
        file: &Arc<str>,
        root: &Node,
        diagnostics: &mut Diagnostics,
        broken: &mut BrokenEntries,
    ) -> Entries {
        match self {
            Part::Accelerators => Entries::Accelerators(entries(file, self, root, diagnostics, broken)),
            Part::Models => Entries::Models(entries(file, self, root, diagnostics, broken)),
            Part::Prices => Entries::Prices(entries(file, self, root, diagnostics, broken)),
        }
    }
}

/// Whether a document in a directory `accelerators/` is a profile of the predecessor system.
pub(super) fn is_profile(root: &Node) -> bool {
    let has = |key| root.get(key).is_some();
    root.entries().is_some() && !has("id") && !has("accelerators") && (has("compute") || has("utilization"))
}

/// Decodes the entries of a document: a list, a list under the name of the part, or a single entry. Entries with errors
/// are added to `broken`.
fn entries<T: Item>(
    label: &Arc<str>,
    part: Part,
    root: &Node,
    problems: &mut Diagnostics,
    broken: &mut BrokenEntries,
) -> Vec<Arc<T>> {
    let root = root.get(part.name()).unwrap_or(root);
    let items = match root.items() {
        Some(items) => items,
        None if root.entries().is_some() => std::slice::from_ref(root),
        None => {
            let message = format!("found {}, expected a list of {}", root.describe(), part.name());
            problems.push(error_at(label, root.at, message));
            broken.add_file(label, None);
            return Vec::new();
        }
    };
    let mut all: Vec<Arc<T>> = Vec::with_capacity(items.len());
    for item in items {
        let Some(entry) = T::decode(label, item, problems) else {
            broken.add_entry(label, item, "id");
            continue;
        };
        let id = entry.names().next().unwrap_or_default();
        if T::UNIQUE && all.iter().any(|known| known.names().next() == Some(id)) {
            let message = "duplicate id; using the first entry".to_owned();
            let help = Some("rename or remove one of the two".to_owned());
            problems.push(Diagnostic { path: id.to_owned(), help, ..error_at(label, item.at, message) });
            broken.add_entry(label, item, "id");
            continue;
        }
        all.push(Arc::new(entry));
    }
    all
}

/// Creates an error at a position of a file.
pub(super) fn error_at(file: &Arc<str>, at: Position, message: String) -> Diagnostic {
    let file = Arc::clone(file);
    Diagnostic { severity: Severity::Error, file, at, path: String::new(), message, help: None }
}
