//! The parts of the catalog that users may write, and how to tell and check their files.

use std::sync::Arc;

use super::collection::Item;
use super::{Accelerator, Model, Price};
use atlas_document::node::Position;
use atlas_document::{Broken, Diagnostic, Diagnostics, Node, Severity};

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

/// Entries of one file, in the order they were written.
#[derive(Debug, Clone)]
pub(super) enum Entries {
    Accelerators(Vec<Arc<Accelerator>>),
    Models(Vec<Arc<Model>>),
    Prices(Vec<Arc<Price>>),
}

impl Part {
    /// The part's name, which is also the key that its list may have.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Part::Accelerators => "accelerators",
            Part::Models => "models",
            Part::Prices => "prices",
        }
    }

    /// The part that a document contains, by keys that only entries of that part have.
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

    /// Decodes every entry of a document for its problems, and returns the number of valid entries.
    pub fn check(self, file: &Arc<str>, root: &Node, diagnostics: &mut Diagnostics) -> usize {
        match self.decode(file, root, diagnostics, &mut Broken::default()) {
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
        broken: &mut Broken,
    ) -> Entries {
        match self {
            Part::Accelerators => Entries::Accelerators(entries(file, self, root, diagnostics, broken)),
            Part::Models => Entries::Models(entries(file, self, root, diagnostics, broken)),
            Part::Prices => Entries::Prices(entries(file, self, root, diagnostics, broken)),
        }
    }
}

/// Whether a document of a directory `accelerators/` is a profile of the predecessor system's.
pub(super) fn is_profile(root: &Node) -> bool {
    let has = |key| root.get(key).is_some();
    root.entries().is_some() && !has("id") && !has("accelerators") && (has("compute") || has("utilization"))
}

/// The entries of a list document; also accepts one entry alone, or the list under its kind's name. What cannot be read
/// is added to `broken`.
fn entries<T: Item>(
    label: &Arc<str>,
    part: Part,
    root: &Node,
    problems: &mut Diagnostics,
    broken: &mut Broken,
) -> Vec<Arc<T>> {
    let root = root.get(part.name()).unwrap_or(root);
    let items = match root.items() {
        Some(items) => items,
        None if root.entries().is_some() => std::slice::from_ref(root),
        None => {
            let message = format!("found {}, expected a list of {}", root.describe(), part.name());
            problems.push(complaint(label, root.at, message));
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
            problems.push(Diagnostic { path: id.to_owned(), help, ..complaint(label, item.at, message) });
            broken.add_entry(label, item, "id");
            continue;
        }
        all.push(Arc::new(entry));
    }
    all
}

/// An error of a file, at a place in it.
pub(super) fn complaint(file: &Arc<str>, at: Position, message: String) -> Diagnostic {
    let file = Arc::clone(file);
    Diagnostic { severity: Severity::Error, file, at, path: String::new(), message, help: None }
}
