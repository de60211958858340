//! Table of the traits: keys, values in documents, and descriptions.

use atlas_core::count::Count;
use atlas_core::plan::{CpuOffload, Recompute, Sharding};
use atlas_document::Node;
use atlas_perf::serving::{Admission, Stack};
use atlas_perf::traits::*;

/// Value of a trait in documents.
pub(super) trait Value: Sized + Copy {
    /// Decodes a value. The error states what was expected.
    fn read(node: &Node) -> Result<Self, String>;
    /// Formats a value as in documents.
    fn format_value(&self) -> String;
}

fn expected_one_of<T>(words: &[(&str, T)]) -> String {
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    format!("one of {}", names.join(", "))
}

/// Implements [`Value`] for types with one word per value.
macro_rules! word_values {
    ($($name:ty: $words:expr;)+) => { $(
        impl Value for $name {
            fn read(node: &Node) -> Result<Self, String> {
                let found = node.text().and_then(|text| $words.iter().find(|(name, _)| *name == text));
                found.map(|(_, value)| *value).ok_or_else(|| expected_one_of($words))
            }

            fn format_value(&self) -> String {
                let found = $words.iter().find(|(_, value)| value == self);
                found.map_or_else(|| format!("{self:?}"), |(name, _)| (*name).to_owned())
            }
        }
    )+ };
}

const STACKS: &[(&str, Stack)] =
    &[("compiled", Stack::Compiled), ("graphed", Stack::Graphed), ("eager", Stack::Eager), ("local", Stack::Local)];
const ADMISSIONS: &[(&str, Admission)] =
    &[("every-step", Admission::EveryStep), ("batched", Admission::Batched), ("polled", Admission::Polled)];

word_values! {
    Stack: STACKS;
    Admission: ADMISSIONS;
    Sharding: Sharding::WORDS;
    CpuOffload: CpuOffload::WORDS;
    Recompute: Recompute::WORDS;
    AttentionKernel: AttentionKernel::WORDS;
    StepLaunch: StepLaunch::WORDS;
    ExpertProducts: ExpertProducts::WORDS;
    Routing: Routing::WORDS;
    ExpertExchange: ExpertExchange::WORDS;
    ExpertRanks: ExpertRanks::WORDS;
    MicroBatchOverlap: MicroBatchOverlap::WORDS;
    DataOverlap: DataOverlap::WORDS;
    GradientSums: GradientSums::WORDS;
    SelectiveRecompute: SelectiveRecompute::WORDS;
    GradientFormat: GradientFormat::WORDS;
    WeightCopies: WeightCopies::WORDS;
    Regather: Regather::WORDS;
    GradientReduction: GradientReduction::WORDS;
    ShardCopies: ShardCopies::WORDS;
    TokenSplit: TokenSplit::WORDS;
    ExpertSplit: ExpertSplit::WORDS;
    Accumulation: Accumulation::WORDS;
    Batching: Batching::WORDS;
    DecodeAttention: DecodeAttention::WORDS;
    GraphCapture: GraphCapture::WORDS;
    PromptLaunch: PromptLaunch::WORDS;
    HostOverlap: HostOverlap::WORDS;
    ModelSplit: ModelSplit::WORDS;
    Executor: Executor::WORDS;
    SmallProducts: SmallProducts::WORDS;
    StepInputs: StepInputs::WORDS;
    WindowCache: WindowCache::WORDS;
    QuantizedEnds: QuantizedEnds::WORDS;
    LimitScope: LimitScope::WORDS;
    BeamLimit: BeamLimit::WORDS;
    KernelLibrary: KernelLibrary::WORDS;
    AllReduce: AllReduce::WORDS;
    DraftVerification: DraftVerification::WORDS;
    Shapes: Shapes::WORDS;
    QuantizedProduct: QuantizedProduct::WORDS;
    QuantizedKv: QuantizedKv::WORDS;
}

impl Value for bool {
    fn read(node: &Node) -> Result<bool, String> {
        match node.value {
            atlas_document::Value::Bool(value) => Ok(value),
            _ => Err("true or false".to_owned()),
        }
    }

    fn format_value(&self) -> String {
        self.to_string()
    }
}

/// Returns a finite, non-negative number.
fn non_negative_number(node: &Node) -> Option<f64> {
    node.number().filter(|value| value.is_finite() && *value >= 0.0)
}

impl Value for f64 {
    fn read(node: &Node) -> Result<f64, String> {
        non_negative_number(node).ok_or_else(|| "a number from 0".to_owned())
    }

    fn format_value(&self) -> String {
        self.to_string()
    }
}

impl Value for Count {
    fn read(node: &Node) -> Result<Count, String> {
        let count = non_negative_number(node).and_then(Count::from_exact).and_then(Count::nonzero);
        count.ok_or_else(|| "a whole number from 1".to_owned())
    }

    fn format_value(&self) -> String {
        self.to_string()
    }
}

impl Value for Option<Count> {
    fn read(node: &Node) -> Result<Option<Count>, String> {
        if node.text() == Some("any") {
            return Ok(None);
        }
        Count::read(node).map(Some).map_err(|expected| format!("{expected}, or any"))
    }

    fn format_value(&self) -> String {
        self.map_or_else(|| "any".to_owned(), |value| value.format_value())
    }
}

/// The number under a key of a mapping.
fn number_under_key(node: &Node, key: &str) -> Option<f64> {
    node.get(key).and_then(non_negative_number)
}

impl Value for PrefillPolicy {
    fn read(node: &Node) -> Result<PrefillPolicy, String> {
        match node.text() {
            Some("whole") => return Ok(PrefillPolicy::Whole),
            Some("packed") => return Ok(PrefillPolicy::Packed),
            Some("chunked") => return Ok(PrefillPolicy::Chunked),
            Some("mixed") => return Ok(PrefillPolicy::Mixed),
            _ => {}
        }
        let above = number_under_key(node, "mixed_above").map(PrefillPolicy::MixedAbove);
        above.ok_or_else(|| "whole, packed, chunked, mixed, or { mixed_above: tokens }".to_owned())
    }

    fn format_value(&self) -> String {
        match self {
            PrefillPolicy::Whole => "whole".to_owned(),
            PrefillPolicy::Packed => "packed".to_owned(),
            PrefillPolicy::Chunked => "chunked".to_owned(),
            PrefillPolicy::Mixed => "mixed".to_owned(),
            PrefillPolicy::MixedAbove(tokens) => format!("mixed above {tokens} tokens"),
        }
    }
}

impl Value for TokenBudget {
    fn read(node: &Node) -> Result<TokenBudget, String> {
        let plain = non_negative_number(node).filter(|tokens| *tokens >= 1.0).map(TokenBudget::Tokens);
        let context = || number_under_key(node, "context_or").map(TokenBudget::ContextOr);
        plain.or_else(context).ok_or_else(|| "a number from 1, or { context_or: tokens }".to_owned())
    }

    fn format_value(&self) -> String {
        match self {
            TokenBudget::Tokens(tokens) => tokens.to_string(),
            TokenBudget::ContextOr(least) => format!("longest context, at least {least}"),
        }
    }
}

impl Value for MemoryRule {
    fn read(node: &Node) -> Result<MemoryRule, String> {
        let share = |key| number_under_key(node, key).filter(|share| *share <= 1.0);
        if let Some(share) = share("of_total") {
            return Ok(MemoryRule::OfTotal(share));
        }
        if let Some(share) = share("of_free") {
            return Ok(MemoryRule::OfFree(share));
        }
        let per_rank_gib = number_under_key(node, "per_rank_gib").unwrap_or(0.0);
        let reserve = number_under_key(node, "reserve_gib").map(|gib| MemoryRule::AllBut { gib, per_rank_gib });
        reserve.ok_or_else(|| "{ of_total: 0..1 }, { of_free: 0..1 } or { reserve_gib, per_rank_gib }".to_owned())
    }

    fn format_value(&self) -> String {
        match self {
            MemoryRule::OfTotal(share) => format!("{share} of all memory"),
            MemoryRule::OfFree(share) => format!("{share} of the memory left by the weights"),
            MemoryRule::AllBut { gib, per_rank_gib: 0.0 } => format!("all but {gib} GiB"),
            MemoryRule::AllBut { gib, per_rank_gib } => {
                format!("all but {gib} GiB and {per_rank_gib} GiB per accelerator of a replica")
            }
        }
    }
}

/// Key and description of a trait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraitField {
    /// Key in documents.
    pub key: &'static str,
    /// Short description.
    pub help: &'static str,
}

/// Declares the traits of one kind of software, an enum of changes to them, and the table of their names.
macro_rules! section {
    ($(#[$meta:meta])* $change:ident of $traits:ident as $fields:ident { $($key:ident: $kind:ty, $help:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[allow(non_camel_case_types)]
        pub(super) enum $change { $($key($kind),)+ }

        /// Traits, in display order.
        pub const $fields: &[TraitField] = &[$(TraitField { key: stringify!($key), help: $help },)+];

        impl $change {
            /// Decodes the value of the trait `key`. Returns `None` if there is no such trait. The error states what
            /// was expected.
            pub(super) fn read(key: &str, node: &Node) -> Option<Result<$change, String>> {
                match key {
                    $(stringify!($key) => Some(<$kind as Value>::read(node).map($change::$key)),)+
                    _ => None,
                }
            }

            /// The key of its trait.
            pub(super) fn key(&self) -> &'static str {
                match self { $($change::$key(_) => stringify!($key),)+ }
            }

            /// Formats the value as in documents.
            pub(super) fn format_value(&self) -> String {
                match self { $($change::$key(value) => Value::format_value(value),)+ }
            }

            /// Sets the trait in `traits`.
            pub(super) fn apply(&self, traits: &mut $traits) {
                match self { $($change::$key(value) => traits.$key = *value,)+ }
            }

            /// Returns the values of all traits in `traits`, in display order. Does not compile if a trait is missing
            /// from the declaration.
            pub(super) fn all(traits: &$traits) -> Vec<$change> {
                let $traits { $($key,)+ } = *traits;
                vec![$($change::$key($key),)+]
            }
        }
    };
}

section! {
    /// A change to one training trait.
    TrainingChange of TrainingTraits as TRAINING_FIELDS {
        attention: AttentionKernel, "attention kernel";
        fused_elementwise: bool, "chains of element-wise operations are fused";
        launch: StepLaunch, "how kernels are launched";
        experts: ExpertProducts, "how expert GEMMs run";
        fused_permutation: bool, "routing and permutation are fused kernels";
        routing: Routing, "where the number of tokens per expert is known";
        exchange: ExpertExchange, "how tokens are exchanged between expert ranks";
        overlap_tensor: bool, "tensor-parallel collectives overlap with GEMMs";
        overlap_pipeline: MicroBatchOverlap, "pipeline transfers overlap compute";
        overlap_experts: MicroBatchOverlap, "expert all-to-all overlaps another micro-batch";
        overlap_gradients: DataOverlap, "gradient reduction overlaps the backward pass";
        overlap_parameters: DataOverlap, "weight gathering overlaps compute";
        gradient_sums: GradientSums, "how gradients of micro-batches are summed";
        dropout: bool, "dropout masks are kept";
        selective_recompute: SelectiveRecompute, "operations recomputed by selective recomputation";
        recompute: Recompute, "default recomputation";
        weights: WeightCopies, "copies of the weights";
        gradient_format: GradientFormat, "format in which gradients are kept";
        reduce_format: GradientFormat, "format in which gradients are reduced";
        bucket_bytes: f64, "memory for communication buckets, bytes";
        sharding: Sharding, "default sharding";
        most_sharding: Sharding, "maximum sharding";
        most_sharding_with_pipeline: Sharding, "maximum sharding with pipeline parallelism";
        tensor_parallel: bool, "layers may be split over tensor-parallel ranks";
        pipeline_parallel: bool, "layers may be distributed over pipeline stages";
        most_offload: CpuOffload, "the most that host memory may hold";
        zero_bubble: bool, "pipelines may split backward passes (zero bubble)";
        regather: Regather, "when fully sharded weights are gathered";
        gradient_reduction: GradientReduction, "when sharded gradients are reduced";
        shard_copies: ShardCopies, "what fully sharded training copies besides communicating";
        sequence_parallel: bool, "sequence parallelism with tensor parallelism, by default";
        token_split: TokenSplit, "what tensor-parallel ranks compute for their own tokens";
        expert_split: ExpertSplit, "tensor-parallel ranks that share an expert, by default";
        int8: bool, "GEMMs can run in int8";
        accumulation: Accumulation, "how gradient accumulation works";
    }
}

section! {
    /// A change to one serving trait.
    ServingChange of ServingTraits as SERVING_FIELDS {
        runtime: Stack, "kind of runtime";
        batching: Batching, "how requests share the device";
        admission: Admission, "when the request queue is checked";
        gather_steps: Option<Count>, "maximum decode steps before waiting requests are admitted";
        gather_ratio: f64, "ratio of waiting to running requests at which they are admitted earlier";
        attention: AttentionKernel, "prefill attention kernel";
        decode_attention: DecodeAttention, "decode attention kernel";
        decode_graphs: GraphCapture, "parts of a decode step captured as graphs";
        graph_batch: Option<Count>, "largest captured batch, sequences";
        graph_context: Option<Count>, "longest captured context, tokens";
        prompts: PromptLaunch, "how prefill is launched";
        host: HostOverlap, "overlap of host work with device work";
        host_with_drafts: HostOverlap, "overlap of host work with device work in speculative decoding";
        host_with_pipeline: HostOverlap, "the most host work that overlaps with several pipeline stages";
        inputs: StepInputs, "how the host prepares the inputs of a step";
        window_cache: WindowCache, "KV cache kept by sliding-window layers";
        expanded_prefix: Option<Count>, "cached tokens from which latent attention expands prefixes";
        kv_block: Count, "tokens of a block of the KV cache";
        limits: LimitScope, "what limits on sequences and tokens apply to with attention groups";
        beam_limit: BeamLimit, "what the limit on sequences counts in beam search";
        ends: QuantizedEnds, "format of embedding and output layer in quantized checkpoints";
        executor: Executor, "language of the scheduling loop";
        reserve_output: bool, "admit a sequence only if its whole output fits";
        small_products: SmallProducts, "kernels for GEMMs with few rows";
        kernels: KernelLibrary, "library of GEMM and attention kernels";
        all_reduce: AllReduce, "tensor-parallel all-reduce implementation";
        in_switch_reduction: bool, "NVLink switches add up large all-reduces (NVLS)";
        drafts: DraftVerification, "how draft tokens are verified";
        shapes: Shapes, "supported shapes";
        experts: ExpertProducts, "how expert GEMMs run";
        int4_experts: ExpertProducts, "how GEMMs of experts with int4 weights run";
        narrow_experts: ExpertProducts, "how GEMMs of experts with 8-bit weights run";
        exchange: ExpertExchange, "how tokens are exchanged between expert ranks";
        expert_ranks: ExpertRanks, "ranks of a replica over which experts can be distributed";
        fp8: QuantizedProduct, "GEMMs with fp8 weights";
        fp4: QuantizedProduct, "GEMMs with fp4 weights";
        int8: QuantizedProduct, "GEMMs with int8 weights";
        int4: QuantizedProduct, "GEMMs with int4 weights";
        quantized_kv: QuantizedKv, "KV format of quantized checkpoints";
        max_num_seqs: Option<Count>, "maximum sequences per step";
        max_num_seqs_with_drafts: Option<Count>, "maximum sequences per step with speculative decoding, if lower";
        max_num_batched_tokens: TokenBudget, "maximum tokens per step";
        prefill: PrefillPolicy, "how prefill and decode share steps";
        memory: MemoryRule, "memory for weights and KV cache";
        split: ModelSplit, "what is split over several devices by default";
        attention_dp: bool, "data-parallel attention with shared experts";
        pools: bool, "disaggregated prefill and decode";
        wide_ep: bool, "wide expert parallelism: direct dispatch, redundant experts, two-batch overlap";
    }
}
