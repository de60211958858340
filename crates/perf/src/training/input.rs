//! The input of a training estimate, as plain numbers.

use super::adapters::Adapters;
use crate::accelerator::{Accelerator, Precision};
use crate::arch::Architecture;
use crate::traits::{SelectiveRecompute, ShardCopies, TokenSplit};
use crate::vision::Images;
use atlas_core::count::Count;
use atlas_core::plan::{ContextExchange, Optimizer, PipelineSchedule as Schedule, Recompute, Sharding};

/// State kept in host memory, and the links to it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Offload {
    /// Share of the optimizer states that are kept and updated on the host (ZeRO-Offload, arXiv 2101.06840).
    pub optimizer: f64,
    /// Share of the layers' activations that are copied to the host and back.
    pub activations: f64,
    /// Share of the weights that are kept on the host and streamed in, with their gradients streamed out (FSDP's
    /// `CPUOffload`).
    pub weights: f64,
    /// Nominal bandwidth between host and accelerator, bytes/s one way; `None`: PCIe of the generation usual for the
    /// accelerator's family.
    pub link_bw: Option<f64>,
    /// Nominal host memory bandwidth per accelerator, bytes/s; `None`: an eighth of that of a contemporary server.
    pub host_bw: Option<f64>,
}

impl Offload {
    /// Whether anything is offloaded.
    pub fn any(&self) -> bool {
        self.optimizer > 0.0 || self.activations > 0.0 || self.weights > 0.0
    }
}

/// A resolved recomputation plan. Shares are means over stages and micro-batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The minimum that every layer recomputes.
    pub mode: Recompute,
    /// Share of layers that recompute their norms and activation functions.
    pub selective_share: f64,
    /// Share of layers that also recompute their MLP or mixture of experts. This is cheaper per byte than recomputing
    /// attention, especially for long sequences.
    pub mlp_share: f64,
    /// Share of all layers that are recomputed in full.
    pub full_share: f64,
}

impl Plan {
    /// Recomputes nothing.
    pub const NONE: Plan = Plan { mode: Recompute::None, selective_share: 0.0, mlp_share: 0.0, full_share: 0.0 };
    /// Recomputes norms and activation functions.
    pub const SELECTIVE: Plan = Plan { mode: Recompute::Selective, selective_share: 1.0, ..Plan::NONE };
    /// Also recomputes every MLP.
    pub const MLPS: Plan = Plan { mlp_share: 1.0, ..Plan::SELECTIVE };
    /// Recomputes every layer from its input.
    pub const FULL: Plan = Plan { mode: Recompute::Full, full_share: 1.0, ..Plan::NONE };

    /// The plan of a given mode; [`Recompute::Auto`] recomputes nothing.
    #[must_use]
    pub const fn of(mode: Recompute) -> Self {
        match mode {
            Recompute::None | Recompute::Auto => Plan::NONE,
            Recompute::Selective => Plan::SELECTIVE,
            Recompute::Full => Plan::FULL,
        }
    }

    /// Share of the layers that recompute their MLP or mixture of experts, alone or with the whole layer.
    #[must_use]
    pub fn recomputed_mlps(&self) -> f64 {
        self.full_share + (1.0 - self.full_share) * self.mlp_share
    }

    /// Interpolates from `self` (`share` = 0) to `to` (`share` = 1). The mode is that of `to` unless `share` is 0.
    #[must_use]
    pub fn toward(self, to: Plan, share: f64) -> Plan {
        let mix = |a: f64, b: f64| a + share * (b - a);
        Plan {
            mode: if share > 0.0 { to.mode } else { self.mode },
            selective_share: mix(self.selective_share, to.selective_share),
            mlp_share: mix(self.mlp_share, to.mlp_share),
            full_share: mix(self.full_share, to.full_share),
        }
    }
}

/// When fully sharded weights are gathered and resharded, and their gradients reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reshard {
    /// In every micro-batch: weights are gathered for the forward and the backward pass and resharded after each;
    /// gradients are reduce-scattered after each backward pass (FSDP2's `reshard_after_forward=True`).
    EveryMicroBatch,
    /// Weights are gathered once per step and stay gathered; unsharded gradients are accumulated over the micro-batches
    /// and reduced once (arXiv 2407.21783, section 3.3.2).
    OncePerStep,
}

/// Properties of the software that affect operators or the overlap of communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Software {
    /// Attention does not write its scores to memory (FlashAttention).
    pub fused_attention: bool,
    /// Chains of element-wise operators are fused into few kernels.
    pub fused_elementwise: bool,
    /// The step is compiled or replayed as a graph, so that the host launches few kernels (XLA, CUDA graphs).
    pub compiled: bool,
    /// Experts and their dispatch are launched kernel by kernel although the rest replays graphs, since the number of
    /// tokens per expert is known only at run time.
    pub eager_experts: bool,
    /// Attention kernels are written for the matrix units of this generation (FlashAttention-3, cuDNN 9 on Hopper)
    /// rather than for those of the previous one.
    pub native_attention: bool,
    /// Attention kernels are of the first fused generation (FlashAttention-1, Triton).
    pub first_flash: bool,
    /// Experts run as grouped GEMMs, with fused routing and permutation.
    pub fused_experts: bool,
    /// The host waits in every mixture of experts for the number of tokens per expert. Not if routing is fused, nor if
    /// tokens beyond an expert's capacity are dropped, which makes all shapes static.
    pub synchronous_routing: bool,
    /// Expert dispatch sends a token once to each domain that has one of its experts (DeepEP, HybridEP) instead of once
    /// per expert.
    pub deduplicated_dispatch: bool,
    /// Tensor-parallel collectives are split and overlapped with their GEMMs.
    pub overlap_tensor: bool,
    /// Pipeline transfers overlap with the next micro-batch.
    pub overlap_pipeline: bool,
    /// The exchange of tokens between experts overlaps with the computation of another micro-batch.
    pub overlap_experts: bool,
    /// Gradient reduction and weight gathering overlap with the backward and forward pass.
    pub overlap_data: bool,
    /// Gathering the weights updated by sharded optimizers overlaps with the next forward pass.
    pub overlap_parameters: bool,
    /// Dropout is applied, and its masks are stored.
    pub dropout: bool,
    /// Weight gradients are accumulated in fp32 by the GEMM that computes them or as part of their reduction. Otherwise
    /// they are accumulated afterwards, weight by weight (`BF16_Optimizer.update_hp_grads`).
    pub fused_sums: bool,
    /// Sharded gradients are reduced in the last of several micro-batches. Until then, every rank holds the sums of all
    /// gradients in the format in which they are reduced.
    pub deferred_reduction: bool,
    /// What fully sharded training copies besides communicating.
    pub shard_copies: ShardCopies,
    /// What tensor-parallel ranks compute for their own tokens only under sequence parallelism.
    pub token_split: TokenSplit,
    /// What selective recomputation recomputes besides cheap operators.
    pub selective_recompute: SelectiveRecompute,
}

impl Default for Software {
    fn default() -> Self {
        Software {
            fused_attention: true,
            native_attention: true,
            first_flash: false,
            fused_experts: true,
            synchronous_routing: false,
            deduplicated_dispatch: true,
            fused_elementwise: true,
            eager_experts: false,
            compiled: false,
            overlap_tensor: true,
            overlap_pipeline: true,
            overlap_experts: true,
            overlap_data: true,
            overlap_parameters: true,
            dropout: false,
            fused_sums: true,
            deferred_reduction: false,
            shard_copies: ShardCopies::None,
            token_split: TokenSplit::Routing,
            selective_recompute: SelectiveRecompute::AttentionCore,
        }
    }
}

/// A training scenario as plain numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingInput {
    /// The model.
    pub arch: Architecture,
    /// The device.
    pub accelerator: Accelerator,
    /// Number of accelerators: tp * cp * pp * dp.
    pub accelerators: f64,
    /// Accelerators per scale-up domain (node, NVL72 rack, or TPU slice).
    pub domain: f64,
    /// Ratio of downlinks to uplinks of the scale-out network; 1 = non-blocking.
    pub oversubscription: f64,
    /// Tokens of a sequence.
    pub seq: f64,
    /// Sequences of a micro-batch.
    pub micro: f64,
    /// Sequences of a global batch.
    pub global: f64,
    /// Tensor-parallel ranks.
    pub tp: Count,
    /// Pipeline stages.
    pub pp: Count,
    /// Model chunks per stage (interleaving, VPP).
    pub vpp: Count,
    /// Layers of the first stage, if stated. Stages without a stated number share the remaining layers; see
    /// [`super::stages::stage_layers`].
    pub first_layers: Option<Count>,
    /// Layers of the last stage, if stated.
    pub last_layers: Option<Count>,
    /// Multi-token-prediction layers, each with the output layer and a loss (arXiv 2412.19437, section 2.2). They are
    /// part of the last stage.
    pub mtp_layers: Count,
    /// Data-parallel ranks.
    pub dp: Count,
    /// Context-parallel ranks.
    pub cp: Count,
    /// What context-parallel ranks exchange.
    pub context_exchange: ContextExchange,
    /// Expert-parallel ranks.
    pub ep: Count,
    /// Tensor-parallel ranks inside an expert.
    pub etp: Count,
    /// Whether norms and residuals are split over the tensor-parallel ranks (sequence parallelism).
    pub sequence_parallel: bool,
    /// Sharding of model states.
    pub sharding: Sharding,
    /// When weights are gathered under [`Sharding::Zero3`]; `None`: the default of [`TrainingInput::resharding`].
    pub reshard: Option<Reshard>,
    /// Number of ranks over which states are sharded, if fewer than those that replicate them; see
    /// [`TrainingInput::shard_ranks`].
    pub shard: Option<Count>,
    /// Pipeline schedule.
    pub schedule: Schedule,
    /// Requested recomputation.
    pub recompute: Recompute,
    /// Number of layers of the whole model that are recomputed in full, if stated. The other layers follow `recompute`:
    /// nothing under [`Recompute::None`] and [`Recompute::Full`], else the least that fits.
    pub recompute_layers: Option<Count>,
    /// Share of memory that [`Recompute::Auto`] and [`Recompute::Selective`] keep free, 0..1.
    pub recompute_reserve: f64,
    /// Format of the GEMMs in layers.
    pub precision: Precision,
    /// Number of layers that are computed in 16 bit although [`TrainingInput::precision`] is narrower (Megatron-Core,
    /// `first_last_layers_bf16`): half of them at the start of the model, and the other half, with an odd one, at the end.
    pub bf16_layers: Count,
    /// Whether the format has a scale per block (MXFP8, NVFP4) rather than per tensor.
    pub block_scaled: bool,
    /// Bytes of a weight in the format of the GEMMs.
    pub weight_bytes: f64,
    /// Bytes of a gradient as stored.
    pub grad_bytes: f64,
    /// Bytes of a gradient as reduced over the data-parallel ranks; `None`: as stored.
    pub reduce_bytes: Option<f64>,
    /// Bytes of optimizer state per weight (Adam with fp32 master weights: 12); see [`Optimizer::bytes`].
    pub optimizer_bytes: f64,
    /// Optimizer, for its computation per step; `optimizer_bytes` is the size of its states.
    pub optimizer: Optimizer,
    /// State kept on the host.
    pub offload: Offload,
    /// Decoder tokens per sequence of an encoder-decoder; `None`: 114 per 512 encoder tokens, as in T5 (arXiv
    /// 1910.10683, section 3.1.4). [`TrainingInput::seq`], and tokens in all metrics, are those of the encoder.
    pub target_seq: Option<f64>,
    /// Bytes of the communication buckets that the framework allocates.
    pub bucket_bytes: f64,
    /// Load of the busiest expert-parallel rank relative to the mean.
    pub imbalance: f64,
    /// Share of the weights that is trained: below 1 if the layers are frozen. With [`TrainingInput::adapters`], parameters
    /// of adapters relative to the weights of the layers, without routed experts.
    pub trained: f64,
    /// As [`TrainingInput::trained`], of routed experts.
    pub trained_experts: f64,
    /// Bytes of a frozen layer weight as stored, including scales, if weights are unpacked before every GEMM (QLoRA,
    /// arXiv 2305.14314, section 3); `None`: stored in the format of the GEMMs.
    pub packed_bytes: Option<f64>,
    /// Matrices with low-rank adapters.
    pub adapters: Adapters,
    /// Properties of the software.
    pub software: Software,
    /// Images of a sequence, whose tokens are part of the sequence. They are encoded on the first stage, on every rank
    /// of a sequence.
    pub images: Option<Images>,
}

impl Default for TrainingInput {
    fn default() -> Self {
        TrainingInput {
            arch: Architecture::default(),
            accelerator: Accelerator::default(),
            accelerators: 8.0,
            domain: 8.0,
            oversubscription: 1.0,
            seq: 4096.0,
            micro: 1.0,
            global: 128.0,
            tp: Count::ONE,
            pp: Count::ONE,
            vpp: Count::ONE,
            first_layers: None,
            last_layers: None,
            mtp_layers: Count::ZERO,
            dp: Count::new(8),
            cp: Count::ONE,
            context_exchange: ContextExchange::Ring,
            ep: Count::ONE,
            etp: Count::ONE,
            sequence_parallel: false,
            sharding: Sharding::Zero1,
            reshard: None,
            shard: None,
            schedule: Schedule::OneForwardOneBackward,
            recompute: Recompute::Auto,
            recompute_layers: None,
            recompute_reserve: 0.0,
            precision: Precision::Bf16,
            bf16_layers: Count::ZERO,
            block_scaled: false,
            weight_bytes: 2.0,
            grad_bytes: 4.0,
            reduce_bytes: None,
            optimizer_bytes: 12.0,
            optimizer: Optimizer::Adam,
            offload: Offload::default(),
            target_seq: None,
            bucket_bytes: 0.0,
            imbalance: 1.0,
            trained: 1.0,
            trained_experts: 1.0,
            packed_bytes: None,
            adapters: Adapters::None,
            software: Software::default(),
            images: None,
        }
    }
}

impl TrainingInput {
    /// Micro-batches per pipeline and step.
    pub fn micro_batches(&self) -> f64 {
        (self.global / (self.dp * self.micro)).ceil().max(1.0)
    }

    /// When fully sharded weights are gathered. Default: once per step with pipeline parallelism, unless a compiled
    /// loop over micro-batches gathers in each of them; else in every micro-batch.
    #[must_use]
    pub fn resharding(&self) -> Reshard {
        self.reshard.unwrap_or(if self.pp > 1.0 && !self.software.compiled {
            Reshard::OncePerStep
        } else {
            Reshard::EveryMicroBatch
        })
    }

    /// Sharding of the model states between micro-batches: if fully sharded weights are gathered once per step, or
    /// gradients are reduced once per step, only optimizer states remain sharded.
    #[must_use]
    pub fn persistent_sharding(&self) -> Sharding {
        match (self.sharding, self.resharding()) {
            (Sharding::Zero2 | Sharding::Zero3, Reshard::OncePerStep) => Sharding::Zero1,
            (Sharding::Zero2, _) if self.software.deferred_reduction => Sharding::Zero1,
            (sharding, _) => sharding,
        }
    }

    /// Whether sharded gradients are reduced once per step instead of in every micro-batch.
    #[must_use]
    pub fn reduces_once(&self) -> bool {
        self.software.deferred_reduction || self.resharding() == Reshard::OncePerStep
    }

    /// Bytes of a gradient as it is held between micro-batches.
    #[must_use]
    pub fn held_gradient_bytes(&self) -> f64 {
        if self.software.deferred_reduction { self.reduced_bytes() } else { self.grad_bytes }
    }

    /// Decoder tokens per sequence; [`TrainingInput::seq`] without an encoder.
    pub fn target(&self) -> f64 {
        if self.arch.encoder_layers <= 0.0 {
            self.seq
        } else {
            self.target_seq.unwrap_or_else(|| (self.seq * 114.0 / 512.0).ceil())
        }
    }

    /// Number of output layers, including those of multi-token prediction. Each of the latter includes the projection
    /// that joins the embedding of a predicted token with the previous layer's output (arXiv 2412.19437, equation 21),
    /// whose input is twice the hidden size.
    #[must_use]
    pub fn output_layers(&self) -> f64 {
        1.0 + self.mtp_layers * (1.0 + 2.0 * self.arch.hidden / self.arch.vocab.max(Count::ONE))
    }

    /// Number of layers computed in 16 bit at the start and at the end of the model; none if all are computed in 16 bit or
    /// wider, or if the model consists of convolutions.
    #[must_use]
    pub fn bf16_ends(&self) -> [f64; 2] {
        if !self.precision.is_narrow() || self.arch.convolutions.is_some() {
            return [0.0; 2];
        }
        let all = f64::from(self.bf16_layers).min(self.arch.depth());
        let start = (0.5 * all).floor();
        [start, all - start]
    }

    /// Copies of a stage's weights in the pipeline: two if micro-batches enter from both ends.
    #[must_use]
    pub fn copies(&self) -> f64 {
        if self.pp > 1.0 && self.schedule.is_bidirectional() { 2.0 } else { 1.0 }
    }

    /// Number of ranks over which states are sharded, of `ranks` that would otherwise replicate them.
    #[must_use]
    pub fn shard_ranks(&self, ranks: f64) -> f64 {
        self.shard.map_or(ranks, |shard| ranks.min(f64::from(shard)))
    }

    /// Bytes of an activation, or of a weight as it is gathered: those of the GEMMs' format, or 16 bit if that is
    /// narrower.
    #[must_use]
    pub fn element_bytes(&self) -> f64 {
        self.precision.bytes().max(2.0)
    }

    /// Bytes of a weight as it is sent between ranks.
    #[must_use]
    pub fn gathered_bytes(&self) -> f64 {
        self.packed_bytes.unwrap_or(self.element_bytes())
    }

    /// Whether the matrices of attention, and those of other blocks, are trained or have adapters.
    pub(crate) fn trained_matrices(&self) -> [bool; 2] {
        match self.adapters {
            Adapters::None => [self.trained >= 1.0; 2],
            Adapters::Attention => [true, false],
            Adapters::All => [true; 2],
        }
    }

    /// Bytes of a gradient as it is reduced over the data-parallel ranks.
    #[must_use]
    pub fn reduced_bytes(&self) -> f64 {
        self.reduce_bytes.unwrap_or(self.grad_bytes)
    }
}
