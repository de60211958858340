//! The catalog as detection of accelerators needs it.

use atlas_catalog::Catalog;
use atlas_detect::catalog::CatalogEntry;

/// Accelerators of the catalog, as needed for detection.
#[must_use]
pub fn entries(catalog: &Catalog) -> Vec<CatalogEntry> {
    catalog
        .accelerators()
        .iter()
        .map(|sheet| CatalogEntry {
            key: sheet.id.clone(),
            names: std::iter::once(sheet.name.clone()).chain(sheet.aliases.iter().cloned()).collect(),
            vendor: sheet.vendor.clone(),
            memory_gb: Some(sheet.memory.gb),
            memory_type: sheet.memory.kind.clone(),
            form_factor: sheet.form_factor.clone(),
        })
        .collect()
}
