//! Result of the validation of a row: predicted and measured value with interval, or why there is no prediction.

use std::collections::BTreeMap;

use atlas_core::sort;
use serde::{Serialize, Serializer};

use super::case::Metric;
use super::report::{Stats, stats};
use super::table::Row;

/// A measured row evaluated on one metric.
#[derive(Debug, Clone, Serialize)]
pub struct Verdict {
    /// Id of the row.
    pub id: String,
    /// Evaluated metric; `None` for throughput of a serving row that was refused before its metrics were determined.
    #[serde(serialize_with = "serialize_metric")]
    pub metric: Option<Metric>,
    /// Publisher.
    pub source: String,
    /// Accelerator.
    pub accelerator: String,
    /// Regime, within which errors are similar.
    pub regime: &'static str,
    /// Software family in effect.
    pub software: String,
    /// Number format of the weights.
    pub format: &'static str,
    /// Measured value.
    pub measured: Option<f64>,
    /// Prediction of the engine.
    pub predicted: Option<f64>,
    /// Lower bound of the 90 % prediction interval.
    pub lower: Option<f64>,
    /// Upper bound of the 90 % prediction interval.
    pub upper: Option<f64>,
    /// Whether a value of the scenario was inferred from the result of the row itself.
    pub inferred: bool,
    /// Id of an earlier row with the same scenario and measured values. Such a copy is evaluated but not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
    /// Reason why there is no prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Verdict {
    /// Creates the verdict for a row that cannot be predicted.
    #[must_use]
    pub fn refused(row: &Row, metric: Option<Metric>, reason: &str) -> Verdict {
        Verdict {
            id: row.text("id").to_owned(),
            metric,
            source: row.text("source").to_owned(),
            accelerator: row.text("accelerator").to_owned(),
            regime: "",
            software: String::new(),
            format: "",
            measured: None,
            predicted: None,
            lower: None,
            upper: None,
            inferred: !row.text("inferred").is_empty(),
            copy_of: None,
            reason: Some(reason.to_owned()),
        }
    }

    /// Name of the metric: `tokens_per_sec_per_accel`, `ttft_ms` …
    #[must_use]
    pub fn metric_name(&self) -> &'static str {
        metric_name(self.metric)
    }

    /// Relative error: predicted over measured, less one.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        let (measured, predicted) = (self.measured?, self.predicted?);
        (measured > 0.0 && predicted.is_finite()).then(|| predicted / measured - 1.0)
    }

    /// Whether the measured value is within the interval.
    #[must_use]
    pub fn covered(&self) -> Option<bool> {
        let (measured, lower, upper) = (self.measured?, self.lower?, self.upper?);
        Some((lower..=upper).contains(&measured))
    }
}

/// Name of a metric of [`MeasurementKind::metrics`](super::MeasurementKind::metrics).
#[must_use]
pub fn metric_name(metric: Option<Metric>) -> &'static str {
    metric.map_or("throughput", Metric::name)
}

fn serialize_metric<S: Serializer>(metric: &Option<Metric>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(metric_name(*metric))
}

/// Rows that count: all except copies of earlier rows.
fn without_duplicates(verdicts: &[Verdict]) -> impl Iterator<Item = &Verdict> {
    verdicts.iter().filter(|verdict| verdict.copy_of.is_none())
}

/// Errors grouped by a key, in the order of the keys.
#[must_use]
pub fn by<'v>(verdicts: &'v [Verdict], key: impl Fn(&'v Verdict) -> &'v str) -> BTreeMap<&'v str, Stats> {
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for verdict in without_duplicates(verdicts) {
        if let Some(error) = verdict.error() {
            errors.entry(key(verdict)).or_default().push(error);
        }
    }
    sort::collect_unsorted(errors.into_iter().map(|(key, errors)| (key, stats(&errors))))
}

/// Errors of all rows.
#[must_use]
pub fn overall(verdicts: &[Verdict]) -> Stats {
    stats(&without_duplicates(verdicts).filter_map(Verdict::error).collect::<Vec<_>>())
}

/// Share of measured values within their interval, and number of rows with an interval.
#[must_use]
pub fn coverage(verdicts: &[Verdict]) -> (f64, usize) {
    let inside: Vec<bool> = without_duplicates(verdicts).filter_map(Verdict::covered).collect();
    let hits = inside.iter().filter(|inside| **inside).count();
    (hits as f64 / inside.len().max(1) as f64, inside.len())
}

/// Reasons for rows without a prediction, most frequent first.
#[must_use]
pub fn reasons(verdicts: &[Verdict]) -> Vec<(&str, usize)> {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in verdicts.iter().filter_map(|verdict| verdict.reason.as_deref()) {
        *count.entry(reason).or_default() += 1;
    }
    let mut count: Vec<(&str, usize)> = count.into_iter().collect();
    sort::by_key(&mut count, |(_, n)| std::cmp::Reverse(*n));
    count
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;

    fn verdict(measured: f64, predicted: f64) -> Verdict {
        Verdict {
            id: "x".into(),
            metric: Some(Metric::TrainingRate),
            source: "s".into(),
            accelerator: "a".into(),
            regime: "r",
            software: "x".into(),
            format: "bf16",
            measured: Some(measured),
            predicted: Some(predicted),
            lower: Some(predicted * 0.8),
            upper: Some(predicted * 1.2),
            inferred: false,
            copy_of: None,
            reason: None,
        }
    }

    #[test]
    fn metrics_are_written_by_name() {
        let row = Row::of([("id", "x")]);
        for metric in Metric::ALL {
            let verdict = Verdict::refused(&row, Some(metric), "");
            let written = serde_json::to_value(&verdict).unwrap_or_default();
            assert_eq!((&written["metric"], verdict.metric_name()), (&metric.name().into(), metric.name()));
        }
        let written = serde_json::to_value(Verdict::refused(&row, None, "")).unwrap_or_default();
        assert_eq!(written["metric"], "throughput");
    }

    #[test]
    fn errors_and_coverage_are_computed_from_the_rows() {
        let all = [verdict(100.0, 110.0), verdict(100.0, 80.0), verdict(100.0, 50.0)];
        let stats = overall(&all);
        assert_eq!(stats.n, 3);
        assert!((stats.median - 20.0).abs() < 1e-9 && (stats.bias + 20.0).abs() < 1e-9);
        let (share, n) = coverage(&all);
        assert_eq!(n, 3);
        assert!((share - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(by(&all, |verdict| &verdict.source).len(), 1);
    }
}
