//! Variance components from measurements, by maximum likelihood.

use std::collections::BTreeMap;

use super::Run;
use super::components::Components;
use super::matrix::Cholesky;
use atlas_core::cores::on_all_cores;
use atlas_document::fingerprint::fingerprint;

/// Most runs of a source that count: a sweep of a thousand rows tells little more of effects than a hundred.
const MOST: usize = 60;
/// Errors beyond this, on the logarithm, are drawn in to it: they are wrong configurations, not effects.
const CLIP: f64 = 0.5;
/// Weight of a source by its runs, as an exponent: neither a long sweep nor a handful of rows decides.
const DAMPING: f64 = -0.3;
/// Variances of the logarithm below this count as zero.
const LEAST: f64 = 1e-6;
/// Rounds of the search, each once over all components.
const ROUNDS: usize = 60;
/// Cluster, accelerator, software, model, four classes, residual.
const COUNT: usize = 9;

/// A source as the likelihood sees it: accelerator, software and model of every run as numbers, shares and errors.
struct Group {
    names: Vec<[usize; 3]>,
    shares: Vec<[f64; 4]>,
    values: Vec<f64>,
}

impl Group {
    fn of(runs: &[&Run]) -> Group {
        let mut runs = runs.to_vec();
        shuffle(&mut runs, 0);
        runs.truncate(MOST);
        let mut known: Vec<&str> = Vec::new();
        let mut number = |name| match known.iter().position(|other| *other == name) {
            Some(at) => at,
            None => {
                known.push(name);
                known.len() - 1
            }
        };
        Group {
            names: runs
                .iter()
                .map(|run| {
                    [number(run.accelerator.as_str()), number(run.software.as_str()), number(run.model.as_str())]
                })
                .collect(),
            shares: runs.iter().map(|run| run.shares).collect(),
            values: runs.iter().map(|run| run.log_ratio().clamp(-CLIP, CLIP)).collect(),
        }
    }

    /// The lower half of the covariance of the errors.
    fn covariance(&self, c: &Components) -> Vec<Vec<f64>> {
        let groups = [c.accelerator, c.software, c.model];
        let cell = |i: usize, (names, shares): (&[usize; 3], &[f64; 4]), own: (&[usize; 3], &[f64; 4])| {
            let same = own.0.iter().zip(names).zip(groups).map(|((a, b), v)| if a == b { v } else { 0.0 });
            let slopes = own.1.iter().zip(shares).zip(c.classes).map(|((a, b), v)| v * a * b);
            c.cluster + same.sum::<f64>() + slopes.sum::<f64>() + if i == 0 { c.residual } else { 0.0 }
        };
        let all = || self.names.iter().zip(&self.shares);
        let row = |(i, own)| all().take(i + 1).enumerate().map(|(j, other)| cell(i - j, other, own)).collect();
        all().enumerate().map(row).collect()
    }
}

/// Runs in an order that depends on nothing but their names and a number.
pub fn shuffle(runs: &mut [&Run], draw: u64) {
    runs.sort_by_cached_key(|run| (fingerprint(format!("{draw}:{}", run.id).as_bytes()), run.id.clone()));
}

/// Runs by source.
#[must_use]
pub fn by_source(runs: &[Run]) -> BTreeMap<&str, Vec<&Run>> {
    let mut groups: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        groups.entry(run.source.as_str()).or_default().push(run);
    }
    groups
}

fn components(logs: &[f64; COUNT], classes: bool) -> Components {
    let [cluster, accelerator, software, model, a, b, c, d, residual] =
        logs.map(|log| if log <= LEAST.ln() + 1.0 { 0.0 } else { log.exp() });
    let classes = if classes { [a, b, c, d] } else { [0.0; 4] };
    Components { cluster, accelerator, software, model, classes, residual: residual.max(LEAST), reach: 1.645 }
}

fn loss(groups: &[&Group], c: &Components) -> f64 {
    let of = |group: &Group| -> Option<f64> {
        let factored = Cholesky::of(&group.covariance(c))?;
        let whitened: f64 = factored.forward(&group.values).iter().map(|z| z * z).sum();
        Some((0.5 * whitened + factored.log_root_determinant()) * (group.values.len() as f64).powf(DAMPING))
    };
    groups.iter().map(|group| of(group).unwrap_or(f64::INFINITY)).sum()
}

/// The components under which groups are most likely: a search along one logarithm at a time, from `logs` with steps of
/// `step`.
fn search(groups: &[&Group], classes: bool, mut logs: [f64; COUNT], step: f64) -> [f64; COUNT] {
    let mut steps = [step; COUNT];
    let mut best = loss(groups, &components(&logs, classes));
    for _ in 0..ROUNDS {
        for i in (0..COUNT).filter(|i| classes || !(4..8).contains(i)) {
            let step = steps.get(i).copied().unwrap_or(0.0);
            let mut better = false;
            for by in [step, -step] {
                let mut next = logs;
                if let Some(log) = next.get_mut(i) {
                    *log = (*log + by).clamp(LEAST.ln(), 2.0);
                }
                let found = loss(groups, &components(&next, classes));
                if found < best - 1e-6 {
                    (best, logs, better) = (found, next, true);
                    break;
                }
            }
            if let Some(step) = steps.get_mut(i) {
                *step *= if better { 1.3 } else { 0.5 };
            }
        }
        if steps.iter().all(|step| *step < 0.05) {
            break;
        }
    }
    logs
}

/// Components of all sources, and of all but each of those that `held_out` names. `classes`: whether errors may depend on
/// the shares of the time.
#[must_use]
pub fn estimate(
    sources: &BTreeMap<&str, Vec<&Run>>,
    held_out: &[&str],
    classes: bool,
) -> (Components, Vec<Components>) {
    let groups: Vec<(&str, Group)> = sources.iter().map(|(source, runs)| (*source, Group::of(runs))).collect();
    let all: Vec<&Group> = groups.iter().map(|(_, group)| group).collect();
    let whole = search(&all, classes, [0.01_f64.ln(); COUNT], 1.0);
    let without = on_all_cores(
        held_out,
        |_| false,
        |out| {
            let rest: Vec<&Group> = groups.iter().filter(|(source, _)| source != out).map(|(_, group)| group).collect();
            // Little changes without one of many sources: a short search from there.
            components(&search(&rest, classes, whole, 0.4), classes)
        },
    );
    (components(&whole, classes), without)
}
