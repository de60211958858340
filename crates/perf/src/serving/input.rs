//! The input of a serving estimate, as plain numbers.

pub use super::layout::{Dispatch, ExpertSpread, Layout, Pools};
use crate::accelerator::{Accelerator, Precision};
use crate::arch::Architecture;
use crate::roofline::FusedAttention;
use crate::traits::ExpertProducts;
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
    /// As [`Load::Static`], but counts the generation phase only.
    DecodeOnly {
        /// Sequences side by side.
        batch: f64,
    },
    /// As [`Load::Static`], but counts the prefill only.
    PrefillOnly {
        /// Sequences side by side.
        batch: f64,
    },
    /// A constant number of concurrent requests.
    Closed {
        /// Concurrent requests.
        concurrency: f64,
        /// Total requests of the run; infinite where unknown.
        requests: f64,
    },
    /// Requests that are all queued at the start.
    Burst {
        /// Number of requests; infinite for an endless backlog.
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
    /// Bytes of one weight of the dense layers, including its scales.
    pub dense_bytes: f64,
    /// Bytes of one routed-expert weight.
    pub expert_bytes: f64,
    /// Bytes of one weight of embedding and output layer.
    pub end_bytes: f64,
    /// Format of the GEMMs in dense layers.
    pub dense: Precision,
    /// Format of the GEMMs in experts.
    pub expert: Precision,
    /// Whether dense weights are unpacked to a wider format inside the GEMM.
    pub dense_unpack: bool,
    /// Whether expert weights are unpacked to a wider format before the GEMM.
    pub expert_unpack: bool,
    /// Number of kernels launched per kernel of a layer, where GEMMs with quantized weights are split (outliers,
    /// scales, layouts; LLM.int8(), arXiv 2208.07339).
    pub product_kernels: f64,
    /// Number of times that the bytes of a dense weight cross the memory bus in a step: more than 1 if weights are
    /// unpacked to a buffer that the GEMM reads.
    pub unpack_passes: f64,
    /// Bytes of one KV-cache element.
    pub kv_bytes: f64,
}

/// A scheduler that continues decoding until enough requests are waiting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gathering {
    /// Decode steps after which requests are admitted, however few are waiting.
    pub steps: Count,
    /// Ratio of waiting to running requests at which they are admitted before `steps`.
    pub ratio: f64,
}

impl Gathering {
    /// Decode steps between two admissions if a request decodes for `life` steps and finished requests are replaced:
    /// either `steps`, or fewer if enough sequences of the batch have ended for the waiting requests to reach `ratio`.
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
            end_bytes: 2.0,
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

/// Multi-turn conversations: every prompt repeats the conversation so far, and all start with the same tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conversations {
    /// Concurrent conversations over all replicas.
    pub count: Count,
    /// Turns of each conversation.
    pub turns: f64,
    /// Tokens at the start of every prompt: a system prompt, tool descriptions.
    pub shared: Count,
}

/// A tier of KV-cache storage outside device memory.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KvTier {
    /// Bytes per accelerator.
    pub bytes: f64,
    /// Bandwidth from the tier to an accelerator, bytes/s.
    pub bandwidth: f64,
}

/// Speculative decoding: a draft of `tokens` tokens. The first is accepted with probability `acceptance`. The
/// probability of each further token is lower by the share `decline`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Speculation {
    /// Drafted tokens per step.
    pub tokens: Count,
    /// Probability that the first drafted token is accepted.
    pub acceptance: f64,
    /// Share by which the acceptance probability drops from one position to the next.
    pub decline: f64,
    /// Batch of a replica, sequences, above which nothing is drafted.
    pub max_batch: Option<Count>,
    /// Drafting layers relative to the layers of the model (for an MTP or EAGLE layer: 1 / layers).
    pub draft_layers: f64,
    /// Columns of the output layer used for drafting relative to those of the model's.
    pub draft_head: f64,
    /// Bytes of the weights of dense drafting layers of a mixture of experts; 0 if they are like the layers of the model.
    pub draft_dense_bytes: f64,
    /// Bytes of the weights of the drafting layers or model, over all ranks of a replica.
    pub draft_weight_bytes: f64,
    /// Parameters of a separate draft model, whose steps are timed instead of `draft_layers`; 0 without one.
    pub draft_params: f64,
}

/// A serving scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServingInput {
    /// The accelerator.
    pub accelerator: Accelerator,
    /// The model.
    pub arch: Architecture,
    /// Layout over accelerators.
    pub layout: Layout,
    /// Numeric formats.
    pub formats: Formats,
    /// Mean prompt tokens, including those of images.
    pub isl: f64,
    /// Images of a request of mean length; those of other requests are proportional to their length.
    pub images: Option<Images>,
    /// Mean output tokens.
    pub osl: f64,
    /// Ratio of the longest to the mean output length: 1 for fixed lengths.
    pub osl_spread: f64,
    /// Maximum output length, tokens, for runs whose rare long outputs go far beyond `osl_spread`.
    pub osl_max: Option<Count>,
    /// The load.
    pub load: Load,
    /// Maximum number of concurrent requests with open arrivals, over all replicas: clients delay requests beyond it.
    /// Infinite without a limit.
    pub max_in_flight: f64,
    /// Number of requests in a run with open arrivals, which ends with its last response; infinite for a service.
    pub arrivals: f64,
    /// Kind of runtime.
    pub stack: Stack,
    /// Which part of a decode step replays captured graphs.
    pub graphs: GraphCapture,
    /// Whether the framework launches each kernel of a prefill, rather than running a compiled model.
    pub eager_prompts: bool,
    /// Whether decode attention reads the KV cache of a group once for all its query heads, rather than once per query
    /// head.
    pub grouped_query_decode: bool,
    /// How the GEMMs of the experts run.
    pub expert_products: ExpertProducts,
    /// Whether GEMMs with few rows are tuned. Otherwise the library's untuned kernels stream all weights through the
    /// caches once per row (hipBLASLt on CDNA 3 before its tuned tables shipped).
    pub tuned_products: bool,
    /// How the host prepares the inputs of a step.
    pub inputs: StepInputs,
    /// Source of the kernels of most GEMMs and of attention.
    pub kernels: KernelLibrary,
    /// How activations are all-reduced over tensor-parallel ranks.
    pub all_reduce: AllReduce,
    /// Whether large all-reduces are added up in the switch where it can (NVLS), rather than in a ring.
    pub in_switch_reduction: bool,
    /// Host work that overlaps with the accelerator's.
    pub host: HostOverlap,
    /// Generation of the attention kernel in the prefill.
    pub attention: FusedAttention,
    /// Whether the scheduler and sampler of a compiled runtime run in Python, so that every running sequence costs host
    /// time as in a Python engine.
    pub python_executor: bool,
    /// When requests are admitted.
    pub admission: Admission,
    /// When waiting requests interrupt decoding, if the scheduler lets them gather first.
    pub gathering: Option<Gathering>,
    /// Largest batch, sequences, whose decode steps replay captured graphs; `None`: no limit.
    pub graph_batch: Option<Count>,
    /// Decode steps between two polls of the request queue; 1 by default.
    pub recv_interval: Count,
    /// Beams per request (beam search); 1 = sampling or greedy decoding.
    pub beams: Count,
    /// Whether a sequence is admitted only if its whole output fits in the KV cache. Paged engines admit more and
    /// preempt.
    pub reserve_output: bool,
    /// Whether the KV cache of sliding-window layers holds the whole sequence.
    pub full_window_cache: bool,
    /// Cached tokens of a step from which latent attention expands prefixes.
    pub expanded_prefix: Count,
    /// Tokens of a block of the KV cache.
    pub kv_block: Count,
    /// Ranks over which the KV cache of a sequence is sharded in decode, where each tensor-parallel rank would
    /// otherwise hold all of it (decode context parallelism); 1 = none.
    pub context_ranks: Count,
    /// Scheduler: maximum number of sequences in one step (`max_num_seqs`, `max_running_requests`, `max_batch_size`);
    /// `None`: no limit.
    pub max_num_seqs: Option<Count>,
    /// Batch of a graph that is compiled for a fixed shape and always computed in full (Neuron), sequences.
    pub compiled_batch: Option<Count>,
    /// Whether there are also graphs for smaller batches, and each batch is padded to the next of them.
    pub batch_buckets: bool,
    /// Scheduler: maximum number of tokens in one step (`max_num_batched_tokens`, `chunked_prefill_size`,
    /// `max_num_tokens`).
    pub max_num_batched_tokens: f64,
    /// Share of device memory that the engine may use (`gpu_memory_utilization`, `mem_fraction_static`).
    pub memory_utilization: f64,
    /// Whether prompt chunks share steps with decoding (Sarathi-Serve, arXiv 2403.02310).
    pub chunked_prefill: bool,
    /// Share of prompt tokens that hit the prefix cache.
    pub prefix_hit: f64,
    /// Speculative decoding.
    pub speculation: Speculation,
    /// Whether every drafted token is verified as a separate sequence, which reads its KV cache and costs the host time
    /// of a sequence (batch expansion).
    pub expanded_drafts: bool,
    /// Separate pools for prefill and decode.
    pub pools: Option<Pools>,
    /// Whether the KV cache is transferred between pools over the scale-up fabric rather than the network; only inside
    /// one domain.
    pub scale_up_kv_transfer: bool,
    /// How expert parallelism runs.
    pub experts: ExpertSpread,
    /// Conversations from which the share of cached prompt tokens follows; they override `prefix_hit`.
    pub conversations: Option<Conversations>,
    /// Storage tiers for the KV cache that does not fit in device memory, fastest first.
    pub kv_tiers: [KvTier; 3],
    /// Whether requests are routed to the replica with the longest cached prefix of their prompt.
    pub prefix_aware_routing: bool,
    /// Time to load the cached part of a prompt from outside device memory, s.
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
            osl_max: None,
            load: Load::Closed { concurrency: 16.0, requests: f64::INFINITY },
            max_in_flight: f64::INFINITY,
            arrivals: f64::INFINITY,
            stack: Stack::Graphed,
            graphs: GraphCapture::Full,
            eager_prompts: false,
            grouped_query_decode: true,
            expert_products: ExpertProducts::Grouped,
            tuned_products: true,
            inputs: StepInputs::Rebuilt,
            kernels: KernelLibrary::General,
            all_reduce: AllReduce::Direct,
            in_switch_reduction: true,
            host: HostOverlap::Scheduling,
            attention: FusedAttention::Native,
            python_executor: false,
            admission: Admission::EveryStep,
            gathering: None,
            graph_batch: None,
            recv_interval: Count::ONE,
            beams: Count::ONE,
            reserve_output: false,
            full_window_cache: false,
            expanded_prefix: Count::ZERO,
            kv_block: Count::new(16),
            context_ranks: Count::ONE,
            max_num_seqs: Some(Count::new(256)),
            compiled_batch: None,
            batch_buckets: false,
            max_num_batched_tokens: 8192.0,
            memory_utilization: 0.9,
            chunked_prefill: true,
            prefix_hit: 0.0,
            speculation: Speculation::default(),
            expanded_drafts: false,
            pools: None,
            scale_up_kv_transfer: false,
            experts: ExpertSpread::default(),
            conversations: None,
            kv_tiers: [KvTier::default(); 3],
            prefix_aware_routing: false,
            loading: 0.0,
        }
    }
}

impl ServingInput {
    /// Layout of the replicas that decode.
    #[must_use]
    pub fn decode_layout(&self) -> Layout {
        self.pools.map_or(self.layout, |pools| pools.decode)
    }

    /// Number of tokens that a graph computes for a sequence of `length` tokens: `length`, or the next power of two if
    /// graphs are compiled for fixed shapes, where lengths are bucketed (AWS Neuron documentation, bucketing).
    #[must_use]
    pub fn computed(&self, length: f64) -> f64 {
        if self.compiled_batch.is_some() { math::exp2(math::log2(length.max(1.0)).ceil()) } else { length }
    }

    /// Mean number of output tokens that a running sequence, observed at a random time, has generated so far, and
    /// equally has left to generate, in units of the mean output length. 0.5 if all outputs are equally long; more
    /// otherwise, since long ones run for longer (the inspection paradox, Feller, *An Introduction to Probability
    /// Theory* II, section I.4).
    #[must_use]
    pub fn mean_age(&self) -> f64 {
        let longest = self.longest_output();
        let variance =
            if longest > 2.0 { (longest - 1.0) / (longest + 1.0) } else { (longest - 1.0) * (longest - 1.0) / 3.0 };
        0.5 * (1.0 + variance)
    }

    /// Whether the tokens of rates are those of prompts, because none are generated: models without generation, and
    /// loads that end with the prefill.
    #[must_use]
    pub fn counts_prompts(&self) -> bool {
        !self.arch.causal || matches!(self.load, Load::PrefillOnly { .. })
    }

    /// Maximum number of sequences in one step, at least 1; infinite without a limit.
    #[must_use]
    pub fn max_sequences(&self) -> f64 {
        self.max_num_seqs.map_or(f64::INFINITY, |most| most.max(Count::ONE).into())
    }

    /// Tokens at the start of every prompt that are the same for all sequences.
    #[must_use]
    pub fn shared_prefix(&self) -> f64 {
        self.conversations.map_or(0.0, |talk| f64::from(talk.shared).min(self.isl.max(1.0) - 1.0))
    }

    /// Accelerators of the deployment: of both pools if they are separate.
    #[must_use]
    pub fn accelerators(&self) -> f64 {
        match &self.pools {
            Some(pools) => pools.prefill.accelerators() + pools.decode.accelerators(),
            None => self.layout.accelerators(),
        }
    }

    /// Ratio of the longest to the mean output length, including rare long outputs.
    #[must_use]
    pub fn longest_output(&self) -> f64 {
        self.osl_spread.max(self.osl_max.unwrap_or(Count::ZERO) / self.osl.max(1.0)).max(1.0)
    }

    /// Bytes of the image encoder's weights on a rank of the first stage. They are sharded over tensor-parallel ranks
    /// as the layers are, and are 16 bit regardless of the format of the layers.
    #[must_use]
    pub fn image_bytes(&self, layout: &Layout) -> f64 {
        self.images.map_or(0.0, |images| 2.0 * images.params / layout.tp.max(Count::ONE))
    }

    /// The separate draft model as a system of its own on the ranks of a stage; `None` without one. Its weights and KV
    /// cache have 16 bit.
    #[must_use]
    pub fn of_draft_model(&self, layout: &Layout) -> Option<ServingInput> {
        let Speculation { tokens, draft_params, .. } = self.speculation;
        (tokens > 0.0 && draft_params > 0.0).then(|| ServingInput {
            arch: Architecture::of_size(draft_params, self.arch.vocab),
            formats: Formats::default(),
            layout: Layout { pp: Count::ONE, ep: Count::ONE, redundant: Count::ZERO, ..*layout },
            images: None,
            speculation: Speculation::default(),
            experts: ExpertSpread::default(),
            ..*self
        })
    }

    /// Bytes of the weights that draft tokens on a rank, which are sharded like the layers of the model.
    #[must_use]
    pub fn draft_bytes(&self, layout: &Layout) -> f64 {
        if self.speculation.tokens <= 0.0 {
            return 0.0;
        }
        self.speculation.draft_weight_bytes / (layout.tp * layout.attention_dp).max(1.0)
    }

    /// Clamps every count to the range in which the equations hold; realistic input is unchanged.
    pub(super) fn bounded(&self) -> ServingInput {
        let least = |x: f64, low: f64| if x.is_finite() { x.clamp(low, 1e12) } else { low };
        let endless = |x: f64| if x.is_nan() { 1.0 } else { x.max(1.0) };
        let load = match self.load {
            Load::Static { batch } => Load::Static { batch: least(batch, 1.0) },
            Load::DecodeOnly { batch } => Load::DecodeOnly { batch: least(batch, 1.0) },
            Load::PrefillOnly { batch } => Load::PrefillOnly { batch: least(batch, 1.0) },
            Load::Closed { concurrency, requests } => {
                // No more requests run at once than there are in total.
                Load::Closed {
                    concurrency: least(concurrency, 1e-3).min(endless(requests)),
                    requests: endless(requests),
                }
            }
            Load::Burst { requests } => Load::Burst { requests: endless(requests) },
            Load::Open { rate } => Load::Open { rate: least(rate, 1e-9) },
        };
        ServingInput {
            layout: self.layout.bounded(),
            pools: self.pools.map(|p| Pools { prefill: p.prefill.bounded(), decode: p.decode.bounded() }),
            load,
            max_in_flight: endless(self.max_in_flight),
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
