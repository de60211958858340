//! Estimates, the common output of all engines.
//!
//! * [`metric`] – registry of metrics
//! * [`breakdown`] – time and memory in parts that sum to the total
//! * [`standing`] – ranking of targets, taking confidence intervals into account
//! * [`detail`] – results that only engines that model the hardware provide
//! * `limits` – bottlenecks
//! * `verdict` – whether a scenario can run, and if not, why

pub mod breakdown;
pub mod detail;
pub mod digits;
mod limits;
pub mod metric;
pub mod scale;
pub mod standing;
mod verdict;

pub use atlas_perf::parts::{FirstTokenPart, MemoryPart, TimePart};
pub use breakdown::{Breakdown, Part};
pub use detail::{
    Adjustments, Detail, Interval, MemoryUse, NodePower, Serving, Simulated, SimulatedServing, SimulatedTraining,
    Training,
};
pub use limits::{Cause, Limits};
pub use metric::{
    Applicability, COMPARED, Direction, Format, METRICS, MIN_RELATIVE_CHANGE, Metric, MetricId, SEARCH_METRICS, Section,
};
pub use scale::Scale;
pub use verdict::Verdict;

/// Estimate of a scenario.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimate {
    /// Aggregate over the phases of the schedule, or the single result without a schedule.
    pub total: Metrics,
    /// Results per phase; empty without a schedule.
    pub phases: Vec<Metrics>,
    /// Total minutes of all phases.
    pub total_minutes: f64,
    /// Latency without queueing, averaged over the phases; `None` unless a schedule serves requests.
    pub service: Option<Latency>,
    /// Queueing metrics, averaged over the phases; `None` unless a schedule serves requests.
    pub queue: Option<Queue>,
    /// Cost of all nodes.
    pub cost: Cost,
    /// Results of an engine that models the hardware.
    pub detail: Option<Detail>,
}

impl Estimate {
    /// Ratio of accelerators requested by the layout to those of the target, if greater than 1; otherwise 1. Metrics of
    /// a layout that requests too many are computed as if they existed; utilization and cost per accelerator count the
    /// requested number.
    #[must_use]
    pub fn shortfall(&self) -> f64 {
        match self.detail.as_ref().map(|detail| &detail.verdict) {
            Some(Verdict::Accelerators { needs, has }) => (needs / has.max(1.0)).max(1.0),
            _ => 1.0,
        }
    }
}

impl Estimate {
    /// Whether the scenario can run, as far as the engine can tell. An overloaded deployment counts as running.
    #[must_use]
    pub fn runs(&self) -> bool {
        let runs = |verdict: Verdict| verdict.fits() || matches!(verdict, Verdict::Overload { .. });
        self.detail.as_ref().is_none_or(|detail| runs(detail.verdict))
    }

    /// Whether the metrics are meaningful. They are not for training in a format that the device cannot multiply.
    /// Servers unpack such weights. A scenario that lacks kernels, memory or a valid layout still has hypothetical
    /// metrics, next to the verdict.
    #[must_use]
    pub fn has_metrics(&self) -> bool {
        let refused = |detail: &Detail| detail.training.is_some() && matches!(detail.verdict, Verdict::Format { .. });
        self.detail.as_ref().is_none_or(|detail| !refused(detail))
    }

    /// Checks that every metric in records is finite.
    ///
    /// # Errors
    ///
    /// A message with the names of those that are not.
    pub fn finite(&self) -> Result<(), String> {
        let total = &self.total;
        let metrics = [
            (MetricId::TokensPerSec, Some(total.tokens_per_sec)),
            (MetricId::FlopUtilization, Some(total.flop_utilization)),
            (MetricId::HbmBwUtil, Some(total.hbm_bw_util)),
            (MetricId::CommComputeRatio, Some(total.comm_compute_ratio)),
            (MetricId::StepTimeMs, total.step_time_ms),
            (MetricId::P99Ms, total.latency.map(|latency| latency.p99)),
            (MetricId::TtftMs, total.latency.map(|latency| latency.ttft)),
            (MetricId::NodePowerW, Some(total.node_power_w)),
            (MetricId::DollarPer1kTokens, Some(self.cost.usd_per_1k_tokens_parity)),
        ];
        // In an overload the waiting time is unbounded. The verdict reports that, or any other reason why the scenario
        // cannot run.
        let bounded = self.detail.is_none_or(|detail| detail.verdict.fits());
        let endless = |id: &MetricId| !bounded && matches!(id, MetricId::P99Ms | MetricId::TtftMs);
        let bad = metrics.iter().filter(|(id, value)| value.is_some_and(|value| !value.is_finite()) && !endless(id));
        let bad: Vec<&str> = bad.map(|(id, _)| id.metric().name).collect();
        if bad.is_empty() {
            return Ok(());
        }
        Err(format!("no finite number for {}; a value in the files is out of range", bad.join(", ")))
    }
}

/// Metrics of a phase or of the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Metrics {
    /// Tokens per second of all accelerators; output tokens in inference.
    pub tokens_per_sec: f64,
    /// Share of peak FLOP/s spent on useful work.
    pub flop_utilization: f64,
    /// Share of peak memory bandwidth in use.
    pub hbm_bw_util: f64,
    /// Share of the time spent on communication.
    pub comm_compute_ratio: f64,
    /// Time of one optimizer step, ms; `None` in inference.
    pub step_time_ms: Option<f64>,
    /// Latency of a request, of a phase without its queueing; `None` in training.
    pub latency: Option<Latency>,
    /// Peak memory of an accelerator, GB; clipped to its capacity by the semi-empirical engine.
    pub peak_mem_gb: f64,
    /// Power of one node, W.
    pub node_power_w: f64,
    /// Number of repeated steps.
    pub retries: u32,
    /// Number of failed runs; the model never predicts any.
    pub failures: u32,
    /// Weight of the phase, minutes.
    pub minutes: f64,
    /// Queueing metrics, if the phase serves requests.
    pub queue: Option<Queue>,
}

impl Metrics {
    /// Latency of a request including queueing.
    #[must_use]
    pub fn queued_latency(&self) -> Option<Latency> {
        self.queue.as_ref().map(|queue| queue.latency).or(self.latency)
    }
}

/// Percentiles of a latency, ms.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Time to first token.
    pub ttft: f64,
}

/// Queueing metrics.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Queue {
    /// Arrival rate, requests/s.
    pub arrival_rate: f64,
    /// Number of parallel servers.
    pub servers: f64,
    /// Mean service time, ms.
    pub service_mean_ms: f64,
    /// Coefficient of variation of the service time.
    pub service_cv: f64,
    /// Coefficient of variation of the arrivals.
    pub arrival_cv: f64,
    /// Utilization of the servers.
    pub utilization: f64,
    /// Latency including queueing.
    pub latency: Latency,
    /// Waiting time alone.
    pub wait: Latency,
    /// Waiting time as a share of latency, at p99.
    pub waiting_fraction_p99: f64,
}

/// Cost, USD.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Rent and energy of all nodes, USD/h.
    pub usd_per_hour: f64,
    /// Energy part of `usd_per_hour`.
    pub energy_usd_per_hour: f64,
    /// Rent and energy of all nodes per 1000 tokens.
    pub usd_per_1k_tokens: f64,
    /// Cost per 1000 tokens as computed by the predecessor system: an hour of ONE node over the tokens of ALL nodes.
    /// Equal to `usd_per_1k_tokens` for one node, otherwise too low by a factor of the number of nodes. Kept for
    /// comparison with old records.
    pub usd_per_1k_tokens_parity: f64,
}
