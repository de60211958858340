//! Accuracy of estimates by group of rows, as published in the documentation.

use atlas_core::math;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::case::Metric;
use super::verdict::Verdict;
use super::{MeasurementKind, Method, ValidateError, judge, judge_by, shipped};
use atlas_core::sort;
use atlas_core::statistics::quantile_of_sorted;
use atlas_perf::interval::Release;
use atlas_plan::search::Gauge;

/// A metric for which accuracy is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccuracyMetric {
    /// Training throughput.
    Training,
    /// Serving throughput.
    Serving,
    /// Time per output token.
    Tpot,
    /// Time to first token.
    Ttft,
}

impl AccuracyMetric {
    /// All metrics.
    pub const ALL: [AccuracyMetric; 4] =
        [AccuracyMetric::Training, AccuracyMetric::Serving, AccuracyMetric::Tpot, AccuracyMetric::Ttft];

    /// `training`, `serving`, `tpot`, `ttft`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AccuracyMetric::Training => "training",
            AccuracyMetric::Serving => "serving",
            AccuracyMetric::Tpot => "tpot",
            AccuracyMetric::Ttft => "ttft",
        }
    }

    /// Title in tables.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            AccuracyMetric::Training => "training throughput",
            AccuracyMetric::Serving => "serving throughput",
            AccuracyMetric::Tpot => "TPOT",
            AccuracyMetric::Ttft => "TTFT",
        }
    }

    /// Returns the metric to which a metric of a row belongs.
    #[must_use]
    pub const fn of(metric: Metric) -> AccuracyMetric {
        match metric {
            Metric::TrainingRate => AccuracyMetric::Training,
            Metric::OutputRate | Metric::TotalRate | Metric::RequestRate => AccuracyMetric::Serving,
            Metric::Tpot => AccuracyMetric::Tpot,
            Metric::Ttft => AccuracyMetric::Ttft,
        }
    }

    /// Whether a verdict is about this metric.
    fn is_metric_of(self, verdict: &Verdict) -> bool {
        verdict.metric.is_some_and(|metric| AccuracyMetric::of(metric) == self)
    }
}

/// Criterion by which rows are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Publisher.
    Source,
    /// Software family.
    Software,
    /// Accelerator.
    Accelerator,
    /// Number format of the weights.
    Format,
}

impl Group {
    /// All criteria.
    pub const ALL: [Group; 4] = [Group::Source, Group::Software, Group::Accelerator, Group::Format];

    /// Name in headings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Group::Source => "source",
            Group::Software => "software",
            Group::Accelerator => "accelerator",
            Group::Format => "format",
        }
    }

    /// Returns the group to which a verdict belongs.
    #[must_use]
    pub fn of(self, verdict: &Verdict) -> &str {
        match self {
            Group::Source => &verdict.source,
            Group::Software => &verdict.software,
            Group::Accelerator => &verdict.accelerator,
            Group::Format => verdict.format,
        }
    }
}

/// Accuracy of the estimates for a group of rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accuracy {
    /// Number of rows.
    pub rows: usize,
    /// Number of publishers.
    pub sources: usize,
    /// Median of |predicted / measured − 1|.
    pub median: f64,
    /// 90th percentile of |predicted / measured − 1|.
    pub p90: f64,
    /// Geometric mean of predicted / measured.
    pub bias: f64,
    /// Share of the measured values within their 90 % interval.
    pub covered: f64,
    /// Median ratio of upper to lower bound of the interval.
    pub width: f64,
}

impl Accuracy {
    /// Computes the accuracy for a set of verdicts; `None` if none of them counts.
    #[must_use]
    pub fn of<'v>(verdicts: impl IntoIterator<Item = &'v Verdict>) -> Option<Accuracy> {
        let rows: Vec<(&Verdict, f64)> =
            verdicts.into_iter().filter_map(|verdict| Some((verdict, ratio(verdict)?))).collect();
        let n = rows.len();
        if n == 0 {
            return None;
        }
        let sorted = |values: Vec<f64>| {
            let mut values = values;
            sort::numbers(&mut values);
            values
        };
        let sizes = sorted(rows.iter().map(|(_, ratio)| (ratio - 1.0).abs()).collect());
        let ends = |verdict: &Verdict| Some(verdict.upper? / verdict.lower?);
        let widths = sorted(rows.iter().filter_map(|(verdict, _)| ends(verdict)).collect());
        let inside = rows.iter().filter(|(verdict, _)| verdict.covered() == Some(true)).count();
        Some(Accuracy {
            rows: n,
            sources: rows.iter().map(|(verdict, _)| verdict.source.as_str()).collect::<BTreeSet<_>>().len(),
            median: quantile_of_sorted(&sizes, 0.5),
            p90: quantile_of_sorted(&sizes, 0.9),
            bias: math::exp(rows.iter().map(|(_, ratio)| math::ln(*ratio)).sum::<f64>() / n as f64),
            covered: inside as f64 / n as f64,
            width: quantile_of_sorted(&widths, 0.5),
        })
    }
}

/// Predicted over measured, if the row counts: it has a prediction and is not a copy.
fn ratio(verdict: &Verdict) -> Option<f64> {
    let error = verdict.error().filter(|_| verdict.copy_of.is_none())?;
    Some(error + 1.0).filter(|ratio| *ratio > 0.0)
}

/// Verdicts on one metric.
#[derive(Debug, Clone)]
pub struct MetricAccuracy {
    /// The metric.
    pub figure: AccuracyMetric,
    /// One verdict for every row with this metric, and for every row that cannot be predicted.
    pub verdicts: Vec<Verdict>,
    /// Verdicts with the software releases of the rows withheld.
    pub without_release: Vec<Verdict>,
}

impl MetricAccuracy {
    /// Accuracy over all rows, or over those without inferred values.
    #[must_use]
    pub fn total(&self, with_inferred: bool) -> Option<Accuracy> {
        Accuracy::of(self.verdicts.iter().filter(|verdict| with_inferred || !verdict.inferred))
    }

    /// Accuracy over rows without inferred values, with their software releases withheld.
    #[must_use]
    pub fn total_without_release(&self) -> Option<Accuracy> {
        Accuracy::of(self.without_release.iter().filter(|verdict| !verdict.inferred))
    }

    /// Accuracy by group, sorted by name: rows without inferred values, and all rows.
    #[must_use]
    pub fn by(&self, group: Group) -> Vec<(&str, Option<Accuracy>, Accuracy)> {
        let mut groups: BTreeMap<&str, Vec<&Verdict>> = BTreeMap::new();
        for verdict in &self.verdicts {
            groups.entry(group.of(verdict)).or_default().push(verdict);
        }
        let mut by = Vec::new();
        for (name, rows) in groups {
            let stated = Accuracy::of(rows.iter().copied().filter(|verdict| !verdict.inferred));
            if let Some(all) = Accuracy::of(rows) {
                by.push((name, stated, all));
            }
        }
        by
    }
}

/// Evaluates all shipped rows, by metric.
///
/// # Errors
/// Returns an error if shipped tables are damaged.
pub fn shipped_accuracy() -> Result<Vec<MetricAccuracy>, ValidateError> {
    let mut all = Vec::new();
    let mut without_release = Vec::new();
    let withheld = Method { release: Release::Assumed, ..Method::default() };
    for kind in MeasurementKind::ALL {
        let text = shipped(kind)?;
        all.extend(judge(kind, &text)?);
        without_release.extend(judge_by(kind, &text, withheld, &Gauge::default())?);
    }
    let of = |figure: AccuracyMetric, verdicts: &[Verdict]| {
        verdicts.iter().filter(|verdict| figure.is_metric_of(verdict)).cloned().collect()
    };
    Ok(AccuracyMetric::ALL
        .into_iter()
        .map(|figure| MetricAccuracy {
            figure,
            verdicts: of(figure, &all),
            without_release: of(figure, &without_release),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(source: &str, predicted: f64, inferred: bool, copy: bool) -> Verdict {
        Verdict {
            id: "x".into(),
            metric: Some(Metric::Tpot),
            source: source.into(),
            accelerator: "a".into(),
            regime: "r",
            software: "vllm".into(),
            format: "fp8",
            measured: Some(100.0),
            predicted: Some(predicted),
            lower: Some(predicted / 2.0),
            upper: Some(predicted * 2.0),
            inferred,
            copy_of: copy.then(|| "y".into()),
            reason: None,
        }
    }

    #[test]
    fn copies_are_not_counted_and_inferred_rows_are_counted_apart() {
        let verdicts = vec![
            verdict("s", 200.0, false, false),
            verdict("s", 200.0, false, true),
            verdict("t", 50.0, false, false),
            verdict("t", 400.0, true, false),
        ];
        let judged = MetricAccuracy { figure: AccuracyMetric::Tpot, verdicts, without_release: Vec::new() };
        let stated = judged.total(false);
        let expected = Accuracy { rows: 2, sources: 2, median: 0.75, p90: 0.95, bias: 1.0, covered: 1.0, width: 4.0 };
        assert!(stated.is_some_and(|stated| (stated.bias - 1.0).abs() < 1e-12 && (stated.p90 - 0.95).abs() < 1e-12));
        assert_eq!(stated.map(|stated| Accuracy { bias: 1.0, p90: 0.95, ..stated }), Some(expected));
        assert_eq!(judged.total(true).map(|all| all.rows), Some(3));
        let by: Vec<(&str, usize, usize)> = judged
            .by(Group::Source)
            .into_iter()
            .map(|(name, stated, all)| (name, stated.map_or(0, |stated| stated.rows), all.rows))
            .collect();
        assert_eq!(by, [("s", 1, 1), ("t", 1, 2)]);
    }
}
