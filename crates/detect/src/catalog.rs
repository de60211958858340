//! The catalog as detection needs it. The caller provides it.

/// One accelerator of the catalog.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CatalogEntry {
    /// The key that targets name.
    pub key: String,
    /// Other keys and names of it.
    pub names: Vec<String>,
    /// Who makes it.
    pub vendor: String,
    /// Nominal memory, GB.
    pub memory_gb: Option<f64>,
    /// Kind of memory, such as `HBM3`.
    pub memory_type: Option<String>,
    /// SXM5, PCIe, OAM, SoC, …
    pub form_factor: Option<String>,
}
