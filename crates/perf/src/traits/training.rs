//! Traits of training software.

use atlas_core::plan::{Recompute, Sharding};

use super::{AttentionKernel, ExpertExchange, ExpertProducts, Routing, StepLaunch, words};
use crate::accelerator::Precision;

words! {
    /// When communication runs alongside another micro-batch.
    MicroBatchOverlap {
        /// Never.
        Never = "never",
        /// Only under an interleaved schedule (virtual pipeline stages).
        Interleaved = "interleaved",
        /// Always.
        Always = "always",
    }

    /// When data-parallel communication runs alongside compute.
    DataOverlap {
        /// Never.
        Never = "never",
        /// Only where weights are sharded too.
        FullySharded = "fully-sharded",
        /// Always.
        Always = "always",
    }

    /// How gradients of several micro-batches are summed.
    GradientSums {
        /// By the product that makes them, or as they are reduced.
        Fused = "fused",
        /// Weight by weight after the backward pass when training in bf16, else fused.
        SeparateInBf16 = "separate-in-bf16",
        /// Weight by weight after the backward pass.
        Separate = "separate",
    }

    /// What selective recomputation runs again.
    SelectiveRecompute {
        /// The attention core: scores, softmax, values.
        AttentionCore = "attention-core",
        /// Every other matrix product, and all that is cheap.
        AlternateProducts = "alternate-products",
        /// Every second layer in full.
        AlternateLayers = "alternate-layers",
    }

    /// Format of gradients.
    GradientFormat {
        /// Single precision.
        Fp32 = "fp32",
        /// The 16-bit format that the run computes in.
        Compute = "compute",
        /// Single precision when training in bf16, else the format that the run computes in.
        Fp32InBf16 = "fp32-in-bf16",
    }

    /// Copies of the weights that a run keeps.
    WeightCopies {
        /// A 16-bit copy that is multiplied, and fp32 master weights in the optimizer.
        HalfAndMaster = "half-and-master",
        /// fp32 weights only, cast as they are gathered or multiplied.
        MasterOnly = "master-only",
    }

    /// When fully sharded weights are gathered again.
    Regather {
        /// Forward and backward of every micro-batch.
        EveryMicroBatch = "every-micro-batch",
        /// Weights stay gathered until the step ends where a pipeline is in use; else as `every-micro-batch`.
        OnceUnderPipeline = "once-under-pipeline",
        /// Weights stay gathered until the step ends.
        OncePerStep = "once-per-step",
    }

    /// How a global batch larger than what runs at once is handled by default.
    Accumulation {
        /// Micro-batches, summed.
        MicroBatches = "micro-batches",
        /// The whole share of a rank runs at once.
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
    /// Whether it overlaps under this sharding.
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
    /// Whether it overlaps with so many model chunks per stage.
    #[must_use]
    pub fn applies(self, vpp: f64) -> bool {
        match self {
            MicroBatchOverlap::Never => false,
            MicroBatchOverlap::Interleaved => vpp > 1.0,
            MicroBatchOverlap::Always => true,
        }
    }
}

impl GradientSums {
    /// Whether sums are fused in a run that computes in `precision`.
    #[must_use]
    pub fn fused(self, precision: Precision) -> bool {
        match self {
            GradientSums::Fused => true,
            GradientSums::SeparateInBf16 => precision != Precision::Bf16,
            GradientSums::Separate => false,
        }
    }
}

/// What training software does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingTraits {
    /// Attention over whole sequences.
    pub attention: AttentionKernel,
    /// Element-wise chains run as few kernels.
    pub fused_elementwise: bool,
    /// How kernels are launched.
    pub launch: StepLaunch,
    /// How experts are multiplied.
    pub experts: ExpertProducts,
    /// Routing, permutation and its inverse are fused kernels.
    pub fused_permutation: bool,
    /// Which side learns the tokens per expert. Runs that drop tokens beyond a capacity never wait.
    pub routing: Routing,
    /// How tokens reach experts of other ranks.
    pub exchange: ExpertExchange,
    /// Tensor-parallel collectives are split and run alongside their products.
    pub overlap_tensor: bool,
    /// Pipeline transfers.
    pub overlap_pipeline: MicroBatchOverlap,
    /// Exchange of tokens between experts, alongside another micro-batch.
    pub overlap_experts: MicroBatchOverlap,
    /// Gradient reduction alongside the backward pass.
    pub overlap_gradients: DataOverlap,
    /// Weight gathering alongside the forward (and backward) pass.
    pub overlap_parameters: DataOverlap,
    /// Sums over micro-batches.
    pub gradient_sums: GradientSums,
    /// Dropout masks are kept.
    pub dropout: bool,
    /// What selective recomputation runs again.
    pub selective_recompute: SelectiveRecompute,
    /// Recomputation by default.
    pub recompute: Recompute,
    /// Copies of the weights.
    pub weights: WeightCopies,
    /// Format in which gradients are kept.
    pub gradient_format: GradientFormat,
    /// Format in which gradients are reduced.
    pub reduce_format: GradientFormat,
    /// Device memory allocated for communication buckets where model states are sharded, bytes.
    pub bucket_bytes: f64,
    /// Sharding by default.
    pub sharding: Sharding,
    /// The most sharding that it supports.
    pub most_sharding: Sharding,
    /// The most sharding that it supports with several pipeline stages.
    pub most_sharding_with_pipeline: Sharding,
    /// Pipelines may split backward passes into gradients of inputs and of weights (zero bubble).
    pub zero_bubble: bool,
    /// When fully sharded weights are gathered again.
    pub regather: Regather,
    /// Norms and residuals are split over tensor-parallel ranks by default.
    pub sequence_parallel: bool,
    /// Products may be multiplied in int8.
    pub int8: bool,
    /// What happens to a batch larger than what runs at once by default.
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
            zero_bubble: true,
            regather: Regather::EveryMicroBatch,
            sequence_parallel: true,
            int8: false,
            accumulation: Accumulation::MicroBatches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_depends_on_sharding_and_chunks() {
        assert!(
            DataOverlap::FullySharded.applies(Sharding::Zero3) && !DataOverlap::FullySharded.applies(Sharding::Zero1)
        );
        assert!(MicroBatchOverlap::Interleaved.applies(2.0) && !MicroBatchOverlap::Interleaved.applies(1.0));
        assert!(
            GradientSums::SeparateInBf16.fused(Precision::Fp16) && !GradientSums::SeparateInBf16.fused(Precision::Bf16)
        );
    }
}
