//! Converts an imported job to documents: a target and a workload in the form in which users write them, where each
//! value has a comment with its origin.
//!
//! The documents are decoded by the same decoder as users' files, and estimated in the same way.

mod facts;
mod model;
mod target;
mod workload;

use std::sync::Arc;

use atlas_config::library::Library;
use atlas_config::{Mode, Target, Workload};
use atlas_core::field::FileLocation;
use atlas_document::{Diagnostics, Node};
use atlas_plan::knob::{Knob, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario, ScenarioError};

use crate::import::Import;
use crate::launch::{one_line, yaml_text};
use facts::{Facts, YamlLines};

/// What the user adds to the files of a job.
#[derive(Debug, Clone, Default)]
pub struct UserInput {
    /// Name of a target in the library, which supplies accelerator, links and prices.
    pub target: Option<String>,
    /// Name of a model in the catalog.
    pub model: Option<String>,
    /// Index of the configuration, if the files have several.
    pub variant: Option<usize>,
    /// Knobs, which take precedence over the values of the files.
    pub overrides: Overrides,
}

impl UserInput {
    /// Whether the user gives this knob.
    fn has(&self, knob: Knob) -> bool {
        self.overrides.contains_key(&knob)
    }

    /// Writes the given knobs over the values of the files, at the path that `path` states.
    fn overwrite(&self, lines: &mut YamlLines, path: impl Fn(Knob) -> Option<&'static [&'static str]>) {
        for (knob, setting) in &self.overrides {
            let Some(path) = path(*knob) else { continue };
            let value = match setting {
                // Zero means that a value is not limited or not used; files then leave it out.
                Setting::Number(value) if !knob.spec().bounds().contains(*value) => None,
                Setting::Number(value) => Some(value.to_string()),
                Setting::Toggle(on) => Some(on.to_string()),
                Setting::Choice(word) => Some(yaml_text(word)),
                Setting::Seed(seed) => Some(seed.to_string()),
            };
            lines.overwrite(path, value);
        }
    }

    /// Notes on given knobs that files cannot contain, or that do not apply to the job.
    fn unwritten(&self, mode: Mode) -> Vec<String> {
        let knobs = self.overrides.keys().copied();
        let nowhere = knobs.filter(|knob| knob.spec().location == FileLocation::Nowhere);
        let mut notes: Vec<String> =
            nowhere.map(|knob| format!("{} is not a setting of files; repeat it with --set", knob.name())).collect();
        let other = self.overrides.keys().filter(|knob| knob.spec().mode.is_some_and(|own| own != mode));
        notes.extend(other.map(|knob| format!("{} has no effect in {}", knob.name(), mode.name())));
        notes
    }
}

/// Something that is missing or contradictory in a job, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct MissingInput {
    /// Name of the field or knob.
    pub what: String,
    /// What was found, and how to fix it.
    pub reason: String,
}

impl MissingInput {
    fn new(what: &str, reason: impl Into<String>) -> MissingInput {
        MissingInput { what: what.to_owned(), reason: reason.into() }
    }
}

/// The documents of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Documents {
    /// Name of both entries.
    pub name: String,
    /// One entry of `targets.yaml`, with comments.
    pub target: String,
    /// One entry of `workloads.yaml`, with comments.
    pub workload: String,
    /// The `read_from` mappings at the end of the target and of the workload: the comments in a form that explanations
    /// read.
    pub read_from: [String; 2],
    /// Values of the documents that the job's files do not state, and their sources.
    pub notes: Vec<String>,
}

/// Why the documents do not resolve to a scenario.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// An entry is invalid, or a name in it is unknown.
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
pub fn documents(import: &Import, library: &Library, given: &UserInput) -> Result<Documents, Vec<MissingInput>> {
    let facts = Facts::of(import, given)?;
    let mut gaps: Vec<MissingInput> =
        import.conflicts.iter().map(|note| MissingInput::new("conflict", note.text.clone())).collect();
    let mut notes = Vec::new();
    let model = model::find(&facts, library.catalog(), given, &mut notes).map_err(|gap| gaps.push(gap)).ok();
    let target = target::write(&facts, library, given, &mut notes).map_err(|gap| gaps.push(gap)).ok();
    let mut context = workload::Context {
        facts: &facts,
        catalog: library.catalog(),
        model: model.as_deref(),
        devices: target.as_ref().map(|target| target.devices),
        given,
        weights: None,
    };
    if let (Some(target), Some(model)) = (&target, &model)
        && workload::states_share_of_free(&context)
    {
        // The layout and the formats that determine the weights are those of the workload.
        let written = workload::write(&context, &mut Vec::new()).ok();
        let name = facts.name(Some(model));
        let entry = |body: &str| format!("- name: {}\n{body}", yaml_text(&name));
        context.weights = written.and_then(|written| {
            let (target, workload) = (entry(&target.body), entry(&written.0));
            let draft = Documents { name: name.clone(), target, workload, ..Documents::default() };
            let (_, scenario) = draft.scenario(library, &Overrides::new()).ok()?;
            scenario.weights_share(&scenario.base)
        });
    }
    let workload = workload::write(&context, &mut notes).map_err(|more| gaps.extend(more)).ok();
    let unknown: Vec<String> =
        import.not_recognized.iter().map(|note| format!("{} ({})", note.text, facts::shown_place(&note.at))).collect();
    if !unknown.is_empty() {
        notes.push(format!("not recognized: {}", unknown.join(", ")));
    }
    let unused = facts.unused();
    if !unused.is_empty() {
        notes.push(format!("found in the files, but not part of the plan: {}", unused.join(", ")));
    }
    match (target, workload) {
        (Some(target), Some(workload)) if gaps.is_empty() => {
            let name = facts.name(model.as_deref());
            let entry = |body: &str| format!("- name: {}\n{body}", yaml_text(&name));
            let read_from = [target.read_from, workload.1];
            let unknown: String =
                unknown.iter().map(|setting| format!("# not recognized: {}\n", one_line(setting))).collect();
            let workload = format!("{unknown}{}", entry(&workload.0));
            Ok(Documents { target: entry(&target.body), workload, read_from, notes, name })
        }
        _ => Err(gaps),
    }
}

impl Documents {
    /// Decodes the documents and resolves the names in them.
    ///
    /// # Errors
    /// If an entry is invalid. The diagnostics state the positions.
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

    /// Resolves the scenario of the documents with the given knobs.
    ///
    /// # Errors
    /// Errors of [`Documents::parts`], invalid knobs, and everything that the estimate requires but is missing.
    pub fn scenario(&self, library: &Library, overrides: &Overrides) -> Result<(Parts, Scenario), DocumentError> {
        let parts = self.parts(library)?;
        let scenario = Scenario::resolve(&parts, overrides)?;
        Ok((parts, scenario))
    }
}

/// Decodes the only entry of a document.
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
