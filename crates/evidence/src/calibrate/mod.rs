//! Calibration from measurements. Rows of [`intake`] determine coefficients of the calibrated model, parameter by
//! parameter as in the calibration guide (`guide`), and corrections of the analytical engine ([`crate::runs`]).
//! [`judge`] compares both with the rows, before and after. Only [`sources`] opens files, and nothing here writes any.

pub mod bench;
pub mod check;
pub mod columns;
pub mod document;
mod guide;
pub mod intake;
pub mod judge;
pub mod misstated;
pub mod observation;
pub mod parameter;
pub mod plan;
pub mod predict;
pub mod predicted_metric;
pub mod rows;
pub mod scripts;
pub mod sources;
pub mod statistics;

use crate::calibrate::columns::MetricColumn;
use atlas_core::math;
use atlas_core::units::significant;
use std::sync::Arc;

pub use bench::RowPredictor;
pub use guide::Missing;
pub use observation::Observation;
pub use parameter::{Parameter, ProfileValues};

use crate::runs::components::Components;
use crate::runs::{Run, effects};
use atlas_config::corrections::{Factor, Quantity};
use atlas_config::library::Library;
use atlas_config::{Corrections, Efficiency, Mode, Profile, Target, Workload};
use atlas_core::plan::Engine;
use guide::Calibration;
use judge::EvaluatedMetric;

/// The starting point of a calibration.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// Current coefficients, if a profile has any for the target.
    pub profile: Option<Arc<Profile>>,
    /// Current efficiency factors.
    pub efficiency: Efficiency,
    /// Current corrections.
    pub corrections: Option<Arc<Corrections>>,
}

impl Start {
    /// Returns the current numbers for a target: those of the target itself, or otherwise those of its profile.
    #[must_use]
    pub fn of(library: &Library, target: &Target) -> Start {
        let profile = library.profile_for(target).ok().map(Arc::clone);
        let efficiency = target.efficiency.or_else(|| profile.as_ref().and_then(|profile| profile.efficiency));
        let corrections = library.corrections_for(target).map(Arc::clone);
        Start { profile, efficiency: efficiency.unwrap_or_default(), corrections }
    }

    /// Returns the current coefficients, if there are any.
    #[must_use]
    pub fn figures(&self) -> Option<ProfileValues> {
        let profile = self.profile.as_ref().filter(|profile| profile.calibrated)?;
        let (coefficients, fabrics) = (profile.coefficients, profile.fabrics.to_vec());
        Some(ProfileValues { coefficients, fabrics, node_watts: profile.node_watts })
    }
}

/// Result of a calibration.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Name of the target.
    pub target: String,
    /// Parameters found, in the order of the guide.
    pub parameters: Vec<Parameter>,
    /// Coefficients, fabrics and power after the calibration; `None` if there were none to start from.
    pub figures: Option<ProfileValues>,
    /// Corrections of the metrics of the analytical engine.
    pub corrections: Option<Arc<Corrections>>,
    /// Current efficiency factors, which calibration does not change.
    pub efficiency: Efficiency,
    /// Measurements with predictions before and after the calibration.
    pub judged: Vec<EvaluatedMetric>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Parameters that the measurements do not determine.
    pub missing: Vec<Missing>,
    /// Rows that the analytical engine cannot predict, and why.
    pub refused: Vec<(String, String)>,
}

impl Outcome {
    /// Whether nothing was found.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty() && self.corrections.is_none()
    }

    /// Returns all parameters found, including the effects of corrections.
    #[must_use]
    pub fn all(&self) -> Vec<Parameter> {
        let mut all = self.parameters.clone();
        let Some(corrections) = &self.corrections else { return all };
        for quantity in Quantity::ALL {
            let Some(correction) = corrections.of(quantity) else { continue };
            let mut configurations = 0;
            for (i, ((factor, value), row)) in correction.effects.iter().zip(&correction.covariance).enumerate() {
                let sd = row.get(i).copied().unwrap_or(0.0).max(0.0).sqrt();
                let (kind, name) = factor.kind_and_name();
                let of = match factor {
                    Factor::Near(_) => {
                        configurations += 1;
                        format!("{kind} {configurations}")
                    }
                    _ => name.map_or_else(|| kind.to_owned(), |name| format!("{kind} {name}")),
                };
                all.push(Parameter {
                    symbol: format!("{of}({})", quantity.name()),
                    path: format!("corrections.{}.{}", quantity.key(), of.replace(' ', ".")),
                    value: math::exp(*value),
                    interval: Some([math::exp(value - 1.96 * sd), math::exp(value + 1.96 * sd)]),
                    n: correction.runs,
                    r2: None,
                    before: Some(1.0),
                    method: "hierarchical model with variance components of the shipped measurements".to_owned(),
                    sources: corrections.runs.clone(),
                });
            }
        }
        all
    }
}

/// Removes corrections that would make the predictions of their own runs worse. Also returns messages about those.
fn remove_harmful(found: Corrections, runs: &[Run]) -> (Corrections, Vec<String>) {
    let mut kept = Corrections::on(Arc::clone(&found.accelerator), found.runs.clone());
    let mut worse = Vec::new();
    for quantity in Quantity::ALL {
        let Some(correction) = found.of(quantity) else { continue };
        let own = || runs.iter().filter(|run| run.quantity == quantity);
        let before: f64 = own().map(|run| run.log_ratio().abs()).sum();
        let left = |run: &Run| (run.log_ratio() - math::ln(correction.at(&run.features()).factor)).abs();
        if own().map(left).sum::<f64>() <= before {
            kept.set(quantity, correction.clone());
        } else {
            let name = quantity.name();
            worse.push(format!(
                "{name}: not corrected: the runs contradict each other, so a correction would increase their errors"
            ));
        }
    }
    (kept, worse)
}

/// Ratio of a measured value to its estimate above which its units or settings are probably wrong.
const IMPLAUSIBLE: f64 = 3.0;

/// Warning of a run that is too far from its estimate.
fn implausible(run: &Run) -> Option<String> {
    let ratio = run.measured / run.predicted;
    (run.log_ratio().abs() > math::ln(IMPLAUSIBLE)).then(|| {
        format!(
            "{}: the {} is {} times the estimate; a run so far off has little effect: check its units (times are in \
             milliseconds) and settings",
            run.id,
            run.quantity.name(),
            significant(ratio, 3)
        )
    })
}

/// A row of training that states step times only, with the batch and sequence length of the workload, so that its
/// throughput is known.
fn with_tokens_of_workload(row: &Observation, workload: Option<&Workload>) -> Observation {
    let mut row = row.clone();
    let Some(workload) = workload.filter(|workload| workload.shape.mode == Mode::Training) else { return row };
    if row.mode() != Mode::Training || row.figure(MetricColumn::StepTimeS).is_none() || row.throughput().is_some() {
        return row;
    }
    let tokens = [("global_batch", workload.plan.global.map(f64::from)), ("seq_len", Some(workload.shape.prompt))];
    for (name, value) in tokens {
        if let (None, Some(value)) = (row.number(name), value) {
            row.set(name, value.into());
        }
    }
    row
}

/// Calibrates the target of `bench` with `rows`.
#[must_use]
pub fn calibrate(bench: &RowPredictor<'_>, rows: &[Observation], start: &Start) -> Outcome {
    // Rows of other accelerators do not help.
    let (mut own, mut foreign): (Vec<Observation>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    for row in rows {
        match bench.other_accelerator(row).filter(|_| row.switch("baseline") != Some(true)) {
            Some(device) => {
                let reason = format!("it ran on {device}, but {} has other accelerators", bench.target.name);
                foreign.push((row.source.clone(), reason));
            }
            None => own.push(with_tokens_of_workload(row, bench.workload.map(AsRef::as_ref))),
        }
    }
    let rows = own.as_slice();
    let mut warnings = judge::criteria(rows);
    let mut outcome = Outcome {
        target: bench.target.name.to_string(),
        parameters: Vec::new(),
        figures: None,
        corrections: None,
        efficiency: start.efficiency,
        judged: Vec::new(),
        warnings: Vec::new(),
        missing: Vec::new(),
        refused: foreign,
    };
    let before = start.figures();
    if let Some(figures) = before.clone() {
        let (found, missing) = (Vec::new(), Vec::new());
        let mut guide = Calibration { bench, rows, figures, found, warnings: Vec::new(), missing };
        guide.run();
        warnings.extend(guide.warnings);
        outcome.parameters = guide.found;
        outcome.missing = guide.missing;
        outcome.figures = Some(guide.figures);
    }
    if bench.target.accelerator.is_some() {
        let (runs, refused) = rows::runs(bench, rows, &start.efficiency);
        outcome.refused.extend(refused);
        warnings.extend(runs.iter().filter_map(implausible));
        let (corrections, worse) = remove_harmful(effects::corrections(&runs, Components::of), &runs);
        warnings.extend(worse);
        outcome.corrections = (!corrections.is_empty()).then(|| Arc::new(corrections));
    }
    outcome.warnings = warnings;
    outcome.judged = judge::judge(bench, rows, before.as_ref(), &outcome, start);
    let own = || outcome.judged.iter().filter(|one| one.engine == Engine::SemiEmpirical);
    if let Some((n, standing, found)) = judge::median_errors(own()).filter(|(_, standing, found)| found > standing) {
        // Reject a fit that predicts its own data worse.
        outcome.warnings.push(format!(
            "coefficients: unchanged, since the fit predicts its own {n} measured values worse: median error \
             {found:.1} %, {standing:.1} % before"
        ));
        outcome.parameters.clear();
        outcome.figures.clone_from(&before);
        outcome.judged = judge::judge(bench, rows, before.as_ref(), &outcome, start);
    }
    outcome
}
