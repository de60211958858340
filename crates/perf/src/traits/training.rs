//! Traits of training software.

use atlas_core::count::Count;
use atlas_core::plan::{CpuOffload, Recompute, Sharding};

use super::{AttentionKernel, ExpertExchange, ExpertProducts, Routing, StepLaunch, words};
use crate::accelerator::Precision;

words! {
    /// When communication overlaps with the computation of another micro-batch.
    MicroBatchOverlap {
        /// Never.
        Never = "never",
        /// Only with an interleaved schedule (virtual pipeline stages).
        Interleaved = "interleaved",
        /// Always.
        Always = "always",
    }

    /// When data-parallel communication overlaps with computation.
    DataOverlap {
        /// Never.
        Never = "never",
        /// Only if weights are sharded as well (ZeRO-3).
        FullySharded = "fully-sharded",
        /// Always.
        Always = "always",
    }

    /// How gradients are accumulated over micro-batches.
    GradientSums {
        /// By the GEMM that computes them, or as part of their reduction.
        Fused = "fused",
        /// As `Separate` when training in bf16, else as `Fused`.
        SeparateInBf16 = "separate-in-bf16",
        /// Weight by weight, after the backward pass.
        Separate = "separate",
    }

    /// What selective recomputation recomputes.
    SelectiveRecompute {
        /// The attention core: scores, softmax, values.
        AttentionCore = "attention-core",
        /// Every second matrix multiplication, and all cheap operators. Dense 8-bit products are kept.
        AlternateProducts = "alternate-products",
        /// As `AlternateProducts`, but all grouped products are recomputed.
        AlternateDense = "alternate-dense",
        /// As `AlternateDense`, but all 8-bit products are recomputed.
        Alternate16Bit = "alternate-16-bit",
        /// Every second layer in full.
        AlternateLayers = "alternate-layers",
    }

    /// Format of gradients.
    GradientFormat {
        /// Single precision.
        Fp32 = "fp32",
        /// The 16-bit format of the computation.
        Compute = "compute",
        /// Single precision when training in bf16, else the format of the computation.
        Fp32InBf16 = "fp32-in-bf16",
    }

    /// Copies of the weights kept during training.
    WeightCopies {
        /// A 16-bit copy for the matrix multiplications, and fp32 master weights in the optimizer.
        HalfAndMaster = "half-and-master",
        /// fp32 weights only, cast when they are gathered or multiplied.
        MasterOnly = "master-only",
    }

    /// When fully sharded weights are gathered.
    Regather {
        /// In the forward and backward pass of every micro-batch.
        EveryMicroBatch = "every-micro-batch",
        /// As `OncePerStep` with pipeline parallelism, else as `EveryMicroBatch`.
        OnceUnderPipeline = "once-under-pipeline",
        /// As `OncePerStep` with pipeline parallelism or in mixtures of experts, else as `EveryMicroBatch`.
        OnceWithExperts = "once-with-experts",
        /// Once per step; weights stay gathered until the step ends.
        OncePerStep = "once-per-step",
    }

    /// How many tensor-parallel ranks share an expert unless the number is stated.
    ExpertSplit {
        /// All tensor-parallel ranks.
        TensorParallel = "tensor-parallel",
        /// All tensor-parallel ranks without expert parallelism, else one: expert-parallel ranks hold whole experts.
        WithoutExpertParallel = "without-expert-parallel",
        /// One.
        Whole = "whole",
    }

    /// When sharded gradients (ZeRO-2 and ZeRO-3) are reduced.
    GradientReduction {
        /// In every micro-batch.
        EveryMicroBatch = "every-micro-batch",
        /// In the last micro-batch. Until then, every rank holds the sums of all gradients in the format in which they
        /// are reduced.
        LastMicroBatch = "last-micro-batch",
    }

    /// What fully sharded training copies besides communicating, on the stream that computes unless stated otherwise.
    ShardCopies {
        /// Nothing: weights are gathered where layers read them, and gradients reduced where layers write them.
        None = "none",
        /// Gradients: they are concatenated into the buffer that is reduced.
        Gradients = "gradients",
        /// Gathered weights are copied out of the communication buffer, and gradients into another in the format of the
        /// reduction.
        WeightsAndGradients = "weights-and-gradients",
        /// Gathered weights are copied out of the communication buffer. Gradients are copied into a bucket, ordered by
        /// rank and divided. All of it runs on the streams of the collectives.
        Buckets = "buckets",
    }

    /// What tensor-parallel ranks compute for their own tokens only, besides norms and residuals, under sequence
    /// parallelism. Other blocks gather their whole input.
    TokenSplit {
        /// Nothing.
        Norms = "norms",
        /// Routing and dispatch of mixtures of experts.
        Routing = "routing",
        /// As `Routing`, and the compressions of latent attention, whose outputs are gathered instead of its input.
        RoutingAndCompressions = "routing-and-compressions",
    }

    /// How a global batch that exceeds the micro-batches of all ranks is handled by default.
    Accumulation {
        /// Gradients are accumulated over micro-batches.
        MicroBatches = "micro-batches",
        /// A rank's share of the global batch runs as one micro-batch.
        WholeBatch = "whole-batch",
    }
}

impl GradientFormat {
    /// Bytes of one element in a run that computes in `precision`.
    #[must_use]
    pub const fn bytes(self, precision: Precision) -> f64 {
        match (self, precision) {
            (GradientFormat::Fp32, _) | (_, Precision::Fp32 | Precision::Tf32) => 4.0,
            (GradientFormat::Fp32InBf16, Precision::Bf16) => 4.0,
            (GradientFormat::Compute | GradientFormat::Fp32InBf16, _) => 2.0,
        }
    }
}

impl DataOverlap {
    /// Whether communication overlaps with `sharding`.
    #[must_use]
    pub fn applies(self, sharding: Sharding) -> bool {
        match self {
            DataOverlap::Never => false,
            DataOverlap::FullySharded => sharding == Sharding::Zero3,
            DataOverlap::Always => true,
        }
    }
}

impl MicroBatchOverlap {
    /// Whether communication overlaps with `vpp` model chunks per stage.
    #[must_use]
    pub fn applies(self, vpp: f64) -> bool {
        match self {
            MicroBatchOverlap::Never => false,
            MicroBatchOverlap::Interleaved => vpp > 1.0,
            MicroBatchOverlap::Always => true,
        }
    }
}

impl ExpertSplit {
    /// Number of ranks that share an expert, with `tp` tensor-parallel and `ep` expert-parallel ranks.
    #[must_use]
    pub fn ranks(self, tp: Count, ep: Count) -> Count {
        match self {
            ExpertSplit::TensorParallel => tp,
            ExpertSplit::WithoutExpertParallel if ep <= 1.0 => tp,
            ExpertSplit::WithoutExpertParallel | ExpertSplit::Whole => Count::ONE,
        }
    }
}

impl SelectiveRecompute {
    /// Whether every second matrix multiplication is recomputed.
    #[must_use]
    pub const fn alternates(self) -> bool {
        matches!(
            self,
            SelectiveRecompute::AlternateProducts
                | SelectiveRecompute::AlternateDense
                | SelectiveRecompute::Alternate16Bit
        )
    }

    /// Share of dense 8-bit products that is recomputed if products alternate.
    #[must_use]
    pub const fn share_of_8_bit(self) -> f64 {
        if matches!(self, SelectiveRecompute::Alternate16Bit) { 1.0 } else { 0.0 }
    }

    /// Share of grouped products that is recomputed if products alternate.
    #[must_use]
    pub const fn share_of_grouped(self) -> f64 {
        if matches!(self, SelectiveRecompute::AlternateProducts) { 0.5 } else { 1.0 }
    }
}

impl GradientSums {
    /// Whether accumulation is fused in a run that computes in `precision`.
    #[must_use]
    pub fn fused(self, precision: Precision) -> bool {
        match self {
            GradientSums::Fused => true,
            GradientSums::SeparateInBf16 => precision != Precision::Bf16,
            GradientSums::Separate => false,
        }
    }
}

/// Traits of training software.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingTraits {
    /// Attention kernel.
    pub attention: AttentionKernel,
    /// Chains of element-wise operators are fused into few kernels.
    pub fused_elementwise: bool,
    /// How kernels are launched.
    pub launch: StepLaunch,
    /// How the GEMMs of the experts run.
    pub experts: ExpertProducts,
    /// Routing, permutation and unpermutation of tokens are fused kernels.
    pub fused_permutation: bool,
    /// Where the number of tokens per expert is needed. Runs that drop tokens beyond a capacity never wait for it.
    pub routing: Routing,
    /// How tokens are exchanged between experts.
    pub exchange: ExpertExchange,
    /// Tensor-parallel collectives are split and overlapped with their GEMMs.
    pub overlap_tensor: bool,
    /// When pipeline transfers overlap with computation.
    pub overlap_pipeline: MicroBatchOverlap,
    /// When the exchange of tokens between experts overlaps with the computation of another micro-batch.
    pub overlap_experts: MicroBatchOverlap,
    /// When gradient reduction overlaps with the backward pass.
    pub overlap_gradients: DataOverlap,
    /// When weight gathering overlaps with the forward (and backward) pass.
    pub overlap_parameters: DataOverlap,
    /// How gradients are accumulated over micro-batches.
    pub gradient_sums: GradientSums,
    /// Dropout is applied, and its masks are stored.
    pub dropout: bool,
    /// What selective recomputation recomputes.
    pub selective_recompute: SelectiveRecompute,
    /// Default recomputation.
    pub recompute: Recompute,
    /// Copies of the weights kept during training.
    pub weights: WeightCopies,
    /// Format in which gradients are kept.
    pub gradient_format: GradientFormat,
    /// Format in which gradients are reduced.
    pub reduce_format: GradientFormat,
    /// Device memory allocated for communication buckets where model states are sharded, bytes.
    pub bucket_bytes: f64,
    /// Default sharding of model states.
    pub sharding: Sharding,
    /// Highest level of sharding supported.
    pub most_sharding: Sharding,
    /// Highest level of sharding supported with several pipeline stages.
    pub most_sharding_with_pipeline: Sharding,
    /// Layers can be split over tensor-parallel ranks.
    pub tensor_parallel: bool,
    /// Layers can be distributed over pipeline stages.
    pub pipeline_parallel: bool,
    /// The most that can be offloaded to host memory.
    pub most_offload: CpuOffload,
    /// Pipeline schedules can split the backward pass into gradients of inputs and of weights (zero bubble).
    pub zero_bubble: bool,
    /// When fully sharded weights are gathered.
    pub regather: Regather,
    /// When sharded gradients are reduced.
    pub gradient_reduction: GradientReduction,
    /// What fully sharded training copies besides communicating.
    pub shard_copies: ShardCopies,
    /// Norms and residuals are split over tensor-parallel ranks by default.
    pub sequence_parallel: bool,
    /// What tensor-parallel ranks compute for their own tokens only under sequence parallelism.
    pub token_split: TokenSplit,
    /// How many tensor-parallel ranks share an expert by default.
    pub expert_split: ExpertSplit,
    /// int8 matrix multiplications are supported.
    pub int8: bool,
    /// How a global batch that exceeds the micro-batches of all ranks is handled by default.
    pub accumulation: Accumulation,
}

impl Default for TrainingTraits {
    fn default() -> Self {
        TrainingTraits {
            attention: AttentionKernel::Flash2,
            fused_elementwise: false,
            launch: StepLaunch::Eager,
            experts: ExpertProducts::Grouped,
            fused_permutation: false,
            routing: Routing::HostSync,
            exchange: ExpertExchange::AllToAll,
            overlap_tensor: false,
            overlap_pipeline: MicroBatchOverlap::Always,
            overlap_experts: MicroBatchOverlap::Never,
            overlap_gradients: DataOverlap::Always,
            overlap_parameters: DataOverlap::Always,
            gradient_sums: GradientSums::Fused,
            dropout: false,
            selective_recompute: SelectiveRecompute::AttentionCore,
            recompute: Recompute::Auto,
            weights: WeightCopies::HalfAndMaster,
            gradient_format: GradientFormat::Fp32,
            reduce_format: GradientFormat::Fp32,
            bucket_bytes: 0.0,
            sharding: Sharding::Zero1,
            most_sharding: Sharding::Zero3,
            most_sharding_with_pipeline: Sharding::Zero3,
            tensor_parallel: true,
            pipeline_parallel: true,
            most_offload: CpuOffload::Parameters,
            zero_bubble: true,
            regather: Regather::EveryMicroBatch,
            gradient_reduction: GradientReduction::EveryMicroBatch,
            shard_copies: ShardCopies::None,
            sequence_parallel: true,
            token_split: TokenSplit::Routing,
            expert_split: ExpertSplit::WithoutExpertParallel,
            int8: false,
            accumulation: Accumulation::MicroBatches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn experts_are_split_like_other_layers_or_not_at_all() {
        let (four, one) = (Count::new(4), Count::ONE);
        let ranks = |split: ExpertSplit| [one, four].map(|ep| split.ranks(four, ep));
        assert_eq!(ranks(ExpertSplit::TensorParallel), [four, four]);
        assert_eq!(ranks(ExpertSplit::WithoutExpertParallel), [four, one]);
        assert_eq!(ranks(ExpertSplit::Whole), [one, one]);
    }

    #[test]
    fn overlap_applies_by_sharding_and_chunks_and_sums_fuse_by_precision() {
        assert!(
            DataOverlap::FullySharded.applies(Sharding::Zero3) && !DataOverlap::FullySharded.applies(Sharding::Zero1)
        );
        assert!(MicroBatchOverlap::Interleaved.applies(2.0) && !MicroBatchOverlap::Interleaved.applies(1.0));
        assert!(
            GradientSums::SeparateInBf16.fused(Precision::Fp16) && !GradientSums::SeparateInBf16.fused(Precision::Bf16)
        );
    }
}
