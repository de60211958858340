//! Cross-validation of the serving model: constants are fitted without a group of rows and judged on that group, and
//! 90 % intervals are taken from the residuals so obtained (split conformal; Lei et al., JASA 113, 2018).

use super::case::Case;
use super::serving_fit;
use atlas_core::cores::on_all_cores;
use atlas_perf::serving_constants::ServingConstants;
use std::collections::{BTreeMap, BTreeSet};

/// Rounds of each fit; all converge in fewer.
pub const ROUNDS: usize = 30;

/// Sources of `inference.csv` whose measurements also stand in `serving_latency.csv`: neither may train the other.
const SHARED_ORIGIN: &str = "InferenceX";

/// ln(predicted / measured) of every case of `judged`, with constants fitted without the case's group. `others` train
/// every fold that does not share their origin.
pub fn held_out(judged: &[Case], group: fn(&Case) -> &str, others: &[Case]) -> Vec<f64> {
    let groups: Vec<&str> = judged.iter().map(group).collect::<BTreeSet<&str>>().into_iter().collect();
    let without = |g: &&str| {
        let train: Vec<&Case> = judged
            .iter()
            .filter(|c| group(c) != *g)
            .chain(others.iter().filter(|c| !same_origin(g, judged, c)))
            .collect();
        serving_fit::fit(&train, &ServingConstants::literature(), ROUNDS)
    };
    let fitted = on_all_cores(&groups, |_| false, without);
    let by: BTreeMap<&str, ServingConstants> = groups.into_iter().zip(fitted).collect();
    let fallback = ServingConstants::literature();
    judged.iter().map(|c| serving_fit::log_error(c, by.get(group(c)).unwrap_or(&fallback))).collect()
}

/// Whether `other` was measured in the same campaign as the group left out.
fn same_origin(left_out: &str, judged: &[Case], other: &Case) -> bool {
    let latency = |c: &Case| c.metric.is_latency();
    let judging_latency = judged.first().is_some_and(latency);
    if judging_latency {
        other.source.contains(SHARED_ORIGIN)
    } else {
        left_out.contains(SHARED_ORIGIN) && latency(other)
    }
}

/// Signed relative errors from logarithmic ones.
pub fn relative(log_errors: &[f64]) -> Vec<f64> {
    log_errors.iter().map(|e| e.exp() - 1.0).collect()
}

/// Fewest residuals from which a regime's interval is taken; below, all regimes together give it.
const ENOUGH: usize = 30;

/// Factors on a prediction between which the measurement lies in 90 % of cases, from residuals ln(predicted/measured)
/// and their weights: groups count by the square root of their rows, since the next source is a new group.
pub fn interval(residuals: &[(f64, f64)]) -> (f64, f64) {
    let mut r: Vec<(f64, f64)> = residuals.iter().map(|(e, w)| (-e, *w)).collect();
    r.sort_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = r.iter().map(|x| x.1).sum();
    let at = |p: f64| {
        let mut sum = 0.0;
        r.iter()
            .find(|x| {
                sum += x.1;
                sum >= p * total
            })
            .or(r.last())
            .map_or(0.0, |x| x.0)
    };
    (at(0.05).exp(), at(0.95).exp())
}

/// What every case counts: groups by the square root of their rows of a regime.
pub fn weights(cases: &[Case]) -> Vec<f64> {
    let mut n: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for c in cases {
        *n.entry((c.source.as_str(), c.regime)).or_default() += 1.0;
    }
    cases.iter().map(|c| n.get(&(c.source.as_str(), c.regime)).map_or(0.0, |n| 1.0 / n.sqrt())).collect()
}

/// Interval of a regime from the residuals of all groups but `without`; of all regimes where it has too few rows.
pub fn factors(cases: &[Case], weights: &[f64], log_errors: &[f64], regime: &str, without: &str) -> (f64, f64) {
    let mut some = Vec::new();
    let mut all = Vec::new();
    for ((c, weight), error) in cases.iter().zip(weights).zip(log_errors).filter(|((c, _), _)| c.source != without) {
        all.push((*error, *weight));
        if c.regime == regime {
            some.push((*error, *weight));
        }
    }
    interval(if some.len() < ENOUGH { &all } else { &some })
}
