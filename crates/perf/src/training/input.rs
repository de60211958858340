//! What a step of training is estimated from.

use crate::accelerator::{Accelerator, Precision};
use crate::arch::Architecture;
use crate::vision::Images;
use atlas_core::count::Count;
use atlas_core::plan::{ContextExchange, Optimizer, PipelineSchedule as Schedule, Recompute, Sharding};

/// What is kept in the host's memory, and the links that it travels.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Offload {
    /// Share of the optimizer states that are kept and updated on the host (ZeRO-Offload, arXiv 2101.06840).
    pub optimizer: f64,
    /// Share of the layers' kept activations that travel to the host and back.
    pub activations: f64,
    /// Share of the weights that are kept on the host and streamed in (FSDP's `CPUOffload`): their gradients travel out.
    pub weights: f64,
    /// Bytes/s one way between host and accelerator; `None`: the PCIe generation that its family was sold with.
    pub link_bw: Option<f64>,
    /// Bytes/s of the host's memory for each accelerator; `None`: an eighth of a server's of the time.
    pub host_bw: Option<f64>,
}

impl Offload {
    /// Whether anything is offloaded.
    pub fn any(&self) -> bool {
        self.optimizer > 0.0 || self.activations > 0.0 || self.weights > 0.0
    }
}

/// What is recomputed, resolved. Shares are means over stages and micro-batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// The least that any layer recomputes.
    pub mode: Recompute,
    /// Share of layers that recompute their norms and activation functions.
    pub selective_share: f64,
    /// Share of layers that also recompute their MLP or mixture of experts.
    /// By the byte this is cheaper than attention, above all for long sequences.
    pub mlp_share: f64,
    /// Share of layers recomputed in full (their number over all layers).
    pub full_share: f64,
}

impl Plan {
    /// The plan that keeps everything.
    pub const NONE: Plan = Plan { mode: Recompute::None, selective_share: 0.0, mlp_share: 0.0, full_share: 0.0 };
    /// The plan that recomputes norms and activation functions.
    pub const SELECTIVE: Plan = Plan { mode: Recompute::Selective, selective_share: 1.0, ..Plan::NONE };
    /// The plan that also recomputes every MLP.
    pub const MLPS: Plan = Plan { mlp_share: 1.0, ..Plan::SELECTIVE };
    /// The plan that recomputes every layer from its input.
    pub const FULL: Plan = Plan { mode: Recompute::Full, full_share: 1.0, ..Plan::NONE };

    /// The plan of a stated mode; [`Recompute::Auto`] keeps everything.
    #[must_use]
    pub const fn of(mode: Recompute) -> Self {
        match mode {
            Recompute::None | Recompute::Auto => Plan::NONE,
            Recompute::Selective => Plan::SELECTIVE,
            Recompute::Full => Plan::FULL,
        }
    }

    /// The plan `share` of the way to `to`, in the mode of `to` unless nothing of it is used.
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

    /// Layers of a model of `depth` layers that are recomputed in full.
    #[must_use]
    pub fn full_layers(&self, depth: f64) -> f64 {
        self.full_share * depth
    }
}

/// When fully sharded weights are gathered and given up again, and their gradients reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reshard {
    /// In every micro-batch: gathered for the forward and for the backward pass, given up behind each; gradients are
    /// reduced and scattered behind each backward pass (FSDP2's `reshard_after_forward=True`).
    EveryMicroBatch,
    /// Weights are gathered once a step and stay whole; whole gradients are summed over the micro-batches and reduced once
    /// (arXiv 2407.21783, section 3.3.2).
    OncePerStep,
}

/// What the software does, as far as it changes the operators or hides communication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Software {
    /// Attention never writes its scores to memory (FlashAttention).
    pub fused_attention: bool,
    /// Element-wise chains are fused into few kernels.
    pub fused_elementwise: bool,
    /// The step is compiled or replayed as a graph, so that the host launches little (XLA, CUDA graphs).
    pub compiled: bool,
    /// Experts and their dispatch are launched kernel by kernel although the rest replays graphs: how many tokens each
    /// expert gets is known only when the step runs.
    pub eager_experts: bool,
    /// Attention is written for this generation's matrix units (FlashAttention-3, cuDNN 9 on Hopper), rather than
    /// carried over from the one before.
    pub native_attention: bool,
    /// Attention is of the first fused generation (FlashAttention-1, Triton).
    pub first_flash: bool,
    /// Experts run as grouped GEMMs, with fused routing and permutation.
    pub fused_experts: bool,
    /// The host waits in every mixture of experts for the number of tokens that each expert got. Not where routing is
    /// fused, nor where tokens beyond an expert's capacity are dropped, which fixes all shapes.
    pub synchronous_routing: bool,
    /// Expert dispatch sends a token once to each domain that wants it (DeepEP, HybridEP) instead of once per expert.
    pub deduplicated_dispatch: bool,
    /// Tensor-parallel collectives are split and overlapped with their GEMMs.
    pub overlap_tensor: bool,
    /// Pipeline transfers run alongside the next micro-batch.
    pub overlap_pipeline: bool,
    /// Tokens travel between experts while another micro-batch is computed.
    pub overlap_experts: bool,
    /// Gradient reduction and weight gathering run alongside backward and forward.
    pub overlap_data: bool,
    /// Weights that sharded optimizer states have updated are gathered beside the next forward pass.
    pub overlap_parameters: bool,
    /// Dropout masks are kept.
    pub dropout: bool,
    /// Weight gradients are added to their fp32 sum by the GEMM that makes them or as they are reduced; else it happens afterwards,
    /// weight by weight (`BF16_Optimizer.update_hp_grads`).
    pub fused_sums: bool,
    /// Selective recomputation re-runs every other matrix multiplication as well.
    pub alternate_recompute: bool,
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
            alternate_recompute: false,
        }
    }
}

/// One training scenario as plain numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrainingInput {
    /// The model.
    pub arch: Architecture,
    /// The device.
    pub accelerator: Accelerator,
    /// Accelerators in the job: tp * cp * pp * dp.
    pub accelerators: f64,
    /// Accelerators that share the fast fabric (node, or NVL72 rack, or TPU slice).
    pub domain: f64,
    /// Downlinks over uplinks of the scale-out network; 1 = non-blocking.
    pub oversubscription: f64,
    /// Tokens of a sequence.
    pub seq: f64,
    /// Sequences of a micro-batch.
    pub micro: f64,
    /// Sequences of a step.
    pub global: f64,
    /// Tensor-parallel ranks.
    pub tp: Count,
    /// Pipeline stages.
    pub pp: Count,
    /// Model chunks of each stage (interleaving).
    pub vpp: Count,
    /// Layers of the first stage, where stated; the stages without a stated number share the rest. See
    /// [`super::stages::stage_layers`].
    pub first_layers: Option<Count>,
    /// Layers of the last stage, where stated.
    pub last_layers: Option<Count>,
    /// Layers behind the model that predict further tokens, each with the output layer and a loss of its own
    /// (arXiv 2412.19437, section 2.2); they stand on the last stage.
    pub mtp_layers: Count,
    /// Data-parallel ranks.
    pub dp: Count,
    /// Context-parallel ranks.
    pub cp: Count,
    /// What ranks that share a sequence exchange.
    pub context_exchange: ContextExchange,
    /// Expert-parallel ranks.
    pub ep: Count,
    /// Tensor-parallel ranks inside an expert.
    pub etp: Count,
    /// Norms and residuals split over the tensor-parallel ranks (sequence parallelism).
    pub sequence_parallel: bool,
    /// How model states are spread.
    pub sharding: Sharding,
    /// When weights are gathered under [`Sharding::Zero3`]; `None` as in [`TrainingInput::resharding`].
    pub reshard: Option<Reshard>,
    /// Ranks that states are sharded over, where not all that replicate them; see [`TrainingInput::shard_ranks`].
    pub shard: Option<Count>,
    /// Pipeline schedule.
    pub schedule: Schedule,
    /// What is recomputed.
    pub recompute: Recompute,
    /// Layers of the whole model that are recomputed in full, where stated. The others recompute what
    /// [`Recompute::Selective`] says if that is requested, else nothing; memory does not change the plan.
    pub recompute_layers: Option<Count>,
    /// Share of the memory that [`Recompute::Auto`] and [`Recompute::Selective`] leave free, 0..1.
    pub recompute_reserve: f64,
    /// Format of the layers' matrix multiplications.
    pub precision: Precision,
    /// The format carries a scale per block (MXFP8, NVFP4) rather than per tensor.
    pub block_scaled: bool,
    /// Bytes of a weight as it is multiplied.
    pub weight_bytes: f64,
    /// Bytes of a gradient as it is kept and reduced.
    pub grad_bytes: f64,
    /// Bytes of a gradient as it is reduced over the data-parallel ranks; `None`: as it is kept.
    pub reduce_bytes: Option<f64>,
    /// Bytes of optimizer state per weight (Adam with fp32 master weights: 12); see [`Optimizer::bytes`].
    pub optimizer_bytes: f64,
    /// What a step computes besides; [`TrainingInput::with_optimizer`] sets both.
    pub optimizer: Optimizer,
    /// What is kept on the host.
    pub offload: Offload,
    /// Tokens of a sequence on the decoder's side of an encoder-decoder; `None`: T5's 114 for 512 of the encoder
    /// (arXiv 1910.10683, section 3.1.4). [`TrainingInput::seq`], and tokens in all figures, are the encoder's.
    pub target_seq: Option<f64>,
    /// Bytes of buckets that the framework allocates for its collectives.
    pub bucket_bytes: f64,
    /// Load of the busiest expert-parallel rank over the mean.
    pub imbalance: f64,
    /// Share of the weights that is trained (frozen layers, adapters): scales weight gradients and their reduction.
    pub trained: f64,
    /// Bytes of a frozen weight of a layer as it is stored, with its scales, where it is unpacked before every product
    /// (QLoRA, arXiv 2305.14314, section 3); `None`: as it is multiplied.
    pub packed_bytes: Option<f64>,
    /// Adapters of a frozen model stand alongside MLPs too, not only alongside attention's projections.
    pub adapted_mlps: bool,
    /// What the software does.
    pub software: Software,
    /// The images of a sequence, whose tokens are among its own. They enter the first stage, on every rank of a sequence.
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
            packed_bytes: None,
            adapted_mlps: true,
            software: Software::default(),
            images: None,
        }
    }
}

impl TrainingInput {
    /// Micro-batches that each pipeline processes in a step.
    pub fn micro_batches(&self) -> f64 {
        (self.global / (self.dp * self.micro)).ceil().max(1.0)
    }

    /// When fully sharded weights are gathered. Where nothing is stated: once a step under pipeline parallelism, unless a
    /// compiled loop over micro-batches gathers in each; else in every micro-batch.
    #[must_use]
    pub fn resharding(&self) -> Reshard {
        self.reshard.unwrap_or(if self.pp > 1.0 && !self.software.compiled {
            Reshard::OncePerStep
        } else {
            Reshard::EveryMicroBatch
        })
    }

    /// The sharding of what a device holds between micro-batches: fully sharded weights that are gathered once a step
    /// leave only optimizer states sharded.
    #[must_use]
    pub fn held_sharding(&self) -> Sharding {
        match (self.sharding, self.resharding()) {
            (Sharding::Zero3, Reshard::OncePerStep) => Sharding::Zero1,
            (sharding, _) => sharding,
        }
    }

    /// The same run under another optimizer, with or without fp32 master weights.
    #[must_use]
    pub fn with_optimizer(self, optimizer: Optimizer, master: bool) -> Self {
        TrainingInput { optimizer, optimizer_bytes: optimizer.bytes(master), ..self }
    }

    /// Tokens of a sequence on the decoder's side; without an encoder, [`TrainingInput::seq`].
    pub fn target(&self) -> f64 {
        if self.arch.encoder_layers <= 0.0 {
            self.seq
        } else {
            self.target_seq.unwrap_or_else(|| (self.seq * 114.0 / 512.0).ceil())
        }
    }

    /// Times that the output layer runs, with the projections that join a predicted token's embedding to the layer before
    /// (arXiv 2412.19437, equation 21), which are as wide as the model twice.
    #[must_use]
    pub fn output_layers(&self) -> f64 {
        1.0 + self.mtp_layers * (1.0 + 2.0 * self.arch.hidden / self.arch.vocab.max(Count::ONE))
    }

    /// Copies of a stage's weights that the pipeline holds: two where micro-batches enter from both ends.
    #[must_use]
    pub fn copies(&self) -> f64 {
        if self.pp > 1.0 && self.schedule.two_ways() { 2.0 } else { 1.0 }
    }

    /// Ranks that states are sharded over, of the `ranks` that would otherwise replicate them.
    #[must_use]
    pub fn shard_ranks(&self, ranks: f64) -> f64 {
        self.shard.map_or(ranks, |shard| ranks.min(f64::from(shard)))
    }

    /// Bytes of a gradient as it is reduced over the data-parallel ranks.
    #[must_use]
    pub fn reduced_bytes(&self) -> f64 {
        self.reduce_bytes.unwrap_or(self.grad_bytes)
    }

    /// Tokens that a layer passes through a tensor-parallel reduction in one pass, per sequence and layer: every block
    /// (mixer, MLP, cross attention) ends in one. 2 × seq in plain transformers.
    pub(super) fn reduced_tokens(&self) -> f64 {
        let a = &self.arch;
        if a.encoder_layers > 0.0 {
            return (2.0 * a.encoder_layers * self.seq + 3.0 * a.layers * self.target()) / a.depth().max(1.0);
        }
        self.seq * (a.attention_share + a.mlp_share + a.linear.map_or(0.0, |linear| linear.share))
    }
}
