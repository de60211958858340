//! What every engine answers.
//!
//! * [`metric`] – the registry that names each figure
//! * [`breakdown`] – where time and memory go, in parts that sum
//! * [`standing`] – which is best, as far as intervals tell
//! * [`detail`] – what only an engine that reasons from hardware can say
//! * `limits` – what the time is spent waiting for
//! * `verdict` – whether a scenario can run, and why not

pub mod breakdown;
pub mod detail;
pub mod digits;
mod limits;
pub mod metric;
pub mod scale;
pub mod standing;
mod verdict;

pub use breakdown::Breakdown;
pub use detail::{
    Adjustments, Detail, Interval, MemoryUse, NodePower, Serving, Simulated, SimulatedServing, SimulatedTraining,
    Training,
};
pub use limits::{Cause, Limits};
pub use metric::{Applies, Better, COMPARED, FIGURES, Format, LEAST, METRICS, Metric, MetricId, Section};
pub use scale::Scale;
pub use verdict::Verdict;

/// The answer to a scenario.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Estimate {
    /// The aggregate over the schedule's phases, or the single answer without a schedule.
    pub total: Figures,
    /// Per phase; empty without a schedule.
    pub phases: Vec<Figures>,
    /// Minutes of all phases.
    pub total_minutes: f64,
    /// Latency of the service alone, weighted over phases that were queued; zero without a schedule.
    pub service: Latency,
    /// Means over the phases of what queueing adds.
    pub queue: Queue,
    /// Cost of all nodes.
    pub cost: Cost,
    /// What an engine that reasons from hardware adds.
    pub detail: Option<Detail>,
}

impl Estimate {
    /// How many times the target's accelerators the layout requests; 1 if there are enough. Figures of a layout that
    /// requests more are those it would have if there were; shares and prices of one accelerator count what is requested.
    #[must_use]
    pub fn shortfall(&self) -> f64 {
        match self.detail.as_ref().map(|detail| &detail.verdict) {
            Some(Verdict::Accelerators { needs, has }) => (needs / has.max(1.0)).max(1.0),
            _ => 1.0,
        }
    }
}

impl Estimate {
    /// Whether the scenario can run, as far as the engine knows: an overloaded one does, ever later.
    #[must_use]
    pub fn runs(&self) -> bool {
        let runs = |verdict: Verdict| verdict.fits() || matches!(verdict, Verdict::Overload { .. });
        self.detail.as_ref().is_none_or(|detail| runs(detail.verdict))
    }

    /// Whether the figures mean anything: not of training in a format that the device cannot multiply. Servers unpack such
    /// weights, and what lacks kernels, memory or a layout has the figures that it would have, beside the verdict.
    #[must_use]
    pub fn has_figures(&self) -> bool {
        let refused = |detail: &Detail| detail.training.is_some() && matches!(detail.verdict, Verdict::Format { .. });
        self.detail.as_ref().is_none_or(|detail| !refused(detail))
    }

    /// Whether every figure that records hold is a finite number.
    ///
    /// # Errors
    /// The names of those that are not.
    pub fn finite(&self) -> Result<(), String> {
        let total = &self.total;
        let figures = [
            (MetricId::TokensPerSec, total.tokens_per_sec),
            (MetricId::FlopUtilization, total.flop_utilization),
            (MetricId::HbmBwUtil, total.hbm_bw_util),
            (MetricId::CommComputeRatio, total.comm_compute_ratio),
            (MetricId::StepTimeMs, total.step_time_ms),
            (MetricId::P99Ms, total.latency.p99),
            (MetricId::TtftMs, total.latency.ttft),
            (MetricId::NodePowerW, total.node_power_w),
            (MetricId::DollarPer1kTokens, self.cost.usd_per_1k_tokens_parity),
        ];
        // If more arrives than can be served, waiting has no bound; the verdict says so, or what else keeps it from running.
        let bounded = self.detail.is_none_or(|detail| detail.verdict.fits());
        let endless = |id: &MetricId| !bounded && matches!(id, MetricId::P99Ms | MetricId::TtftMs);
        let bad = figures.iter().filter(|(id, value)| !value.is_finite() && !endless(id));
        let bad: Vec<&str> = bad.map(|(id, _)| id.metric().name).collect();
        if bad.is_empty() {
            return Ok(());
        }
        Err(format!("no finite number for {}; a value in the files is out of range", bad.join(", ")))
    }
}

/// Figures of a phase or of the whole.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Figures {
    /// Tokens per second of all accelerators; generated tokens in inference.
    pub tokens_per_sec: f64,
    /// Share of peak FLOP/s that does useful work.
    pub flop_utilization: f64,
    /// Share of peak memory bandwidth in use.
    pub hbm_bw_util: f64,
    /// Share of the time that goes into communication.
    pub comm_compute_ratio: f64,
    /// Time of one optimizer step, ms; 0 in inference.
    pub step_time_ms: f64,
    /// Latency of a request; 0 in training.
    pub latency: Latency,
    /// Peak memory of an accelerator, GB; clipped at what it has.
    pub peak_mem_gb: f64,
    /// Power of one node, W.
    pub node_power_w: f64,
    /// Steps that had to be repeated.
    pub retries: u32,
    /// Runs that failed; the model never predicts one.
    pub failures: u32,
    /// Weight of the phase, minutes.
    pub minutes: f64,
    /// Queueing, where the phase serves requests.
    pub queue: Option<Queue>,
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

/// What waiting in line adds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Queue {
    /// Arrivals, requests/s.
    pub arrival_rate: f64,
    /// Parallel servers.
    pub servers: f64,
    /// Mean service time, ms.
    pub service_mean_ms: f64,
    /// Coefficient of variation of the service time.
    pub service_cv: f64,
    /// Coefficient of variation of the arrivals.
    pub arrival_cv: f64,
    /// Share of the servers' time in use.
    pub utilization: f64,
    /// Service and waiting together.
    pub latency: Latency,
    /// Waiting alone.
    pub wait: Latency,
    /// Waiting over the whole, at p99.
    pub waiting_fraction_p99: f64,
}

/// Cost, USD.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Rental and energy of all nodes, USD/h.
    pub usd_per_hour: f64,
    /// Of which energy, USD/h.
    pub energy_usd_per_hour: f64,
    /// Rental and energy of all nodes per 1000 tokens.
    pub usd_per_1k_tokens: f64,
    /// The predecessor system's figure: an hour of ONE node over the tokens of ALL nodes. Equal to
    /// `usd_per_1k_tokens` for one node, too low by the number of nodes otherwise; kept for comparison with old records.
    pub usd_per_1k_tokens_parity: f64,
}
