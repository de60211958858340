//! Catalog entries, reduced to what detection needs. The caller provides them.

/// One accelerator of the catalog.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CatalogEntry {
    /// Key by which targets refer to it.
    pub key: String,
    /// Further keys and names.
    pub names: Vec<String>,
    /// Manufacturer.
    pub vendor: String,
    /// Nominal memory, GB.
    pub memory_gb: Option<f64>,
    /// Memory type, such as `HBM3`.
    pub memory_type: Option<String>,
    /// Form factor: SXM5, PCIe, OAM, SoC, …
    pub form_factor: Option<String>,
}
