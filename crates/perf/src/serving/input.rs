//! Input of a serving estimate: plain numbers only.

use crate::accelerator::{Accelerator, Precision};
use crate::arch::Architecture;
use crate::roofline::FusedAttention;
pub use crate::traits::{Admission, AllReduce, GraphCapture, HostOverlap, KernelLibrary, Stack, StepInputs};
use crate::vision::Images;
use atlas_core::count::Count;
use atlas_core::math;

/// Offered load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// One batch of equal requests that start and end together.
    Static {
        /// Sequences side by side.
        batch: f64,
    },
    /// As [`Load::Static`], but only the generation phase is counted.
    DecodeOnly {
        /// Sequences side by side.
        batch: f64,
    },
    /// As [`Load::Static`], but only the prefill is counted.
    PrefillOnly {
        /// Sequences side by side.
        batch: f64,
    },
    /// A constant number of requests in flight; `requests` in all (infinite where unknown).
    Closed {
        /// Requests kept in flight.
        concurrency: f64,
        /// Requests of the whole run; infinite where unknown.
        requests: f64,
    },
    /// `requests` queued at once (infinite: an endless backlog).
    Burst {
        /// Requests that arrive at once; infinite for an endless backlog.
        requests: f64,
    },
    /// Open arrivals, requests per second.
    Open {
        /// Requests per second.
        rate: f64,
    },
}

/// Numeric formats of a deployment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Formats {
    /// Bytes of one weight of the dense layers, scales counted.
    pub dense_bytes: f64,
    /// Bytes of one routed-expert weight.
    pub expert_bytes: f64,
    /// Format in which dense layers multiply.
    pub dense: Precision,
    /// Format in which experts multiply.
    pub expert: Precision,
    /// Dense weights are unpacked to the wider multiplication format inside the GEMM.
    pub dense_unpack: bool,
    /// Experts' weights are unpacked to a wider format before they are multiplied.
    pub expert_unpack: bool,
    /// Kernels that a framework launches for one of a layer's, where quantized products are split (outliers, scales,
    /// layouts; LLM.int8(), arXiv 2208.07339).
    pub product_kernels: f64,
    /// Times that a dense weight's bytes pass the memory in a step: more than once where it is unpacked to a buffer that
    /// the product reads.
    pub unpack_passes: f64,
    /// Bytes of one KV-cache element.
    pub kv_bytes: f64,
}

/// A scheduler that lets decoding go on until enough requests wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gathering {
    /// Decode steps after which requests are let in, however few wait.
    pub steps: Count,
    /// Waiting over running requests at which they are let in before that.
    pub ratio: f64,
}

impl Gathering {
    /// Decode steps between two admissions where a request decodes for `life` steps and finished ones are replaced: until
    /// the steps are over, or until so many of the batch have ended that those who wait are enough.
    #[must_use]
    pub fn interval(self, life: f64) -> f64 {
        (life * math::ln_1p(self.ratio)).min(self.steps.into()).max(1.0)
    }
}

impl Default for Formats {
    fn default() -> Self {
        Formats {
            dense_bytes: 2.0,
            expert_bytes: 2.0,
            dense: Precision::Bf16,
            expert: Precision::Bf16,
            dense_unpack: false,
            expert_unpack: false,
            product_kernels: 1.0,
            unpack_passes: 1.0,
            kv_bytes: 2.0,
        }
    }
}

/// Layout over accelerators: `dp` replicas of `pp` stages of `attention_dp` x `tp` ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    /// Tensor-parallel ranks.
    pub tp: Count,
    /// Pipeline stages.
    pub pp: Count,
    /// Ranks that hold different whole experts; 1 = experts are sliced as the dense layers are.
    pub ep: Count,
    /// Data-parallel attention inside one replica: each group attends to its own sequences, experts are shared.
    pub attention_dp: Count,
    /// Independent replicas.
    pub dp: Count,
    /// Copies of busy experts in a layer beyond one of each, spread over the ranks of a replica.
    pub redundant: Count,
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            tp: Count::ONE,
            pp: Count::ONE,
            ep: Count::ONE,
            attention_dp: Count::ONE,
            dp: Count::ONE,
            redundant: Count::ZERO,
        }
    }
}

impl Layout {
    /// Accelerators of one replica.
    pub fn replica(&self) -> f64 {
        self.tp * self.pp * self.attention_dp
    }
    /// All accelerators.
    pub fn accelerators(&self) -> f64 {
        self.replica() * self.dp
    }
}

/// How tokens reach the ranks of their experts where attention groups share them, and how the work is arranged about it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ExpertSpread {
    /// How tokens travel.
    pub dispatch: Dispatch,
    /// A batch is cut in two halves that take turns: one computes while the other's tokens travel.
    pub two_batches: bool,
    /// Shared experts are one more expert of the grouped products, without kernels of their own.
    pub fused_shared: bool,
}

/// How tokens travel between attention groups and experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dispatch {
    /// A collective among all ranks, as fast as the slowest link between any two.
    #[default]
    Collective,
    /// Kernels that write into the memory of other ranks over the link that leads there: in decoding one copy for each
    /// expert, of prompts one for each domain, passed on inside.
    Direct,
}

/// Conversations of several turns: every prompt repeats what was said before, and all begin alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conversations {
    /// Conversations under way at once, over all replicas.
    pub count: Count,
    /// Turns of each.
    pub turns: f64,
    /// Tokens that all prompts begin with: a system prompt, descriptions of tools.
    pub shared: Count,
}

/// A place outside device memory that keeps keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KvTier {
    /// Bytes for each accelerator.
    pub bytes: f64,
    /// Bytes per second from there to an accelerator.
    pub bandwidth: f64,
}

/// Speculative decoding: a draft of `tokens`, the first accepted with probability `acceptance`, each further one with less
/// by a share of `decline`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Speculation {
    /// Drafted tokens per step.
    pub tokens: Count,
    /// Probability that the first drafted token is accepted.
    pub acceptance: f64,
    /// Share of that probability that each position loses against the one before.
    pub decline: f64,
    /// Sequences of a replica beyond which nothing is drafted.
    pub most_batch: Option<Count>,
    /// Cost of drafting one token relative to a step of the target at batch 1 (an MTP or EAGLE layer: 1 / layers).
    pub draft_cost: f64,
}

/// Separate pools for prefill and decode (DistServe, arXiv 2401.09670; Splitwise, arXiv 2311.18677).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pools {
    /// How the prefill pool is cut.
    pub prefill: Layout,
    /// How the decode pool is cut.
    pub decode: Layout,
}

/// A serving scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServingInput {
    /// On what it runs.
    pub accelerator: Accelerator,
    /// The model.
    pub arch: Architecture,
    /// How it is cut.
    pub layout: Layout,
    /// Numeric formats.
    pub formats: Formats,
    /// Prompt tokens (mean), those of images with them.
    pub isl: f64,
    /// The images of a request of mean length; those of others are in proportion.
    pub images: Option<Images>,
    /// Generated tokens (mean).
    pub osl: f64,
    /// Longest output over the mean one: 1 for fixed lengths.
    pub osl_spread: f64,
    /// The longest output that is let through, tokens, where a run's rare long ones go far beyond `osl_spread`.
    pub osl_most: Option<Count>,
    /// The load.
    pub load: Load,
    /// Requests in flight at most under open arrivals, over all replicas: senders hold back what is more. Infinite
    /// where nothing is held back.
    pub most_in_flight: f64,
    /// Requests of a run with open arrivals, which ends with its last answer; infinite for a service.
    pub arrivals: f64,
    /// What kind of software serves.
    pub stack: Stack,
    /// Which part of a decode step replays captured graphs.
    pub graphs: GraphCapture,
    /// Prompts run through the framework kernel by kernel, uncompiled; off where they run a compiled model.
    pub eager_prompts: bool,
    /// Decode attention reads a group's keys and values once for all its query heads; off where a kernel works head by
    /// head.
    pub grouped_decode: bool,
    /// Every expert that a step touches is multiplied by launches of its own, for lack of a grouped kernel.
    pub experts_in_turn: bool,
    /// Matrix products are tuned for few rows; off where a library's untuned kernels pass all weights through the caches
    /// once for every row (hipBLASLt on CDNA 3 before its tuned tables shipped).
    pub tuned_products: bool,
    /// How the host prepares the inputs of a step.
    pub inputs: StepInputs,
    /// Whose kernels most products and attention run on.
    pub kernels: KernelLibrary,
    /// How activations are summed over tensor-parallel ranks.
    pub all_reduce: AllReduce,
    /// What the host does while the accelerator computes.
    pub host: HostOverlap,
    /// Generation of the attention kernel over prompts.
    pub attention: FusedAttention,
    /// The scheduler and sampler of a compiled runtime run in Python, so that every running sequence costs host time as in a Python engine.
    pub python_executor: bool,
    /// How requests are let in.
    pub admission: Admission,
    /// Where waiting requests gather before they interrupt decoding.
    pub gathering: Option<Gathering>,
    /// Largest batch whose decode steps replay captured graphs, sequences; `None` if any do.
    pub graph_batch: Option<Count>,
    /// Decode steps between two polls of the request queue; 1 by default.
    pub recv_interval: Count,
    /// Beams per request (beam search); 1 = sampling or greedy.
    pub beams: Count,
    /// A sequence is admitted only when its whole output fits; paging engines admit more and preempt.
    pub reserve_output: bool,
    /// Whether layers with a sliding window keep keys and values of the whole sequence.
    pub whole_windows: bool,
    /// Ranks over which a sequence's keys and values are spread in decode where tensor-parallel ranks would each keep all of
    /// them (decode context parallelism); 1 = none.
    pub context_ranks: Count,
    /// Scheduler: most sequences in one step (`max_num_seqs`, `max_running_requests`, `max_batch_size`); `None` without
    /// a limit.
    pub max_num_seqs: Option<Count>,
    /// Sequences that a graph compiled for a fixed shape always computes, present or not (Neuron).
    pub compiled_batch: Option<Count>,
    /// Scheduler: most tokens in one step (`max_num_batched_tokens`, `chunked_prefill_size`, `max_num_tokens`).
    pub max_num_batched_tokens: f64,
    /// Share of device memory that the engine may use (`gpu_memory_utilization`, `mem_fraction_static`).
    pub memory_utilization: f64,
    /// Prompt chunks share steps with decoding (Sarathi-Serve, arXiv 2403.02310).
    pub chunked_prefill: bool,
    /// Share of prompt tokens found in the prefix cache.
    pub prefix_hit: f64,
    /// Speculative decoding.
    pub speculation: Speculation,
    /// Every drafted token is verified as a sequence of its own, which reads its keys and values and costs the host what
    /// a sequence costs (batch expansion).
    pub expanded_drafts: bool,
    /// Separate pools for prefill and decode.
    pub pools: Option<Pools>,
    /// Keys and values travel between pools over the scale-up fabric rather than the network; only inside one domain.
    pub near_transfer: bool,
    /// How tokens reach experts of other ranks.
    pub experts: ExpertSpread,
    /// Conversations that decide how much of a prompt is found, in place of `prefix_hit`.
    pub conversations: Option<Conversations>,
    /// Where keys and values are kept that device memory has no room for: fastest first.
    pub kv_tiers: [KvTier; 3],
    /// Requests go to the replica that has most of their prompt.
    pub routed_by_prefix: bool,
    /// Seconds in which what is found of a prompt outside device memory is loaded.
    pub loading: f64,
}

impl Default for ServingInput {
    fn default() -> Self {
        ServingInput {
            accelerator: Accelerator::default(),
            arch: Architecture::default(),
            layout: Layout::default(),
            formats: Formats::default(),
            isl: 1024.0,
            images: None,
            osl: 256.0,
            osl_spread: 1.0,
            osl_most: None,
            load: Load::Closed { concurrency: 16.0, requests: f64::INFINITY },
            most_in_flight: f64::INFINITY,
            arrivals: f64::INFINITY,
            stack: Stack::Graphed,
            graphs: GraphCapture::Full,
            eager_prompts: false,
            grouped_decode: true,
            experts_in_turn: false,
            tuned_products: true,
            inputs: StepInputs::Rebuilt,
            kernels: KernelLibrary::General,
            all_reduce: AllReduce::Direct,
            host: HostOverlap::Scheduling,
            attention: FusedAttention::Native,
            python_executor: false,
            admission: Admission::EveryStep,
            gathering: None,
            graph_batch: None,
            recv_interval: Count::ONE,
            beams: Count::ONE,
            reserve_output: false,
            whole_windows: false,
            context_ranks: Count::ONE,
            max_num_seqs: Some(Count::new(256)),
            compiled_batch: None,
            max_num_batched_tokens: 8192.0,
            memory_utilization: 0.9,
            chunked_prefill: true,
            prefix_hit: 0.0,
            speculation: Speculation::default(),
            expanded_drafts: false,
            pools: None,
            near_transfer: false,
            experts: ExpertSpread::default(),
            conversations: None,
            kv_tiers: [KvTier::default(); 3],
            routed_by_prefix: false,
            loading: 0.0,
        }
    }
}

impl Layout {
    /// At least one rank along every axis.
    fn bounded(self) -> Layout {
        let most = Count::new(1_000_000);
        let ranks = |x: Count| x.clamp(Count::ONE, most);
        Layout {
            tp: ranks(self.tp),
            pp: ranks(self.pp),
            ep: ranks(self.ep),
            attention_dp: ranks(self.attention_dp),
            dp: ranks(self.dp),
            redundant: self.redundant.min(most),
        }
    }
}

impl ServingInput {
    /// Tokens that a graph computes for a length: as many, or up to the next power of two, to which lengths are bucketed
    /// where graphs are compiled for fixed shapes (AWS Neuron documentation, bucketing).
    #[must_use]
    pub fn computed(&self, length: f64) -> f64 {
        if self.compiled_batch.is_some() { math::exp2(math::log2(length.max(1.0)).ceil()) } else { length }
    }

    /// What a running answer, met at any time, has behind it on average, and as much before it, in mean answers: half of
    /// one where all are equal, more where the long ones stay (the inspection paradox, Feller, *An Introduction to
    /// Probability Theory* II, section I.4).
    #[must_use]
    pub fn mean_age(&self) -> f64 {
        let longest = self.longest_output();
        let variance =
            if longest > 2.0 { (longest - 1.0) / (longest + 1.0) } else { (longest - 1.0) * (longest - 1.0) / 3.0 };
        0.5 * (1.0 + variance)
    }

    /// Most sequences in one step, at least one; infinite without a limit.
    #[must_use]
    pub fn most_sequences(&self) -> f64 {
        self.max_num_seqs.map_or(f64::INFINITY, |most| most.max(Count::ONE).into())
    }

    /// Longest output over the mean one, rare long ones counted.
    #[must_use]
    pub fn longest_output(&self) -> f64 {
        self.osl_spread.max(self.osl_most.unwrap_or(Count::ZERO) / self.osl.max(1.0)).max(1.0)
    }

    /// Bytes of the weights that read images, on the ranks that have most: those of the first stage, over which they are cut
    /// as the layers are, in 16 bit whatever the layers are in.
    #[must_use]
    pub fn image_bytes(&self, layout: &Layout) -> f64 {
        self.images.map_or(0.0, |images| 2.0 * images.params / layout.tp.max(Count::ONE))
    }

    /// The same scenario with every count inside the range where the equations hold; sensible input is unchanged.
    pub(super) fn bounded(&self) -> ServingInput {
        let least = |x: f64, low: f64| if x.is_finite() { x.clamp(low, 1e12) } else { low };
        let endless = |x: f64| if x.is_nan() { 1.0 } else { x.max(1.0) };
        let load = match self.load {
            Load::Static { batch } => Load::Static { batch: least(batch, 1.0) },
            Load::DecodeOnly { batch } => Load::DecodeOnly { batch: least(batch, 1.0) },
            Load::PrefillOnly { batch } => Load::PrefillOnly { batch: least(batch, 1.0) },
            Load::Closed { concurrency, requests } => {
                Load::Closed { concurrency: least(concurrency, 1e-3), requests: endless(requests) }
            }
            Load::Burst { requests } => Load::Burst { requests: endless(requests) },
            Load::Open { rate } => Load::Open { rate: least(rate, 1e-9) },
        };
        ServingInput {
            layout: self.layout.bounded(),
            pools: self.pools.map(|p| Pools { prefill: p.prefill.bounded(), decode: p.decode.bounded() }),
            load,
            most_in_flight: endless(self.most_in_flight),
            arrivals: endless(self.arrivals),
            isl: least(self.isl, 0.0),
            osl: least(self.osl, 1.0),
            osl_spread: least(self.osl_spread, 1.0),
            beams: self.beams.max(Count::ONE),
            context_ranks: self.context_ranks.max(Count::ONE),
            max_num_seqs: self.max_num_seqs.map(|most| most.max(Count::ONE)),
            max_num_batched_tokens: endless(self.max_num_batched_tokens),
            prefix_hit: least(self.prefix_hit, 0.0).min(1.0),
            ..*self
        }
    }
}
