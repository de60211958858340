//! Measures the benefit of a few runs: every source with enough runs is calibrated with a few of them and evaluated on
//! the rest, using variance components that were estimated without it.

use atlas_core::math;
use std::collections::BTreeMap;

use atlas_config::corrections::Quantity;
use atlas_core::sort;
use atlas_core::statistics::median;
use serde::Serialize;

use super::components::Components;
use super::effects::correction;
pub use super::variance::Cluster;
use super::variance::{CALIBRATION_RUNS, MIN_CLUSTER_RUNS, estimate, shuffle};
use super::{Run, shipped_runs};
use crate::validate::ValidateError;
use crate::validate::report::{Stats, stats};

/// Number of draws per cluster, which differ in the runs that are used for calibration.
const DRAWS: u64 = 10;

/// A run predicted before and after calibration; errors as ln(measured / predicted).
#[derive(Debug, Clone, Copy)]
struct EvaluatedRun {
    before: f64,
    interval: [f64; 2],
    after: f64,
    /// Standard deviation of the prediction after calibration.
    sd: f64,
}

/// Errors before and after calibration.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Name of the cluster; empty for all clusters together.
    pub cluster: String,
    /// Number of its runs.
    pub runs: usize,
    /// Errors of the shipped predictions.
    pub before: Stats,
    /// Errors after calibration.
    pub after: Stats,
    /// Errors if each run is corrected by a single factor, the median of all other runs of its cluster. This is about
    /// the best that a correction can achieve that is the same for the whole cluster.
    pub factor: Stats,
    /// Share of the measurements within the shipped 90 % interval.
    pub covered_before: f64,
    /// Share of the measurements within the interval after calibration.
    pub covered_after: f64,
    /// Median ratio of upper to lower bound of the shipped interval.
    pub width_before: f64,
    /// Median ratio of upper to lower bound of the interval after calibration.
    pub width_after: f64,
}

/// Result of the experiment for one quantity.
#[derive(Debug, Clone, Serialize)]
pub struct Experiment {
    /// Key of the quantity.
    pub quantity: &'static str,
    /// Definition of a cluster.
    pub cluster: Cluster,
    /// Number of runs with which each cluster was calibrated.
    pub after_runs: usize,
    /// Errors over all evaluated runs.
    pub total: Outcome,
    /// Errors by cluster.
    pub clusters: Vec<Outcome>,
}

/// Evaluates the rest of a cluster after calibration with `count` of its runs, for every draw.
fn judge(runs: &[&Run], count: usize, c: &Components) -> Vec<EvaluatedRun> {
    let mut all = Vec::new();
    for draw in 1..=DRAWS {
        let mut runs = runs.to_vec();
        shuffle(&mut runs, draw);
        let (own, rest) = runs.split_at(count.min(runs.len()));
        let found = correction(own, c);
        for run in rest {
            let at = found.as_ref().map(|found| found.at(&run.features()));
            let before = run.log_ratio();
            all.push(EvaluatedRun {
                before,
                interval: run.interval,
                after: before - at.map_or(0.0, |at| math::ln(at.factor)),
                sd: at.map_or(run.features().uncertainty / c.reach, |at| at.half_width / c.reach),
            });
        }
    }
    all
}

/// Residual of each run as ln(measured / predicted), after correction by the median of the other runs of its cluster.
/// Empty for a single run.
fn without_factor(runs: &[&Run]) -> Vec<f64> {
    let logs: Vec<f64> = runs.iter().map(|run| run.log_ratio()).collect();
    let others = |at: usize| logs.iter().enumerate().filter(move |(other, _)| *other != at).map(|(_, log)| *log);
    logs.iter().enumerate().filter_map(|(at, log)| Some(log - median(others(at))?)).collect()
}

/// Errors of the evaluated runs; `None` if no run was evaluated.
fn outcome(cluster: &str, runs: usize, judged: &[(EvaluatedRun, f64)], remains: &[f64]) -> Option<Outcome> {
    let relative = |log: f64| math::exp(-log) - 1.0;
    let inside = |held: &dyn Fn(&(EvaluatedRun, f64)) -> bool| {
        judged.iter().filter(|one| held(one)).count() as f64 / judged.len().max(1) as f64
    };
    let typical = |value: &dyn Fn(&(EvaluatedRun, f64)) -> f64| median(judged.iter().map(value));
    // The shipped interval still holds where it is narrower.
    let after = |one: &(EvaluatedRun, f64)| {
        let ([low, high], half) = (one.0.interval, one.0.sd * one.1);
        [low.max(-half), high.min(half)]
    };
    Some(Outcome {
        cluster: cluster.to_owned(),
        runs,
        before: stats(&judged.iter().map(|(one, _)| relative(one.before)).collect::<Vec<_>>()),
        after: stats(&judged.iter().map(|(one, _)| relative(one.after)).collect::<Vec<_>>()),
        factor: stats(&remains.iter().map(|log| relative(*log)).collect::<Vec<_>>()),
        covered_before: inside(&|(one, _)| (one.interval[0]..=one.interval[1]).contains(&one.before)),
        covered_after: inside(&|one| (after(one)[0]..=after(one)[1]).contains(&one.0.after)),
        width_before: typical(&|(one, _)| math::exp(one.interval[1] - one.interval[0]))?,
        width_after: typical(&|one| math::exp(after(one)[1] - after(one)[0]))?,
    })
}

/// Returns the weighted 90 % quantile of the standardized errors. A source has the weight of the square root of its
/// number of runs.
fn standardized_error_quantile<'j>(sources: impl Iterator<Item = &'j Vec<EvaluatedRun>>) -> f64 {
    let mut all: Vec<(f64, f64)> = Vec::new();
    for judged in sources {
        let weight = 1.0 / (judged.len().max(1) as f64).sqrt();
        all.extend(judged.iter().map(|one| ((one.after / one.sd).abs(), weight)));
    }
    sort::by(&mut all, |a, b| a.0.total_cmp(&b.0));
    let total: f64 = all.iter().map(|one| one.1).sum();
    let mut sum = 0.0;
    let at = all.iter().find(|one| {
        sum += one.1;
        sum >= 0.9 * total
    });
    at.map_or(1.645, |one| one.0)
}

/// Names of sources with at least `least` runs.
fn sources_with_runs(runs: &[Run], least: usize) -> Vec<&str> {
    let names = Cluster::Source.group(runs, least).into_values();
    names.filter_map(|runs| runs.first().map(|run| run.source.as_str())).collect()
}

/// Estimates the components of a quantity from the shipped measurements.
///
/// # Errors
/// Returns an error if the measurements cannot be read.
pub fn components(quantity: Quantity) -> Result<Components, ValidateError> {
    let runs = shipped_runs(quantity)?;
    let sources = Cluster::Source.group(&runs, MIN_CLUSTER_RUNS);
    let names = sources_with_runs(&runs, MIN_CLUSTER_RUNS);
    let (whole, without) = estimate(quantity, &runs, &names);
    let judged: Vec<Vec<EvaluatedRun>> =
        sources.values().zip(without).map(|(runs, c)| judge(runs, CALIBRATION_RUNS, &c)).collect();
    Ok(Components { reach: standardized_error_quantile(judged.iter()), ..whole })
}

/// Runs the experiment for each kind of cluster. Every source is evaluated with components that were estimated without
/// it.
///
/// # Errors
/// Returns an error if the measurements cannot be read.
pub fn run(quantity: Quantity, kinds: &[Cluster], after_runs: usize) -> Result<Vec<Experiment>, ValidateError> {
    let runs = shipped_runs(quantity)?;
    let names = sources_with_runs(&runs, MIN_CLUSTER_RUNS);
    let (_, without) = estimate(quantity, &runs, &names);
    let without: BTreeMap<&str, Components> = names.into_iter().zip(without).collect();
    let of = |source: &str| without.get(source).copied().unwrap_or(Components::of(quantity));
    Ok(kinds.iter().filter_map(|kind| judged(&runs, quantity, *kind, after_runs, of)).collect())
}

/// Like [`run`], but with the shipped table of components, which was estimated from these sources. Fast, for tests.
/// `None` without a cluster of enough runs.
#[must_use]
pub fn with_table(runs: &[Run], quantity: Quantity, cluster: Cluster, after_runs: usize) -> Option<Experiment> {
    judged(runs, quantity, cluster, after_runs, |_| Components::of(quantity))
}

/// A cluster with its source, the evaluation of its runs, and their residuals after correction by one factor.
struct JudgedCluster<'a> {
    name: &'a str,
    source: &'a str,
    judged: Vec<EvaluatedRun>,
    remains: Vec<f64>,
}

/// Evaluates every cluster with the components of its source; `None` if no run was evaluated.
fn judged(
    runs: &[Run],
    quantity: Quantity,
    cluster: Cluster,
    after_runs: usize,
    components: impl Fn(&str) -> Components,
) -> Option<Experiment> {
    let clusters = cluster.group(runs, MIN_CLUSTER_RUNS.max(after_runs + 1));
    let clusters: Vec<JudgedCluster<'_>> = clusters
        .iter()
        .filter_map(|(name, runs)| {
            let source = runs.first()?.source.as_str();
            let judged = judge(runs, after_runs, &components(source));
            Some(JudgedCluster { name, source, judged, remains: without_factor(runs) })
        })
        .collect();
    // The reach is also estimated from the other sources.
    let with_reach = |one: &JudgedCluster<'_>| -> Vec<(EvaluatedRun, f64)> {
        let others = clusters.iter().filter(|other| other.source != one.source);
        let reach = standardized_error_quantile(others.map(|other| &other.judged));
        one.judged.iter().map(|judged| (*judged, reach)).collect()
    };
    let (mut all, mut remains, mut outcomes) = (Vec::new(), Vec::new(), Vec::new());
    for one in &clusters {
        let judged = with_reach(one);
        outcomes.extend(outcome(one.name, one.remains.len(), &judged, &one.remains));
        all.extend(judged);
        remains.extend_from_slice(&one.remains);
    }
    sort::by_key(&mut outcomes, |outcome| std::cmp::Reverse(outcome.runs));
    let total = outcome("", remains.len(), &all, &remains)?;
    Some(Experiment { quantity: quantity.key(), cluster, after_runs, total, clusters: outcomes })
}
