//! What an engine that reasons from hardware adds to the figures: where time and memory go, what bounds the scenario,
//! whether it fits, how far the figures can be trusted.

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::breakdown::Breakdown;
use atlas_core::plan::Recompute;
use atlas_core::units::MEMORY_GB;

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
    /// Figures of training.
    pub training: Option<Training>,
    /// Figures of serving.
    pub serving: Option<Serving>,
    /// What a simulation adds; of engines that simulate only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
}

/// What a simulation knows of itself, and of what no closed form sees.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Simulated {
    /// Seed of the first run; the others count up from it.
    pub seed: u64,
    /// Independent runs that were made. One where nothing is drawn, since all would be alike.
    pub replications: u32,
    /// Half the width of the 90 % confidence interval of the throughput's mean over the runs, as a share of it; 0 where
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
    /// Data-parallel replicas that stood for all: those that are alike do the same at the same time.
    pub replicas: u32,
    /// Share of the time that the stages compute.
    pub busy: f64,
    /// Share of a step that slow nodes and jitter cost.
    pub stragglers: f64,
    /// Share of the wall time that is work that counts: without lost work, restarts and checkpoints.
    pub goodput: f64,
    /// Failures per day of the whole job.
    pub failures_per_day: f64,
    /// Work between two checkpoints, s; 0 where none is taken.
    pub checkpoint_interval_s: f64,
    /// For which a checkpoint stops the work, s.
    pub checkpoint_s: f64,
    /// From a failure until work goes on, s.
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
    /// Sequences preempted for want of KV blocks, per request.
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
        let wider = |factor: f64, chance: f64| factor.max(1e-9).ln().hypot(chance);
        Interval {
            low: (-wider(self.low, (-chance.min(0.99)).ln_1p())).exp(),
            high: wider(self.high, chance.ln_1p()).exp(),
        }
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

    /// Bytes by which the upper bound exceeds the device; 0 where it fits.
    #[must_use]
    pub fn excess(&self) -> f64 {
        (self.upper - self.capacity).max(0.0)
    }
}

/// Whether a scenario can run.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Verdict {
    /// It can.
    #[default]
    Fits,
    /// The upper bound of memory exceeds the device.
    Memory {
        /// Bytes needed on one device.
        needs: f64,
        /// Bytes it has.
        has: f64,
    },
    /// tp × pp × cp × dp asks for more devices than the target has.
    Accelerators {
        /// Devices asked for.
        needs: f64,
        /// Devices there are.
        has: f64,
    },
    /// A number does not divide another as it must.
    Indivisible {
        /// What must be divided: heads, layers, experts, the batch.
        what: &'static str,
        /// How many there are.
        of: f64,
        /// By how many.
        by: f64,
    },
    /// The layers do not fill the chunks of the pipeline's stages.
    Stages {
        /// Layers of the model.
        layers: f64,
        /// Of which those on the first and last stage are stated to be; `None` where neither is.
        stated: Option<f64>,
        /// Chunks of all stages: pp × vpp.
        chunks: f64,
    },
    /// The accelerator does not multiply in this format.
    Format {
        /// The format.
        format: &'static str,
        /// A format that it multiplies in; empty if there is none.
        instead: &'static str,
    },
    /// The software has no kernels for weights of this format on this accelerator.
    SoftwareFormat {
        /// The format.
        format: &'static str,
        /// A format that the accelerator multiplies in; empty if there is none.
        instead: &'static str,
    },
    /// Sequences are longer than the model has positions.
    Context {
        /// Tokens of a sequence, prompt and output together.
        asked: f64,
        /// Positions of the model.
        most: f64,
    },
    /// The pool that prefills holds no whole replica, or leaves none to decode.
    PrefillPool {
        /// Accelerators asked for.
        asked: f64,
        /// Accelerators of a replica.
        replica: f64,
        /// Replicas in all.
        replicas: f64,
    },
    /// More requests arrive than the deployment can serve.
    Overload {
        /// Requests per second that arrive.
        offered: f64,
        /// Requests per second that can be served.
        capacity: f64,
    },
}

impl Verdict {
    /// Whether it can run.
    #[must_use]
    pub fn fits(&self) -> bool {
        matches!(self, Verdict::Fits)
    }

    /// In words, without advice.
    #[must_use]
    pub fn describe(&self) -> String {
        match *self {
            Verdict::Fits => "fits".to_owned(),
            Verdict::Memory { needs, has } => {
                let (needs, has) = (needs / MEMORY_GB, has / MEMORY_GB);
                let over = needs - has;
                format!("does not fit: needs {needs:.1} GB of {has:.1} GB on a device, {over:.1} GB too much")
            }
            Verdict::Accelerators { needs, has } => {
                format!("tp × pp × cp × dp asks for {needs} accelerators; the target has {has}")
            }
            Verdict::Indivisible { what, of, by } => format!("{of} {what} cannot be divided by {by}"),
            Verdict::Stages { layers, stated: None, chunks } => format!(
                "{layers} layers do not fill {chunks} chunks (pp × vpp): at most {} where both end chunks have none",
                layers + 2.0
            ),
            Verdict::Stages { layers, stated: Some(stated), chunks } => format!(
                "{layers} layers, {stated} of them on the stated first and last stages, do not divide evenly over \
                 {chunks} chunks (pp × vpp)"
            ),
            Verdict::Format { format, instead: "" } => format!("the accelerator does not compute in {format}"),
            Verdict::Format { format, instead } => {
                format!("the accelerator does not compute in {format}; it does in {instead}")
            }
            Verdict::SoftwareFormat { format, instead: "" } => {
                format!("the software has no kernels for {format} on this accelerator")
            }
            Verdict::SoftwareFormat { format, instead } => {
                format!("the software has no kernels for {format} on this accelerator; {instead} runs")
            }
            Verdict::Context { asked, most } => {
                format!("sequences of {asked} tokens are longer than the model's {most} positions")
            }
            Verdict::PrefillPool { asked, replica, replicas } => format!(
                "prefill_accelerators {asked} cannot be: a replica takes {replica} of them, and of {replicas} replicas at \
                 least one must prefill and one decode"
            ),
            Verdict::Overload { offered, capacity } => {
                format!(
                    "{offered:.3} requests/s arrive; at most {capacity:.3} can be served, so the queue grows for ever"
                )
            }
        }
    }
}

/// What time is spent waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Matrix units.
    Compute,
    /// Device memory.
    MemoryBandwidth,
    /// The fabric inside a node or rack.
    IntraNode,
    /// The network between nodes.
    InterNode,
    /// Idle pipeline stages.
    PipelineBubble,
    /// Kernel launches and the host.
    Launch,
    /// The slowest rank.
    Stragglers,
}

impl Cause {
    /// All causes.
    pub const ALL: [Cause; 7] = [
        Cause::Compute,
        Cause::MemoryBandwidth,
        Cause::IntraNode,
        Cause::InterNode,
        Cause::PipelineBubble,
        Cause::Launch,
        Cause::Stragglers,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Compute => "compute",
            Cause::MemoryBandwidth => "memory bandwidth",
            Cause::IntraNode => "intra-node links",
            Cause::InterNode => "inter-node network",
            Cause::PipelineBubble => "pipeline bubble",
            Cause::Launch => "launch overhead",
            Cause::Stragglers => "stragglers",
        }
    }
}

/// Shares of the time by cause; they sum to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    shares: [f64; Cause::ALL.len()],
    /// Memory capacity caps the batch: more requests wait than the KV cache can hold.
    pub memory_capacity: bool,
    /// The offered load, not the hardware, sets the throughput.
    pub load: bool,
}

impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("first", self.first().name())?;
        map.serialize_entry("margin", &self.margin())?;
        map.serialize_entry("memory_capacity", &self.memory_capacity)?;
        map.serialize_entry("load", &self.load)?;
        for cause in Cause::ALL {
            map.serialize_entry(cause.name(), &self.share(cause))?;
        }
        map.end()
    }
}

impl Limits {
    /// From seconds by cause.
    #[must_use]
    pub fn of(seconds: [(Cause, f64); Cause::ALL.len()]) -> Limits {
        let total: f64 = seconds.iter().map(|(_, s)| s).sum();
        let mut limits = Limits::default();
        for &(cause, s) in &seconds {
            if let Some(share) = limits.shares.get_mut(cause as usize) {
                *share = if total > 0.0 { s / total } else { 0.0 };
            }
        }
        limits
    }

    /// A cause's share of the time.
    #[must_use]
    pub fn share(&self, cause: Cause) -> f64 {
        self.shares.get(cause as usize).copied().unwrap_or_default()
    }

    /// Causes and shares, the largest first.
    #[must_use]
    pub fn ranked(&self) -> [(Cause, f64); Cause::ALL.len()] {
        let mut ranked = Cause::ALL.map(|cause| (cause, self.share(cause)));
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
        ranked
    }

    /// What bounds the scenario.
    #[must_use]
    pub fn first(&self) -> Cause {
        self.ranked()[0].0
    }

    /// By how much the largest share would have to shrink, of itself, before the next is as large.
    #[must_use]
    pub fn margin(&self) -> f64 {
        let [(_, first), (_, second), ..] = self.ranked();
        if first > 0.0 { 1.0 - second / first } else { 0.0 }
    }

    /// In words: `bound by compute 71 %, then memory bandwidth 27 %`.
    #[must_use]
    pub fn describe(&self) -> String {
        let [(first, share), (second, next), ..] = self.ranked();
        let capacity = if self.memory_capacity { "memory capacity caps the batch; " } else { "" };
        let load = if self.load { "the offered load sets the pace; " } else { "" };
        format!(
            "{capacity}{load}bound by {} {:.0} %, then {} {:.0} %",
            first.name(),
            100.0 * share,
            second.name(),
            100.0 * next
        )
    }
}

/// Figures of training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Training {
    /// Model FLOPs utilisation, PaLM convention (arXiv 2204.02311, appendix B): attention counted in full.
    pub mfu: f64,
    /// The same with causal attention counted once, as Megatron-Core does since 2025.
    pub mfu_causal: f64,
    /// Hardware FLOPs utilisation: recomputation counted (arXiv 2205.05198, section 6).
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
