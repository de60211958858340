//! Leave-one-source-out residuals, and the prediction intervals that follow from them.

use super::case::Case;
use super::fit;
use atlas_core::cores::on_all_cores;
use atlas_perf::constants::Constants;
use std::collections::{BTreeMap, BTreeSet};

/// Rounds of the full fit and of each fold.
const ROUNDS: usize = 40;

/// Constants fitted on all cases.
pub fn full_fit(cases: &[Case]) -> Constants {
    fit::fit(&cases.iter().collect::<Vec<_>>(), &fit::prior(), ROUNDS)
}

/// Logarithmic error of every case under constants that were fitted without its source.
pub fn residuals(cases: &[Case]) -> Vec<f64> {
    let sources: Vec<&str> = cases.iter().map(|c| c.source.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
    let without = |s: &&str| {
        let rest: Vec<&Case> = cases.iter().filter(|c| c.source != *s).collect();
        fit::fit(&rest, &fit::prior(), ROUNDS)
    };
    let held: BTreeMap<&str, Constants> =
        sources.iter().copied().zip(on_all_cores(&sources, |_| false, without)).collect();
    let fallback = fit::prior();
    cases.iter().map(|k| fit::log_error(k, held.get(k.source.as_str()).unwrap_or(&fallback))).collect()
}

/// The `1 - alpha` conformal quantile of absolute residuals: rank `ceil((n + 1) (1 - alpha))` of `n`.
fn conformal(mut sizes: Vec<f64>, alpha: f64) -> Option<f64> {
    sizes.sort_by(f64::total_cmp);
    let n = sizes.len();
    let rank = ((n + 1) as f64 * (1.0 - alpha)).ceil() as usize;
    sizes.get(rank.clamp(1, n.max(1)) - 1).copied()
}

/// Half-width of the 90 % interval of a regime, from residuals of all sources but `without`; where a regime has fewer
/// than 20 of them, all residuals serve.
pub fn half_width(cases: &[Case], residuals: &[f64], regime: &str, without: &str) -> f64 {
    let pick = |same: bool| -> Vec<f64> {
        cases
            .iter()
            .zip(residuals)
            .filter(|(k, _)| k.source != without && (!same || k.regime == regime))
            .map(|(_, e)| e.abs())
            .collect()
    };
    let own = pick(true);
    let sizes = if own.len() >= 20 { own } else { pick(false) };
    conformal(sizes, 0.1).unwrap_or(1.0)
}

/// Whether each case's measurement lies inside the interval that the other sources' residuals give it.
pub fn covered(cases: &[Case], residuals: &[f64]) -> Vec<bool> {
    let mut widths: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    cases
        .iter()
        .zip(residuals)
        .map(|(k, e)| {
            let regime = k.regime;
            let width = *widths
                .entry((regime, k.source.as_str()))
                .or_insert_with(|| half_width(cases, residuals, regime, &k.source));
            e.abs() <= width
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_conformal_rank_counts_the_new_point() {
        let sizes: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(conformal(sizes, 0.1), Some(18.0));
        assert_eq!(conformal(vec![1.0, 2.0], 0.1), Some(2.0));
        assert_eq!(conformal(vec![], 0.1), None);
    }
}
