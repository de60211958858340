//! Features, labels and instance types that distinguish variants of one model.

use super::Index;
use super::instances::instance_accelerator;
use super::name::{Form, Name, Spelling, memory, words};
use crate::catalog::CatalogEntry;

/// Maximum number of hints that are read; further features of a node are ignored.
const MAX_HINTS: usize = 64;

/// The candidates that match the hints, and the hints used; `None` if the hints do not narrow the candidates.
pub(super) fn narrow_by_hints(
    hints: &[String],
    name: &Name,
    candidates: Vec<&CatalogEntry>,
) -> Option<(Vec<String>, String)> {
    let mut kept = candidates;
    let mut used = Vec::new();
    for hint in hints.iter().take(MAX_HINTS) {
        let narrower: Vec<&CatalogEntry> =
            kept.iter().copied().filter(|entry| is_compatible(hint, name, entry)).collect();
        if !narrower.is_empty() && narrower.len() < kept.len() {
            kept = narrower;
            used.push(hint.as_str());
        }
    }
    (!used.is_empty()).then(|| (kept.into_iter().map(|entry| entry.key.clone()).collect(), used.join(", ")))
}

/// Whether a hint is compatible with an entry. A hint about something else is compatible with every entry.
fn is_compatible(hint: &str, name: &Name, entry: &CatalogEntry) -> bool {
    if let Some(device) = instance_accelerator(hint) {
        let device = Name::parse(device);
        return Spelling::all(entry).iter().any(|spelling| spelling.is(&device)) && variant_agrees(&device, entry);
    }
    let parts = words(hint);
    let mut about = Name::default();
    for word in &parts {
        about.form = about.form.or(Form::from_word(word));
    }
    // A memory size may be that of the host, unless the hint also names the GPU.
    let named = |word: &String| {
        matches!(word.as_str(), "gpu" | "gpumem" | "vram" | "hbm" | "gmem") || name.words.contains(word)
    };
    let joined = parts.iter().find_map(|word| {
        ["gpumem", "gpu", "vram", "hbm", "gmem"].iter().find_map(|prefix| word.strip_prefix(prefix)).and_then(memory)
    });
    let size = joined.or_else(|| parts.iter().any(named).then(|| parts.iter().find_map(|word| memory(word))).flatten());
    about.memory_gb = size;
    variant_agrees(&about, entry)
}

fn variant_agrees(stated: &Name, entry: &CatalogEntry) -> bool {
    let form = stated.form.is_none_or(|form| Form::of(entry).is_none_or(|own| own.agrees(form)));
    let size = stated.memory_gb.is_none_or(|size| entry.memory_gb.is_none_or(|own| (own - size).abs() <= 1.0));
    form && size
}

impl Index<'_> {
    /// The feature that names the accelerator of a node whose GRES has no type, such as `GPU_SKU:V100_SXM2` or an
    /// instance type. `None` if no feature names a model of the catalog, or if two features name different models.
    #[must_use]
    pub fn model_in_features(&self, features: &[String]) -> Option<String> {
        let mut found: Option<(String, String)> = None;
        for feature in features.iter().take(MAX_HINTS) {
            let value =
                instance_accelerator(feature).unwrap_or_else(|| feature.rsplit([':', '=']).next().unwrap_or(feature));
            let name = Name::parse(value);
            // Apple chips do not occur in cluster nodes, and `m1` is likely to name something else.
            let on_chip = |entry: &&CatalogEntry| {
                entry.form_factor.as_deref().is_some_and(|form| form.eq_ignore_ascii_case("soc"))
            };
            let known = self.entries(|spelling| spelling.is(&name)).into_iter().any(|entry| !on_chip(&entry));
            if name.model.is_empty() || !known {
                continue;
            }
            match &mut found {
                None => found = Some((name.model, value.to_owned())),
                Some((model, text)) if *model == name.model => {
                    if value.len() > text.len() {
                        value.clone_into(text);
                    }
                }
                Some(_) => return None,
            }
        }
        found.map(|(_, text)| text)
    }
}
