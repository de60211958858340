//! Import of the predecessor tools' documents as targets, workloads and knobs.
//!
//! * [`dashboard`] – scenarios and hardware profiles of the predecessor dashboard, JSON
//! * [`experiment`] – the single experiment YAML of the predecessor comparison tool
//!
//! Both are converted to entries of the form used in `targets.yaml` and `workloads.yaml`, so that the rest of the code
//! does not distinguish them. The values keep their positions in the original file, for diagnostics.

pub mod dashboard;
pub mod experiment;
mod tree;

use std::sync::Arc;

use atlas_catalog::Catalog;
use atlas_core::plan::Methodology;
use atlas_document::{Diagnostics, Node};

/// Entries converted from a document of a predecessor tool.
#[derive(Debug, Clone, Default)]
pub struct ConvertedEntries {
    /// Entries in the form of `targets.yaml`.
    pub targets: Vec<Node>,
    /// Entries in the form of `workloads.yaml`.
    pub workloads: Vec<Node>,
    /// Variants of the workloads for one target and one methodology each.
    pub workload_variants: Vec<WorkloadVariant>,
    /// The methodology that the document selects.
    pub methodology: Option<Methodology>,
}

/// Variant of a workload for one target and one methodology.
#[derive(Debug, Clone)]
pub struct WorkloadVariant {
    /// The methodology.
    pub methodology: Methodology,
    /// Name of the target.
    pub target: String,
    /// The workload's entry. It has the same name as the corresponding entry in [`ConvertedEntries::workloads`].
    pub workload: Node,
}

/// Looks up an environment variable.
pub type Variable<'v> = &'v dyn Fn(&str) -> Option<String>;

/// Converts a document of either predecessor tool. Returns `None` if the document is of neither. Diagnostics are added
/// to `problems`.
#[must_use]
pub fn read(
    file: &Arc<str>,
    root: &Node,
    catalog: &Catalog,
    variable: Variable<'_>,
    problems: &mut Diagnostics,
) -> Option<ConvertedEntries> {
    if dashboard::is_document(root) {
        return Some(dashboard::read(file, root, catalog, problems));
    }
    if experiment::is_document(root) {
        return Some(experiment::read(file, root, variable, problems).converted_entries(catalog, problems));
    }
    None
}
