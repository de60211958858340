//! Resolution of accelerator names to catalog ids.

use std::sync::Arc;

use atlas_catalog::{Accelerator, Catalog};

use super::record::Record;

/// Words for the form factor or memory type of a device.
const FORM_FACTOR_WORDS: [&str; 8] = ["sxm", "pcie", "nvl", "oam", "hbm3", "hbm3e", "hbm2e", "hbm2"];

/// Fills `accelerator` from the name in the old row and returns the catalog's entry.
pub(super) fn fill(record: &mut Record, catalog: &Catalog, name: &str) -> Option<Arc<Accelerator>> {
    let Some(found) = find(catalog, name) else {
        record.problem("accelerator", name, "an accelerator of the catalog");
        return None;
    };
    let unspecified = unspecified_properties(&found.id, name);
    if found.id == name {
        record.copy_text("accelerator", name);
    } else if unspecified.is_empty() {
        record.convert("accelerator", found.id.as_str(), format!("the source writes \"{name}\""));
    } else {
        let what = unspecified.join(" and ");
        record.assume("accelerator", found.id.as_str(), format!("\"{name}\" does not specify {what}"));
    }
    Some(found)
}

/// Finds the accelerator for a name.
pub(super) fn find(catalog: &Catalog, name: &str) -> Option<Arc<Accelerator>> {
    let id = name.trim().to_ascii_lowercase();
    // A name without a digit outside of a memory size may be only a vendor or a unit, so only an exact match counts.
    if !words(&id).iter().any(|word| gigabytes(word).is_none() && word.contains(|c: char| c.is_ascii_digit())) {
        return catalog.accelerator(&id).ok();
    }
    let exact = |id: &str| catalog.accelerator(id).ok();
    exact(&id).or_else(|| find_by_spelling(catalog, &id)).or_else(|| {
        let memory = memory(&words(&id));
        let without: Vec<String> = words(&id).into_iter().filter(|word| gigabytes(word).is_none()).collect();
        let meant = catalog.find_accelerator_by_description(&without.join(" "), memory)?;
        memory.is_none_or(|gb| (gb / meant.memory.gb - 1.0).abs() < 0.1).then_some(meant)
    })
}

/// Finds a device under another spelling: with spaces instead of dashes, or with a form factor or memory size that the
/// catalog's id lacks.
fn find_by_spelling(catalog: &Catalog, id: &str) -> Option<Arc<Accelerator>> {
    let parts = words(id);
    let memory = memory(&parts);
    let plain: Vec<String> = parts.iter().filter(|part| gigabytes(part).is_none()).cloned().collect();
    let bare: Vec<String> = plain.iter().filter(|part| !FORM_FACTOR_WORDS.contains(&part.as_str())).cloned().collect();
    let bare_id = bare.join("-");
    let sized = memory.map(|gb| format!("{}-{gb}gb", plain.join("-")));
    let candidates =
        [Some(parts.join("-")), sized, Some(plain.join("-")), Some(format!("{bare_id}-sxm")), Some(bare_id)];
    let fits = |found: &Arc<Accelerator>| memory.is_none_or(|gb| (gb / found.memory.gb - 1.0).abs() < 0.1);
    candidates.into_iter().flatten().filter_map(|id| catalog.accelerator(&id).ok()).find(fits)
}

/// Splits an id into words. The generations of SXM, such as SXM4 and SXM5, become `sxm`.
fn words(id: &str) -> Vec<String> {
    let split = id.split(|c: char| !(c.is_alphanumeric() || c == '.')).filter(|part| !part.is_empty());
    split
        .map(|part| match part {
            "sxm2" | "sxm3" | "sxm4" | "sxm5" | "sxm6" => "sxm".to_owned(),
            other => other.to_owned(),
        })
        .collect()
}

fn gigabytes(part: &str) -> Option<f64> {
    part.strip_suffix("gb").or_else(|| part.strip_suffix("gib"))?.parse().ok().filter(|gb: &f64| *gb > 0.0)
}

fn memory(parts: &[String]) -> Option<f64> {
    parts.iter().find_map(|part| gigabytes(part))
}

/// Returns what the catalog's id specifies but the name does not: form factor, memory size or variant.
fn unspecified_properties(id: &str, name: &str) -> Vec<&'static str> {
    let said = words(&name.trim().to_ascii_lowercase());
    let of = words(id);
    let mut missing = Vec::new();
    // The ids of superchips and of products with one form factor contain none.
    if of.iter().any(|w| FORM_FACTOR_WORDS.contains(&w.as_str()) && !said.contains(w)) {
        missing.push("the form factor");
    }
    if memory(&of).is_some() && memory(&said).is_none() {
        missing.push("the memory size");
    }
    const VENDORS: [&str; 9] =
        ["nvidia", "amd", "google", "aws", "intel", "huawei", "apple", "sambanova", "tenstorrent"];
    let tells = |word: &String| gigabytes(word).is_none() && !VENDORS.contains(&word.as_str());
    if missing.is_empty() && of.iter().any(|word| tells(word) && !said.contains(word)) {
        missing.push("the variant");
    }
    missing
}

/// Returns the number of ranks per chip, as counted by the software of the device.
pub(super) fn ranks_per_chip(id: &str) -> f64 {
    match id {
        "aws-inf2" | "aws-trn1" | "google-tpu-v7x" => 2.0,
        "aws-trn2" | "aws-trn3" => 4.0,
        _ => 1.0,
    }
}

/// Returns the number of ranks per chip in training, where the dies of MI250 and the tiles of Ponte Vecchio count as
/// well.
pub(super) fn training_ranks_per_chip(id: &str) -> f64 {
    match id {
        "amd-mi250" | "amd-mi250x" | "intel-max-1550" => 2.0,
        other => ranks_per_chip(other),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::measurements::TableKind;

    #[test]
    fn catalog_devices_are_found_regardless_of_case_and_separator() {
        let catalog = Catalog::built_in();
        for sheet in catalog.accelerators() {
            for id in [sheet.id.clone(), sheet.id.to_uppercase(), format!(" {} ", sheet.id), sheet.id.replace('-', "_")]
            {
                assert_eq!(find(&catalog, &id).unwrap().id, sheet.id, "{id}");
            }
        }
    }

    #[test]
    fn device_aliases_and_memory_sizes_resolve_to_the_catalog_device() {
        let catalog = Catalog::built_in();
        for (name, id) in [
            ("nvidia-h100-sxm5-80gb", "nvidia-h100-sxm-80gb"),
            ("NVIDIA H100 80GB HBM3", "nvidia-h100-sxm-80gb"),
            ("nvidia-h200-141gb", "nvidia-h200-sxm"),
            ("amd-mi300x-192gb", "amd-mi300x"),
            ("nvidia-a100-sxm4-40gb", "nvidia-a100-sxm-40gb"),
            ("b200_sxm", "nvidia-b200"),
            ("h100_sxm", "nvidia-h100-sxm-80gb"),
            ("nvidia-l40s-48gb", "nvidia-l40s"),
        ] {
            assert_eq!(find(&catalog, name).unwrap().id, id, "{name}");
        }
        for nonsense in ["", "-", "gb", "80gb", "abacus", "nvidia-"] {
            assert!(find(&catalog, nonsense).is_none(), "{nonsense}");
        }
    }

    #[test]
    fn ambiguous_variant_is_assumed_and_alias_is_converted() {
        let catalog = Catalog::built_in();
        let mut record = Record::new(TableKind::Training);
        fill(&mut record, &catalog, "nvidia-a100-80gb");
        assert_eq!((record.text("accelerator"), record.counts()), ("nvidia-a100-sxm-80gb", [0, 1, 0]));
        fill(&mut record, &catalog, "NVIDIA H100 SXM5 80GB");
        assert_eq!((record.text("accelerator"), record.counts()), ("nvidia-h100-sxm-80gb", [1, 0, 0]));
        fill(&mut record, &catalog, "abacus");
        assert_eq!(record.problems.len(), 1);
    }
}
