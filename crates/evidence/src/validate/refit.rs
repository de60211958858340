//! Refits the constants: on all sources except those of the exam, and with one source left out at a time.

use atlas_core::math;
use std::collections::{BTreeMap, BTreeSet};

use super::case::{Case, Metric};
use super::conformal::{self, Residual};
use super::held_out::Errors;
use super::report::{Stats, grouped, stats};
use super::unit::unit_name;
use super::{MeasurementKind, ValidateError, exam, fit, held_out, shipped, table};
use atlas_catalog::Catalog;
use atlas_perf::constants::Constants;
use atlas_perf::interval::{Factors, Release};
use serde::Serialize;

/// Fitted constants, and their errors on rows that the fit has not seen.
#[derive(Debug, Clone, Serialize)]
pub struct Refit {
    /// All constants.
    pub constants: Vec<Constant>,
    /// Errors on rows that the respective fit has not seen.
    pub judged: Vec<ErrorSummary>,
    /// Intervals derived from these errors.
    pub bands: Vec<Band>,
    /// Error of every row.
    pub held_out: Vec<HeldOut>,
}

/// A constant with its shipped and fitted value.
#[derive(Debug, Clone, Serialize)]
pub struct Constant {
    /// Name.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Shipped value.
    pub shipped: f64,
    /// Fitted value; `None` if the constant is fixed.
    pub fitted: Option<f64>,
}

/// Errors by group and in total.
#[derive(Debug, Clone, Serialize)]
pub struct ErrorSummary {
    /// Metric, and what was left out.
    pub title: &'static str,
    /// Errors by group.
    pub groups: BTreeMap<String, Stats>,
    /// Errors over all rows.
    pub all: Stats,
    /// Share of the rows within the interval derived from the other units: of rows that give a release, and of all rows
    /// with their releases withheld.
    pub inside: [f64; 2],
}

/// The 90 % interval of a regime: factors on a prediction between which the measured value lies.
#[derive(Debug, Clone, Serialize)]
pub struct Band {
    /// The regime.
    pub regime: &'static str,
    /// Whether the release of the software is given.
    pub release: Release,
    /// Number of its rows.
    pub rows: usize,
    /// Number of its sources, or of its models for latencies.
    pub sources: usize,
    /// Shipped factors.
    pub shipped: Factors,
    /// Factors derived from these errors.
    pub found: Factors,
    /// Share of the rows within the interval derived from the other units.
    pub covered: f64,
}

/// A row, and its error with constants fitted without its source.
#[derive(Debug, Clone, Serialize)]
pub struct HeldOut {
    /// Id of the row.
    pub id: String,
    /// The metric.
    pub metric: &'static str,
    /// Source or model that was left out.
    pub without: String,
    /// Regime of the row.
    pub regime: &'static str,
    /// ln(predicted / measured).
    pub log_error: f64,
}

/// Groups of metrics for which errors are reported, with their titles.
const FIGURES: [(&str, &[Metric]); 4] = [
    ("training tokens/s, source left out", &[Metric::TrainingRate]),
    ("serving throughput, source left out", &[Metric::OutputRate, Metric::TotalRate, Metric::RequestRate]),
    ("TPOT, model left out", &[Metric::Tpot]),
    ("TTFT, model left out", &[Metric::Ttft]),
];

/// Cases of all shipped tables without inferred values: those of the exam if `examined`, otherwise those of all other
/// sources.
fn cases(examined: bool) -> Result<Vec<Case>, ValidateError> {
    let catalog = Catalog::built_in();
    let mut all = Vec::new();
    for kind in MeasurementKind::ALL {
        let rows = table::read(&shipped(kind)?)?;
        let measured_once = rows.iter().zip(table::duplicates(&rows)).filter(|(_, copy)| copy.is_none());
        let of_kind = measured_once.filter_map(|(row, _)| Case::of(row, kind, &catalog).ok()).flatten();
        // All latencies have one source, which no fit could do without.
        let counts = |case: &Case| (kind != MeasurementKind::Latency && exam::is_in_exam(&case.source)) == examined;
        all.extend(of_kind.filter(|case| !case.inferred && counts(case)));
    }
    Ok(all)
}

/// Returns the errors of the shipped constants on the sources of the exam, as totals only.
///
/// # Errors
/// Returns an error if shipped measurements cannot be read.
pub fn exam() -> Result<Vec<(&'static str, Stats)>, ValidateError> {
    let cases = cases(true)?;
    let c = Constants::default();
    let of = |metrics: &[Metric]| {
        let some = cases.iter().filter(|case| metrics.contains(&case.metric));
        stats(&some.map(|case| math::exp(fit::log_error(case, &c)) - 1.0).collect::<Vec<_>>())
    };
    Ok(FIGURES.iter().map(|(title, metrics)| (*title, of(metrics))).filter(|(_, stats)| stats.n > 0).collect())
}

/// Fits the constants of hardware, training and serving together.
///
/// # Errors
/// Returns an error if shipped measurements cannot be read.
pub fn refit() -> Result<Refit, ValidateError> {
    let cases = cases(false)?;
    let fitted = fit::fit(&cases.iter().collect::<Vec<_>>());
    let shipped = Constants::default();
    let errors = held_out::residuals(&cases);
    let constant = |field: &atlas_perf::constants::Field<Constants>| Constant {
        name: field.name,
        unit: field.unit,
        shipped: (field.get)(&shipped),
        fitted: field.fitted.then(|| (field.get)(&fitted)),
    };
    let judge = |(title, metrics): &(&'static str, &[Metric])| {
        let some = || cases.iter().zip(&errors).filter(|(case, _)| metrics.contains(&case.metric));
        let relative = |error: &Errors| math::exp(error.as_stated) - 1.0;
        let groups = grouped(some().map(|(case, error)| (unit_name(case), relative(error))));
        ErrorSummary {
            title,
            groups,
            all: stats(&some().map(|(_, error)| relative(error)).collect::<Vec<_>>()),
            inside: Release::ALL.map(|release| {
                let of: Vec<bool> = within_interval(&cases, &errors, release)
                    .into_iter()
                    .filter_map(|(case, inside)| metrics.contains(&case.metric).then_some(inside))
                    .collect();
                of.iter().filter(|inside| **inside).count() as f64 / of.len().max(1) as f64
            }),
        }
    };
    let held = |(case, error): (&Case, &Errors)| HeldOut {
        id: case.id.clone(),
        metric: case.metric.name(),
        without: unit_name(case).to_owned(),
        regime: case.regime,
        log_error: error.as_stated,
    };
    Ok(Refit {
        constants: Constants::FIELDS.iter().map(constant).collect(),
        judged: FIGURES.iter().map(judge).collect(),
        bands: Release::ALL.into_iter().flat_map(|release| bands(&cases, &errors, release)).collect(),
        held_out: cases.iter().zip(&errors).map(held).collect(),
    })
}

/// Residuals of the cases: of rows that give a release, or of all rows with their releases withheld.
fn residuals<'a>(cases: &'a [Case], errors: &[Errors], release: Release) -> Vec<(&'a Case, Residual<'a>)> {
    let error = |error: &Errors| match release {
        Release::Stated => error.as_stated,
        Release::Assumed => error.without_release,
    };
    let counts = |case: &Case| release == Release::Assumed || case.release == release;
    let some = cases.iter().zip(errors).filter(|(case, _)| counts(case));
    some.map(|(case, e)| (case, Residual::of(case, error(e)))).collect()
}

/// Whether each case is within the interval of its regime, computed from the units other than its own.
fn within_interval<'a>(cases: &'a [Case], errors: &[Errors], release: Release) -> Vec<(&'a Case, bool)> {
    let (cases, residuals): (Vec<&Case>, Vec<Residual<'_>>) = residuals(cases, errors, release).into_iter().unzip();
    let mut known: BTreeMap<(&str, &str, &str), Factors> = BTreeMap::new();
    let of = |(case, r): (&'a Case, &Residual<'a>)| {
        let factors = known
            .entry((r.figure, r.regime, r.unit))
            .or_insert_with(|| conformal::factors(&residuals, r.regime, r.figure, Some(r.unit)));
        (case, factors.contains(math::exp(-r.error)))
    };
    cases.into_iter().zip(&residuals).map(of).collect()
}

/// Intervals of every regime of the cases.
fn bands(cases: &[Case], errors: &[Errors], release: Release) -> Vec<Band> {
    let held: Vec<(&Case, bool)> = within_interval(cases, errors, release);
    let residuals: Vec<Residual<'_>> = residuals(cases, errors, release).into_iter().map(|(_, r)| r).collect();
    let regimes: BTreeSet<(&str, &str)> = residuals.iter().map(|r| (r.figure, r.regime)).collect();
    let band = |&(figure, regime): &(&'static str, &'static str)| {
        let of = || residuals.iter().zip(&held).filter(|(r, _)| r.regime == regime && r.figure == figure);
        let rows = of().count();
        Band {
            regime,
            release,
            rows,
            sources: of().map(|(r, _)| r.unit).collect::<BTreeSet<&str>>().len(),
            shipped: of().next().map_or(Factors::EXACT, |(_, (case, _))| case.interval(release)),
            found: conformal::factors(&residuals, regime, figure, None),
            covered: of().filter(|(_, (_, inside))| *inside).count() as f64 / rows.max(1) as f64,
        }
    };
    regimes.iter().map(band).collect()
}
