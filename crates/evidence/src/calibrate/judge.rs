//! Measured and predicted figures before and after a calibration, and the guide's criteria for measurements.

use super::bench::Bench;
use super::figure::Figure;
use super::observation::Observation;
use super::parameter::Figures;
use super::predict::{interval, predicted};
use super::{Outcome, Start};
use crate::validate::case::RowScenario;
use atlas_config::{Corrections, Efficiency, Mode};
use atlas_core::plan::Engine;
use atlas_plan::scenario::{Corrected, Parts, Scenario};
use std::sync::Arc;

/// A figure of a row and its predictions.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The row.
    pub source: String,
    /// The figure.
    pub figure: Figure,
    /// The engine.
    pub engine: Engine,
    /// What was measured.
    pub measured: f64,
    /// Its 95 % interval, if the row states one.
    pub measured_interval: Option<[f64; 2]>,
    /// Predicted with the numbers in effect.
    pub before: f64,
    /// The prediction's own interval.
    pub before_interval: Option<[f64; 2]>,
    /// Predicted with the numbers found.
    pub after: Option<f64>,
    /// Accelerators, if the row states them.
    pub accelerators: Option<f64>,
    /// Training or inference.
    pub mode: Mode,
}

impl Judged {
    /// Predicted over measured, less one.
    #[must_use]
    pub fn error_before(&self) -> f64 {
        self.before / self.measured - 1.0
    }

    /// The same after.
    #[must_use]
    pub fn error_after(&self) -> Option<f64> {
        self.after.map(|after| after / self.measured - 1.0)
    }
}

/// Evaluates every metric of every row that an engine predicts, with the current and the new parameters.
#[must_use]
pub fn judge(
    bench: &Bench<'_>,
    rows: &[Observation],
    figures: Option<&Figures>,
    outcome: &Outcome,
    start: &Start,
) -> Vec<Judged> {
    let before = Numbers { figures, efficiency: &start.efficiency, corrections: start.corrections.as_ref() };
    let after = Numbers {
        figures: outcome.figures.as_ref(),
        efficiency: &outcome.efficiency,
        corrections: outcome.corrections.as_ref(),
    };
    both(bench, rows, before, after)
}

/// Evaluates only with the current parameters.
#[must_use]
pub fn judge_standing(bench: &Bench<'_>, rows: &[Observation], start: &Start) -> Vec<Judged> {
    let figures = start.figures();
    let standing =
        Numbers { figures: figures.as_ref(), efficiency: &start.efficiency, corrections: start.corrections.as_ref() };
    let mut judged = both(bench, rows, standing, standing);
    judged.iter_mut().for_each(|one| one.after = None);
    judged
}

/// The scenario behind what an engine predicts of a row with the numbers in effect.
#[must_use]
pub fn standing(bench: &Bench<'_>, row: &Observation, engine: Engine, start: &Start) -> Option<Scenario> {
    if engine == Engine::SemiEmpirical {
        return calibrated(bench, row, &start.figures()?);
    }
    let found = bench.resolved(row).ok()?;
    let numbers = Numbers { figures: None, efficiency: &start.efficiency, corrections: start.corrections.as_ref() };
    Some(with(&found, numbers))
}

/// A row as the calibrated model sees it.
fn calibrated(bench: &Bench<'_>, row: &Observation, figures: &Figures) -> Option<Scenario> {
    let mut scenario = bench.semi_empirical(row, &figures.coefficients, &figures.fabrics)?;
    scenario.node_watts = figures.node_watts.unwrap_or(bench.target.cost.energy_watts_node);
    Some(scenario)
}

/// Numbers of both engines.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    figures: Option<&'a Figures>,
    efficiency: &'a Efficiency,
    corrections: Option<&'a Arc<Corrections>>,
}

/// A resolved row with the analytical engine's numbers in effect.
fn with(found: &RowScenario, numbers: Numbers<'_>) -> Scenario {
    let parts = Parts { corrections: numbers.corrections.map(Arc::clone), ..found.parts.clone() };
    Scenario { efficiency: *numbers.efficiency, corrections: Corrected::of(&parts), ..found.scenario.clone() }
}

fn both(bench: &Bench<'_>, rows: &[Observation], before: Numbers<'_>, after: Numbers<'_>) -> Vec<Judged> {
    let own = rows.iter().filter(|row| row.switch("baseline") != Some(true) && bench.foreign(row).is_none());
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
    figures: &[Figure],
    before: impl Fn(Figure) -> Option<(f64, Option<[f64; 2]>)>,
    after: impl Fn(Figure) -> Option<f64>,
) -> Vec<Judged> {
    let judge = |figure: &Figure| {
        let measured = figure.measured(row)?;
        let (predicted, interval) = before(*figure)?;
        Some(Judged {
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

fn analytical(bench: &Bench<'_>, row: &Observation, before: Numbers<'_>, after: Numbers<'_>) -> Vec<Judged> {
    let Ok(found) = bench.resolved(row) else { return Vec::new() };
    let (scenario, calibrated) = (with(&found, before), with(&found, after));
    // With a given request rate, throughput equals that rate and is not informative.
    let offered = row.number("request_rate").is_some();
    let figures: &[Figure] = match row.mode() {
        Mode::Training => &[Figure::TokensPerSec, Figure::FlopUtilization],
        Mode::Inference if offered => &[Figure::TpotMs, Figure::P50Ms, Figure::P95Ms, Figure::P99Ms],
        Mode::Inference => &[Figure::TokensPerSec, Figure::TpotMs, Figure::P50Ms, Figure::P95Ms, Figure::P99Ms],
    };
    let of = |figure| Some((predicted(&scenario, figure)?, interval(&scenario, figure)));
    of_row(row, Engine::Analytical, figures, of, |figure| predicted(&calibrated, figure))
}

fn semi_empirical(
    bench: &Bench<'_>,
    row: &Observation,
    before: Option<&Figures>,
    after: Option<&Figures>,
) -> Vec<Judged> {
    let scenario = |figures: &Figures| calibrated(bench, row, figures);
    // A row of power at its own load, and one of a single accelerator's best batch, are inputs of the calibration
    // rather than workloads that the model predicts.
    let power = row.figure("power_w").is_some() && row.figure("utilization").is_none();
    // Likewise a latency at a stated rate of computing: the model computes the rate itself.
    let latency = row.mode() == Mode::Inference && row.figure("compute_rate").is_none();
    let figures: Vec<Figure> = [
        (Figure::TokensPerSec, true),
        (Figure::P50Ms, latency),
        (Figure::P95Ms, latency),
        (Figure::P99Ms, latency),
        (Figure::NodePowerW, power),
        (Figure::FlopUtilization, row.mode() == Mode::Training),
    ]
    .into_iter()
    .filter_map(|(figure, wanted)| (wanted && figure.measured(row).is_some()).then_some(figure))
    .collect();
    // Most rows of a campaign hold no figure that the model predicts.
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

/// Median of the absolute errors of some judged figures, in percent; before and after.
#[must_use]
pub fn median_errors<'a>(judged: impl IntoIterator<Item = &'a Judged>) -> Option<(usize, f64, f64)> {
    let both: Vec<(f64, f64)> =
        judged.into_iter().filter_map(|one| Some((one.error_before().abs(), one.error_after()?.abs()))).collect();
    let median =
        |of: fn(&(f64, f64)) -> f64| 100.0 * super::statistics::median(&both.iter().map(of).collect::<Vec<f64>>());
    (!both.is_empty()).then(|| (both.len(), median(|both| both.0), median(|both| both.1)))
}

/// What the guide asks of every measurement: a warm-up left out, a spread below 5 %, 100 samples behind a percentile.
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
        "no warm-up was left out: the run begins in its middle, or was short; expected 20 steps or more before",
    );
    let short = |row: &&Observation| row.figure("warmup_steps").is_some_and(|steps| (1.0..20.0).contains(&steps.value));
    note(of(&short), "fewer than 20 steps of warm-up");
    let spread = |row: &&Observation| {
        let main = row.figure("step_time_s").or_else(|| row.throughput());
        main.and_then(|main| main.variation()).is_some_and(|cv| cv >= 0.05)
    };
    note(of(&spread), "the spread is 5 % or more: other processes, throttling, or a warm-up that lasted longer");
    let few = |row: &&Observation| {
        let percentile = row.figure("p95_ms").or_else(|| row.figure("p99_ms")).is_some();
        percentile && row.figure("samples").is_some_and(|n| n.value < 100.0)
    };
    note(of(&few), "fewer than 100 requests stand behind its percentiles");
    warnings
}
