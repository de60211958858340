//! The constants fitted anew: on all rows, and with one group of rows left out at a time.

use std::collections::BTreeMap;

use super::case::{Case, Metric};
use super::report::{Stats, grouped, stats};
use super::{Kind, ValidateError, crossval, serving_fit, serving_validation, shipped, table};
use atlas_catalog::Catalog;
use atlas_perf::constants::{Constants, Field};
use atlas_perf::serving_constants::ServingConstants;
use atlas_perf::training::Regime;

/// A set of constants fitted, and how it fares on what it has not seen.
#[derive(Debug, Clone)]
pub struct Refit {
    /// What was fitted.
    pub title: &'static str,
    /// Every constant.
    pub constants: Vec<Constant>,
    /// Errors on rows that the fit behind them did not see.
    pub judged: Vec<Judged>,
    /// Intervals that follow from those errors; of training.
    pub widths: Vec<Width>,
    /// The same; of serving, whose errors lie to one side.
    pub bands: Vec<Band>,
}

/// A constant, shipped and fitted.
#[derive(Debug, Clone)]
pub struct Constant {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The value in use.
    pub shipped: f64,
    /// The value that this fit finds; `None` where it is fixed.
    pub fitted: Option<f64>,
}

/// Errors by group and over all.
#[derive(Debug, Clone)]
pub struct Judged {
    /// What was left out.
    pub title: &'static str,
    /// By group.
    pub groups: BTreeMap<String, Stats>,
    /// Of all rows.
    pub all: Stats,
}

/// The 90 % interval of a regime, or of all: half of its width on the logarithm of the throughput.
#[derive(Debug, Clone)]
pub struct Width {
    /// The regime.
    pub regime: &'static str,
    /// Rows of it.
    pub n: usize,
    /// The half-width in use and what the errors here ask for; `None` over all regimes.
    pub half: Option<(f64, f64)>,
    /// Share of the rows within what the other sources' errors ask for.
    pub covered: f64,
}

/// The 90 % interval of a regime: factors on a prediction between which the measurement lies.
#[derive(Debug, Clone)]
pub struct Band {
    /// The regime.
    pub regime: &'static str,
    /// Rows of it.
    pub n: usize,
    /// The factors in use.
    pub shipped: (f64, f64),
    /// What the errors here ask for.
    pub found: (f64, f64),
    /// Share of the rows within what the other groups' errors ask for.
    pub covered: f64,
}

fn constants<T>(fields: &[Field<T>], shipped: &T, fitted: &T) -> Vec<Constant> {
    let of = |field: &Field<T>| Constant {
        name: field.name,
        unit: field.unit,
        shipped: (field.get)(shipped),
        fitted: field.fitted.then(|| (field.get)(fitted)),
    };
    fields.iter().map(of).collect()
}

/// Fits the constants of training, of serving, or of both.
pub fn refit(kind: Option<Kind>) -> Result<Vec<Refit>, ValidateError> {
    let catalog = Catalog::built_in();
    let mut all = Vec::new();
    if kind.is_none_or(|kind| kind == Kind::Training) {
        all.push(training(&catalog)?);
    }
    if kind.is_none_or(|kind| kind != Kind::Training) {
        all.push(serving(&catalog)?);
    }
    Ok(all)
}

/// The cases of a shipped table, without those that rest on inferred values.
fn cases(kind: Kind, catalog: &Catalog) -> Result<Vec<Case>, ValidateError> {
    let rows = table::read(&shipped(kind)?)?;
    let cases = rows.iter().filter_map(|row| Case::of(row, kind, catalog).ok()).flatten();
    Ok(cases.filter(|case| !case.inferred).collect())
}

fn training(catalog: &Catalog) -> Result<Refit, ValidateError> {
    let cases = cases(Kind::Training, catalog)?;
    let fitted = crossval::full_fit(&cases);
    let residuals = crossval::residuals(&cases);
    let errors: Vec<f64> = residuals.iter().map(|error| error.exp() - 1.0).collect();
    let groups = grouped(cases.iter().map(|case| case.source.as_str()).zip(errors.iter().copied()));
    Ok(Refit {
        title: "Training",
        constants: constants(Constants::FIELDS, &Constants::default(), &fitted),
        judged: vec![Judged { title: "tokens/s, source left out", groups, all: stats(&errors) }],
        widths: widths(&cases, &residuals),
        bands: Vec::new(),
    })
}

/// Intervals of every regime, and last how many rows all of them cover.
fn widths(cases: &[Case], residuals: &[f64]) -> Vec<Width> {
    let covered = crossval::covered(cases, residuals);
    let width = |regime: &'static str, half, of: &dyn Fn(&Case) -> bool| {
        let rows = cases.iter().zip(&covered).filter(|(case, _)| of(case));
        let (n, hit) = rows.fold((0, 0), |(n, hit), (_, covered)| (n + 1, hit + usize::from(*covered)));
        Width { regime, n, half, covered: hit as f64 / n.max(1) as f64 }
    };
    let of = |regime: Regime| {
        let half = (regime.half_width(), crossval::half_width(cases, residuals, regime.name(), ""));
        width(regime.name(), Some(half), &|case| case.regime == regime.name())
    };
    Regime::ALL.into_iter().map(of).chain([width("all rows", None, &|_| true)]).collect()
}

fn serving(catalog: &Catalog) -> Result<Refit, ValidateError> {
    let latency = cases(Kind::Latency, catalog)?;
    let cases = cases(Kind::Inference, catalog)?;
    let joint: Vec<&Case> = cases.iter().chain(&latency).collect();
    let prior = ServingConstants::literature();
    let fitted = serving_fit::fit(&joint, &prior, serving_validation::ROUNDS);
    fn group(case: &Case) -> &str {
        if case.metric.is_latency() { &case.model } else { &case.source }
    }
    let judge = |title, some: &[Case], errors: &[f64]| {
        let errors = serving_validation::relative(errors);
        let groups = grouped(some.iter().map(group).zip(errors.iter().copied()));
        Judged { title, groups, all: stats(&errors) }
    };
    let errors = serving_validation::held_out(&cases, |case| &case.source, &latency);
    let mut judged = vec![judge("throughput, source left out", &cases, &errors)];
    let mut all = bands(&cases, &errors);
    let errors = serving_validation::held_out(&latency, |case| &case.model, &cases);
    for (title, metric) in [("TPOT, model left out", Metric::Tpot), ("TTFT, model left out", Metric::Ttft)] {
        let (some, errors): (Vec<Case>, Vec<f64>) =
            latency.iter().cloned().zip(errors.iter().copied()).filter(|(case, _)| case.metric == metric).unzip();
        judged.push(judge(title, &some, &errors));
        all.extend(bands(&some, &errors));
    }
    Ok(Refit {
        title: "Serving",
        constants: constants(ServingConstants::FIELDS, &ServingConstants::default(), &fitted),
        judged,
        widths: Vec::new(),
        bands: all,
    })
}

/// Intervals of every regime of the cases.
fn bands(cases: &[Case], errors: &[f64]) -> Vec<Band> {
    let weights = serving_validation::weights(cases);
    let factors = |regime, without| serving_validation::factors(cases, &weights, errors, regime, without);
    let mut all: Vec<Band> = Vec::new();
    let mut others: Vec<(&str, &str, (f64, f64))> = Vec::new();
    for (case, error) in cases.iter().zip(errors) {
        let regime = case.regime;
        if all.iter().all(|band| band.regime != regime) {
            let found = factors(regime, "");
            all.push(Band { regime, n: 0, shipped: (0.0, f64::INFINITY), found, covered: 0.0 });
        }
        let known = others.iter().find(|(of, without, _)| (*of, *without) == (regime, case.source.as_str()));
        let (low, high) = known.map_or_else(|| factors(regime, &case.source), |(_, _, factors)| *factors);
        if known.is_none() {
            others.push((regime, &case.source, (low, high)));
        }
        let Some(band) = all.iter_mut().find(|band| band.regime == regime) else { continue };
        // What a regime has in use where anything like it was measured: the narrowest.
        let Some(shipped) = case.interval() else { continue };
        band.shipped = (band.shipped.0.max(shipped.low), band.shipped.1.min(shipped.high));
        band.n += 1;
        // The share of those covered so far.
        let inside = f64::from(u8::from((low..=high).contains(&(-error).exp())));
        band.covered += (inside - band.covered) / band.n as f64;
    }
    all
}
