//! Workloads with another model: `NAME:model=MODEL`, wherever the name of a workload is expected.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::{Library, unknown};
use crate::{Mode, Workload};
use atlas_document::diagnostic::{Diagnostic, Diagnostics};
use atlas_document::node::{Entry, Node, Position, Value};

/// Separates the name of a workload from the name of the replacement model.
const SEPARATOR: &str = ":model=";

/// Linked list of the derived workloads. Its nodes are never moved, so that they can be borrowed like listed workloads.
#[derive(Debug, Clone, Default)]
pub(super) struct Variants(OnceLock<Box<Variant>>);

#[derive(Debug, Clone)]
struct Variant {
    name: String,
    found: Result<Arc<Workload>, Diagnostic>,
    next: Variants,
}

impl Variants {
    /// Finds a derived workload by name; derives it with `derive` on first use.
    fn find(
        &self,
        name: &str,
        derive: impl Fn() -> Result<Arc<Workload>, Diagnostic>,
    ) -> Result<&Arc<Workload>, Diagnostic> {
        let mut slot = &self.0;
        loop {
            let variant = slot.get_or_init(|| {
                Box::new(Variant { name: name.to_owned(), found: derive(), next: Variants::default() })
            });
            if variant.name == name {
                return variant.found.as_ref().map_err(Clone::clone);
            }
            slot = &variant.next.0;
        }
    }
}

impl Library {
    /// The workload described by a name with another model; `None` if `name` does not contain a model.
    pub(super) fn variant(&self, name: &str) -> Option<Result<&Arc<Workload>, Diagnostic>> {
        let (base, model) = name.split_once(SEPARATOR)?;
        Some(self.variants.find(name, || self.derive(name, base, model)))
    }

    /// Replaces everything in workload `base` that describes its model. A served checkpoint with quantized weights keeps
    /// their format, instead of that of the other model.
    fn derive(&self, name: &str, base: &str, model: &str) -> Result<Arc<Workload>, Diagnostic> {
        let base = self.workload(base)?;
        let first = |found: Diagnostics| found.iter().next().cloned();
        let native = match self.catalog.model_in(model, base.origin.folder()) {
            Ok(model) => model.native_format.filter(|_| base.shape.mode == Mode::Inference),
            Err(found) => return Err(first(found).unwrap_or_else(|| unknown("model", model, std::iter::empty()))),
        };
        // The mode of the base can be derived from its name, which changes.
        let mode = match base.shape.mode {
            Mode::Training => "training",
            Mode::Inference => "inference",
        };
        let replaced = [
            ("name", Value::Text(Cow::Owned(name.to_owned()))),
            ("mode", Value::Text(Cow::Borrowed(mode))),
            ("model", Value::Text(Cow::Owned(model.to_owned()))),
        ];
        let kept = base.document.entries().unwrap_or_default().iter();
        let described = ["name", "mode", "model", "model_family", "params", "architecture"];
        let kept = kept.filter(|entry| !described.contains(&&*entry.key)).cloned();
        let kept = kept.map(|entry| if native.is_some() { without_weight_format(entry) } else { entry });
        let written = |(key, value): (&'static str, Value)| Entry {
            key: Cow::Borrowed(key),
            key_at: Position::default(),
            value: Node::synthetic(value),
        };
        let entries = replaced.into_iter().map(written).chain(kept).collect();
        let node = Node { value: Value::Map(entries), at: base.document.at };
        let mut problems = Diagnostics::new();
        let workload = Workload::decode(&base.origin.file, &node, &mut problems);
        workload
            .map(Arc::new)
            .ok_or_else(|| first(problems).unwrap_or_else(|| unknown("workload", name, std::iter::empty())))
    }
}

/// Removes the format of the weights from the precision of a workload; returns other entries unchanged.
fn without_weight_format(mut entry: Entry) -> Entry {
    if let ("precision", Value::Map(formats)) = (&*entry.key, &mut entry.value.value) {
        formats.retain(|format| !["weights", "experts", "weight_bits"].contains(&&*format.key));
    }
    entry
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use atlas_document::Sources;

    #[test]
    fn model_override_replaces_only_the_model_description() {
        let library = Library::load(&Sources::built_in(), None);
        let base = library.workload("llama3.1-70b-serve").unwrap();
        let found = library.workload("llama3.1-70b-serve:model=qwen2.5-7b").unwrap();
        assert_eq!((&*found.name, found.model.as_deref()), ("llama3.1-70b-serve:model=qwen2.5-7b", Some("qwen2.5-7b")));
        assert_eq!(
            (found.shape.tp, found.shape.prompt, found.shape.mode),
            (base.shape.tp, base.shape.prompt, base.shape.mode)
        );
        assert_eq!((&found.plan, &found.software, &found.origin.file), (&base.plan, &base.software, &base.origin.file));
        // Dimensions in `params` would be those of the old model.
        let sized = library.workload("gpt5_1t_train:model=llama-3.1-8b").unwrap();
        assert!(sized.document.get("params").is_none() && sized.shape.hidden == 0.0);
        assert!(Arc::ptr_eq(found, library.workload("llama3.1-70b-serve:model=qwen2.5-7b").unwrap()));
        assert!(!library.workloads().iter().any(|workload| workload.name.contains(SEPARATOR)));
    }

    #[test]
    fn unknown_workload_or_model_error_names_the_nearest() {
        let library = Library::load(&Sources::built_in(), None);
        let refused = |name: &str| library.workload(name).unwrap_err().to_string();
        assert!(refused("llama3.1-70b-serve:model=qwen2.5-7c").contains("did you mean `qwen2.5-7b`"));
        assert!(refused("llama3.1-70b-serv:model=qwen2.5-7b").contains("did you mean `llama3.1-70b-serve`"));
    }
}
