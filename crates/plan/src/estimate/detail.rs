//! What engines that model the hardware add to the figures: breakdowns of time and memory, intervals, figures of training and
//! serving.

use atlas_core::math;
use serde::Serialize;

use super::breakdown::Breakdown;
use super::limits::Limits;
use super::verdict::Verdict;
use atlas_config::corrections::Adjustment;
use atlas_core::plan::Recompute;

pub use atlas_core::plan_spec::HEADROOM;

/// Everything that the analytical engine knows beyond [`super::Figures`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Detail {
    /// Where the time goes, s: of an optimizer step, or of one output token on a replica.
    pub time: Breakdown,
    /// What the fullest device holds.
    pub memory: MemoryUse,
    /// What bounds it, as shares of the time.
    pub limits: Limits,
    /// Whether it can run at all.
    pub verdict: Verdict,
    /// Factors on the throughput within which nine measurements of ten lie.
    pub throughput_interval: Interval,
    /// What a node draws; `None` for engines that take its nominal power.
    #[serde(skip_serializing)]
    pub power: Option<NodePower>,
    /// Figures of training.
    pub training: Option<Training>,
    /// Figures of serving.
    pub serving: Option<Serving>,
    /// What a simulation adds; of engines that simulate only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
    /// Corrections by runs of the same cluster that the figures contain.
    #[serde(skip_serializing)]
    pub adjustments: Option<Adjustments>,
}

/// Corrections that an answer contains.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adjustments {
    /// Of the throughput.
    pub throughput: Option<Adjustment>,
    /// Of the time per output token.
    pub tpot: Option<Adjustment>,
    /// Of the time to first token.
    pub ttft: Option<Adjustment>,
}

/// Statistics of a simulation, and figures that only a simulation has.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Simulated {
    /// Seed of the first run; the others count up from it.
    pub seed: u64,
    /// Independent runs. One if nothing is random, since all runs would be equal.
    pub replications: u32,
    /// Half the width of the 90 % confidence interval of the throughput's mean over the runs, as a share of it; 0 if
    /// nothing is drawn. `None` for a single run of what is drawn, whose spread is not known.
    pub half_width: Option<f64>,
    /// Events of all runs.
    pub events: u64,
    /// Of training.
    pub training: Option<SimulatedTraining>,
    /// Of serving.
    pub serving: Option<SimulatedServing>,
}

/// What a simulation of training sees. Shares are of the wall time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SimulatedTraining {
    /// Steps of one run.
    pub steps: u32,
    /// Data-parallel replicas that were simulated and represent the others, which do the same at the same time.
    pub replicas: u32,
    /// Share of the time that the stages compute.
    pub busy: f64,
    /// Share of a step that slow nodes and jitter cost.
    pub stragglers: f64,
    /// Share of the wall time that is work that counts: without lost work, restarts and checkpoints.
    pub goodput: f64,
    /// Failures per day of the whole job.
    pub failures_per_day: f64,
    /// Work between two checkpoints, s; `None`: none are taken.
    pub checkpoint_interval_s: Option<f64>,
    /// For which a checkpoint stops the work, s.
    pub checkpoint_s: f64,
    /// From a failure until work continues, s.
    pub restart_s: f64,
    /// Mean seconds of a step without failures and checkpoints.
    pub step_s: f64,
}

/// What a simulation of serving sees, means over the runs.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct SimulatedServing {
    /// Requests that one run counted.
    pub requests: f64,
    /// Requests that arrived per second.
    pub arrival_rate: f64,
    /// Share of the requests that kept all limits.
    pub good_share: f64,
    /// Requests per second that kept all limits.
    pub goodput: f64,
    /// Requests that waited for a batch, all replicas.
    pub waiting: f64,
    /// Most that waited at once.
    pub most_waiting: f64,
    /// Share of KV blocks in use.
    pub kv: f64,
    /// Largest share of KV blocks in use.
    pub most_kv: f64,
    /// Sequences preempted for lack of KV blocks, per request.
    pub preemptions: f64,
    /// Requests that no replica could ever hold, as a share.
    pub rejected: f64,
    /// Share of the time in which replicas step.
    pub busy: f64,
}

/// Factors on a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower factor, at most 1.
    pub low: f64,
    /// Upper factor, at least 1.
    pub high: f64,
}

impl Interval {
    /// The interval around a figure.
    #[must_use]
    pub fn around(self, figure: f64) -> (f64, f64) {
        (self.low * figure, self.high * figure)
    }

    /// The wider half, on the logarithm.
    #[must_use]
    pub fn half(self) -> f64 {
        math::ln(self.high).max(-math::ln(self.low))
    }

    /// The interval of what falls as this rises: the time of a given work.
    #[must_use]
    pub fn inverse(self) -> Interval {
        Interval { low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

impl Interval {
    /// Wider by what chance adds to a mean over a simulation's runs. Both are factors, and independent: their logarithms
    /// add up as errors do.
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

/// Power of a node by what draws it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NodePower {
    /// Accelerators, W.
    pub accelerators: f64,
    /// Hosts, NICs, switches and fans, W.
    pub around: f64,
}

impl NodePower {
    /// The whole node, W.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.accelerators + self.around
    }
}

/// Bytes on the device that holds most.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MemoryUse {
    /// By purpose: the point estimate.
    pub parts: Breakdown,
    /// Upper bound of the whole, which decides what fits.
    pub upper: f64,
    /// What the device has.
    pub capacity: f64,
}

impl MemoryUse {
    /// The point estimate, bytes.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.parts.total()
    }

    /// Share of the device that stays free, by the upper bound that decides what fits; negative if it does not.
    #[must_use]
    pub fn free(&self) -> f64 {
        1.0 - self.upper / self.capacity.max(1.0)
    }

    /// Whether less stays free than a search leaves by default.
    #[must_use]
    pub fn is_tight(&self) -> bool {
        self.free() < HEADROOM
    }

    /// Bytes by which the upper bound exceeds the device; 0 if it fits.
    #[must_use]
    pub fn excess(&self) -> f64 {
        (self.upper - self.capacity).max(0.0)
    }
}

/// Figures of training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Training {
    /// Model FLOPs utilization, PaLM convention (arXiv 2204.02311, appendix B): attention counted in full.
    pub mfu: f64,
    /// The same with causal attention counted once, as Megatron-Core does since 2025.
    pub mfu_causal: f64,
    /// Hardware FLOPs utilization: recomputation counted (arXiv 2205.05198, section 6).
    pub hfu: f64,
    /// What is recomputed: the choice where the plan says `auto`.
    pub recompute: Recompute,
    /// Share of the layers recomputed in full.
    pub full_recompute_share: f64,
    /// Micro-batches that each pipeline processes in a step.
    pub micro_batches: f64,
    /// Tokens of a step.
    pub tokens_per_step: f64,
    /// Tokens of the whole run.
    pub run_tokens: f64,
}

/// Figures of serving. Times in ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Serving {
    /// Prompt and generated tokens per second.
    pub total_tokens_per_sec: f64,
    /// Requests finished per second.
    pub requests_per_sec: f64,
    /// Generated tokens per second that one user sees.
    pub tokens_per_sec_per_user: f64,
    /// Time to first token: mean, p50, p95, p99.
    pub ttft_ms: [f64; 4],
    /// Time per output token after the first, over a request's whole answer: mean, p50, p95, p99.
    pub tpot_ms: [f64; 4],
    /// Gap between two successive tokens of a stream: mean, p50, p95, p99.
    pub itl_ms: [f64; 4],
    /// Time from request to last token: mean, p50, p95, p99.
    pub e2e_ms: [f64; 4],
    /// What the time to first token is made of, ms.
    pub first_token: Breakdown,
    /// Sequences running side by side on a replica.
    pub batch: f64,
    /// Sequences that a replica's KV memory holds.
    pub max_concurrency: f64,
    /// Requests per second that could be served at most.
    pub capacity_requests_per_sec: f64,
    /// Factors on TTFT.
    pub ttft_interval: Interval,
    /// Factors on TPOT.
    pub tpot_interval: Interval,
}

impl Serving {
    /// Every number of it that can be averaged, put through `change` with its counterpart in `other`. What TTFT is made
    /// of and the intervals stay.
    pub fn combine(&mut self, other: &Serving, change: impl Fn(f64, f64) -> f64) {
        let numbers = |serving: &Serving| {
            [
                serving.total_tokens_per_sec,
                serving.requests_per_sec,
                serving.tokens_per_sec_per_user,
                serving.batch,
                serving.max_concurrency,
                serving.capacity_requests_per_sec,
            ]
        };
        let theirs = numbers(other);
        let own: [&mut f64; 6] = [
            &mut self.total_tokens_per_sec,
            &mut self.requests_per_sec,
            &mut self.tokens_per_sec_per_user,
            &mut self.batch,
            &mut self.max_concurrency,
            &mut self.capacity_requests_per_sec,
        ];
        for (own, theirs) in own.into_iter().zip(theirs) {
            *own = change(*own, theirs);
        }
        let spreads = [
            (&mut self.ttft_ms, &other.ttft_ms),
            (&mut self.tpot_ms, &other.tpot_ms),
            (&mut self.itl_ms, &other.itl_ms),
            (&mut self.e2e_ms, &other.e2e_ms),
        ];
        for (own, theirs) in spreads {
            for (own, theirs) in own.iter_mut().zip(theirs) {
                *own = change(*own, *theirs);
            }
        }
    }

    /// As [`Serving::combine`], without a counterpart.
    #[must_use]
    pub fn map(&self, change: impl Fn(f64) -> f64) -> Serving {
        let mut changed = *self;
        changed.combine(self, |own, _| change(own));
        changed
    }
}
