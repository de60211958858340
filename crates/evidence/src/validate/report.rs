//! Error statistics of a validation run.

use std::collections::BTreeMap;

use atlas_core::sort;

/// Median, 90th percentile and bias of relative errors, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct Stats {
    /// Number of rows.
    pub n: usize,
    /// Median size, percent.
    pub median: f64,
    /// 90th percentile of the size, percent.
    pub p90: f64,
    /// Mean size, percent.
    pub mean: f64,
    /// Median signed error.
    pub bias: f64,
}

/// Linear-interpolated quantile of sorted values.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len().saturating_sub(1)) as f64;
    let low = sorted.get(at.floor() as usize).copied().unwrap_or(f64::NAN);
    let high = sorted.get(at.ceil() as usize).copied().unwrap_or(low);
    low + (at - at.floor()) * (high - low)
}

/// Statistics of predicted / measured - 1.
pub fn stats(errors: &[f64]) -> Stats {
    let mut signed: Vec<f64> = errors.iter().map(|e| 100.0 * e).collect();
    sort::numbers(&mut signed);
    let mut size: Vec<f64> = signed.iter().map(|e| e.abs()).collect();
    sort::numbers(&mut size);
    Stats {
        n: errors.len(),
        median: quantile(&size, 0.5),
        p90: quantile(&size, 0.9),
        mean: size.iter().sum::<f64>() / size.len().max(1) as f64,
        bias: quantile(&signed, 0.5),
    }
}

/// Errors grouped under a key.
pub fn grouped<'a>(rows: impl Iterator<Item = (&'a str, f64)>) -> BTreeMap<String, Stats> {
    let mut by: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (k, e) in rows {
        by.entry(k.to_string()).or_default().push(e);
    }
    by.into_iter().map(|(k, v)| (k, stats(&v))).collect()
}

/// Mean of the groups' medians, percent.
pub fn mean_of_medians<K>(groups: &BTreeMap<K, Stats>) -> f64 {
    groups.values().map(|stats| stats.median).sum::<f64>() / groups.len().max(1) as f64
}
