//! Estimates variance components from measurements: those with which a few runs of a cluster best predict the rest of
//! it.

use atlas_core::math;
use std::collections::BTreeMap;

use atlas_config::corrections::Quantity;
use atlas_core::cores::parallel_map;
use atlas_core::statistics::{DEVIATION_PER_MAD, median};
use atlas_document::fingerprint::fingerprint;

use super::Run;
use super::components::Components;
use super::effects::correction;

/// Minimum number of runs of a cluster that is evaluated.
pub const MIN_CLUSTER_RUNS: usize = 10;
/// Number of runs with which clusters are calibrated.
pub const CALIBRATION_RUNS: usize = 3;
/// Number of draws per cluster, which differ in the runs that are used for calibration.
const DRAWS: u64 = 8;
/// Maximum number of predicted runs per draw: a sweep of a thousand rows has little more information than forty.
const MAX_PREDICTED_RUNS: usize = 40;
/// Errors on the logarithm are clipped at this value, so that a single outlying source does not dominate.
const MAX_LOG_ERROR: f64 = 1.0;
/// Variances of the logarithm below this are treated as zero.
const MIN_VARIANCE: f64 = 1e-5;
/// Initial value of the search.
const INITIAL_VARIANCE: f64 = 0.005;
/// Number of rounds of the search, each over all components.
const ROUNDS: usize = 20;
/// Number of rounds of the search without one source, which starts from the components of all sources.
const ROUNDS_WITHOUT: usize = 8;
/// Number of components: cluster, accelerator, software, model, four classes, configuration, falloff, growth.
const COUNT: usize = 11;
/// Minimum number of runs of one model on one system that contribute to the residual.
const MIN_RESIDUAL_RUNS: usize = 3;
/// Indices of the classes.
const CLASSES: std::ops::Range<usize> = 4..8;

/// What runs of one cluster are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
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

    /// Groups runs by cluster; clusters with fewer than `least` runs are left out.
    #[must_use]
    pub fn group(self, runs: &[Run], least: usize) -> BTreeMap<String, Vec<&Run>> {
        let mut clusters: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
        for run in runs {
            clusters.entry(self.key(run)).or_default().push(run);
        }
        clusters.retain(|_, runs| runs.len() >= least);
        clusters
    }
}

/// Sorts runs in a pseudorandom order that depends only on their names and on `draw`.
pub fn shuffle(runs: &mut [&Run], draw: u64) {
    runs.sort_by_cached_key(|run| {
        // Hashes twice, because names that differ only in their last digit would otherwise stay adjacent.
        let name = fingerprint(format!("{draw}:{}", run.id).as_bytes());
        (fingerprint(&name.to_le_bytes()), run.id.clone())
    });
}

/// Runs of a cluster for calibration, and others to predict.
struct Draw<'r> {
    source: &'r str,
    own: Vec<&'r Run>,
    rest: Vec<&'r Run>,
}

fn draws(runs: &[Run]) -> Vec<Draw<'_>> {
    let mut all = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for cluster in [Cluster::Source, Cluster::System] {
        for runs in cluster.group(runs, MIN_CLUSTER_RUNS).into_values() {
            let Some(first) = runs.first() else { continue };
            // A source with a single system is only one cluster.
            if !seen.insert((first.source.as_str(), first.id.as_str(), runs.len())) {
                continue;
            }
            for draw in 1..=DRAWS {
                let mut runs = runs.clone();
                shuffle(&mut runs, draw);
                let (own, rest) = runs.split_at(CALIBRATION_RUNS.min(runs.len()));
                let rest = rest.iter().take(MAX_PREDICTED_RUNS).copied().collect();
                all.push(Draw { source: &first.source, own: own.to_vec(), rest });
            }
        }
    }
    all
}

/// Mean error over the rest of all clusters. A cluster has the weight of the square root of its number of predicted
/// runs.
fn loss(draws: &[&Draw<'_>], c: &Components) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for draw in draws {
        let found = correction(&draw.own, c);
        let error = |run: &&Run| {
            let corrected = found.as_ref().map_or(0.0, |found| math::ln(found.at(&run.features()).factor));
            (run.log_ratio() - corrected).abs().min(MAX_LOG_ERROR)
        };
        let weight = (draw.rest.len() as f64).sqrt();
        sum += weight * draw.rest.iter().map(error).sum::<f64>() / draw.rest.len().max(1) as f64;
        weights += weight;
    }
    sum / f64::max(weights, 1.0)
}

fn components(logs: &[f64; COUNT], classes: bool, residual: f64) -> Components {
    let [cluster, accelerator, software, model, a, b, c, d, configuration, falloff, growth] =
        logs.map(|log| if log <= math::ln(MIN_VARIANCE) + 1.0 { 0.0 } else { math::exp(log) });
    let classes = if classes { [a, b, c, d] } else { [0.0; 4] };
    let growth = growth.min(1.0);
    Components {
        cluster,
        accelerator,
        software,
        model,
        classes,
        configuration,
        falloff,
        residual,
        reach: 1.645,
        growth,
    }
}

/// Finds the components with the smallest loss by coordinate search on logarithms, starting at `logs` with steps of
/// `step`.
fn search(
    draws: &[&Draw<'_>],
    of: impl Fn(&[f64; COUNT]) -> Components,
    classes: bool,
    mut logs: [f64; COUNT],
    step: f64,
    rounds: usize,
) -> [f64; COUNT] {
    let mut steps = [step; COUNT];
    let mut best = loss(draws, &of(&logs));
    for _ in 0..rounds {
        for (i, step) in steps.iter_mut().enumerate().filter(|(i, _)| classes || !CLASSES.contains(i)) {
            let mut better = false;
            for by in [*step, -*step] {
                let mut next = logs;
                if let Some(log) = next.get_mut(i) {
                    *log = (*log + by).clamp(math::ln(MIN_VARIANCE), 3.0);
                }
                let found = loss(draws, &of(&next));
                if found < best - 1e-6 {
                    (best, logs, better) = (found, next, true);
                    break;
                }
            }
            *step *= if better { 1.3 } else { 0.5 };
        }
        if steps.iter().all(|step| *step < 0.05) {
            break;
        }
    }
    logs
}

/// Variance of runs of one model on one system around their median, from the median absolute deviation.
fn residual(runs: &[Run], without: Option<&str>) -> f64 {
    let mut systems: BTreeMap<[&str; 4], Vec<f64>> = BTreeMap::new();
    for run in runs.iter().filter(|run| Some(run.source.as_str()) != without) {
        systems.entry([&run.source, &run.accelerator, &run.software, &run.model]).or_default().push(run.log_ratio());
    }
    let mut deviations = Vec::new();
    for logs in systems.values().filter(|logs| logs.len() >= MIN_RESIDUAL_RUNS) {
        if let Some(middle) = median(logs.iter().copied()) {
            deviations.extend(logs.iter().map(|log| (log - middle).abs()));
        }
    }
    median(deviations).map_or(MIN_VARIANCE, |mad| (DEVIATION_PER_MAD * mad).powi(2).max(MIN_VARIANCE))
}

/// Whether errors of a quantity may depend on the shares of time. For TTFT they may not, because the shares are those
/// of an output token.
fn has_classes(quantity: Quantity) -> bool {
    quantity != Quantity::Ttft
}

/// Returns the components of all runs of a quantity, and those without each source in `held_out`.
#[must_use]
pub fn estimate(quantity: Quantity, runs: &[Run], held_out: &[&str]) -> (Components, Vec<Components>) {
    let draws = draws(runs);
    let classes = has_classes(quantity);
    let mut start = [math::ln(INITIAL_VARIANCE); COUNT];
    // Similarity halves at a factor of two in one number; effects grow with the square root of the uncertainty.
    let [.., falloff, growth] = &mut start;
    (*falloff, *growth) = (0.0, math::ln(0.5));
    let all: Vec<&Draw<'_>> = draws.iter().collect();
    let noise = residual(runs, None);
    let of_all = |logs: &[f64; COUNT]| components(logs, classes, noise);
    let whole = search(&all, of_all, classes, start, 1.0, ROUNDS);
    let without = parallel_map(
        held_out,
        |_| false,
        |out| {
            let rest: Vec<&Draw<'_>> = draws.iter().filter(|draw| draw.source != *out).collect();
            let noise = residual(runs, Some(out));
            let of_rest = |logs: &[f64; COUNT]| components(logs, classes, noise);
            of_rest(&search(&rest, of_rest, classes, whole, 0.5, ROUNDS_WITHOUT))
        },
    );
    (of_all(&whole), without)
}
