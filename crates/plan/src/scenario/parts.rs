//! Inputs of a scenario: the documents it refers to, found in the library and the catalog.

use std::sync::Arc;

use atlas_catalog::price::Median;
use atlas_catalog::{Accelerator, Catalog, Model};
use atlas_config::library::Library;
use atlas_config::{Corrections, Profile, Target, Workload};
use atlas_core::plan::{Engine, PriceBasis};
use atlas_document::diagnostic::COMMAND_LINE;
use atlas_document::node::Position;
use atlas_document::{Diagnostic, Diagnostics, Node, Origin, Severity};

/// Target and workload, and the documents that they refer to.
#[derive(Debug, Clone)]
pub struct Parts {
    /// The target.
    pub target: Arc<Target>,
    /// The workload.
    pub workload: Arc<Workload>,
    /// Coefficients of the calibrated model for the target, if a profile applies.
    pub profile: Option<Arc<Profile>>,
    /// Datasheet of the target's accelerator.
    pub accelerator: Option<Arc<Accelerator>>,
    /// Model of the workload.
    pub model: Option<Arc<Model>>,
    /// Corrections learned from measurements on the accelerator.
    pub corrections: Option<Arc<Corrections>>,
    /// Catalog prices of the accelerator, in the order of [`PriceBasis::RENTS`].
    pub prices: [Option<Arc<Median>>; PriceBasis::RENTS.len()],
}

impl Parts {
    /// Finds a target and a workload by name, and everything that they refer to.
    ///
    /// # Errors
    ///
    /// All unknown names. A missing profile is an error only if the target names no accelerator either, since then no
    /// engine can estimate it.
    pub fn find(library: &Library, target: &str, workload: &str) -> Result<Parts, Diagnostics> {
        let mut problems = Diagnostics::new();
        let target = library.target(target).map_err(|problem| problems.push(problem)).ok().cloned();
        let workload = library.workload(workload).map_err(|problem| problems.push(problem)).ok().cloned();
        match (target, workload) {
            (Some(target), Some(workload)) => Parts::of(library, &target, &workload),
            _ => Err(problems),
        }
    }

    /// Like [`Parts::find`], for documents that are already loaded.
    ///
    /// # Errors
    ///
    /// As [`Parts::find`].
    pub fn of(library: &Library, target: &Arc<Target>, workload: &Arc<Workload>) -> Result<Parts, Diagnostics> {
        library.reject_substitutes(target, workload)?;
        let profile = library.profile_for(target).map(Arc::clone);
        let mut parts = Parts::with(library.catalog(), target, &library.workload_for(target, workload), profile)?;
        parts.corrections = parts.corrections.or_else(|| library.corrections_for(target).map(Arc::clone));
        Ok(parts)
    }

    /// Like [`Parts::of`], with the result of the search for a profile.
    ///
    /// # Errors
    ///
    /// As [`Parts::find`].
    pub fn with(
        catalog: &Catalog,
        target: &Arc<Target>,
        workload: &Arc<Workload>,
        profile: Result<Arc<Profile>, Diagnostic>,
    ) -> Result<Parts, Diagnostics> {
        let mut problems = Diagnostics::new();
        let accelerator =
            Parts::accelerator_of(catalog, target).map_err(|problem| problems.push(problem)).ok().flatten();
        let model = Parts::model_of(catalog, workload).map_err(|found| problems.extend(found)).ok().flatten();
        let profile = match profile {
            Ok(profile) => Some(profile),
            Err(_) if target.accelerator.is_some() || target.benchboard.is_some() => None,
            Err(problem) => {
                problems.push(problem);
                None
            }
        };
        if problems.has_errors() {
            return Err(problems);
        }
        let listed = accelerator.as_ref().map(|sheet| catalog.prices_of(&sheet.id)).unwrap_or_default();
        let prices = PriceBasis::RENTS.map(|basis| Median::of(&listed, basis).map(Arc::new));
        let (target, workload) = (Arc::clone(target), Arc::clone(workload));
        let corrections = profile.as_ref().and_then(|profile| profile.corrections.clone());
        Ok(Parts { target, workload, profile, accelerator, model, corrections, prices })
    }

    /// Datasheet of the accelerator that a target names, if any.
    ///
    /// # Errors
    ///
    /// If the catalog has no such accelerator; the error points to the field that names it.
    pub fn accelerator_of(catalog: &Catalog, target: &Target) -> Result<Option<Arc<Accelerator>>, Diagnostic> {
        let Some(name) = target.accelerator.as_deref() else { return Ok(None) };
        let placed = |problem| placed(problem, &target.origin, &target.document, &target.name, "accelerator");
        catalog.accelerator(name).map(Some).map_err(placed)
    }

    /// Model that a workload names, if any.
    ///
    /// # Errors
    ///
    /// If the catalog has no such model (the error points to the field that names it), or all problems of its config.
    pub fn model_of(catalog: &Catalog, workload: &Workload) -> Result<Option<Arc<Model>>, Diagnostics> {
        if let Some(model) = &workload.architecture {
            return Ok(Some(Arc::clone(model)));
        }
        let Some(name) = workload.model.as_deref() else { return Ok(None) };
        catalog.model_in(name, workload.origin.folder()).map(Some).map_err(|found| {
            let mut problems = Diagnostics::new();
            for problem in found.iter() {
                problems.push(placed(problem.clone(), &workload.origin, &workload.document, &workload.name, "model"));
            }
            problems
        })
    }

    /// Parts for the calibrated model only.
    #[must_use]
    pub fn calibrated(target: &Arc<Target>, workload: &Arc<Workload>, profile: &Arc<Profile>) -> Parts {
        let (target, workload, profile) = (Arc::clone(target), Arc::clone(workload), Some(Arc::clone(profile)));
        let prices = [const { None }; PriceBasis::RENTS.len()];
        Parts { target, workload, profile, accelerator: None, model: None, corrections: None, prices }
    }

    /// Name of the model as in measurements: its catalog key, otherwise its layers and width.
    #[must_use]
    pub fn model_name(&self) -> Arc<str> {
        match (&self.model, super::architecture(self)) {
            (Some(model), _) if self.workload.architecture.is_none() => model.id.as_str().into(),
            (_, Some(arch)) => format!("{} layers of {}", arch.layers, arch.hidden).into(),
            _ => "".into(),
        }
    }

    /// Default engine: the analytical one if the target names an accelerator.
    #[must_use]
    pub fn engine(&self) -> Engine {
        match (&self.accelerator, &self.target.benchboard) {
            (Some(_), _) => Engine::Analytical,
            // A target imported from the dashboard, with an accelerator that the catalog does not have.
            (None, Some(_)) => Engine::Benchboard,
            (None, None) => Engine::SemiEmpirical,
        }
    }

    /// Fabrics that the profile is calibrated for.
    #[must_use]
    pub fn fabrics(&self) -> &[(Arc<str>, f64)] {
        self.profile.as_ref().map_or(&[], |profile| &profile.fabrics)
    }
}

/// Moves a diagnostic of the catalog to the field that names the item. A diagnostic with a position in a file keeps it.
fn placed(problem: Diagnostic, origin: &Origin, document: &Node, entry: &str, key: &str) -> Diagnostic {
    let requested = &*problem.file == COMMAND_LINE;
    if !requested && problem.at != Position::default() {
        return problem;
    }
    Diagnostic {
        severity: Severity::Error,
        file: Arc::clone(&origin.file),
        at: document.get(key).map_or(origin.at, |node| node.at),
        path: format!("{entry}.{key}"),
        message: if requested { problem.message } else { format!("{}: {}", problem.file, problem.message) },
        ..problem
    }
}
