//! The table of knobs. A knob added here appears everywhere.

use super::{Group, Kind, Knob, Spec, Step};
use crate::spec::decode::Bounds;

const fn whole(min: f64, max: f64, step: Step) -> Kind {
    Kind::Number { bounds: Bounds { min, max, whole: true }, step }
}

const fn real(min: f64, max: f64, step: f64) -> Kind {
    Kind::Number { bounds: Bounds { min, max, whole: false }, step: Step::Add(step) }
}

/// The registry.
pub const KNOBS: [Spec; 16] = [
    Spec {
        knob: Knob::Microbatch,
        name: "microbatch",
        aliases: &["micro", "micro_batch"],
        group: Group::Runtime,
        kind: whole(1.0, 65_536.0, Step::Double),
        unit: "seq",
        help: "sequences per device and step; in inference, requests served side by side",
    },
    Spec {
        knob: Knob::CudaGraphs,
        name: "cuda_graphs",
        aliases: &["graphs"],
        group: Group::Runtime,
        kind: Kind::Toggle,
        unit: "",
        help: "launch kernels as captured graphs: less launch overhead, more utilisation",
    },
    Spec {
        knob: Knob::GpudirectRdma,
        name: "gpudirect_rdma",
        aliases: &["gpudirect", "gdr"],
        group: Group::Runtime,
        kind: Kind::Toggle,
        unit: "",
        help: "NICs read accelerator memory directly: cheaper communication",
    },
    Spec {
        knob: Knob::Virt,
        name: "virt",
        aliases: &["virtualization"],
        group: Group::Runtime,
        kind: Kind::Choice(&["bare", "sriov"]),
        unit: "",
        help: "bare metal, or NICs shared by SR-IOV: jitter and longer tails",
    },
    Spec {
        knob: Knob::Fabric,
        name: "fabric",
        aliases: &["network"],
        group: Group::Runtime,
        kind: Kind::Fabric,
        unit: "",
        help: "fabric between accelerators, one of those the profile is calibrated for",
    },
    Spec {
        knob: Knob::Tp,
        name: "tp",
        aliases: &["tensor_parallel"],
        group: Group::Parallelism,
        kind: whole(1.0, 4096.0, Step::Double),
        unit: "",
        help: "tensor-parallel ranks: each layer cut across accelerators",
    },
    Spec {
        knob: Knob::Pp,
        name: "pp",
        aliases: &["pipeline_parallel"],
        group: Group::Parallelism,
        kind: whole(1.0, 4096.0, Step::Double),
        unit: "",
        help: "pipeline stages: layers in a row of accelerators",
    },
    Spec {
        knob: Knob::Dp,
        name: "dp",
        aliases: &["data_parallel"],
        group: Group::Parallelism,
        kind: whole(1.0, 1_048_576.0, Step::Double),
        unit: "",
        help: "data-parallel replicas",
    },
    Spec {
        knob: Knob::Prompt,
        name: "prompt",
        aliases: &["isl", "seq"],
        group: Group::Sequence,
        kind: whole(0.0, 16_777_216.0, Step::Double),
        unit: "tok",
        help: "prompt tokens (ISL); the whole sequence in training",
    },
    Spec {
        knob: Knob::Generate,
        name: "generate",
        aliases: &["osl"],
        group: Group::Sequence,
        kind: whole(0.0, 16_777_216.0, Step::Double),
        unit: "tok",
        help: "generated tokens (OSL); 0 in training",
    },
    Spec {
        knob: Knob::NumNodes,
        name: "num_nodes",
        aliases: &["nodes"],
        group: Group::Target,
        kind: whole(1.0, 1_000_000.0, Step::Double),
        unit: "",
        help: "nodes of the target",
    },
    Spec {
        knob: Knob::HourlyUsd,
        name: "hourly_usd",
        aliases: &["hourly", "price"],
        group: Group::Target,
        kind: real(0.0, 1e9, 1.0),
        unit: "$/h",
        help: "rental of one node",
    },
    Spec {
        knob: Knob::UsdPerKwh,
        name: "usd_per_kwh",
        aliases: &["kwh", "energy_price"],
        group: Group::Target,
        kind: real(0.0, 1e6, 0.01),
        unit: "$/kWh",
        help: "price of energy, paid beside the rental",
    },
    Spec {
        knob: Knob::Pue,
        name: "pue",
        aliases: &[],
        group: Group::Target,
        kind: real(0.0, 100.0, 0.05),
        unit: "",
        help: "facility power over IT power",
    },
    Spec {
        knob: Knob::Seed,
        name: "seed",
        aliases: &[],
        group: Group::Run,
        kind: Kind::Seed,
        unit: "",
        help: "seed of the noise; phase i draws from seed + i",
    },
    Spec {
        knob: Knob::Noise,
        name: "noise",
        aliases: &[],
        group: Group::Run,
        kind: Kind::Toggle,
        unit: "",
        help: "draw run-to-run noise as the founding model does; off gives the expectation",
    },
];
