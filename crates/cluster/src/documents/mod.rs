//! An imported job as documents: the target and the workload that users could have written, each value with the place
//! that it was read from.
//!
//! The documents go through the same decoder as files of users, and from there through the one path to an estimate.

mod facts;
mod model;
mod target;
mod workload;

use std::sync::Arc;

use atlas_config::library::Library;
use atlas_config::{Target, Workload};
use atlas_document::{Diagnostics, Node};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario, ScenarioError};

use crate::import::Import;
use facts::Facts;

/// What the files of a job leave open and the user says.
#[derive(Debug, Clone, Default)]
pub struct Given {
    /// A target of the library whose accelerator, links and prices hold, by name.
    pub target: Option<String>,
    /// A model of the catalog, by name.
    pub model: Option<String>,
    /// Which of several configurations in the files, from 0.
    pub variant: Option<usize>,
    /// Knobs; prompt, generate and concurrency also fill what the files do not say.
    pub overrides: Overrides,
}

impl Given {
    /// A number among the knobs.
    fn number(&self, knob: Knob) -> Option<f64> {
        match self.overrides.get(&knob) {
            Some(Setting::Number(value)) => Some(*value),
            _ => None,
        }
    }
}

/// Why a job is no scenario yet: what is missing or contradictory, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct Gap {
    /// The value, by the name of its field or knob.
    pub what: String,
    /// What was found, and what to do.
    pub reason: String,
}

impl Gap {
    fn new(what: &str, reason: impl Into<String>) -> Gap {
        Gap { what: what.to_owned(), reason: reason.into() }
    }
}

/// A job's documents.
#[derive(Debug, Clone, PartialEq)]
pub struct Documents {
    /// The name of both entries.
    pub name: String,
    /// One entry of `targets.yaml`, with comments.
    pub target: String,
    /// One entry of `workloads.yaml`, with comments.
    pub workload: String,
    /// `read_from` of the target and of the workload: the comments as mappings at their ends, which explanations read.
    pub read_from: [String; 2],
    /// Values of the documents that the job's files do not say, and where they come from.
    pub notes: Vec<String>,
}

/// Why documents do not lead to a scenario.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// An entry or a name in it is wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Entry(Diagnostics),
    /// The scenario cannot be resolved.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// Writes the documents of a job.
///
/// # Errors
/// Everything that is missing or contradictory.
pub fn documents(import: &Import, library: &Library, given: &Given) -> Result<Documents, Vec<Gap>> {
    let facts = Facts::of(import, given)?;
    let mut gaps: Vec<Gap> = import.conflicts.iter().map(|note| Gap::new("conflict", note.text.clone())).collect();
    let mut notes = Vec::new();
    let model = model::find(&facts, library.catalog(), given, &mut notes).map_err(|gap| gaps.push(gap)).ok();
    let target = target::write(&facts, library, given, &mut notes).map_err(|gap| gaps.push(gap)).ok();
    let workload = workload::write(&facts, model.as_deref(), given, &mut notes).map_err(|more| gaps.extend(more)).ok();
    match (target, workload) {
        (Some(target), Some(workload)) if gaps.is_empty() => {
            let name = facts.name(model.as_deref());
            let entry = |body: &str| format!("- name: {}\n{body}", crate::launch::yaml_text(&name));
            let read_from = [target.1, workload.1];
            Ok(Documents { target: entry(&target.0), workload: entry(&workload.0), read_from, notes, name })
        }
        _ => Err(gaps),
    }
}

impl Documents {
    /// Decodes the documents and finds what they name.
    ///
    /// # Errors
    /// What is wrong with an entry, at its place.
    pub fn parts(&self, library: &Library) -> Result<Parts, DocumentError> {
        let mut problems = Diagnostics::new();
        let target = entry("imported target", &self.target, Target::decode, &mut problems);
        let workload = entry("imported workload", &self.workload, Workload::decode, &mut problems);
        match (target, workload) {
            (Some(target), Some(workload)) if !problems.has_errors() => {
                Parts::of(library, &Arc::new(target), &Arc::new(workload)).map_err(DocumentError::Entry)
            }
            _ => Err(DocumentError::Entry(problems)),
        }
    }

    /// The scenario of the documents under knobs.
    ///
    /// # Errors
    /// As [`Documents::parts`], or a knob that is refused, or all that an engine lacks.
    pub fn scenario(&self, library: &Library, overrides: &Overrides) -> Result<(Parts, Scenario), DocumentError> {
        let parts = self.parts(library)?;
        let scenario = Scenario::resolve(&parts, overrides)?;
        Ok((parts, scenario))
    }
}

/// The one entry of a document.
fn entry<T>(
    label: &str,
    text: &str,
    decode: fn(&Arc<str>, &Node, &mut Diagnostics) -> Option<T>,
    problems: &mut Diagnostics,
) -> Option<T> {
    let label: Arc<str> = label.into();
    let tree = atlas_document::parse::parse(&label, text, problems)?;
    let node = tree.items()?.first()?;
    decode(&label, node, problems)
}
