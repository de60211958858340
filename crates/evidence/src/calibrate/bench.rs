//! What measured rows are compared with.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use atlas_catalog::Catalog;
use atlas_config::library::Library;
use atlas_config::{Target, Workload};
use atlas_plan::scenario::Scenario;

/// What rows are compared with.
#[derive(Debug, Clone)]
pub struct Bench<'a> {
    /// All documents.
    pub library: &'a Library,
    /// The target the rows were measured on.
    pub target: &'a Arc<Target>,
    /// The workload that fills what rows do not state.
    pub workload: Option<&'a Arc<Workload>>,
    /// Whether rows that are complete are predicted without the workload.
    pub own_first: bool,
    /// The scenario of the calibrated model before a row is applied over it.
    pub(super) template: OnceCell<Option<Scenario>>,
    /// Names by which devices are described apart.
    pub(super) devices: OnceCell<HashSet<String>>,
}

impl<'a> Bench<'a> {
    /// A workload fills what rows do not state.
    #[must_use]
    pub fn new(library: &'a Library, target: &'a Arc<Target>, workload: Option<&'a Arc<Workload>>) -> Bench<'a> {
        Bench { library, target, workload, own_first: false, template: OnceCell::new(), devices: OnceCell::new() }
    }

    /// The same, with rows that are complete predicted without the workload.
    #[must_use]
    pub fn own_first(self) -> Bench<'a> {
        Bench { own_first: true, ..self }
    }
}

/// The catalog's model of a name as logs write it: a path, an owner, a suffix of the format left out.
pub(super) fn model_of(catalog: &Catalog, name: &str) -> Option<String> {
    let last = name.rsplit('/').next().unwrap_or(name);
    let last = last.rsplit("--").next().unwrap_or(last).to_lowercase();
    let shorter = |text: &str| text.rsplit_once('-').map(|(head, _)| head.to_owned());
    let mut tried = last.clone();
    for _ in 0..3 {
        if let Ok(model) = catalog.model(&tried) {
            return Some(model.id.clone());
        }
        // `-fp8`, `-hf`, `-instruct`: what a name ends with is seldom its size.
        let Some(head) = shorter(&tried) else { break };
        tried = head;
    }
    None
}
