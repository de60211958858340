//! Runtime, formats and scheduler of a deployment, from the traits of its software.

use super::Machine;
use atlas_config::workload::PlanSpec;
use atlas_core::count::Count;
use atlas_core::plan::{AttentionKernel, Format};
use atlas_perf::arch::Architecture;
use atlas_perf::roofline::FusedAttention;
use atlas_perf::serving::formats::{Refused, Stated, formats, supported, supported_16_bit_format};
use atlas_perf::serving::{Admission, AllReduce, Formats, Gathering, KernelLibrary, Stack, StepInputs};
use atlas_perf::traits::GraphCapture;
use atlas_perf::traits::{
    Batching, BeamLimit, DecodeAttention, DraftVerification, Executor, ExpertProducts, HostOverlap, LimitScope,
    MemoryRule, PromptLaunch, ServingTraits, Shapes, SmallProducts, WindowCache,
};

/// Runtime, formats and scheduler of a deployment: the defaults of its software, with the stated formats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServingDefaults {
    /// Kind of runtime.
    pub stack: Stack,
    /// Whether batching is continuous: requests join and leave between steps.
    pub continuous: bool,
    /// How requests are admitted.
    pub admission: Admission,
    /// How waiting requests are gathered before they interrupt decoding.
    pub gathering: Option<Gathering>,
    /// Largest batch whose decode steps replay captured graphs, sequences; `None` if there is no limit.
    pub graph_batch: Option<Count>,
    /// Part of a decode step that replays captured graphs.
    pub graphs: GraphCapture,
    /// Whether prefill runs eagerly, kernel by kernel.
    pub eager_prompts: bool,
    /// How the GEMMs of the experts run.
    pub expert_products: ExpertProducts,
    /// Whether decode attention reads the KV cache once per group of query heads.
    pub grouped_query_decode: bool,
    /// Whether GEMMs with few rows use tuned kernels.
    pub tuned_products: bool,
    /// How the host prepares the inputs of a step.
    pub inputs: StepInputs,
    /// Library of most GEMM and attention kernels.
    pub kernels: KernelLibrary,
    /// All-reduce algorithm for activations over tensor-parallel ranks.
    pub all_reduce: AllReduce,
    /// Whether large all-reduces are added up in the switch where it can.
    pub in_switch_reduction: bool,
    /// Whether drafted tokens are verified as separate sequences.
    pub expanded_drafts: bool,
    /// Whether graphs have fixed shapes.
    pub fixed_shapes: bool,
    /// Whether there are graphs for several batch sizes.
    pub batch_buckets: bool,
    /// Host work that overlaps with accelerator computation.
    pub host: HostOverlap,
    /// Like `host`, with speculative decoding.
    pub host_with_drafts: HostOverlap,
    /// Maximum of either with several pipeline stages.
    pub host_with_pipeline: HostOverlap,
    /// Generation of the prefill attention kernel.
    pub attention: FusedAttention,
    /// Whether a compiled runtime is driven from Python.
    pub python_executor: bool,
    /// Whether a sequence is admitted only if its whole output fits.
    pub reserve_output: bool,
    /// Whether layers with a sliding window keep the KV cache of the whole sequence.
    pub full_window_cache: bool,
    /// Cached tokens of a step from which latent attention expands prefixes.
    pub expanded_prefix: Count,
    /// Tokens of a block of the KV cache.
    pub kv_block: Count,
    /// Whether stated limits on sequences and tokens of a step apply to all attention groups together.
    pub server_limits: bool,
    /// Whether each beam counts as a sequence.
    pub beams_are_sequences: bool,
    /// Format of the weights in effect.
    pub format: Format,
    /// Whether it is NVFP4.
    pub nvfp4: bool,
    /// Requested format, if it was replaced by another of the same width that the device supports.
    pub substitute_for: Option<Format>,
    /// Formats that the device or software does not support, if any.
    pub refused: Option<Refused>,
    /// Bytes and arithmetic of weights and KV cache.
    pub formats: Formats,
    /// Maximum sequences per step.
    pub max_num_seqs: Count,
    /// Maximum tokens per step.
    pub max_num_batched_tokens: f64,
    /// Whether prompt chunks share steps with decoding.
    pub chunked_prefill: bool,
    /// Memory available for weights and KV cache.
    pub memory: MemoryRule,
}

/// Generation of a prefill attention kernel. Unfused attention is no faster than the first fused one.
fn fused_attention(kernel: AttentionKernel) -> FusedAttention {
    match kernel {
        AttentionKernel::Unfused | AttentionKernel::Flash1 => FusedAttention::First,
        AttentionKernel::Flash2 => FusedAttention::Second,
        AttentionKernel::Native => FusedAttention::Native,
    }
}

/// Maximum sequences per step if only memory limits them.
const UNLIMITED: Count = Count::new(2048);

impl Default for ServingDefaults {
    fn default() -> ServingDefaults {
        ServingDefaults::with(&ServingTraits::default(), Format::Bf16, Formats::default(), 0.0, false)
    }
}

impl ServingDefaults {
    fn with(t: &ServingTraits, format: Format, formats: Formats, context: f64, drafts: bool) -> ServingDefaults {
        let limits = [t.max_num_seqs, t.max_num_seqs_with_drafts.filter(|_| drafts)];
        let captured = t.graph_context.is_none_or(|limit| context <= limit);
        ServingDefaults {
            stack: t.runtime,
            continuous: t.batching == Batching::Continuous,
            admission: t.admission,
            gathering: t.gather_steps.map(|steps| Gathering { steps, ratio: t.gather_ratio }),
            graph_batch: t.graph_batch,
            graphs: if captured { t.decode_graphs } else { GraphCapture::None },
            eager_prompts: t.prompts == PromptLaunch::Eager,
            expert_products: t.experts,
            grouped_query_decode: t.decode_attention == DecodeAttention::Grouped,
            tuned_products: t.small_products == SmallProducts::Tuned,
            inputs: t.inputs,
            kernels: t.kernels,
            all_reduce: t.all_reduce,
            in_switch_reduction: t.in_switch_reduction,
            expanded_drafts: t.drafts == DraftVerification::Expanded,
            fixed_shapes: t.shapes != Shapes::Dynamic,
            batch_buckets: t.shapes == Shapes::Bucketed,
            host: t.host,
            host_with_drafts: t.host_with_drafts,
            host_with_pipeline: t.host_with_pipeline,
            attention: fused_attention(t.attention),
            python_executor: t.runtime == Stack::Compiled && t.executor == Executor::Python,
            reserve_output: t.reserve_output,
            full_window_cache: t.window_cache == WindowCache::Whole,
            expanded_prefix: t.expanded_prefix.unwrap_or(Count::ZERO),
            kv_block: t.kv_block,
            server_limits: t.limits == LimitScope::Server,
            beams_are_sequences: t.beam_limit == BeamLimit::Beams,
            format,
            nvfp4: false,
            substitute_for: None,
            refused: None,
            formats,
            max_num_seqs: limits.into_iter().flatten().min().unwrap_or(UNLIMITED),
            max_num_batched_tokens: t.max_num_batched_tokens.tokens(context),
            chunked_prefill: t.prefill.mixed(context),
            memory: t.memory,
        }
    }

    /// Defaults of the software on this machine for this model, whose published weights have format `native`. Weights in
    /// 4-bit floating point are NVFP4 if `nvfp4`.
    pub(super) fn of(
        t: &ServingTraits,
        phase: (&PlanSpec, f64),
        machine: &Machine,
        model: &Architecture,
        native: Option<Format>,
        nvfp4: bool,
    ) -> ServingDefaults {
        let (plan, context) = phase;
        let drafts = plan.serving.draft_tokens.is_some_and(|tokens| tokens > 0.0);
        let device = &machine.device;
        let requested = plan.format.or(native).unwrap_or(Format::Bf16);
        let format = supported_16_bit_format(device, requested);
        let compute = plan.compute.map(|compute| supported_16_bit_format(device, compute));
        // Experts in the format of the weights are the default.
        let experts = plan.experts.filter(|experts| supported_16_bit_format(device, *experts) != format);
        let stated = Stated { weights: format, experts, bits: plan.weight_bits, nvfp4, compute, kv: plan.kv };
        ServingDefaults {
            expert_products: expert_products(t, experts.unwrap_or(format)),
            substitute_for: (format != requested).then_some(requested),
            refused: supported(device, &stated, t).err(),
            nvfp4,
            ..ServingDefaults::with(t, format, formats(device, model, &stated, t), context, drafts)
        }
    }
}

/// How the GEMMs of experts with weights in `format` run.
fn expert_products(t: &ServingTraits, format: Format) -> ExpertProducts {
    if !matches!(t.experts, ExpertProducts::Grouped | ExpertProducts::Triton) {
        return t.experts;
    }
    match format {
        Format::Int4 => t.int4_experts,
        // The vendor's library has a grouped kernel of its own.
        _ if t.kernels == KernelLibrary::Vendor => ExpertProducts::Grouped,
        Format::Bf16 | Format::Fp16 | Format::Fp32 | Format::Tf32 => t.experts,
        Format::Fp8 | Format::Mxfp8 | Format::Int8 => t.narrow_experts,
        _ => ExpertProducts::Grouped,
    }
}
