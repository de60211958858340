//! Metrics that rows contain and engines predict.

use super::observation::Observation;
use crate::calibrate::columns::MetricColumn;
use atlas_plan::estimate::{Metric, MetricId};

/// A metric of a row that an engine predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PredictedMetric {
    /// Tokens per second of the whole run.
    TokensPerSec,
    /// Median latency, ms.
    P50Ms,
    /// 95th percentile, ms.
    P95Ms,
    /// 99th percentile, ms.
    P99Ms,
    /// Time per output token, ms.
    TpotMs,
    /// Power of a node, W.
    NodePowerW,
    /// Share of the peak FLOP/s.
    FlopUtilization,
}

impl PredictedMetric {
    /// All metrics.
    pub const ALL: [PredictedMetric; 7] = [
        PredictedMetric::TokensPerSec,
        PredictedMetric::P50Ms,
        PredictedMetric::P95Ms,
        PredictedMetric::P99Ms,
        PredictedMetric::TpotMs,
        PredictedMetric::NodePowerW,
        PredictedMetric::FlopUtilization,
    ];

    /// Corresponding metric of the engines.
    #[must_use]
    pub fn metric(self) -> &'static Metric {
        let id = match self {
            PredictedMetric::TokensPerSec => MetricId::TokensPerSec,
            PredictedMetric::P50Ms => MetricId::P50Ms,
            PredictedMetric::P95Ms => MetricId::P95Ms,
            PredictedMetric::P99Ms => MetricId::P99Ms,
            PredictedMetric::TpotMs => MetricId::TpotMs,
            PredictedMetric::NodePowerW => MetricId::NodePowerW,
            PredictedMetric::FlopUtilization => MetricId::FlopUtilization,
        };
        id.metric()
    }

    /// Name of the metric.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.metric().name
    }

    /// Returns its measured value in a row, if positive.
    #[must_use]
    pub fn measured(self, row: &Observation) -> Option<super::observation::Measured> {
        match self {
            PredictedMetric::TokensPerSec => row.throughput(),
            PredictedMetric::NodePowerW => row.figure(MetricColumn::PowerW),
            PredictedMetric::P50Ms => row.figure(MetricColumn::P50Ms),
            PredictedMetric::P95Ms => row.figure(MetricColumn::P95Ms),
            PredictedMetric::P99Ms => row.figure(MetricColumn::P99Ms),
            PredictedMetric::TpotMs => row.figure(MetricColumn::TpotMs),
            PredictedMetric::FlopUtilization => row.figure(MetricColumn::FlopUtilization),
        }
        .filter(|measured| measured.value.is_finite() && measured.value > 0.0)
    }
}
