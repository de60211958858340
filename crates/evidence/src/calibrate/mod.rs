//! From measurements to better numbers: rows of [`intake`] become coefficients of the calibrated model, parameter by
//! parameter after the calibration guide (`guide`), and efficiency factors of the analytical engine ([`efficiency`]);
//! [`judge`] holds both against the rows, before and after. Pure but for [`sources`], which opens files; nothing here
//! writes any.

pub mod check;
pub mod columns;
pub mod document;
pub mod efficiency;
mod guide;
pub mod intake;
pub mod judge;
pub mod observation;
pub mod parameter;
pub mod plan;
pub mod predict;
pub mod scripts;
pub mod sources;
pub mod statistics;

use std::sync::Arc;

pub use guide::Missing;
pub use observation::Observation;
pub use parameter::{Figures, Parameter};
pub use predict::Bench;

use atlas_config::library::Library;
use atlas_config::{Efficiency, Factors, Mode, Profile, Target};
use efficiency::Posterior;
use guide::Guide;
use judge::Judged;

/// What calibration starts from.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// Coefficients in force, where a profile has any for the target.
    pub profile: Option<Arc<Profile>>,
    /// Efficiency factors in force.
    pub efficiency: Efficiency,
}

impl Start {
    /// The numbers in force for a target: its entry's, else its profile's.
    #[must_use]
    pub fn of(library: &Library, target: &Target) -> Start {
        let profile = library.profile_for(target).ok().map(Arc::clone);
        let efficiency = target.efficiency.or_else(|| profile.as_ref().and_then(|profile| profile.efficiency));
        Start { profile, efficiency: efficiency.unwrap_or_default() }
    }

    /// The coefficients in force, where there are any.
    #[must_use]
    pub fn figures(&self) -> Option<Figures> {
        let profile = self.profile.as_ref().filter(|profile| profile.calibrated)?;
        let (coefficients, fabrics) = (profile.coefficients, profile.fabrics.to_vec());
        Some(Figures { coefficients, fabrics, node_watts: profile.node_watts })
    }
}

/// What calibration found.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The name of the target.
    pub target: String,
    /// The parameters found, in the guide's order.
    pub parameters: Vec<Parameter>,
    /// Coefficients, fabrics and power after them; none where there was nothing to start from.
    pub figures: Option<Figures>,
    /// The factors found, a mode each.
    pub posteriors: Vec<Posterior>,
    /// The factors in force afterwards.
    pub efficiency: Efficiency,
    /// What was measured beside what is predicted, before and after.
    pub judged: Vec<Judged>,
    /// What the user should know.
    pub warnings: Vec<String>,
    /// What the measurements do not tell.
    pub missing: Vec<Missing>,
    /// Rows that the analytical engine cannot answer, and why.
    pub refused: Vec<(String, String)>,
}

impl Outcome {
    /// Whether anything was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty() && self.posteriors.is_empty()
    }

    /// All that was found, factors as parameters too.
    #[must_use]
    pub fn all(&self, before: &Efficiency) -> Vec<Parameter> {
        let mut all = self.parameters.clone();
        for posterior in &self.posteriors {
            let (mode, before) = match posterior.mode {
                Mode::Training => ("training", before.training),
                Mode::Inference => ("serving", before.serving),
            };
            let prior = posterior.prior;
            let values = posterior.factors.all().into_iter().zip(before.all()).zip(posterior.intervals);
            for (name, ((value, before), interval)) in Factors::NAMES.into_iter().zip(values) {
                all.push(Parameter {
                    symbol: format!("e_{name}({mode})"),
                    path: format!("efficiency.{mode}.{name}"),
                    value,
                    interval: Some(interval),
                    n: posterior.n,
                    r2: posterior.r2,
                    before: Some(before),
                    method: format!(
                        "Bayesian shrinkage towards the shipped constants (prior sd {prior:.2} of the logarithm, Student's t)"
                    ),
                    sources: posterior.sources.clone(),
                });
            }
        }
        all
    }
}

/// Calibrates.
#[must_use]
pub fn calibrate(bench: &Bench<'_>, rows: &[Observation], start: &Start) -> Outcome {
    // A row of another machine tells nothing of this one.
    let (mut own, mut foreign): (Vec<Observation>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    for row in rows {
        match bench.foreign(row).filter(|_| row.switch("baseline") != Some(true)) {
            Some(device) => {
                foreign.push((row.source.clone(), format!("it ran on {device}, which {} has not", bench.target.name)));
            }
            None => own.push(row.clone()),
        }
    }
    let rows = own.as_slice();
    let mut warnings = judge::criteria(rows);
    let mut outcome = Outcome {
        target: bench.target.name.to_string(),
        parameters: Vec::new(),
        figures: None,
        posteriors: Vec::new(),
        efficiency: start.efficiency,
        judged: Vec::new(),
        warnings: Vec::new(),
        missing: Vec::new(),
        refused: foreign,
    };
    let before = start.figures();
    if let Some(figures) = before.clone() {
        let (found, missing) = (Vec::new(), Vec::new());
        let mut guide = Guide { bench, rows, figures, found, warnings: Vec::new(), missing };
        guide.run();
        warnings.extend(guide.warnings);
        outcome.parameters = guide.found;
        outcome.missing = guide.missing;
        outcome.figures = Some(guide.figures);
    }
    if bench.target.accelerator.is_some() {
        for mode in [Mode::Training, Mode::Inference] {
            let (cases, refused) = efficiency::cases(bench, rows, mode);
            outcome.refused.extend(refused);
            if cases.is_empty() {
                continue;
            }
            let posterior = efficiency::find(&cases, mode);
            let [low, high] = efficiency::RANGE;
            for (name, value) in Factors::NAMES.iter().zip(posterior.factors.all()) {
                if value <= low * 1.001 || value >= high * 0.999 {
                    warnings.push(format!(
                        "e_{name}: held at {value:.2}, the end of its range: the rows are further from first principles \
                         than a machine's own pace explains; look at their configuration"
                    ));
                }
            }
            efficiency::lay(&mut outcome.efficiency, mode, posterior.factors);
            outcome.posteriors.push(posterior);
        }
    }
    outcome.warnings = warnings;
    outcome.judged = judge::judge(bench, rows, before.as_ref(), &outcome, start);
    outcome
}
