//! Error statistics of a validation run.

use std::collections::BTreeMap;

use atlas_core::sort;
use atlas_core::statistics::quantile_of_sorted;

/// Statistics of relative errors.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Stats {
    /// Number of rows.
    pub n: usize,
    /// Median of absolute errors, percent.
    pub median: f64,
    /// 90th percentile of absolute errors, percent.
    pub p90: f64,
    /// Mean of absolute errors, percent.
    pub mean: f64,
    /// Median of signed errors, percent.
    pub bias: f64,
}

/// Statistics of `errors`, given as predicted / measured - 1.
pub fn stats(errors: &[f64]) -> Stats {
    let mut signed: Vec<f64> = errors.iter().map(|e| 100.0 * e).collect();
    sort::numbers(&mut signed);
    let mut size: Vec<f64> = signed.iter().map(|e| e.abs()).collect();
    sort::numbers(&mut size);
    Stats {
        n: errors.len(),
        median: quantile_of_sorted(&size, 0.5),
        p90: quantile_of_sorted(&size, 0.9),
        mean: size.iter().sum::<f64>() / size.len().max(1) as f64,
        bias: quantile_of_sorted(&signed, 0.5),
    }
}

/// Statistics of errors grouped by a key.
pub fn grouped<'a>(rows: impl Iterator<Item = (&'a str, f64)>) -> BTreeMap<String, Stats> {
    let mut by: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (k, e) in rows {
        by.entry(k.to_string()).or_default().push(e);
    }
    by.into_iter().map(|(k, v)| (k, stats(&v))).collect()
}

/// Mean of the medians of groups, percent.
pub fn mean_of_medians<K>(groups: &BTreeMap<K, Stats>) -> f64 {
    groups.values().map(|stats| stats.median).sum::<f64>() / groups.len().max(1) as f64
}
