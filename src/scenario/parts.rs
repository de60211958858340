//! What a scenario is made of: the documents it names, found in the library and the catalog.

use std::sync::Arc;

use crate::catalog::{Accelerator, Catalog, Model};
use crate::library::Library;
use crate::plan::Engine;
use crate::spec::{Diagnostic, Diagnostics, Profile, Severity, Target, Workload};

/// Target and workload, and what stands behind them.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The target.
    pub target: Arc<Target>,
    /// The workload.
    pub workload: Arc<Workload>,
    /// The calibrated model's coefficients for the target, where a profile applies.
    pub profile: Option<Arc<Profile>>,
    /// The datasheet of the accelerator that the target names.
    pub accelerator: Option<Arc<Accelerator>>,
    /// The model that the workload names.
    pub model: Option<Arc<Model>>,
}

impl Parts {
    /// Finds everything that a target's and a workload's name lead to.
    ///
    /// # Errors
    /// Every name that leads nowhere; a target without profile only where it names no accelerator either, since then no
    /// engine could answer.
    pub fn find(library: &Library, target: &str, workload: &str) -> Result<Parts, Diagnostics> {
        let mut problems = Diagnostics::new();
        let target = library.target(target).map_err(|problem| problems.push(problem)).ok().cloned();
        let workload = library.workload(workload).map_err(|problem| problems.push(problem)).ok().cloned();
        match (target, workload) {
            (Some(target), Some(workload)) => Parts::of(library, &target, &workload),
            _ => Err(problems),
        }
    }

    /// As [`Parts::find`], for documents at hand.
    ///
    /// # Errors
    /// As [`Parts::find`].
    pub fn of(library: &Library, target: &Arc<Target>, workload: &Arc<Workload>) -> Result<Parts, Diagnostics> {
        let profile = library.profile_for(target).map(Arc::clone);
        Parts::with(library.catalog(), target, workload, profile)
    }

    /// As [`Parts::of`], with a profile that was found, or the complaint that there is none.
    ///
    /// # Errors
    /// As [`Parts::find`].
    pub fn with(
        catalog: &Catalog,
        target: &Arc<Target>,
        workload: &Arc<Workload>,
        profile: Result<Arc<Profile>, Diagnostic>,
    ) -> Result<Parts, Diagnostics> {
        let mut problems = Diagnostics::new();
        let accelerator = target.accelerator.as_deref().and_then(|name| match catalog.accelerator(name) {
            Ok(found) => Some(found),
            Err(problem) => {
                problems.push(placed(problem, &target.origin, &format!("{}.accelerator", target.name)));
                None
            }
        });
        let model = workload.model.as_deref().and_then(|name| match catalog.model(name) {
            Ok(found) => Some(found),
            Err(found) => {
                for problem in found.iter() {
                    problems.push(placed(problem.clone(), &workload.origin, &format!("{}.model", workload.name)));
                }
                None
            }
        });
        let profile = match profile {
            Ok(profile) => Some(profile),
            Err(_) if target.accelerator.is_some() => None,
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        if problems.has_errors() {
            return Err(problems);
        }
        let (target, workload) = (Arc::clone(target), Arc::clone(workload));
        Ok(Parts { target, workload, profile, accelerator, model })
    }

    /// What only the calibrated model needs.
    #[must_use]
    pub fn calibrated(target: &Arc<Target>, workload: &Arc<Workload>, profile: &Arc<Profile>) -> Parts {
        let (target, workload, profile) = (Arc::clone(target), Arc::clone(workload), Some(Arc::clone(profile)));
        Parts { target, workload, profile, accelerator: None, model: None }
    }

    /// The engine that answers where nobody chose one: first principles wherever the target names an accelerator.
    #[must_use]
    pub fn engine(&self) -> Engine {
        if self.accelerator.is_some() { Engine::Analytical } else { Engine::SemiEmpirical }
    }

    /// The fabrics that the profile is calibrated for.
    #[must_use]
    pub fn fabrics(&self) -> &[(Arc<str>, f64)] {
        self.profile.as_ref().map_or(&[], |profile| &profile.fabrics)
    }
}

/// A complaint of the catalog's, at the place that asked.
fn placed(problem: Diagnostic, origin: &crate::spec::Origin, path: &str) -> Diagnostic {
    if !problem.file.starts_with("command line") {
        return problem;
    }
    Diagnostic {
        severity: Severity::Error,
        file: Arc::clone(&origin.file),
        at: origin.at,
        path: path.to_owned(),
        ..problem
    }
}
