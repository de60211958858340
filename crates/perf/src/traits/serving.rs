//! Traits of serving software.

use super::{AttentionKernel, ExpertExchange, ExpertProducts, words};
use atlas_core::count::Count;

words! {
    /// How the runtime launches work on the accelerator. Determines the fixed cost of a step.
    Stack {
        /// An engine compiled ahead of time with a native runtime.
        Compiled = "compiled",
        /// A Python engine with continuous batching that replays captured graphs.
        Graphed = "graphed",
        /// A Python framework that launches each kernel from the host.
        Eager = "eager",
        /// A native runtime designed for one or a few concurrent streams.
        Local = "local",
    }

    /// When a scheduler polls its queue and emits first tokens. A setting of the engine, and the largest part of the
    /// TTFT of an unloaded system.
    Admission {
        /// Before every step.
        EveryStep = "every-step",
        /// After a fixed number of steps: admissions and responses are batched.
        Batched = "batched",
        /// By polling separate tokenizer and detokenizer processes.
        Polled = "polled",
    }

    /// How requests share the device.
    Batching {
        /// Requests join and leave between steps.
        Continuous = "continuous",
        /// The sequences of a batch start and end together, padded to the longest.
        Static = "static",
    }

    /// How decode attention reads the KV cache.
    DecodeAttention {
        /// Once for every query head.
        PerHead = "per-head",
        /// Once for a group of query heads.
        Grouped = "grouped",
    }

    /// Which part of a decode step replays captured graphs.
    GraphCapture {
        /// None: each kernel is launched by the host.
        None = "none",
        /// Everything but attention.
        Piecewise = "piecewise",
        /// The whole step.
        Full = "full",
    }

    /// How the kernels of a prefill are launched.
    PromptLaunch {
        /// One by one, by the framework.
        Eager = "eager",
        /// As a compiled or captured model.
        Compiled = "compiled",
    }

    /// Work of the host that overlaps with the accelerator's.
    HostOverlap {
        /// None: scheduling, sampling and streaming run between two steps.
        None = "none",
        /// Tokenizing and streaming, which run in separate processes.
        FrontEnd = "front-end",
        /// Tokenizing, streaming and the scheduling of the next step.
        Scheduling = "scheduling",
    }

    /// How the host prepares the inputs of a step.
    StepInputs {
        /// Rebuilt from the list of sequences in every step.
        Rebuilt = "rebuilt",
        /// Updated with the changes since the previous step.
        Incremental = "incremental",
    }

    /// What sliding-window layers keep in the KV cache, in models that also have layers of other kinds.
    WindowCache {
        /// The whole sequence.
        Whole = "whole",
        /// Only the tokens inside the window.
        Window = "window",
    }

    /// What is split over several devices by default if a model does not fit on one.
    ModelSplit {
        /// Weight matrices and attention heads (tensor parallelism).
        Tensors = "tensors",
        /// The list of layers (pipeline stages).
        Layers = "layers",
    }

    /// What stated limits on sequences and tokens of a step apply to if attention is data-parallel.
    LimitScope {
        /// Every attention group.
        Group = "group",
        /// All attention groups of a server together.
        Server = "server",
    }

    /// What the limit on sequences counts in beam search.
    BeamLimit {
        /// Every beam.
        Beams = "beams",
        /// Requests, with all of their beams.
        Requests = "requests",
    }

    /// Format of embedding and output layer in quantized checkpoints.
    QuantizedEnds {
        /// 16 bit.
        Wide = "16-bit",
        /// That of the layers; stated bits per weight are the mean over the whole file.
        Narrow = "as-layers",
    }

    /// Implementation language of the scheduling and sampling loop.
    Executor {
        /// Compiled code.
        Native = "native",
        /// Python, which costs host time for every running sequence.
        Python = "python",
    }

    /// Kernels for GEMMs with few rows.
    SmallProducts {
        /// Tuned or specialized kernels.
        Tuned = "tuned",
        /// The library's default kernels, which stream the weights through the caches once per row.
        Untuned = "untuned",
    }

    /// Source of the kernels of most GEMMs and of attention.
    KernelLibrary {
        /// The framework and general-purpose libraries.
        General = "general",
        /// The accelerator vendor's own inference kernels.
        Vendor = "vendor",
    }

    /// How activations are all-reduced over tensor-parallel ranks.
    AllReduce {
        /// With one kernel that loads from and stores to the memory of its peers.
        Direct = "direct",
        /// With the collective library, whose protocol and launch cost more for few tokens.
        Library = "library",
        /// As `Direct`, and for mixtures of experts inside a node with a kernel that also adds the residual and
        /// normalizes.
        Fused = "fused",
    }

    /// How drafted tokens are verified.
    DraftVerification {
        /// In one pass, as part of their sequence.
        InPlace = "in-place",
        /// As separate sequences (batch expansion).
        Expanded = "expanded",
    }

    /// Tensor shapes that the runtime executes.
    Shapes {
        /// The shapes of the current batch.
        Dynamic = "dynamic",
        /// The shapes of a graph compiled ahead of time; smaller batches are padded.
        Compiled = "compiled",
        /// The shapes of several such graphs; batches are padded to the next of them.
        Bucketed = "bucketed",
    }

    /// How a GEMM with quantized weights runs. Where the device lacks the format, the best case is unpacking inside the
    /// kernel.
    QuantizedProduct {
        /// The device multiplies the format itself.
        Native = "native",
        /// Weights are unpacked to 16 bit inside the kernel.
        Unpacked = "unpacked",
        /// Unpacking, GEMM and scaling are separate kernel launches.
        Separate = "separate",
        /// As `Separate`; the unpacked weights are also written to memory and read back.
        Buffered = "buffered",
        /// Outlier columns are detected and multiplied separately in 16 bit (arXiv 2208.07339).
        Outliers = "outliers",
        /// The software has no kernels for the format on this device.
        Refused = "none",
    }

    /// Allowed expert-parallel sizes within a replica.
    ExpertRanks {
        /// Any divisor of the number of ranks; each expert is then sliced over the remaining ranks.
        Any = "any",
        /// All ranks or no expert parallelism.
        All = "all",
        /// No expert parallelism: every rank holds a slice of every expert.
        One = "one",
    }

    /// Default KV-cache format for checkpoints quantized to 8 or 4 bit.
    QuantizedKv {
        /// 16 bit, as the activations.
        Half = "half",
        /// 8-bit floating point.
        Fp8 = "fp8",
    }
}

impl HostOverlap {
    /// The smaller of two overlaps.
    #[must_use]
    pub const fn at_most(self, limit: HostOverlap) -> HostOverlap {
        if (limit as u8) < self as u8 { limit } else { self }
    }
}

/// How prefill and decode share steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PrefillPolicy {
    /// Prompts run whole, in steps of their own.
    Whole,
    /// Prompts run whole, in the same steps as decoding sequences.
    Packed,
    /// Prompts are cut to the token budget and run in steps of their own, before decoding.
    Chunked,
    /// Prompt chunks fill up the token budget of decode steps (arXiv 2403.02310).
    Mixed,
    /// As `Mixed` if the maximum context exceeds this number of tokens, else as `Whole`.
    MixedAbove(f64),
}

impl PrefillPolicy {
    /// Whether prompts or prompt chunks share steps with decoding, given a maximum context of `context` tokens.
    #[must_use]
    pub fn mixed(self, context: f64) -> bool {
        match self {
            PrefillPolicy::Whole | PrefillPolicy::Chunked => false,
            PrefillPolicy::Packed | PrefillPolicy::Mixed => true,
            PrefillPolicy::MixedAbove(least) => context > least,
        }
    }
}

/// Upper bound on the tokens of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TokenBudget {
    /// A fixed number of tokens.
    Tokens(f64),
    /// The maximum context, but at least this number of tokens: a whole prompt must fit in one step.
    ContextOr(f64),
}

impl TokenBudget {
    /// Token budget of a step, given a maximum context of `context` tokens.
    #[must_use]
    pub fn tokens(self, context: f64) -> f64 {
        match self {
            TokenBudget::Tokens(tokens) => tokens,
            TokenBudget::ContextOr(least) => context.max(least),
        }
    }
}

/// Limit on the device memory used by weights and KV cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MemoryRule {
    /// A share of all device memory, 0..1.
    OfTotal(f64),
    /// All weights, and this share of the memory that they leave free for the KV cache, 0..1.
    OfFree(f64),
    /// All device memory minus a reserve, GiB: a fixed part plus a part for every accelerator of the replica.
    AllBut {
        /// Fixed part, GiB.
        gib: f64,
        /// Part for each accelerator of the replica, GiB.
        per_rank_gib: f64,
    },
}

impl MemoryRule {
    /// Share of the whole device memory that the rule allows, 0..1. `capacity` and `weights` are bytes per device;
    /// `ranks` is the number of accelerators in a replica.
    #[must_use]
    pub fn share(self, capacity: f64, weights: f64, ranks: f64) -> f64 {
        const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
        let share = match self {
            MemoryRule::OfTotal(share) => share,
            MemoryRule::OfFree(share) => {
                let held = (weights / capacity).clamp(0.0, 1.0);
                held + share * (1.0 - held)
            }
            MemoryRule::AllBut { gib, per_rank_gib } => 1.0 - (gib + per_rank_gib * ranks) * GIB / capacity,
        };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }
}

/// Traits of serving software.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServingTraits {
    /// Kind of runtime. Determines the fixed cost of a step.
    pub runtime: Stack,
    /// How requests share the device.
    pub batching: Batching,
    /// When the scheduler polls its queue.
    pub admission: Admission,
    /// Number of decode steps after which waiting requests interrupt decoding, however few they are. `None`: requests
    /// are admitted before every step.
    pub gather_steps: Option<Count>,
    /// Ratio of waiting to running requests at which they interrupt decoding before `gather_steps`.
    pub gather_ratio: f64,
    /// Attention kernel of the prefill.
    pub attention: AttentionKernel,
    /// How decode attention reads the KV cache.
    pub decode_attention: DecodeAttention,
    /// Which part of a decode step replays captured graphs.
    pub decode_graphs: GraphCapture,
    /// Largest batch with captured graphs, sequences; larger ones run eagerly. `None`: no limit.
    pub graph_batch: Option<Count>,
    /// Longest context with captured graphs, tokens; longer ones run eagerly. `None`: no limit.
    pub graph_context: Option<Count>,
    /// How the kernels of a prefill are launched.
    pub prompts: PromptLaunch,
    /// Work of the host that overlaps with the device's.
    pub host: HostOverlap,
    /// As `host`, with speculative decoding.
    pub host_with_drafts: HostOverlap,
    /// The most that overlaps with several pipeline stages.
    pub host_with_pipeline: HostOverlap,
    /// How the host prepares the inputs of a step.
    pub inputs: StepInputs,
    /// Implementation language of the scheduling loop.
    pub executor: Executor,
    /// A sequence is admitted only if its whole output fits in the KV cache.
    pub reserve_output: bool,
    /// What sliding-window layers keep in the KV cache.
    pub window_cache: WindowCache,
    /// Cached tokens of a step from which latent attention expands prefixes; fewer are multiplied directly. `None`: all
    /// are expanded.
    pub expanded_prefix: Option<Count>,
    /// Tokens of a block of the KV cache. A sequence occupies whole blocks.
    pub kv_block: Count,
    /// Format of embedding and output layer in quantized checkpoints.
    pub ends: QuantizedEnds,
    /// What stated limits on sequences and tokens of a step apply to if attention is data-parallel.
    pub limits: LimitScope,
    /// What the limit on sequences counts in beam search.
    pub beam_limit: BeamLimit,
    /// Kernels for GEMMs with few rows.
    pub small_products: SmallProducts,
    /// Source of the kernels of GEMMs and attention.
    pub kernels: KernelLibrary,
    /// How activations are all-reduced over tensor-parallel ranks.
    pub all_reduce: AllReduce,
    /// Whether large all-reduces are added up in the switch where it can (NVLS), which is the default of NCCL.
    pub in_switch_reduction: bool,
    /// How drafted tokens are verified.
    pub drafts: DraftVerification,
    /// Tensor shapes that the runtime executes.
    pub shapes: Shapes,
    /// How the GEMMs of the experts run.
    pub experts: ExpertProducts,
    /// How the GEMMs of experts with 4-bit integer weights run.
    pub int4_experts: ExpertProducts,
    /// How the GEMMs of experts with 8-bit weights run.
    pub narrow_experts: ExpertProducts,
    /// How tokens are exchanged between experts under expert parallelism.
    pub exchange: ExpertExchange,
    /// Allowed expert-parallel sizes.
    pub expert_ranks: ExpertRanks,
    /// GEMMs with 8-bit floating-point weights.
    pub fp8: QuantizedProduct,
    /// GEMMs with 4-bit floating-point weights.
    pub fp4: QuantizedProduct,
    /// GEMMs with 8-bit integer weights.
    pub int8: QuantizedProduct,
    /// GEMMs with 4-bit integer weights; native means 8-bit activations on integer units.
    pub int4: QuantizedProduct,
    /// Default KV-cache format of quantized checkpoints.
    pub quantized_kv: QuantizedKv,
    /// Maximum number of sequences in a step; `None`: limited by memory only.
    pub max_num_seqs: Option<Count>,
    /// The same with speculative decoding, if it is lower.
    pub max_num_seqs_with_drafts: Option<Count>,
    /// Maximum number of tokens in a step.
    pub max_num_batched_tokens: TokenBudget,
    /// How prefill and decode share steps.
    pub prefill: PrefillPolicy,
    /// Limit on the memory of weights and KV cache.
    pub memory: MemoryRule,
    /// What is split over several devices by default.
    pub split: ModelSplit,
    /// Data-parallel attention is supported inside a replica whose ranks share the experts.
    pub attention_dp: bool,
    /// Prefill and decode can run on separate accelerators.
    pub pools: bool,
    /// Supports wide expert parallelism: tokens are written directly to the memory of other ranks, busy experts can be
    /// replicated, and two micro-batches can be overlapped.
    pub wide_ep: bool,
}

impl ServingTraits {
    /// Whether an expert-parallel size of `ep` is supported, where `ranks` ranks share the experts.
    #[must_use]
    pub fn spreads(&self, ep: f64, ranks: f64) -> bool {
        match self.expert_ranks {
            ExpertRanks::Any => true,
            ExpertRanks::All => ep <= 1.0 || ep >= ranks,
            ExpertRanks::One => ep <= 1.0,
        }
    }
}

impl Default for ServingTraits {
    fn default() -> Self {
        ServingTraits {
            runtime: Stack::Graphed,
            batching: Batching::Continuous,
            admission: Admission::EveryStep,
            gather_steps: None,
            gather_ratio: 0.0,
            attention: AttentionKernel::Flash2,
            decode_attention: DecodeAttention::Grouped,
            decode_graphs: GraphCapture::Full,
            graph_batch: None,
            graph_context: None,
            prompts: PromptLaunch::Compiled,
            host: HostOverlap::FrontEnd,
            host_with_drafts: HostOverlap::FrontEnd,
            host_with_pipeline: HostOverlap::Scheduling,
            inputs: StepInputs::Rebuilt,
            executor: Executor::Python,
            reserve_output: false,
            window_cache: WindowCache::Whole,
            expanded_prefix: None,
            kv_block: Count::new(16),
            ends: QuantizedEnds::Wide,
            limits: LimitScope::Group,
            beam_limit: BeamLimit::Beams,
            small_products: SmallProducts::Tuned,
            kernels: KernelLibrary::General,
            all_reduce: AllReduce::Direct,
            in_switch_reduction: true,
            drafts: DraftVerification::InPlace,
            shapes: Shapes::Dynamic,
            experts: ExpertProducts::Grouped,
            int4_experts: ExpertProducts::Grouped,
            narrow_experts: ExpertProducts::Grouped,
            exchange: ExpertExchange::AllReduce,
            expert_ranks: ExpertRanks::Any,
            fp8: QuantizedProduct::Native,
            fp4: QuantizedProduct::Native,
            int8: QuantizedProduct::Native,
            int4: QuantizedProduct::Unpacked,
            quantized_kv: QuantizedKv::Half,
            max_num_seqs: None,
            max_num_seqs_with_drafts: None,
            max_num_batched_tokens: TokenBudget::Tokens(8192.0),
            prefill: PrefillPolicy::Mixed,
            memory: MemoryRule::OfTotal(0.9),
            split: ModelSplit::Tensors,
            attention_dp: false,
            pools: false,
            wide_ep: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;

    #[test]
    fn equivalent_memory_rules_give_equal_shares() {
        let (capacity, weights) = (80.0 * GIB, 40.0 * GIB);
        assert_eq!(MemoryRule::OfTotal(0.9).share(capacity, weights, 8.0), 0.9);
        assert!((MemoryRule::OfFree(0.8).share(capacity, weights, 8.0) - 0.9).abs() < 1e-12);
        let reserve = MemoryRule::AllBut { gib: 4.0, per_rank_gib: 0.5 };
        assert!((reserve.share(capacity, weights, 8.0) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn memory_shares_stay_within_the_device() {
        for rule in [MemoryRule::OfFree(0.9), MemoryRule::AllBut { gib: 32.0, per_rank_gib: 1.0 }] {
            for capacity in [0.0, 16.0 * GIB, f64::NAN] {
                let share = rule.share(capacity, 40.0 * GIB, 64.0);
                assert!((0.0..=1.0).contains(&share), "{rule:?} {capacity}: {share}");
            }
        }
    }

    #[test]
    fn context_token_budget_is_at_least_the_context_length() {
        assert_eq!(TokenBudget::ContextOr(2048.0).tokens(32768.0), 32768.0);
        assert_eq!(TokenBudget::ContextOr(2048.0).tokens(512.0), 2048.0);
        assert!(PrefillPolicy::MixedAbove(32768.0).mixed(65536.0) && !PrefillPolicy::MixedAbove(32768.0).mixed(4096.0));
    }
}
