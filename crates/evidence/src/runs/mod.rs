//! Calibration from a few runs of one cluster.
//!
//! A run is a measured row, resolved to a scenario like every row. Its observation is the logarithm of measured over
//! predicted. A hierarchical model splits this into effects of the cluster, the accelerator, the software, the model,
//! the classes of operators in which the time is spent, and the measured configurations themselves ([`effects`]). The
//! typical sizes of such effects are estimated from the shipped measurements ([`variance`]) and kept in a table
//! ([`components`]), so that a few runs change predictions only as far as they are informative. [`experiment`] measures
//! the benefit on clusters from which the table was not estimated.

pub mod components;
pub mod effects;
pub mod experiment;
pub mod matrix;
pub mod variance;

use atlas_catalog::Catalog;
use atlas_config::corrections::{Features, Quantity, Shape};
use atlas_core::math;
use atlas_plan::engine;
use atlas_plan::engine::answer::corrected::{shape, shares};
use atlas_plan::estimate::Estimate;

use crate::validate::case::{self, Metric, RowScenario, measured};
use crate::validate::table::Row;
use crate::validate::{MeasurementKind, ValidateError, shipped, table};

/// A measured metric of a run, and its prediction.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Identifier of the run.
    pub id: String,
    /// Publisher of the measurement; runs of one source may share effects.
    pub source: String,
    /// Quantity that was measured.
    pub quantity: Quantity,
    /// Measured value.
    pub measured: f64,
    /// Prediction of the shipped engine.
    pub predicted: f64,
    /// Bounds of the 90 % interval of the prediction, as logarithms of measured over predicted.
    pub interval: [f64; 2],
    /// Variance of the logarithm of the measured value, if the measurement contains its spread.
    pub noise: f64,
    /// Catalog key of the accelerator.
    pub accelerator: String,
    /// Software family.
    pub software: String,
    /// Name of the model.
    pub model: String,
    /// Share of the peak rate of the accelerators that the measured value means; `None` in serving.
    pub peak_share: Option<f64>,
    /// Shares of the time by class of operators.
    pub shares: [f64; 4],
    /// Shape of the configuration.
    pub shape: Shape,
}

impl Run {
    /// Returns the runs of a row, one for each measured metric.
    ///
    /// # Errors
    /// Returns why the row cannot be predicted.
    pub fn of(row: &Row, kind: MeasurementKind, catalog: &Catalog) -> Result<Vec<Run>, String> {
        if !row.text("excluded").is_empty() {
            return Err(format!("excluded: {}", row.text("excluded")));
        }
        let found = RowScenario::of(row, kind, catalog)?;
        let figures = measured(row, kind, &found)?;
        Run::of_resolved_row(row, &found, &figures)
    }

    /// Returns the runs of a resolved row, for the given measured metrics.
    ///
    /// # Errors
    /// Returns why there is no prediction.
    pub fn of_resolved_row(row: &Row, found: &RowScenario, figures: &[case::Measured]) -> Result<Vec<Run>, String> {
        let mut estimate = Estimate::default();
        engine::estimate_into(&found.scenario, &mut estimate);
        estimate.finite()?;
        let detail = estimate.detail.as_ref().ok_or("the model or the accelerator is not known")?;
        let run = |figure: &case::Measured| {
            let [predicted, low, high] = case::predicted(&estimate, figure.metric, found.documents.accelerators)?;
            Some(Run {
                id: row.text("id").to_owned(),
                source: row.text("source").to_owned(),
                quantity: quantity(figure.metric),
                measured: figure.value,
                predicted,
                interval: [math::ln(low / predicted), math::ln(high / predicted)],
                noise: 0.0,
                accelerator: found.parts.accelerator.as_ref()?.id.to_string(),
                software: found.scenario.active_software.family().to_owned(),
                model: found.parts.model_name().to_string(),
                peak_share: detail.training.map(|training| training.hfu * figure.value / predicted),
                shares: shares(detail),
                shape: shape(&found.scenario, detail),
            })
        };
        Ok(figures.iter().filter_map(run).filter(|run| run.log_ratio().is_finite()).collect())
    }

    /// Logarithm of measured over predicted.
    #[must_use]
    pub fn log_ratio(&self) -> f64 {
        math::ln(self.measured / self.predicted)
    }

    /// Features that the run shares with scenarios.
    #[must_use]
    pub fn features(&self) -> Features<'_> {
        Features {
            accelerator: &self.accelerator,
            software: &self.software,
            model: &self.model,
            shares: self.shares,
            shape: self.shape,
            uncertainty: self.interval[1].max(-self.interval[0]),
        }
    }
}

/// Quantity to which a metric belongs.
const fn quantity(metric: Metric) -> Quantity {
    match metric {
        Metric::TrainingRate => Quantity::Training,
        Metric::OutputRate | Metric::TotalRate | Metric::RequestRate => Quantity::Serving,
        Metric::Ttft => Quantity::Ttft,
        Metric::Tpot => Quantity::Tpot,
    }
}

/// Returns the shipped measurements of a quantity with their predictions. Rows that cannot be predicted, rows with a
/// value inferred from their own result, and duplicates are left out.
///
/// # Errors
/// Returns an error if the measurements cannot be read.
pub fn shipped_runs(quantity: Quantity) -> Result<Vec<Run>, ValidateError> {
    let kind = match quantity {
        Quantity::Training => MeasurementKind::Training,
        Quantity::Serving => MeasurementKind::Inference,
        Quantity::Tpot | Quantity::Ttft => MeasurementKind::Latency,
    };
    let catalog = Catalog::built_in();
    let mut runs: Vec<Run> = Vec::new();
    for row in table::read(&shipped(kind)?)? {
        if !row.text("inferred").is_empty() {
            continue;
        }
        let found = Run::of(&row, kind, &catalog).unwrap_or_default();
        runs.extend(found.into_iter().filter(|run| run.quantity == quantity));
    }
    // Latencies come from few publishers who measured many systems, so each system counts as a separate source.
    if kind == MeasurementKind::Latency {
        for run in &mut runs {
            run.source = format!("{}, {}, {}", run.source, run.accelerator, run.software);
        }
    }
    let mut seen = std::collections::HashSet::new();
    runs.retain(|run| {
        let figures = (run.measured.to_bits(), run.predicted.to_bits());
        seen.insert((run.source.clone(), run.model.clone(), figures))
    });
    Ok(runs)
}
