//! Metrics that rows contain and engines predict.

use super::observation::Observation;
use crate::calibrate::columns::MetricColumn;
use atlas_plan::estimate::{Metric, MetricId};

/// A metric of a row that an engine predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
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

impl Figure {
    /// All metrics.
    pub const ALL: [Figure; 7] = [
        Figure::TokensPerSec,
        Figure::P50Ms,
        Figure::P95Ms,
        Figure::P99Ms,
        Figure::TpotMs,
        Figure::NodePowerW,
        Figure::FlopUtilization,
    ];

    /// Corresponding metric of the engines.
    #[must_use]
    pub fn metric(self) -> &'static Metric {
        let id = match self {
            Figure::TokensPerSec => MetricId::TokensPerSec,
            Figure::P50Ms => MetricId::P50Ms,
            Figure::P95Ms => MetricId::P95Ms,
            Figure::P99Ms => MetricId::P99Ms,
            Figure::TpotMs => MetricId::TpotMs,
            Figure::NodePowerW => MetricId::NodePowerW,
            Figure::FlopUtilization => MetricId::FlopUtilization,
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
            Figure::TokensPerSec => row.throughput(),
            Figure::NodePowerW => row.figure(MetricColumn::PowerW),
            Figure::P50Ms => row.figure(MetricColumn::P50Ms),
            Figure::P95Ms => row.figure(MetricColumn::P95Ms),
            Figure::P99Ms => row.figure(MetricColumn::P99Ms),
            Figure::TpotMs => row.figure(MetricColumn::TpotMs),
            Figure::FlopUtilization => row.figure(MetricColumn::FlopUtilization),
        }
        .filter(|measured| measured.value.is_finite() && measured.value > 0.0)
    }
}
