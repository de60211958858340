//! How work is done on a device: the engine that answers, formats, what is recomputed, overlap.

use super::{REASONING, entry, ranks, real};
use crate::knob::{Group, Kind, Knob, Spec};
use crate::plan::{Engine, Format, Recompute};
use crate::spec::Mode;

pub(super) const RUNTIME: [Spec; 12] = [
    entry(
        Knob::Engine,
        "engine",
        &[],
        Group::Engine,
        Kind::Choice(Engine::NAMES),
        &[],
        "what answers: closed forms, the calibrated model, a simulation event by event, or the founding dashboard",
    ),
    entry(
        Knob::Microbatch,
        "microbatch",
        &["micro", "micro_batch"],
        Group::Runtime,
        ranks(65_536.0),
        &["runtime_tuning", "microbatch"],
        "sequences per device and step; in inference, requests served side by side",
    )
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
    .unit("seq")
    .training()
    .reasoned(),
    entry(
        Knob::Precision,
        "precision",
        &["dtype", "format"],
        Group::Runtime,
        Kind::Choice(Format::NAMES),
        &["precision", "weights"],
        "format of matrix multiplications and of the weights behind them",
    )
    .reasoned(),
    entry(
        Knob::KvPrecision,
        "kv_precision",
        &["kv_cache_dtype", "kv"],
        Group::Runtime,
        Kind::Choice(Format::NAMES),
        &["precision", "kv"],
        "format of the KV cache",
    )
    .inference()
    .reasoned(),
    entry(
        Knob::Recompute,
        "recompute",
        &["activation_checkpointing"],
        Group::Runtime,
        Kind::Choice(Recompute::NAMES),
        &["recompute"],
        "activations computed again in the backward pass: less memory, more work",
    )
    .training()
    .reasoned(),
    entry(
        Knob::Overlap,
        "overlap",
        &[],
        Group::Runtime,
        Kind::Toggle,
        &["overlap"],
        "communication runs beside computation, as far as it can",
    )
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
    .training()
    .reasoned(),
    entry(
        Knob::CudaGraphs,
        "cuda_graphs",
        &["graphs"],
        Group::Runtime,
        Kind::Toggle,
        &["runtime_tuning", "cuda_graphs"],
        "launch kernels as captured graphs: less launch overhead, more utilisation",
    ),
    entry(
        Knob::GpudirectRdma,
        "gpudirect_rdma",
        &["gpudirect", "gdr"],
        Group::Runtime,
        Kind::Toggle,
        &["runtime_tuning", "gpudirect_rdma"],
        "NICs read accelerator memory directly: cheaper communication",
    )
    .calibrated(),
    entry(
        Knob::Virt,
        "virt",
        &["virtualization"],
        Group::Runtime,
        Kind::Choice(&["bare", "sriov"]),
        &["runtime_tuning", "virt"],
        "bare metal, or NICs shared by SR-IOV: jitter and longer tails",
    )
    .calibrated(),
    entry(
        Knob::Fabric,
        "fabric",
        &["network"],
        Group::Runtime,
        Kind::Fabric,
        &["runtime_tuning", "fabric"],
        "fabric between accelerators, one of those the profile is calibrated for",
    )
    .calibrated(),
];
