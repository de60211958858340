//! Measured and predicted metrics before and after a calibration, and the guide's criteria for measurements.

use super::bench::RowPredictor;
use super::observation::Observation;
use super::parameter::ProfileValues;
use super::predict::{interval, predicted};
use super::predicted_metric::PredictedMetric;
use super::{Outcome, Start};
use crate::calibrate::columns::MetricColumn;
use crate::validate::case::RowScenario;
use atlas_config::{Corrections, Efficiency, Mode};
use atlas_core::plan::Engine;
use atlas_core::statistics::median;
use atlas_plan::scenario::{ActiveCorrections, Parts, Scenario};
use std::sync::Arc;

/// A measured metric of a row and its predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluatedMetric {
    /// Source of the row.
    pub source: String,
    /// The metric.
    pub figure: PredictedMetric,
    /// Engine of the predictions.
    pub engine: Engine,
    /// Measured value.
    pub measured: f64,
    /// 95 % interval of the measured value, if the row contains one.
    pub measured_interval: Option<[f64; 2]>,
    /// Prediction with the current parameters.
    pub before: f64,
    /// Interval of that prediction.
    pub before_interval: Option<[f64; 2]>,
    /// Prediction with the new parameters.
    pub after: Option<f64>,
    /// Number of accelerators, if the row contains it.
    pub accelerators: Option<f64>,
    /// Training or inference.
    pub mode: Mode,
}

impl EvaluatedMetric {
    /// Relative error of the prediction with the current parameters.
    #[must_use]
    pub fn error_before(&self) -> f64 {
        self.before / self.measured - 1.0
    }

    /// Relative error of the prediction with the new parameters.
    #[must_use]
    pub fn error_after(&self) -> Option<f64> {
        self.after.map(|after| after / self.measured - 1.0)
    }
}

/// Predicts every metric of every row that an engine supports, with the current and the new parameters.
#[must_use]
pub fn judge(
    bench: &RowPredictor<'_>,
    rows: &[Observation],
    figures: Option<&ProfileValues>,
    outcome: &Outcome,
    start: &Start,
) -> Vec<EvaluatedMetric> {
    let before = Numbers { figures, efficiency: &start.efficiency, corrections: start.corrections.as_ref() };
    let after = Numbers {
        figures: outcome.figures.as_ref(),
        efficiency: &outcome.efficiency,
        corrections: outcome.corrections.as_ref(),
    };
    evaluate_both(bench, rows, before, after)
}

/// Predicts only with the current parameters.
#[must_use]
pub fn evaluate_current(bench: &RowPredictor<'_>, rows: &[Observation], start: &Start) -> Vec<EvaluatedMetric> {
    let figures = start.figures();
    let standing =
        Numbers { figures: figures.as_ref(), efficiency: &start.efficiency, corrections: start.corrections.as_ref() };
    let mut judged = evaluate_both(bench, rows, standing, standing);
    judged.iter_mut().for_each(|one| one.after = None);
    judged
}

/// Returns the scenario with which an engine predicts a row, using the current parameters.
#[must_use]
pub fn current_scenario(
    bench: &RowPredictor<'_>,
    row: &Observation,
    engine: Engine,
    start: &Start,
) -> Option<Scenario> {
    if engine == Engine::SemiEmpirical {
        return calibrated(bench, row, &start.figures()?);
    }
    let found = bench.resolved(row).ok()?;
    let numbers = Numbers { figures: None, efficiency: &start.efficiency, corrections: start.corrections.as_ref() };
    Some(with(&found, numbers))
}

/// Scenario of a row for the calibrated model.
fn calibrated(bench: &RowPredictor<'_>, row: &Observation, figures: &ProfileValues) -> Option<Scenario> {
    let mut scenario = bench.semi_empirical(row, &figures.coefficients, &figures.fabrics)?;
    scenario.node_watts = figures.node_watts.unwrap_or(bench.target.cost.energy_watts_node);
    Some(scenario)
}

/// Parameters of both engines.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    figures: Option<&'a ProfileValues>,
    efficiency: &'a Efficiency,
    corrections: Option<&'a Arc<Corrections>>,
}

/// Scenario of a resolved row for the analytical engine, with the given parameters.
fn with(found: &RowScenario, numbers: Numbers<'_>) -> Scenario {
    let parts = Parts { corrections: numbers.corrections.map(Arc::clone), ..found.parts.clone() };
    Scenario { efficiency: *numbers.efficiency, corrections: ActiveCorrections::of(&parts), ..found.scenario.clone() }
}

fn evaluate_both(
    bench: &RowPredictor<'_>,
    rows: &[Observation],
    before: Numbers<'_>,
    after: Numbers<'_>,
) -> Vec<EvaluatedMetric> {
    let own = rows.iter().filter(|row| row.switch("baseline") != Some(true) && bench.other_accelerator(row).is_none());
    own.flat_map(|row| {
        let mut all = analytical(bench, row, before, after);
        all.extend(semi_empirical(bench, row, before.figures, after.figures));
        all
    })
    .collect()
}

fn of_row(
    row: &Observation,
    engine: Engine,
    figures: &[PredictedMetric],
    before: impl Fn(PredictedMetric) -> Option<(f64, Option<[f64; 2]>)>,
    after: impl Fn(PredictedMetric) -> Option<f64>,
) -> Vec<EvaluatedMetric> {
    let judge = |figure: &PredictedMetric| {
        let measured = figure.measured(row)?;
        let (predicted, interval) = before(*figure)?;
        Some(EvaluatedMetric {
            source: row.source.clone(),
            figure: *figure,
            engine,
            measured: measured.value,
            measured_interval: measured.interval,
            before: predicted,
            before_interval: interval.map(|ends| ends.map(|factor| factor * predicted)),
            after: after(*figure),
            accelerators: row.accelerators(),
            mode: row.mode(),
        })
    };
    figures.iter().filter_map(judge).collect()
}

fn analytical(
    bench: &RowPredictor<'_>,
    row: &Observation,
    before: Numbers<'_>,
    after: Numbers<'_>,
) -> Vec<EvaluatedMetric> {
    let Ok(found) = bench.resolved(row) else { return Vec::new() };
    let (scenario, calibrated) = (with(&found, before), with(&found, after));
    // With a given request rate, throughput equals that rate and is not informative.
    let offered = row.number("request_rate").is_some();
    let figures: &[PredictedMetric] = match row.mode() {
        Mode::Training => &[PredictedMetric::TokensPerSec, PredictedMetric::FlopUtilization],
        Mode::Inference if offered => {
            &[PredictedMetric::TpotMs, PredictedMetric::P50Ms, PredictedMetric::P95Ms, PredictedMetric::P99Ms]
        }
        Mode::Inference => &[
            PredictedMetric::TokensPerSec,
            PredictedMetric::TpotMs,
            PredictedMetric::P50Ms,
            PredictedMetric::P95Ms,
            PredictedMetric::P99Ms,
        ],
    };
    let of = |figure| Some((predicted(&scenario, figure)?, interval(&scenario, figure)));
    of_row(row, Engine::Analytical, figures, of, |figure| predicted(&calibrated, figure))
}

fn semi_empirical(
    bench: &RowPredictor<'_>,
    row: &Observation,
    before: Option<&ProfileValues>,
    after: Option<&ProfileValues>,
) -> Vec<EvaluatedMetric> {
    let scenario = |figures: &ProfileValues| calibrated(bench, row, figures);
    // Power at a given utilization, and the best batch of a single accelerator, are inputs of the calibration rather
    // than workloads that the model predicts.
    let power = row.figure(MetricColumn::PowerW).is_some() && row.figure(MetricColumn::Utilization).is_none();
    // The same applies to a latency at a given compute rate: the model computes the rate itself.
    let latency = row.mode() == Mode::Inference && row.figure(MetricColumn::ComputeRate).is_none();
    let figures: Vec<PredictedMetric> = [
        (PredictedMetric::TokensPerSec, true),
        (PredictedMetric::P50Ms, latency),
        (PredictedMetric::P95Ms, latency),
        (PredictedMetric::P99Ms, latency),
        (PredictedMetric::NodePowerW, power),
        (PredictedMetric::FlopUtilization, row.mode() == Mode::Training),
    ]
    .into_iter()
    .filter_map(|(figure, wanted)| (wanted && figure.measured(row).is_some()).then_some(figure))
    .collect();
    // Most rows of a campaign contain no metric that the model predicts.
    if figures.is_empty() {
        return Vec::new();
    }
    let (before, after) = (before.and_then(scenario), after.and_then(scenario));
    let Some(before) = before else { return Vec::new() };
    of_row(
        row,
        Engine::SemiEmpirical,
        &figures,
        |figure| Some((predicted(&before, figure)?, None)),
        |figure| predicted(after.as_ref()?, figure),
    )
}

/// Number of judged metrics, and the median of their absolute errors before and after, in percent.
#[must_use]
pub fn median_errors<'a>(judged: impl IntoIterator<Item = &'a EvaluatedMetric>) -> Option<(usize, f64, f64)> {
    let both: Vec<(f64, f64)> =
        judged.into_iter().filter_map(|one| Some((one.error_before().abs(), one.error_after()?.abs()))).collect();
    let percent = |of: fn(&(f64, f64)) -> f64| Some(100.0 * median(both.iter().map(of))?);
    Some((both.len(), percent(|both| both.0)?, percent(|both| both.1)?))
}

/// Checks the guide's criteria for measurements: warm-up left out, spread below 5 %, 100 samples behind a percentile.
#[must_use]
pub fn criteria(rows: &[Observation]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut note = |rows: Vec<&Observation>, what: &str| {
        let names: Vec<&str> = rows.iter().take(3).map(|row| row.short()).collect();
        let more = if rows.len() > 3 { format!(" and {} more", rows.len() - 3) } else { String::new() };
        if !rows.is_empty() {
            warnings.push(format!("{}{more}: {what}", names.join(", ")));
        }
    };
    let of = |wanted: &dyn Fn(&&Observation) -> bool| rows.iter().filter(wanted).collect::<Vec<&Observation>>();
    note(
        of(&|row| row.warmup == Some(false)),
        "no warm-up steps were excluded: the log starts within the run, or the run is short; expected at least 20",
    );
    let short = |row: &&Observation| {
        row.figure(MetricColumn::WarmupSteps).is_some_and(|steps| (1.0..20.0).contains(&steps.value))
    };
    note(of(&short), "fewer than 20 warm-up steps");
    let spread = |row: &&Observation| {
        let main = row.figure(MetricColumn::StepTimeS).or_else(|| row.throughput());
        main.and_then(|main| main.variation()).is_some_and(|cv| cv >= 0.05)
    };
    note(of(&spread), "the spread is 5 % or more; check for other processes, throttling and a longer warm-up");
    let few = |row: &&Observation| {
        let percentile = row.figure(MetricColumn::P95Ms).or_else(|| row.figure(MetricColumn::P99Ms)).is_some();
        percentile && row.figure(MetricColumn::Samples).is_some_and(|n| n.value < 100.0)
    };
    note(of(&few), "percentiles of fewer than 100 requests");
    warnings
}
