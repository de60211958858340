//! What a few runs are worth: every source with enough runs is calibrated with a few of them and judged on the rest, by
//! variance components that were estimated without it.

use std::collections::BTreeMap;

use atlas_config::corrections::Quantity;
use serde::Serialize;

use super::components::Components;
use super::effects::correction;
use super::variance::{by_source, estimate, shuffle};
use super::{Run, shipped_runs};
use crate::calibrate::statistics::median;
use crate::validate::ValidateError;
use crate::validate::report::{Stats, stats};

/// Fewest runs of a cluster that is judged.
pub const ENOUGH: usize = 10;
/// Draws of each cluster: which runs happen to be measured first differs.
const DRAWS: u64 = 5;
/// Runs after which the table's `reach` is taken.
const USUAL: usize = 3;

/// Shares of the estimated variances among which the predictions of held-out runs decide.
const SCALES: [f64; 6] = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0];

/// What runs of one cluster are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Cluster {
    /// All runs of a source, whatever they ran on.
    Source,
    /// Runs of a source on one accelerator with one software family.
    System,
}

impl Cluster {
    fn key(self, run: &Run) -> String {
        match self {
            Cluster::Source => run.source.clone(),
            Cluster::System => format!("{}, {}, {}", run.source, run.accelerator, run.software),
        }
    }
}

/// A run predicted before and after calibration, as ln(measured / predicted).
#[derive(Debug, Clone, Copy)]
struct Judged {
    before: f64,
    interval: [f64; 2],
    after: f64,
    /// Standard deviation of the prediction after calibration.
    sd: f64,
}

/// Errors before and after.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The cluster; empty for all.
    pub cluster: String,
    /// Its runs.
    pub runs: usize,
    /// Errors of the shipped predictions.
    pub before: Stats,
    /// Errors after calibration.
    pub after: Stats,
    /// Share of the measurements inside the shipped 90 % interval.
    pub covered_before: f64,
    /// Share inside the interval after calibration.
    pub covered_after: f64,
    /// Median of upper over lower end, shipped.
    pub width_before: f64,
    /// The same after calibration.
    pub width_after: f64,
}

/// The experiment of one quantity.
#[derive(Debug, Clone, Serialize)]
pub struct Experiment {
    /// Key of the quantity.
    pub quantity: &'static str,
    /// What counts as a cluster.
    pub cluster: Cluster,
    /// Runs that each cluster was calibrated with.
    pub after_runs: usize,
    /// All judged runs.
    pub total: Outcome,
    /// By cluster.
    pub clusters: Vec<Outcome>,
}

/// Whether errors of a quantity may depend on the shares of the time: the shares are those of an output token, which say
/// nothing of the first.
fn has_classes(quantity: Quantity) -> bool {
    quantity != Quantity::Ttft
}

/// The larger half of an interval around 0.
fn half([low, high]: [f64; 2]) -> f64 {
    low.abs().max(high.abs())
}

/// Judges the rest of a cluster after calibration with some of its runs, draw by draw.
fn judge(runs: &[&Run], count: usize, c: &Components) -> Vec<Judged> {
    let mut all = Vec::new();
    for draw in 1..=DRAWS {
        let mut runs = runs.to_vec();
        shuffle(&mut runs, draw);
        let (own, rest) = runs.split_at(count.min(runs.len()));
        let found = correction(own, c);
        for run in rest {
            let at = found.as_ref().map(|found| found.at(&run.features()));
            let before = run.log_ratio();
            all.push(Judged {
                before,
                interval: run.interval,
                after: before - at.map_or(0.0, |at| at.factor.ln()),
                sd: at.map_or(half(run.interval) / c.reach, |at| at.half_width / c.reach),
            });
        }
    }
    all
}

fn outcome(cluster: &str, runs: usize, judged: &[(Judged, f64)]) -> Outcome {
    let relative = |log: f64| (-log).exp() - 1.0;
    let inside = |held: &dyn Fn(&(Judged, f64)) -> bool| {
        judged.iter().filter(|one| held(one)).count() as f64 / judged.len().max(1) as f64
    };
    let typical = |value: &dyn Fn(&(Judged, f64)) -> f64| median(&judged.iter().map(value).collect::<Vec<f64>>());
    let after = |one: &(Judged, f64)| (one.0.sd * one.1).min(half(one.0.interval));
    Outcome {
        cluster: cluster.to_owned(),
        runs,
        before: stats(&judged.iter().map(|(one, _)| relative(one.before)).collect::<Vec<_>>()),
        after: stats(&judged.iter().map(|(one, _)| relative(one.after)).collect::<Vec<_>>()),
        covered_before: inside(&|(one, _)| (one.interval[0]..=one.interval[1]).contains(&one.before)),
        covered_after: inside(&|one| one.0.after.abs() <= after(one)),
        width_before: typical(&|(one, _)| (one.interval[1] - one.interval[0]).exp()),
        width_after: typical(&|one| (2.0 * after(one)).exp()),
    }
}

/// The weighted quantile of standardized errors that nine of ten lie within; a source counts by the root of its runs.
fn reach<'j>(sources: impl Iterator<Item = &'j Vec<Judged>>) -> f64 {
    let mut all: Vec<(f64, f64)> = Vec::new();
    for judged in sources {
        let weight = 1.0 / (judged.len().max(1) as f64).sqrt();
        all.extend(judged.iter().map(|one| ((one.after / one.sd).abs(), weight)));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = all.iter().map(|one| one.1).sum();
    let mut sum = 0.0;
    let at = all.iter().find(|one| {
        sum += one.1;
        sum >= 0.9 * total
    });
    at.map_or(1.645, |one| one.0)
}

/// Components as far as predictions of the rest of each source after a few runs gain from them.
fn tempered(c: Components, clusters: &BTreeMap<&str, Vec<&Run>>, without: Option<&str>) -> Components {
    let scaled = |by: f64| Components {
        cluster: c.cluster * by,
        accelerator: c.accelerator * by,
        software: c.software * by,
        model: c.model * by,
        classes: c.classes.map(|class| class * by),
        ..c
    };
    let error = |by: f64| -> f64 {
        let c = scaled(by);
        let own = clusters.iter().filter(|(source, runs)| Some(**source) != without && runs.len() >= ENOUGH);
        own.map(|(_, runs)| {
            let judged = judge(runs, USUAL, &c);
            // Each run's error counts no more than a factor: one wild source must not decide.
            let sum: f64 = judged.iter().map(|one| one.after.abs().min(1.0)).sum();
            sum / judged.len().max(1) as f64
        })
        .sum()
    };
    let best = SCALES.into_iter().min_by(|a, b| error(*a).total_cmp(&error(*b)));
    scaled(best.unwrap_or(1.0))
}

/// Estimates the components of a quantity from the shipped measurements.
///
/// # Errors
/// Measurements that cannot be read.
pub fn components(quantity: Quantity) -> Result<Components, ValidateError> {
    let runs = shipped_runs(quantity)?;
    let sources = by_source(&runs);
    let judged_sources: Vec<&str> =
        sources.iter().filter(|(_, runs)| runs.len() >= ENOUGH).map(|(source, _)| *source).collect();
    let (whole, without) = estimate(&sources, &judged_sources, has_classes(quantity));
    let whole = tempered(whole, &sources, None);
    let judged: Vec<Vec<Judged>> = judged_sources
        .iter()
        .zip(without)
        .filter_map(|(source, c)| Some(judge(sources.get(source)?, USUAL, &tempered(c, &sources, Some(source)))))
        .collect();
    Ok(Components { reach: reach(judged.iter()), ..whole })
}

/// Runs the experiment.
///
/// # Errors
/// Measurements that cannot be read.
pub fn run(quantity: Quantity, cluster: Cluster, after_runs: usize) -> Result<Experiment, ValidateError> {
    Ok(experiment(&shipped_runs(quantity)?, quantity, cluster, after_runs))
}

/// The experiment with these runs, each source judged by components that are estimated without it.
#[must_use]
pub fn experiment(runs: &[Run], quantity: Quantity, cluster: Cluster, after_runs: usize) -> Experiment {
    let sources = by_source(runs);
    let clusters = clusters(runs, cluster, after_runs);
    let mut held_out: Vec<&str> =
        clusters.values().filter_map(|runs| runs.first()).map(|run| run.source.as_str()).collect();
    held_out.sort_unstable();
    held_out.dedup();
    let (_, without) = estimate(&sources, &held_out, has_classes(quantity));
    let without: BTreeMap<&str, Components> =
        held_out.into_iter().zip(without).map(|(source, c)| (source, tempered(c, &sources, Some(source)))).collect();
    let of = |source: &str| without.get(source).copied().unwrap_or(Components::of(quantity));
    judged(&clusters, quantity, cluster, after_runs, of)
}

/// The experiment with the shipped table of components, which has seen the sources: at once, for tests.
#[must_use]
pub fn with_table(runs: &[Run], quantity: Quantity, cluster: Cluster, after_runs: usize) -> Experiment {
    judged(&clusters(runs, cluster, after_runs), quantity, cluster, after_runs, |_| Components::of(quantity))
}

/// Runs by cluster, where there are enough.
fn clusters(runs: &[Run], cluster: Cluster, after_runs: usize) -> BTreeMap<String, Vec<&Run>> {
    let mut clusters: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        clusters.entry(cluster.key(run)).or_default().push(run);
    }
    clusters.retain(|_, runs| runs.len() >= ENOUGH.max(after_runs + 1));
    clusters
}

/// A cluster, its runs, and how each was judged with the reach of the other sources.
type Reached<'a> = (&'a String, usize, Vec<(Judged, f64)>);

/// Every cluster, judged by the components that its source is given.
fn judged(
    clusters: &BTreeMap<String, Vec<&Run>>,
    quantity: Quantity,
    cluster: Cluster,
    after_runs: usize,
    components: impl Fn(&str) -> Components,
) -> Experiment {
    let judged: Vec<(&String, &str, usize, Vec<Judged>)> = clusters
        .iter()
        .filter_map(|(name, runs)| {
            let source = runs.first()?.source.as_str();
            Some((name, source, runs.len(), judge(runs, after_runs, &components(source))))
        })
        .collect();
    // The reach, too, is that of the other sources.
    let with_reach: Vec<Reached<'_>> = judged
        .iter()
        .map(|(name, source, n, own)| {
            let reach = reach(judged.iter().filter(|(_, other, _, _)| other != source).map(|(_, _, _, other)| other));
            (*name, *n, own.iter().map(|one| (*one, reach)).collect())
        })
        .collect();
    let all: Vec<(Judged, f64)> = with_reach.iter().flat_map(|(_, _, own)| own.iter().copied()).collect();
    let mut outcomes: Vec<Outcome> = with_reach.iter().map(|(name, n, own)| outcome(name, *n, own)).collect();
    outcomes.sort_by_key(|outcome| std::cmp::Reverse(outcome.runs));
    let total = outcome("", with_reach.iter().map(|(_, n, _)| n).sum(), &all);
    Experiment { quantity: quantity.key(), cluster, after_runs, total, clusters: outcomes }
}
