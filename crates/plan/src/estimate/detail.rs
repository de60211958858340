//! Additional results of engines that model the hardware: breakdowns of time and memory, confidence intervals, metrics
//! of training and serving.

use atlas_core::math;
use atlas_perf::parts::{FirstTokenPart, MemoryPart, TimePart};
use serde::{Serialize, Serializer};

use super::breakdown::Breakdown;
use super::limits::Limits;
use super::verdict::Verdict;
pub use atlas_config::corrections::Adjustments;
use atlas_core::plan::Recompute;
use atlas_perf::serving::latency::Spread;

pub use atlas_core::plan_spec::HEADROOM;

/// Results of an engine that models the hardware, beyond [`super::Metrics`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Detail {
    /// Breakdown of the time, s: of an optimizer step, or of one output token on a replica.
    pub time: Breakdown<TimePart>,
    /// Memory use of the fullest device.
    pub memory: MemoryUse,
    /// Bottlenecks, as shares of the time.
    pub limits: Limits,
    /// Whether the scenario can run.
    pub verdict: Verdict,
    /// Factors on the throughput that span 90 % of measurements.
    pub throughput_interval: Interval,
    /// Power of a node; `None` for engines that use its nominal power.
    #[serde(skip_serializing)]
    pub power: Option<NodePower>,
    /// Metrics of training.
    pub training: Option<Training>,
    /// Metrics of serving.
    pub serving: Option<Serving>,
    /// Results of a simulation; only of engines that simulate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// Corrections by measurements of the same cluster that are included in the estimate.
    #[serde(skip_serializing)]
    pub adjustments: Option<Adjustments>,
}

/// Statistics of a simulation, and metrics that only a simulation yields.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Simulated {
    /// Seed of the first run; the seeds of further runs count up from it.
    pub seed: u64,
    /// Number of independent runs; 1 if nothing is random.
    pub replications: u32,
    /// Half-width of the 90 % confidence interval of the mean throughput over the runs, relative to the mean; 0 if
    /// nothing is random. `None` for a single run with random variation, whose spread is unknown.
    pub half_width: Option<f64>,
    /// Number of events of all runs.
    pub events: u64,
    /// Results of training.
    pub training: Option<SimulatedTraining>,
    /// Results of serving.
    pub serving: Option<SimulatedServing>,
}

/// Results of a simulation of training. Shares are of wall-clock time unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SimulatedTraining {
    /// Number of steps of one run.
    pub steps: u32,
    /// Number of simulated data-parallel replicas; they represent all replicas, which behave identically.
    pub replicas: u32,
    /// Share of the time that the stages compute.
    pub busy: f64,
    /// Share of a step lost to slow nodes and jitter.
    pub stragglers: f64,
    /// Share of wall-clock time spent on useful work, excluding lost work, restarts and checkpoints.
    pub goodput: f64,
    /// Failures per day of the whole job.
    pub failures_per_day: f64,
    /// Working time between two checkpoints, s. `None`: no checkpoints are taken.
    pub checkpoint_interval_s: Option<f64>,
    /// Time for which a checkpoint blocks the work, s.
    pub checkpoint_s: f64,
    /// Time from a failure until work continues, s.
    pub restart_s: f64,
    /// Mean time of a step without failures and checkpoints, s.
    pub step_s: f64,
}

/// Results of a simulation of serving: means over the runs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SimulatedServing {
    /// Requests counted per run.
    pub requests: f64,
    /// Arrival rate, requests/s.
    pub arrival_rate: f64,
    /// Share of requests that met all latency limits.
    pub good_share: f64,
    /// Requests per second that met all latency limits.
    pub goodput: f64,
    /// Mean number of requests waiting for a batch slot, all replicas.
    pub waiting: f64,
    /// Largest number of requests waiting at the same time.
    pub most_waiting: f64,
    /// Mean share of KV cache blocks in use.
    pub kv: f64,
    /// Largest share of KV cache blocks in use.
    pub most_kv: f64,
    /// Preemptions per request, for lack of KV cache blocks.
    pub preemptions: f64,
    /// Share of requests that do not fit on any replica.
    pub rejected: f64,
    /// Share of the time in which replicas execute steps.
    pub busy: f64,
}

/// Confidence interval of a metric, as factors on its value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower factor, at most 1.
    pub low: f64,
    /// Upper factor, at least 1.
    pub high: f64,
}

impl Interval {
    /// Ends of the interval around `figure`.
    #[must_use]
    pub fn around(self, figure: f64) -> (f64, f64) {
        (self.low * figure, self.high * figure)
    }

    /// Larger of the two half-widths of the interval's logarithm.
    #[must_use]
    pub fn half(self) -> f64 {
        math::ln(self.high).max(-math::ln(self.low))
    }

    /// Interval of the reciprocal of the metric, such as the time for a given amount of work.
    #[must_use]
    pub fn inverse(self) -> Interval {
        Interval { low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

impl Interval {
    /// Returns the interval widened by the statistical error of a simulation's mean. The two errors are independent
    /// factors, so their logarithms add in quadrature.
    #[must_use]
    pub fn widened(self, simulated: Option<&Simulated>) -> Interval {
        let Some(chance) = simulated.and_then(|simulated| simulated.half_width).filter(|share| *share > 0.0) else {
            return self;
        };
        let wider = |factor: f64, chance: f64| math::hypot(math::ln(factor.max(1e-9)), chance);
        Interval {
            low: math::exp(-wider(self.low, math::ln_1p(-chance.min(0.99)))),
            high: math::exp(wider(self.high, math::ln_1p(chance))),
        }
    }
}

/// Power of a node by consumer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NodePower {
    /// Power of the accelerators, W.
    pub accelerators: f64,
    /// Power of hosts, NICs, switches and fans, W.
    pub around: f64,
}

impl NodePower {
    /// Power of the whole node, W.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.accelerators + self.around
    }
}

/// Memory use of the fullest device, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MemoryUse {
    /// Point estimate, by purpose.
    pub parts: Breakdown<MemoryPart>,
    /// Upper bound of the total; it decides whether the scenario fits.
    pub upper: f64,
    /// Capacity of the device.
    pub capacity: f64,
}

impl MemoryUse {
    /// Point estimate of the total, bytes.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.parts.total()
    }

    /// Share of the memory that stays free according to the upper bound; negative if the scenario does not fit.
    #[must_use]
    pub fn free(&self) -> f64 {
        1.0 - self.upper / self.capacity.max(1.0)
    }

    /// Whether less memory stays free than the default headroom of a search.
    #[must_use]
    pub fn is_tight(&self) -> bool {
        self.free() < HEADROOM
    }

    /// Bytes by which the upper bound exceeds the capacity; 0 if it fits.
    #[must_use]
    pub fn excess(&self) -> f64 {
        (self.upper - self.capacity).max(0.0)
    }
}

/// Metrics of training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Training {
    /// Model FLOPs utilization, PaLM convention (arXiv 2204.02311, appendix B): attention counted in full.
    pub mfu: f64,
    /// MFU with causal attention counted once, as in Megatron-Core since 2025.
    pub mfu_causal: f64,
    /// Hardware FLOPs utilization: includes recomputation (arXiv 2205.05198, section 6).
    pub hfu: f64,
    /// Activation recomputation in effect; the selected one if the plan says `auto`.
    pub recompute: Recompute,
    /// Share of the layers that are fully recomputed.
    pub full_recompute_share: f64,
    /// Micro-batches that each pipeline processes per step.
    pub micro_batches: f64,
    /// Tokens per step.
    pub tokens_per_step: f64,
    /// Tokens of the whole training run.
    pub run_tokens: f64,
}

/// Metrics of serving. Times in ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Serving {
    /// Prompt and output tokens per second.
    pub total_tokens_per_sec: f64,
    /// Completed requests per second.
    pub requests_per_sec: f64,
    /// Output tokens per second per user.
    pub tokens_per_sec_per_user: f64,
    /// Time to first token.
    #[serde(serialize_with = "as_list")]
    pub ttft_ms: Spread,
    /// Time per output token after the first (TPOT), averaged over a request.
    #[serde(serialize_with = "as_list")]
    pub tpot_ms: Spread,
    /// Inter-token latency, the gap between two successive tokens of a stream.
    #[serde(serialize_with = "as_list")]
    pub itl_ms: Spread,
    /// End-to-end latency, from request to last token.
    #[serde(serialize_with = "as_list")]
    pub e2e_ms: Spread,
    /// Breakdown of TTFT, ms.
    pub first_token: Breakdown<FirstTokenPart>,
    /// Sequences per batch of a replica.
    pub batch: f64,
    /// Sequences that fit in the KV cache of a replica.
    pub max_concurrency: f64,
    /// Maximum requests per second that can be served.
    pub capacity_requests_per_sec: f64,
    /// Confidence interval of TTFT.
    pub ttft_interval: Interval,
    /// Confidence interval of TPOT.
    pub tpot_interval: Interval,
}

/// Records list the mean and the percentiles without names.
fn as_list<S: Serializer>(spread: &Spread, serializer: S) -> Result<S::Ok, S::Error> {
    [spread.mean, spread.p50, spread.p95, spread.p99].serialize(serializer)
}
