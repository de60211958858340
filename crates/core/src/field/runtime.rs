//! How work is done on a device: engine, formats, recomputation, overlap.

use super::slot::{count, flag, nonzero, number, word};
use super::{Field, Group, Knob, REASONING, Step, ValueType, entry, ranks, real, whole};
use crate::mode::Mode;
use crate::plan::{
    AttentionKernel, CpuOffload, Engine, Format, GraphCapture, LoraTargets, MoeCapacity, MoeDispatcher, Optimizer,
    Recompute, Trained,
};

pub(super) const RUNTIME: &[Field] = &[
    entry(
        Knob::Engine,
        "engine",
        &[],
        Group::Engine,
        ValueType::Choice(Engine::NAMES),
        &[],
        "estimation engine: closed forms, calibrated model, event simulation, or benchboard (legacy)",
    ),
    entry(
        Knob::Software,
        "software",
        &["framework", "server", "serving_engine"],
        Group::Engine,
        ValueType::Software,
        &["software"],
        "training framework or serving engine, with its release: vllm@0.11; without one, the newest known release",
    )
    .reasoned(),
    entry(
        Knob::Microbatch,
        "microbatch",
        &["micro", "micro_batch"],
        Group::Runtime,
        ranks(65_536.0),
        &["runtime_tuning", "microbatch"],
        "sequences per device and step; in serving, requests at once",
    ).files(1.0, 1e6)
    .unit("seq")
    .except(Mode::Inference, REASONING),
    entry(
        Knob::Global,
        "global",
        &["global_batch", "gbs"],
        Group::Runtime,
        ranks(16_777_216.0),
        &["batch", "global"],
        "sequences of one optimizer step, over all replicas",
    )
    .slot(count!(global))
    .files(1.0, 1e9)
    .unit("seq")
    .training()
    .reasoned(),
    entry(
        Knob::Precision,
        "precision",
        &["dtype", "format"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "weights"],
        "format of the weights, and of products where the hardware supports it",
    )
    .slot(word!(Format, format))
    .reasoned(),
    entry(
        Knob::Compute,
        "compute",
        &["compute_dtype", "activations"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "compute"],
        "format of products where it differs from the weights (W8A16, W4A8)",
    )
    .slot(word!(Format, compute))
    .reasoned(),
    entry(
        Knob::WeightBits,
        "weight_bits",
        &["bits_per_weight", "bpw"],
        Group::Runtime,
        real(1.0, 32.0, 0.5),
        &["precision", "weight_bits"],
        "bits per weight with scales, for formats described by their size (GGUF, EXL2)",
    )
    .slot(number!(weight_bits))
    .given()
    .unit("bit")
    .inference()
    .reasoned(),
    entry(
        Knob::ExpertPrecision,
        "expert_precision",
        &["expert_dtype", "expert_weights"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "experts"],
        "format of the weights of experts, where it differs from the other weights",
    )
    .slot(word!(Format, experts))
    .inference()
    .reasoned(),
    entry(
        Knob::KvPrecision,
        "kv_precision",
        &["kv_cache_dtype", "kv"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "kv"],
        "format of the KV cache",
    )
    .slot(word!(Format, kv))
    .inference()
    .reasoned(),
    entry(
        Knob::GradientFormat,
        "gradient_format",
        &["grad_dtype"],
        Group::Runtime,
        ValueType::Choice(Format::NAMES),
        &["precision", "gradients"],
        "format in which gradients are kept and reduced",
    )
    .slot(word!(Format, gradient_format))
    .training()
    .reasoned(),
    entry(
        Knob::Optimizer,
        "optimizer",
        &["optim"],
        Group::Runtime,
        ValueType::Choice(Optimizer::NAMES),
        &["optimizer"],
        "optimizer: decides the states kept for every weight",
    )
    .slot(word!(Optimizer, optimizer))
    .usual_word(Optimizer::Adam.name())
    .training()
    .reasoned(),
    entry(
        Knob::Trained,
        "trained",
        &["peft"],
        Group::Runtime,
        ValueType::Choice(Trained::NAMES),
        &["trained"],
        "weights that are trained: all, or adapters of a frozen model",
    )
    .slot(word!(Trained, trained))
    .usual_word(Trained::All.name())
    .training()
    .reasoned(),
    entry(
        Knob::LoraTargets,
        "lora_targets",
        &["lora_target_modules"],
        Group::Runtime,
        ValueType::Choice(LoraTargets::NAMES),
        &["lora_targets"],
        "linear layers that have adapters",
    )
    .slot(word!(LoraTargets, lora_targets))
    .usual_word(LoraTargets::All.name())
    .training()
    .reasoned(),
    entry(
        Knob::CpuOffload,
        "cpu_offload",
        &["offload"],
        Group::Runtime,
        ValueType::Choice(CpuOffload::NAMES),
        &["cpu_offload"],
        "training state kept in host memory",
    )
    .slot(word!(CpuOffload, cpu_offload))
    .usual_word(CpuOffload::None.name())
    .training()
    .reasoned(),
    entry(
        Knob::Recompute,
        "recompute",
        &["activation_checkpointing"],
        Group::Runtime,
        ValueType::Choice(Recompute::NAMES),
        &["recompute"],
        "activations computed again in the backward pass: less memory, more work",
    )
    .slot(word!(Recompute, recompute))
    .training()
    .reasoned(),
    entry(
        Knob::RecomputeLayers,
        "recompute_layers",
        &["recompute_num_layers"],
        Group::Runtime,
        whole(0.0, 100_000.0, Step::Add(1.0)),
        &["recompute", "layers"],
        "layers recomputed in full; the others follow `recompute`",
    )
    .slot(nonzero!(recompute_layers))
    .usual(0.0)
    .files(0.0, 1e6)
    .training()
    .reasoned(),
    entry(
        Knob::RecomputeReserve,
        "recompute_reserve",
        &[],
        Group::Runtime,
        real(0.0, 0.9, 0.01),
        &["recompute", "reserve"],
        "share of device memory that planned recomputation (auto, selective) leaves free",
    )
    .slot(number!(recompute_reserve))
    .usual(0.0)
    .training()
    .reasoned(),
    entry(
        Knob::Overlap,
        "overlap",
        &[],
        Group::Runtime,
        ValueType::Toggle,
        &["overlap"],
        "communication overlaps computation where it can",
    )
    .slot(flag!(overlap))
    .usual_flag(true)
    .training()
    .reasoned(),
    entry(
        Knob::OverlapTensor,
        "overlap_tensor",
        &["tp_comm_overlap"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "overlap_tensor"],
        "tensor-parallel communication overlaps its matrix products",
    )
    .slot(flag!(switches.overlap_tensor))
    .training()
    .reasoned(),
    entry(
        Knob::OverlapPipeline,
        "overlap_pipeline",
        &["overlap_p2p_comm"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "overlap_pipeline"],
        "pipeline transfers overlap the next micro-batch",
    )
    .slot(flag!(switches.overlap_pipeline))
    .training()
    .reasoned(),
    entry(
        Knob::OverlapExperts,
        "overlap_experts",
        &["overlap_moe_expert_parallel_comm"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "overlap_experts"],
        "the exchange of tokens between experts overlaps another micro-batch",
    )
    .slot(flag!(switches.overlap_experts))
    .training()
    .reasoned(),
    entry(
        Knob::OverlapData,
        "overlap_data",
        &["overlap_grad_reduce"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "overlap_data"],
        "gradient and parameter communication overlaps computation",
    )
    .slot(flag!(switches.overlap_data))
    .training()
    .reasoned(),
    entry(
        Knob::AttentionKernel,
        "attention_kernel",
        &["attn_implementation"],
        Group::Runtime,
        ValueType::Choice(AttentionKernel::NAMES),
        &["runtime_tuning", "attention_kernel"],
        "attention kernel: unfused, FlashAttention-1 or -2, or written for this device generation",
    )
    .slot(word!(AttentionKernel, switches.attention_kernel))
    .training()
    .reasoned(),
    entry(
        Knob::GraphCapture,
        "graph_capture",
        &[],
        Group::Runtime,
        ValueType::Choice(GraphCapture::NAMES),
        &["runtime_tuning", "graph_capture"],
        "what a training step replays as captured graphs",
    )
    .slot(word!(GraphCapture, switches.graph_capture))
    .usual_word(GraphCapture::None.name())
    .training()
    .reasoned(),
    entry(
        Knob::Compiled,
        "compiled",
        &["torch_compile"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "compiled"],
        "the model is compiled: element-wise kernels are fused, the host launches less",
    )
    .slot(flag!(switches.compiled))
    .training()
    .reasoned(),
    entry(
        Knob::MoeDispatcher,
        "moe_dispatcher",
        &["moe_token_dispatcher_type"],
        Group::Runtime,
        ValueType::Choice(MoeDispatcher::NAMES),
        &["runtime_tuning", "moe_dispatcher"],
        "how tokens travel to experts: once per expert, once per scale-up domain, or by direct writes (deepep, serving)",
    )
    .slot(word!(MoeDispatcher, switches.moe_dispatcher))
    .reasoned(),
    entry(
        Knob::MoeCapacity,
        "moe_capacity",
        &[],
        Group::Runtime,
        ValueType::Choice(MoeCapacity::NAMES),
        &["runtime_tuning", "moe_capacity"],
        "tokens beyond the capacity of an expert: all kept, or dropped, which fixes all shapes",
    )
    .slot(word!(MoeCapacity, switches.moe_capacity))
    .usual_word(MoeCapacity::Dropless.name())
    .training()
    .reasoned(),
    entry(
        Knob::ExpertImbalance,
        "expert_imbalance",
        &["imbalance"],
        Group::Runtime,
        real(1.0, 100.0, 0.1),
        &["expert_imbalance"],
        "load of the busiest expert-parallel rank over the mean",
    )
    .slot(number!(imbalance))
    .usual(1.0)
    .files(1.0, 1000.0)
    .training()
    .reasoned(),
    entry(
        Knob::CudaGraphs,
        "cuda_graphs",
        &["graphs"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "cuda_graphs"],
        "kernels launched as captured graphs: less overhead",
    ),
    entry(
        Knob::GpudirectRdma,
        "gpudirect_rdma",
        &["gpudirect", "gdr"],
        Group::Runtime,
        ValueType::Toggle,
        &["runtime_tuning", "gpudirect_rdma"],
        "NICs read accelerator memory directly: cheaper communication",
    )
    .calibrated(),
    entry(
        Knob::Virt,
        "virt",
        &["virtualization"],
        Group::Runtime,
        ValueType::Choice(&["bare", "sriov"]),
        &["runtime_tuning", "virt"],
        "bare metal, or NICs shared by SR-IOV: jitter and longer tails",
    )
    .calibrated(),
    entry(
        Knob::Fabric,
        "fabric",
        &["network"],
        Group::Runtime,
        ValueType::Fabric,
        &["runtime_tuning", "fabric"],
        "fabric between accelerators, one of those the profile is calibrated for",
    )
    .calibrated(),
];
