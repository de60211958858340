//! Context for comparing measured rows with the engines.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use atlas_catalog::Catalog;
use atlas_config::library::Library;
use atlas_config::{Target, Workload};
use atlas_plan::scenario::Scenario;

/// Context for comparing measured rows with the engines.
#[derive(Debug, Clone)]
pub struct RowPredictor<'a> {
    /// All documents.
    pub library: &'a Library,
    /// Target on which the rows were measured.
    pub target: &'a Arc<Target>,
    /// Workload for settings that rows do not contain.
    pub workload: Option<&'a Arc<Workload>>,
    /// Whether rows that are complete are predicted without the workload.
    pub complete_rows_first: bool,
    /// Scenario of the calibrated model before the settings of a row are applied.
    pub(super) template: OnceCell<Option<Scenario>>,
    /// Identifying parts of the names of accelerators in the catalog.
    pub(super) devices: OnceCell<HashSet<String>>,
}

impl<'a> RowPredictor<'a> {
    /// Creates a context in which `workload` supplies the settings that rows do not contain.
    #[must_use]
    pub fn new(library: &'a Library, target: &'a Arc<Target>, workload: Option<&'a Arc<Workload>>) -> RowPredictor<'a> {
        RowPredictor {
            library,
            target,
            workload,
            complete_rows_first: false,
            template: OnceCell::new(),
            devices: OnceCell::new(),
        }
    }

    /// Predicts rows that are complete without the workload.
    #[must_use]
    pub fn complete_rows_first(self) -> RowPredictor<'a> {
        RowPredictor { complete_rows_first: true, ..self }
    }
}

/// Finds the catalog model for a name as written in logs. Removes paths, owners and format suffixes.
pub(super) fn model_of(catalog: &Catalog, name: &str) -> Option<String> {
    let last = name.rsplit('/').next().unwrap_or(name);
    let last = last.rsplit("--").next().unwrap_or(last).to_lowercase();
    let shorter = |text: &str| text.rsplit_once('-').map(|(head, _)| head.to_owned());
    let mut tried = last.clone();
    for _ in 0..3 {
        if let Ok(model) = catalog.model(&tried) {
            return Some(model.id.clone());
        }
        // `-fp8`, `-hf`, `-instruct`: the last part of a name is rarely its size.
        let Some(head) = shorter(&tried) else { break };
        tried = head;
    }
    None
}
