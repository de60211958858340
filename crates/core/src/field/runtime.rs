//! Execution on a device: engine, formats, recomputation, overlap.

use super::slot::{count, flag, nonzero, number, word};
use super::{Field, Group, HARDWARE_MODELING, Knob, Step, ValueType, entry, ranks, real, whole};
use crate::mode::Mode;
use crate::plan::{
    AttentionKernel, CpuOffload, Engine, Format, GraphCapture, LoraTargets, MoeCapacity, MoeDispatcher, Optimizer,
    Recompute, Trained,
};
use crate::plan_spec::{HEADROOM, LORA_RANK};

pub(super) const RUNTIME: &[Field] = &[
    entry(
        Knob::Engine,
        "engine",
        &[],
        Group::Engine,
        ValueType::Choice(Engine::NAMES),
        &[],
        "estimation engine: closed form, discrete events, or a legacy model",
    ),
    entry(
        Knob::Software,
        "software",
        &["framework", "server", "serving_engine"],
        Group::Engine,
        ValueType::Software,
        &["software"],
        "framework or engine with release, such as vllm@0.11; default: the newest known",
    )
    .hardware_modeling(),
    entry(
        Knob::Microbatch,
        "microbatch",
        &["micro", "micro_batch", "micro_batch_size", "mbs"],
        Group::Runtime,
        ranks(65_536.0),
        &["runtime_tuning", "microbatch"],
        "micro-batch: sequences per device and step; in serving, requests",
    )
    .with_file_bounds(1.0, 1e6)
    .unit("seq")
    .except(Mode::Inference, HARDWARE_MODELING),
    entry(
        Knob::Global,
        "global",
        &["global_batch", "gbs", "global_batch_size", "train_batch_size"],
        Group::Runtime,
        ranks(16_777_216.0),
        &["batch", "global"],
        "global batch: sequences per optimizer step, over all replicas",
    )
    .slot(count!(global))
    .with_file_bounds(1.0, 1e9)
    .unit("seq")
    .training()
    .hardware_modeling(),
    entry(
        Knob::Precision,
        "precision",
        &["dtype", "format"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "weights"],
        "weight format; also that of matrix products if supported",
    )
    .slot(word!(Format, format))
    .hardware_modeling(),
    entry(
        Knob::Compute,
        "compute",
        &["compute_dtype", "activations"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "compute"],
        "format of matrix products if not the weights' (W8A16, W4A8)",
    )
    .slot(word!(Format, compute))
    .hardware_modeling(),
    entry(
        Knob::WeightBits,
        "weight_bits",
        &["bits_per_weight", "bpw"],
        Group::Runtime,
        real(1.0, 32.0, 0.5),
        &["precision", "weight_bits"],
        "bits per weight with scales, for formats defined by size (GGUF, EXL2)",
    )
    .slot(number!(weight_bits))
    .model_property()
    .unit("bit")
    .hardware_modeling(),
    entry(
        Knob::ExpertPrecision,
        "expert_precision",
        &["expert_dtype", "expert_weights"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "experts"],
        "format of expert weights if it differs from other weights",
    )
    .slot(word!(Format, experts))
    .inference()
    .hardware_modeling(),
    entry(
        Knob::KvPrecision,
        "kv_precision",
        &["kv_cache_dtype", "kv"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "kv"],
        "KV cache format",
    )
    .slot(word!(Format, kv))
    .inference()
    .hardware_modeling(),
    entry(
        Knob::GradientFormat,
        "gradient_format",
        &["grad_dtype"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "gradients"],
        "format for storing and reducing gradients",
    )
    .slot(word!(Format, gradient_format))
    .training()
    .hardware_modeling(),
    entry(
        Knob::Bf16Layers,
        "bf16_layers",
        &["layers_in_bf16"],
        Group::Runtime,
        whole(0.0, 1000.0, Step::Add(1.0)),
        &["precision", "bf16_layers"],
        "layers computed in 16 bit while others use a narrower format: half at the start of the model, the rest at its end",
    )
    .slot(count!(bf16_layers))
    .with_default(0.0)
    .training()
    .hardware_modeling(),
    entry(
        Knob::Optimizer,
        "optimizer",
        &["optim"],
        Group::Runtime,
        ValueType::Choice(Optimizer::NAMES),
        &["optimizer"],
        "optimizer, which determines the states per weight",
    )
    .slot(word!(Optimizer, optimizer))
    .with_default_word(Optimizer::Adam.name())
    .training()
    .hardware_modeling(),
    entry(
        Knob::Trained,
        "trained",
        &["peft"],
        Group::Runtime,
        ValueType::Choice(Trained::NAMES),
        &["trained"],
        "trained weights: all, adapters of a frozen model (LoRA), or only the projector of images",
    )
    .slot(word!(Trained, trained))
    .with_default_word(Trained::All.name())
    .training()
    .hardware_modeling(),
    entry(
        Knob::LoraTargets,
        "lora_targets",
        &["lora_target_modules"],
        Group::Runtime,
        ValueType::Choice(LoraTargets::NAMES),
        &["lora_targets"],
        "linear layers with LoRA adapters",
    )
    .slot(word!(LoraTargets, lora_targets))
    .with_default_word(LoraTargets::All.name())
    .training()
    .hardware_modeling(),
    entry(
        Knob::LoraRank,
        "lora_rank",
        &["lora_r", "r"],
        Group::Runtime,
        ranks(4096.0),
        &["lora_rank"],
        "rank of LoRA adapters",
    )
    .slot(count!(lora_rank))
    .with_default(LORA_RANK)
    .training()
    .hardware_modeling(),
    entry(
        Knob::CpuOffload,
        "cpu_offload",
        &["offload"],
        Group::Runtime,
        ValueType::Choice(CpuOffload::NAMES),
        &["cpu_offload"],
        "training state offloaded to host memory",
    )
    .slot(word!(CpuOffload, cpu_offload))
    .with_default_word(CpuOffload::None.name())
    .training()
    .hardware_modeling(),
    entry(
        Knob::Recompute,
        "recompute",
        &["activation_checkpointing"],
        Group::Runtime,
        ValueType::Choice(Recompute::NAMES),
        &["recompute"],
        "activation recomputation in the backward pass: less memory, more compute",
    )
    .slot(word!(Recompute, recompute))
    .training()
    .hardware_modeling(),
    entry(
        Knob::RecomputeLayers,
        "recompute_layers",
        &["recompute_num_layers"],
        Group::Runtime,
        whole(0.0, 100_000.0, Step::Add(1.0)),
        &["recompute", "layers"],
        "number of fully recomputed layers (0: not stated); the others follow `recompute`, and recompute nothing if it is full",
    )
    .slot(nonzero!(recompute_layers))
    .zero_is_unset()
    .with_default(0.0)
    .with_file_bounds(0.0, 1e6)
    .training()
    .hardware_modeling(),
    entry(
        Knob::RecomputeReserve,
        "recompute_reserve",
        &[],
        Group::Runtime,
        real(0.0, 0.9, 0.01),
        &["recompute", "reserve"],
        "share of device memory that recompute=auto and selective keep free (0.05 unless stated)",
    )
    .slot(number!(recompute_reserve))
    .with_default(HEADROOM)
    .training()
    .hardware_modeling(),
    entry(
        Knob::Overlap,
        "overlap",
        &[],
        Group::Runtime,
        ValueType::Toggle,
        &["overlap"],
        "overlap communication with computation where possible",
    )
    .slot(flag!(overlap))
    .with_default_flag(true)
    .training()
    .hardware_modeling(),
    entry(
        Knob::OverlapTensor,
        "overlap_tensor",
        &["tp_comm_overlap"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "overlap_tensor"],
        "overlap tensor-parallel communication with matrix multiplications",
    )
    .slot(flag!(switches.overlap_tensor))
    .training()
    .hardware_modeling(),
    entry(
        Knob::OverlapPipeline,
        "overlap_pipeline",
        &["overlap_p2p_comm"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "overlap_pipeline"],
        "overlap pipeline transfers with the next micro-batch",
    )
    .slot(flag!(switches.overlap_pipeline))
    .training()
    .hardware_modeling(),
    entry(
        Knob::OverlapExperts,
        "overlap_experts",
        &["overlap_moe_expert_parallel_comm"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "overlap_experts"],
        "overlap expert all-to-all with another micro-batch",
    )
    .slot(flag!(switches.overlap_experts))
    .training()
    .hardware_modeling(),
    entry(
        Knob::OverlapData,
        "overlap_data",
        &["overlap_grad_reduce"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "overlap_data"],
        "overlap gradient and parameter communication with computation",
    )
    .slot(flag!(switches.overlap_data))
    .training()
    .hardware_modeling(),
    entry(
        Knob::AttentionKernel,
        "attention_kernel",
        &["attn_implementation"],
        Group::Runtime,
        ValueType::Choice(AttentionKernel::NAMES),
        &["runtime_tuning", "attention_kernel"],
        "attention kernel: unfused, FlashAttention-1 or -2, or optimized for this device generation",
    )
    .slot(word!(AttentionKernel, switches.attention_kernel))
    .training()
    .hardware_modeling(),
    entry(
        Knob::GraphCapture,
        "graph_capture",
        &[],
        Group::Runtime,
        ValueType::Choice(GraphCapture::NAMES),
        &["runtime_tuning", "graph_capture"],
        "parts of a training step captured as CUDA graphs",
    )
    .slot(word!(GraphCapture, switches.graph_capture))
    .with_default_word(GraphCapture::None.name())
    .training()
    .hardware_modeling(),
    entry(
        Knob::Compiled,
        "compiled",
        &["torch_compile"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "compiled"],
        "compiled model (such as torch.compile): fused element-wise kernels, fewer launches",
    )
    .slot(flag!(switches.compiled))
    .training()
    .hardware_modeling(),
    entry(
        Knob::MoeDispatcher,
        "moe_dispatcher",
        &["moe_token_dispatcher_type"],
        Group::Runtime,
        ValueType::Choice(MoeDispatcher::NAMES),
        &["runtime_tuning", "moe_dispatcher"],
        "MoE token dispatch: a copy per expert (alltoall) or per scale-up domain (deepep, which writes directly in serving, and hybridep)",
    )
    .slot(word!(MoeDispatcher, switches.moe_dispatcher))
    .hardware_modeling(),
    entry(
        Knob::MoeCapacity,
        "moe_capacity",
        &[],
        Group::Runtime,
        ValueType::Choice(MoeCapacity::NAMES),
        &["runtime_tuning", "moe_capacity"],
        "tokens above the capacity of an expert: kept, or dropped (static shapes)",
    )
    .slot(word!(MoeCapacity, switches.moe_capacity))
    .with_default_word(MoeCapacity::Dropless.name())
    .training()
    .hardware_modeling(),
    entry(
        Knob::ExpertImbalance,
        "expert_imbalance",
        &["imbalance"],
        Group::Runtime,
        real(1.0, 100.0, 0.1),
        &["expert_imbalance"],
        "load of the busiest expert-parallel rank relative to the mean",
    )
    .slot(number!(imbalance))
    .with_default(1.0)
    .with_file_bounds(1.0, 1000.0)
    .training()
    .hardware_modeling(),
    entry(
        Knob::CudaGraphs,
        "cuda_graphs",
        &["graphs"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "cuda_graphs"],
        "launch kernels as CUDA graphs: less overhead",
    ),
    entry(
        Knob::GpudirectRdma,
        "gpudirect_rdma",
        &["gpudirect", "gdr"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "gpudirect_rdma"],
        "NICs access accelerator memory directly (GPUDirect RDMA): cheaper communication",
    )
    .calibrated(),
    entry(
        Knob::Virt,
        "virt",
        &["virtualization"],
        Group::Runtime,
        ValueType::Choice(&["bare", "sriov"]),
        &["runtime_tuning", "virt"],
        "bare metal, or virtual NICs (SR-IOV): more jitter and longer tails",
    )
    .calibrated(),
    entry(
        Knob::Fabric,
        "fabric",
        &["network"],
        Group::Runtime,
        ValueType::Fabric,
        &["runtime_tuning", "fabric"],
        "interconnect, one of those that the profile is calibrated for",
    )
    .calibrated(),
];
