//! Metrics of a simulated run.

use atlas_sim::kernel::Interval;

use super::interval;

/// Unit of a [`SimulationMetric`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Milliseconds.
    Milliseconds,
    /// Tokens per second.
    TokensPerSecond,
    /// Events per second.
    PerSecond,
    /// Share between 0 and 1 that is displayed in percent.
    Share,
    /// Number without a unit.
    Number,
}

impl Unit {
    /// Name in data; empty if the metric has none.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Unit::Milliseconds => "ms",
            Unit::TokensPerSecond => "tok/s",
            Unit::PerSecond => "1/s",
            Unit::Share | Unit::Number => "",
        }
    }
}

/// Metric of a simulated run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "`row` has a label for each")]
pub enum SimulationMetric {
    StepTime,
    StepTimeP99,
    TokensPerSec,
    TokensPerSecPerAccelerator,
    StagesBusy,
    SteadyTokensPerSec,
    TotalTokensPerSec,
    RequestsPerSec,
    TtftP50,
    TtftP90,
    TtftP99,
    TpotP50,
    TpotP90,
    TpotP99,
    ItlP99,
    E2eP50,
    E2eP90,
    E2eP99,
    Waiting,
    Running,
    ReplicasBusy,
    KvBlocks,
    PrefixHit,
    Replicas,
    MaxReplicas,
    Goodput,
    GoodShare,
}

impl SimulationMetric {
    /// Name in data, label in the user interface, and unit.
    const fn row(self) -> (&'static str, &'static str, Unit) {
        use SimulationMetric as M;
        use Unit::{Milliseconds, Number, PerSecond, Share, TokensPerSecond};
        match self {
            M::StepTime => ("step_time_ms", "step time", Milliseconds),
            M::StepTimeP99 => ("step_time_p99_ms", "step time p99", Milliseconds),
            M::TokensPerSec => ("tokens_per_sec", "tokens/s", TokensPerSecond),
            M::TokensPerSecPerAccelerator => ("tokens_per_sec_per_accel", "tokens/s per accelerator", TokensPerSecond),
            M::StagesBusy => ("busy", "stages computing", Share),
            M::SteadyTokensPerSec => ("steady_tokens_per_sec", "while requests arrive", TokensPerSecond),
            M::TotalTokensPerSec => ("total_tokens_per_sec", "with prompts", TokensPerSecond),
            M::RequestsPerSec => ("requests_per_sec", "requests/s", PerSecond),
            M::TtftP50 => ("ttft_p50_ms", "TTFT p50", Milliseconds),
            M::TtftP90 => ("ttft_p90_ms", "TTFT p90", Milliseconds),
            M::TtftP99 => ("ttft_p99_ms", "TTFT p99", Milliseconds),
            M::TpotP50 => ("tpot_p50_ms", "TPOT p50", Milliseconds),
            M::TpotP90 => ("tpot_p90_ms", "TPOT p90", Milliseconds),
            M::TpotP99 => ("tpot_p99_ms", "TPOT p99", Milliseconds),
            M::ItlP99 => ("itl_p99_ms", "ITL p99", Milliseconds),
            M::E2eP50 => ("e2e_p50_ms", "E2E p50", Milliseconds),
            M::E2eP90 => ("e2e_p90_ms", "E2E p90", Milliseconds),
            M::E2eP99 => ("e2e_p99_ms", "E2E p99", Milliseconds),
            M::Waiting => ("waiting", "requests waiting", Number),
            M::Running => ("running", "requests running", Number),
            M::ReplicasBusy => ("busy", "replicas stepping", Share),
            M::KvBlocks => ("kv", "KV blocks in use", Share),
            M::PrefixHit => ("prefix_hit", "prompt tokens cached", Number),
            M::Replicas => ("replicas", "replicas", Number),
            M::MaxReplicas => ("max_replicas", "most replicas", Number),
            M::Goodput => ("goodput", "goodput", PerSecond),
            M::GoodShare => ("good_share", "requests within limits", Share),
        }
    }

    /// Name in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// Label in the user interface.
    #[must_use]
    pub const fn label(self) -> &'static str {
        self.row().1
    }

    /// Unit.
    #[must_use]
    pub const fn unit(self) -> Unit {
        self.row().2
    }
}

/// Metric with its values in all runs.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricRuns {
    /// The metric.
    pub metric: SimulationMetric,
    /// Values by run, in the order of the seeds.
    pub runs: Vec<f64>,
}

impl MetricRuns {
    /// Mean over the runs and half-width of its confidence interval.
    #[must_use]
    pub fn interval(&self) -> Interval {
        interval(self.runs.iter().copied())
    }
}
