//! Built-in families, each decoded on first use.

use std::sync::{Arc, OnceLock};

use atlas_document::{Diagnostics, Origin};

use super::family::{Family, SoftwareKind};
use super::words::normalized_words;
use crate::shipped::{Document, documents};

const FOLDER: &str = "workload/software/";

struct Slot {
    id: &'static str,
    document: &'static Document,
    family: OnceLock<Option<Arc<Family>>>,
}

impl Slot {
    fn family(&self) -> Option<Arc<Family>> {
        self.family.get_or_init(|| self.decode(&mut Diagnostics::new()).map(Arc::new)).clone()
    }

    fn decode(&self, diagnostics: &mut Diagnostics) -> Option<Family> {
        let file: Arc<str> = format!("{}{}", Origin::BUILT_IN, self.document.path).into();
        Family::decode(&file, &self.document.tree()?, diagnostics)
    }
}

/// Returns one slot per document. The file name is the id of the family.
fn slots() -> &'static [Slot] {
    static SLOTS: OnceLock<Vec<Slot>> = OnceLock::new();
    SLOTS.get_or_init(|| {
        let named = documents("workload").filter_map(|document| {
            let id = document.path.strip_prefix(FOLDER)?.strip_suffix(".yaml")?;
            Some(Slot { id, document, family: OnceLock::new() })
        });
        named.collect()
    })
}

/// Ids of all families, in alphabetical order.
pub(super) fn ids() -> impl Iterator<Item = &'static str> {
    slots().iter().map(|slot| slot.id)
}

/// Returns the family with this id.
pub(super) fn by_id(id: &str) -> Option<Arc<Family>> {
    slots().iter().find(|slot| slot.id == id).and_then(Slot::family)
}

/// A normalized name, and the family that it refers to.
pub(super) struct Name {
    pub words: Vec<String>,
    pub id: &'static str,
    /// Purpose of the family.
    pub kind: SoftwareKind,
}

/// All ids, followed by all names and aliases. If several have the same words, the first takes precedence.
pub(super) fn names() -> &'static [Name] {
    static NAMES: OnceLock<Vec<Name>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let (mut ids, mut others) = (Vec::new(), Vec::new());
        for slot in slots() {
            let [kind, name, aliases] = slot.document.part().values(["kind", "name", "aliases"]);
            let kind = kind.as_ref().and_then(|kind| SoftwareKind::named(kind.text()?)).unwrap_or(SoftwareKind::Both);
            let named = |text: &str| Name { words: normalized_words(text), id: slot.id, kind };
            ids.push(named(slot.id));
            let aliases = aliases.iter().filter_map(|aliases| aliases.items()).flatten();
            others.extend(name.iter().chain(aliases).filter_map(|text| text.text()).map(named));
        }
        ids.into_iter().chain(others).filter(|name| !name.words.is_empty()).collect()
    })
}

/// Problems of all built-in documents.
#[cfg(test)]
pub(super) fn problems() -> Diagnostics {
    let mut problems = Diagnostics::new();
    for slot in slots() {
        let decoded = slot.decode(&mut problems);
        assert!(decoded.is_none_or(|family| family.id == slot.id), "{} has another id", slot.document.path);
    }
    problems
}
