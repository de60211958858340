//! Traits of serving software.

use super::{AttentionKernel, ExpertExchange, ExpertProducts, words};
use atlas_core::count::Count;

words! {
    /// How the runtime drives the accelerator: this decides the fixed cost of a step.
    Stack {
        /// An engine compiled ahead of time with a native runtime.
        Compiled = "compiled",
        /// A Python engine with continuous batching that replays captured graphs.
        Graphed = "graphed",
        /// A Python framework that launches kernel by kernel.
        Eager = "eager",
        /// A native runtime for one or a few streams.
        Local = "local",
    }

    /// When a scheduler looks at its queue and hands out first tokens: a setting, and the largest part of an unloaded
    /// system's TTFT.
    Admission {
        /// Before every step.
        EveryStep = "every-step",
        /// After a fixed number of steps: responses and admissions are batched.
        Batched = "batched",
        /// By polling separate tokenizer and detokenizer processes.
        Polled = "polled",
    }

    /// How requests share the device.
    Batching {
        /// Requests join and leave between steps.
        Continuous = "continuous",
        /// A batch starts and ends together, padded to its longest.
        Static = "static",
    }

    /// How keys and values are read in decode attention.
    DecodeAttention {
        /// Once for every query head.
        PerHead = "per-head",
        /// Once for a group of query heads.
        Grouped = "grouped",
    }

    /// Which part of a decode step replays captured graphs.
    GraphCapture {
        /// Nothing: kernels are launched one by one.
        None = "none",
        /// Everything but attention.
        Piecewise = "piecewise",
        /// The whole step.
        Full = "full",
    }

    /// How prompts reach the device.
    PromptLaunch {
        /// Kernel by kernel from the framework.
        Eager = "eager",
        /// As a compiled or captured model.
        Compiled = "compiled",
    }

    /// What the host does while the device computes.
    HostOverlap {
        /// Nothing: scheduling, sampling and streaming stand between two steps.
        None = "none",
        /// Tokenizing and streaming, in processes of their own.
        FrontEnd = "front-end",
        /// Scheduling of the next step too.
        Scheduling = "scheduling",
    }

    /// How the host prepares the inputs of a step.
    StepInputs {
        /// From the list of sequences, anew for every step.
        Rebuilt = "rebuilt",
        /// By what changed since the step before.
        Incremental = "incremental",
    }

    /// What layers with a sliding window keep of a sequence, in models that have other layers too.
    WindowCache {
        /// Keys and values of the whole sequence.
        Whole = "whole",
        /// Those inside the window.
        Window = "window",
    }

    /// The language of the loop that schedules and samples.
    Executor {
        /// Compiled code.
        Native = "native",
        /// Python, which costs host time for every running sequence.
        Python = "python",
    }

    /// Kernels for products of a few rows.
    SmallProducts {
        /// Tuned, or written for it.
        Tuned = "tuned",
        /// A library's default choice, which passes the weights through the caches for every row.
        Untuned = "untuned",
    }

    /// Whose kernels most products and attention run on.
    KernelLibrary {
        /// The framework's and the general libraries'.
        General = "general",
        /// Kernels that the accelerator's vendor writes for inference on it.
        Vendor = "vendor",
    }

    /// How a step's activations are summed over tensor-parallel ranks.
    AllReduce {
        /// By one kernel that loads and stores on its peers.
        Direct = "direct",
        /// By the collective library, whose protocol and launch cost more for a few tokens.
        Library = "library",
        /// Directly, and in mixtures of experts inside a node, by a kernel that adds the residual and normalizes as well.
        Fused = "fused",
    }

    /// How drafted tokens are verified.
    DraftVerification {
        /// In one pass of their sequence.
        InPlace = "in-place",
        /// As sequences of their own (batch expansion).
        Expanded = "expanded",
    }

    /// Shapes that the runtime executes.
    Shapes {
        /// Those of the current batch.
        Dynamic = "dynamic",
        /// Those of a graph compiled ahead, padded where the batch is smaller.
        Compiled = "compiled",
    }

    /// How a quantized product runs. Where the device lacks the format, weights are unpacked inside the kernel at best.
    QuantizedProduct {
        /// The device multiplies the format itself.
        Native = "native",
        /// Weights are unpacked to 16 bit inside the kernel.
        Unpacked = "unpacked",
        /// Unpacking, product and scaling are launched one after another.
        Separate = "separate",
        /// As `separate`, and the unpacked weights are written to memory and read again.
        Buffered = "buffered",
        /// Outlying columns are found and multiplied apart in 16 bit (arXiv 2208.07339).
        Outliers = "outliers",
        /// The software has no kernels for the format on this device.
        Refused = "none",
    }

    /// Over how many of a replica's ranks experts may be spread.
    ExpertRanks {
        /// Over any number that divides them; each expert is then cut over the rest.
        Any = "any",
        /// Over all of them, or none.
        All = "all",
        /// Over none: every rank has a slice of every expert.
        One = "one",
    }

    /// Format of keys and values where a checkpoint is quantized to 8 or 4 bit and nothing is stated about them.
    QuantizedKv {
        /// The activations' 16 bit.
        Half = "half",
        /// 8 bit.
        Fp8 = "fp8",
    }
}

/// How prompts and decoding share steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PrefillPolicy {
    /// Prompts run whole, in steps of their own.
    Whole,
    /// Prompts run whole, in the steps of running sequences.
    Packed,
    /// Prompts are cut to the token budget and run in steps of their own, before decoding.
    Chunked,
    /// Prompt chunks fill up the token budget of decode steps (arXiv 2403.02310).
    Mixed,
    /// As `Mixed` where the longest context exceeds so many tokens, else as `Whole`.
    MixedAbove(f64),
}

impl PrefillPolicy {
    /// Whether prompts, whole or in chunks, share steps with decoding where sequences may have `context` tokens.
    #[must_use]
    pub fn mixed(self, context: f64) -> bool {
        match self {
            PrefillPolicy::Whole | PrefillPolicy::Chunked => false,
            PrefillPolicy::Packed | PrefillPolicy::Mixed => true,
            PrefillPolicy::MixedAbove(least) => context > least,
        }
    }
}

/// Most tokens in one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TokenBudget {
    /// So many.
    Tokens(f64),
    /// As many as the longest context has, and at least so many: a prompt must fit in one step.
    ContextOr(f64),
}

impl TokenBudget {
    /// Tokens, where sequences may have `context` tokens.
    #[must_use]
    pub fn tokens(self, context: f64) -> f64 {
        match self {
            TokenBudget::Tokens(tokens) => tokens,
            TokenBudget::ContextOr(least) => context.max(least),
        }
    }
}

/// How much device memory weights and KV cache may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MemoryRule {
    /// A share of all device memory, 0..1.
    OfTotal(f64),
    /// All weights, and a share of what they leave for the KV cache, 0..1.
    OfFree(f64),
    /// All but a reserve, GiB: a fixed part, and a part for every accelerator of the replica.
    AllBut {
        /// Fixed part, GiB.
        gib: f64,
        /// Part for each accelerator of the replica, GiB.
        per_rank_gib: f64,
    },
}

impl MemoryRule {
    /// The share of all device memory that it amounts to, 0..1: `capacity` and `weights` in bytes of one device,
    /// `ranks` accelerators in a replica.
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

/// What serving software does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServingTraits {
    /// Kind of runtime, which decides the fixed cost of a step.
    pub runtime: Stack,
    /// How requests share the device.
    pub batching: Batching,
    /// When the queue is looked at.
    pub admission: Admission,
    /// Decode steps after which waiting requests interrupt decoding, however few they are. None: they are let in before
    /// every step.
    pub gather_steps: Option<Count>,
    /// Waiting over running requests at which they interrupt decoding before that.
    pub gather_ratio: f64,
    /// Attention over prompts.
    pub attention: AttentionKernel,
    /// Attention in decoding.
    pub decode_attention: DecodeAttention,
    /// What decode steps replay.
    pub decode_graphs: GraphCapture,
    /// Largest batch that is captured, sequences; larger ones run eager. None: any.
    pub graph_batch: Option<Count>,
    /// Longest context that is captured, tokens; longer ones run eager. None: any.
    pub graph_context: Option<Count>,
    /// How prompts are launched.
    pub prompts: PromptLaunch,
    /// What the host does alongside the device.
    pub host: HostOverlap,
    /// The same while tokens are drafted.
    pub host_with_drafts: HostOverlap,
    /// How inputs of a step are prepared.
    pub inputs: StepInputs,
    /// Language of the scheduling loop.
    pub executor: Executor,
    /// A sequence is admitted only when its whole output fits.
    pub reserve_output: bool,
    /// What layers with a sliding window keep.
    pub window_cache: WindowCache,
    /// Products of a few rows.
    pub small_products: SmallProducts,
    /// Whose kernels run.
    pub kernels: KernelLibrary,
    /// How activations are summed over tensor-parallel ranks.
    pub all_reduce: AllReduce,
    /// How drafts are verified.
    pub drafts: DraftVerification,
    /// Shapes that run.
    pub shapes: Shapes,
    /// How experts are multiplied.
    pub experts: ExpertProducts,
    /// How tokens reach experts of other ranks under expert parallelism.
    pub exchange: ExpertExchange,
    /// Over how many ranks experts may be spread.
    pub expert_ranks: ExpertRanks,
    /// Products of 8-bit floating-point weights.
    pub fp8: QuantizedProduct,
    /// Products of 4-bit floating-point weights.
    pub fp4: QuantizedProduct,
    /// Products of 8-bit integer weights.
    pub int8: QuantizedProduct,
    /// Products of 4-bit integer weights; native means 8-bit activations on integer units.
    pub int4: QuantizedProduct,
    /// KV format of quantized checkpoints.
    pub quantized_kv: QuantizedKv,
    /// Most sequences in a step; None: memory decides.
    pub max_num_seqs: Option<Count>,
    /// Most tokens in a step.
    pub max_num_batched_tokens: TokenBudget,
    /// How prompts and decoding share steps.
    pub prefill: PrefillPolicy,
    /// Memory for weights and KV cache.
    pub memory: MemoryRule,
    /// Attention may run data-parallel inside a replica whose ranks share the experts.
    pub attention_dp: bool,
    /// Prefill and decode may run on separate accelerators.
    pub pools: bool,
    /// Tokens may be written straight to experts of other ranks, busy experts may have copies, and two batches may take
    /// turns.
    pub wide_ep: bool,
}

impl ServingTraits {
    /// Whether experts may be spread over `ep` of the `ranks` that share them.
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
            inputs: StepInputs::Rebuilt,
            executor: Executor::Python,
            reserve_output: false,
            window_cache: WindowCache::Whole,
            small_products: SmallProducts::Tuned,
            kernels: KernelLibrary::General,
            all_reduce: AllReduce::Direct,
            drafts: DraftVerification::InPlace,
            shapes: Shapes::Dynamic,
            experts: ExpertProducts::Grouped,
            exchange: ExpertExchange::AllReduce,
            expert_ranks: ExpertRanks::Any,
            fp8: QuantizedProduct::Native,
            fp4: QuantizedProduct::Native,
            int8: QuantizedProduct::Native,
            int4: QuantizedProduct::Unpacked,
            quantized_kv: QuantizedKv::Half,
            max_num_seqs: None,
            max_num_batched_tokens: TokenBudget::Tokens(8192.0),
            prefill: PrefillPolicy::Mixed,
            memory: MemoryRule::OfTotal(0.9),
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
    fn memory_rules_agree_where_they_mean_the_same() {
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
    fn a_token_budget_holds_the_longest_prompt_where_prompts_run_whole() {
        assert_eq!(TokenBudget::ContextOr(2048.0).tokens(32768.0), 32768.0);
        assert_eq!(TokenBudget::ContextOr(2048.0).tokens(512.0), 2048.0);
        assert!(PrefillPolicy::MixedAbove(32768.0).mixed(65536.0) && !PrefillPolicy::MixedAbove(32768.0).mixed(4096.0));
    }
}
