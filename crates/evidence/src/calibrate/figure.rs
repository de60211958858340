//! Figures that rows state and engines predict.

use super::observation::Observation;

/// A figure of a row that an engine predicts.
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
    /// Share of the FLOP/s.
    FlopUtilization,
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 7] = [
        Figure::TokensPerSec,
        Figure::P50Ms,
        Figure::P95Ms,
        Figure::P99Ms,
        Figure::TpotMs,
        Figure::NodePowerW,
        Figure::FlopUtilization,
    ];

    /// Its name, that of the metric.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Figure::TokensPerSec => "tokens_per_sec",
            Figure::P50Ms => "p50_ms",
            Figure::P95Ms => "p95_ms",
            Figure::P99Ms => "p99_ms",
            Figure::TpotMs => "tpot_ms",
            Figure::NodePowerW => "node_power_w",
            Figure::FlopUtilization => "flop_utilization",
        }
    }

    /// The figure of a row.
    #[must_use]
    pub fn measured(self, row: &Observation) -> Option<super::observation::Measured> {
        match self {
            Figure::TokensPerSec => row.throughput(),
            Figure::NodePowerW => row.figure("power_w"),
            other => row.figure(other.name()),
        }
        .filter(|measured| measured.value.is_finite() && measured.value > 0.0)
    }
}
