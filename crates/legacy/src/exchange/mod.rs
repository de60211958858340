//! Documents of the predecessor tools, turned into targets, workloads and knobs.
//!
//! * [`dashboard`] – scenarios and hardware profiles of the predecessor dashboard, JSON
//! * [`experiment`] – the single experiment YAML of the predecessor comparison tool
//!
//! Both become entries as users write them in `targets.yaml` and `workloads.yaml`, with the positions of their
//! values in the original file, so that other code treats them alike.

pub mod dashboard;
pub mod experiment;
mod tree;

use std::sync::Arc;

use atlas_catalog::Catalog;
use atlas_core::plan::Methodology;
use atlas_document::{Diagnostics, Node};

/// The entries that a predecessor's document is imported as.
#[derive(Debug, Clone, Default)]
pub struct Foreign {
    /// Entries as of `targets.yaml`.
    pub targets: Vec<Node>,
    /// Entries as of `workloads.yaml`.
    pub workloads: Vec<Node>,
    /// Workloads as they are run on one target under one methodology.
    pub tailored: Vec<Tailored>,
    /// The methodology that the document requests.
    pub methodology: Option<Methodology>,
}

/// A workload as it is run on one target.
#[derive(Debug, Clone)]
pub struct Tailored {
    /// The methodology.
    pub methodology: Methodology,
    /// The target.
    pub target: String,
    /// The workload's entry, of the same name as the general one.
    pub workload: Node,
}

/// Looks up a variable of the environment.
pub type Variable<'v> = &'v dyn Fn(&str) -> Option<String>;

/// Reads a predecessor's document of either kind; `None` if it is of neither. Diagnostics go to `problems`.
#[must_use]
pub fn read(
    file: &Arc<str>,
    root: &Node,
    catalog: &Catalog,
    variable: Variable<'_>,
    problems: &mut Diagnostics,
) -> Option<Foreign> {
    if dashboard::is(root) {
        return Some(dashboard::read(file, root, catalog, problems));
    }
    if experiment::is(root) {
        return Some(experiment::read(file, root, variable, problems).foreign(catalog, problems));
    }
    None
}
