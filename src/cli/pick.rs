//! From names on the command line to a scenario.

use std::sync::Arc;

use super::args::Globals;
use super::failure::Failure;
use super::output::complain;
use crate::knob::Overrides;
use crate::scenario::Scenario;
use crate::spec::{Diagnostics, Library, Profile, Severity, Target, Workload};

/// Target, workload and the profile in force.
#[derive(Debug, Clone)]
pub struct Picked {
    /// The target.
    pub target: Arc<Target>,
    /// The workload.
    pub workload: Arc<Workload>,
    /// The profile in force for the target.
    pub profile: Arc<Profile>,
}

/// Loads the files the flags name. Errors in them are told on stderr at once, since they explain why a name may be
/// missing; warnings are counted.
#[must_use]
pub fn library(globals: &Globals) -> Library {
    let library = Library::load(&globals.sources(), None);
    tell(library.problems());
    library
}

fn tell(problems: &Diagnostics) {
    for problem in problems.iter().filter(|problem| problem.severity == Severity::Error) {
        complain(&problem.to_string());
    }
    let warnings = problems.len() - problems.errors();
    if warnings > 0 {
        let plural = if warnings == 1 { "" } else { "s" };
        complain(&format!("{warnings} warning{plural} about the files; `atlas check` shows them"));
    }
}

/// Finds all three, or complains about every one that is not there.
pub fn pick(library: &Library, target: &str, workload: &str) -> Result<Picked, Failure> {
    let mut problems = Diagnostics::new();
    let target = library.target(target).map_err(|problem| problems.push(problem));
    let workload = library.workload(workload).map_err(|problem| problems.push(problem));
    if let (Ok(target), Ok(workload)) = (target, workload) {
        match library.profile_for(target) {
            Ok(profile) => {
                return Ok(Picked {
                    target: Arc::clone(target),
                    workload: Arc::clone(workload),
                    profile: Arc::clone(profile),
                });
            }
            Err(problem) => problems.push(problem),
        }
    }
    Err(problems.into())
}

impl Picked {
    /// Resolves with these knobs.
    pub fn resolve(&self, overrides: &Overrides) -> color_eyre::Result<Scenario> {
        Ok(Scenario::resolve(&self.target, &self.workload, &self.profile, overrides)?)
    }

    /// The track to file under: the flag's, else the workload's, else the founding default.
    #[must_use]
    pub fn track<'a>(&'a self, flag: Option<&'a str>) -> &'a str {
        flag.or(self.workload.track.as_deref()).unwrap_or("parity")
    }
}
