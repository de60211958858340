//! Properties of device generations. Values are documented; fitted and assumed ones are referred to by name.

use super::Constants;

/// Hardware family, where families differ in the share of the datasheet's peak that they reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Generation {
    /// NVIDIA V100.
    Volta,
    /// Turing, and consumer or workstation cards of any later generation (GDDR memory, PCIe).
    Workstation,
    #[default]
    /// NVIDIA A100, A800, A30.
    Ampere,
    /// NVIDIA H100, H800, H200, H20, GH200.
    Hopper,
    /// NVIDIA B200, B300, GB200, GB300 and their successors.
    Blackwell,
    /// AMD MI210, MI250.
    Cdna2,
    /// AMD MI300, MI325.
    Cdna3,
    /// AMD MI350, MI355 and their successors.
    Cdna4,
    /// Google TPU, any version.
    Tpu,
    /// AWS Trainium and Inferentia.
    Trainium,
    /// Intel Gaudi.
    Gaudi,
    /// Huawei Ascend.
    Ascend,
    /// Intel Data Center GPU Max.
    PonteVecchio,
    /// Anything else.
    Other,
}

/// A constant of [`Constants`], by name.
#[derive(Debug, Clone, Copy)]
pub struct NamedConstant {
    /// Name in [`Constants::FIELDS`].
    pub name: &'static str,
    /// Reads the value.
    pub get: fn(&Constants) -> f64,
}

/// The device to which a share of the peak at the power limit refers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceDevice {
    /// Design power, W.
    pub tdp_w: f64,
    /// Dense FLOP/s of tf32, 16-bit, 8-bit and 4-bit units; 0 for units that it lacks.
    pub peaks: [f64; 4],
    /// Dense FLOP/s of 4-bit units of later devices of the generation, which compute more for the same power.
    pub later_four_bit: Option<f64>,
}

/// How software turns a model into kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compilation {
    /// A step launches many kernels.
    Kernels,
    /// The compilers of XLA and Neuron compile a whole step into one program.
    Steps,
    /// Engines that are compiled ahead of time map a decoder layer to one kernel, in which collectives overlap with
    /// GEMMs, sockets stream to one another without the host, and weights are read at the memory's rate (Prabhakar et
    /// al., arXiv 2405.07518, sections 4 and 6).
    Dataflow,
}

/// Arithmetic of serving engines.
#[derive(Debug, Clone, Copy)]
pub enum ServingArithmetic {
    /// Reaches the same share of the rooflines as other kernels.
    AsKernels,
    /// Reaches this share of what other kernels reach.
    Less(NamedConstant),
    /// Reaches the share of a large GEMM, which was fitted with the family's own software.
    AsLargeGemms,
}

/// Shares of the rooflines that serving engines reach, relative to the kernels to which the serving constants were
/// fitted.
#[derive(Debug, Clone, Copy)]
pub struct ServingShares {
    /// Of kernels in general.
    pub kernels: NamedConstant,
    /// Of the vendor's kernels for inference, if there are any.
    pub vendor_kernels: Option<NamedConstant>,
    /// Of arithmetic.
    pub arithmetic: ServingArithmetic,
}

/// Measurements with which the interval of an estimate was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// Enough of the family and its relatives to distinguish kinds of runs.
    ByKindOfRun,
    /// Together with those of all CDNA devices.
    WithCdna,
    /// Together with those of other vendors.
    WithOthers,
    /// Few or none: intervals are stated priors.
    Hardly,
}

/// Highest published MFU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BestMfu {
    /// The MFU, with causal attention counted once.
    pub share: f64,
    /// Whether it applies only to devices with 16-bit units: there are no training runs on Turing cards and Apple
    /// processors, which have no bf16 rate.
    pub requires_bf16: bool,
}

/// What is known about a device generation.
#[derive(Debug, Clone, Copy)]
pub struct GenerationProperties {
    /// Share of the dense peak that a large GEMM sustains; on the reference device, if there is one.
    pub gemm_share: NamedConstant,
    /// The reference device, if large GEMMs run at the power limit.
    pub reference: Option<ReferenceDevice>,
    /// Whether matrix units work asynchronously, so that kernels written for earlier generations do not reach their rate
    /// (FlashAttention-3, arXiv 2407.08608, section 1). Their instructions multiply [`tile_rows`](Constants::tile_rows)
    /// rows (PTX ISA, `wgmma`).
    pub asynchronous_units: bool,
    /// Whether switches of the scale-up network can reduce (NVLink switches of the third generation and later, NVLS).
    pub switches_reduce: bool,
    /// Whether matrix units for 4-bit formats apply the 8-bit floating-point scales of NVFP4. Those of other vendors apply
    /// only the powers of two of MX formats (AMD, CDNA4 ISA; OCP Microscaling Formats specification 1.0, section 5.3).
    pub multiplies_nvfp4: bool,
    /// Whether decode kernels multiply 8-bit keys with 8-bit queries (TensorRT-LLM's generated kernels; lmsys.org,
    /// 2025-09-25). Elsewhere, keys are unpacked first.
    pub multiplies_narrow_keys: bool,
    /// Whether collectives run in NCCL or its port to ROCm (RCCL).
    pub uses_nccl: bool,
    /// Whether links form rings or tori, in which messages are forwarded from neighbor to neighbor (AWS, *Trn1
    /// architecture*, NeuronLink; Google, *TPU system architecture*).
    pub forwards_messages: bool,
    /// Whether collectives of different parallel dimensions use different links: on a torus the axes of the device mesh
    /// are axes of the torus (JAX, `mesh_utils.create_device_mesh`).
    pub links_per_dimension: bool,
    /// How software turns a model into kernels.
    pub compilation: Compilation,
    /// Whether all software compiles graphs that plan their transfers, which therefore reach the same share of the
    /// datasheet's bandwidth as GPUs (Intel, *Gaudi documentation*, graph compiler).
    pub plans_transfers: bool,
    /// What serving engines reach; `None` if they run the kernels to which the serving constants were fitted.
    pub serving_shares: Option<ServingShares>,
    /// Measurements of training.
    pub training_measured: Measured,
    /// Measurements of serving.
    pub serving_measured: Measured,
    /// Bandwidth to the host, bytes/s one way: PCIe x16 of the third (16 GB/s) to fifth generation (64 GB/s).
    pub host_link_bw: f64,
    /// Host memory bandwidth per accelerator, bytes/s. Eight accelerators share two sockets with eight channels of
    /// DDR4-3200 (410 GB/s) or DDR5-4800 (614 GB/s).
    pub host_memory_bw: f64,
    /// Highest MFU of the published runs that train all weights, with causal attention counted once; `None` if there is
    /// none.
    ///
    /// Source rows of the measurements: V100 bigscience-0110, RTX 4090 llmq-0024, A100 llmfoundry-0105, H100 llmq-0018,
    /// GB200 dgxc-0134, MI250X papers-0236, MI325X primus-0017, MI355X primus-0019, TPU v5p maxtext-0025, Trainium
    /// aws-0028, Gaudi 2 habana-0001, Ascend 910B ascend-0020, Max 1550 argonne-0028. Rows of models with an unknown
    /// architecture are excluded.
    pub best_mfu: Option<BestMfu>,
}

macro_rules! constant {
    ($name:ident) => {
        NamedConstant { name: stringify!($name), get: |c| c.$name }
    };
}

/// Shares of serving engines on accelerators other than NVIDIA's and AMD's.
const OTHER_STACKS: ServingShares = ServingShares {
    kernels: constant!(other_stack_fraction),
    vendor_kernels: None,
    arithmetic: ServingArithmetic::AsKernels,
};

/// As [`OTHER_STACKS`], for families whose share of a large GEMM was fitted with their own software.
const OWN_STACKS: ServingShares = ServingShares { arithmetic: ServingArithmetic::AsLargeGemms, ..OTHER_STACKS };

/// Shares of serving engines on CDNA devices for which the vendor publishes kernels for inference.
const CDNA_STACKS: ServingShares = ServingShares {
    kernels: constant!(cdna_fraction),
    vendor_kernels: Some(constant!(cdna_vendor_fraction)),
    arithmetic: ServingArithmetic::AsKernels,
};

/// The MFU `share` of devices that all have 16-bit units.
const fn mfu(share: f64) -> Option<BestMfu> {
    Some(BestMfu { share, requires_bf16: false })
}

/// PCIe x16 and host memory of nodes with PCIe of the fourth generation.
const USUAL: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_unmeasured),
    reference: None,
    asynchronous_units: false,
    switches_reduce: false,
    multiplies_nvfp4: false,
    multiplies_narrow_keys: false,
    uses_nccl: false,
    forwards_messages: false,
    links_per_dimension: false,
    compilation: Compilation::Kernels,
    plans_transfers: false,
    serving_shares: Some(OTHER_STACKS),
    training_measured: Measured::WithOthers,
    serving_measured: Measured::Hardly,
    host_link_bw: 32e9,
    host_memory_bw: 410e9 / 8.0,
    best_mfu: None,
};

/// As [`USUAL`], with PCIe of the fifth generation.
const PCIE_5: GenerationProperties = GenerationProperties { host_link_bw: 64e9, host_memory_bw: 614e9 / 8.0, ..USUAL };

/// Families on which serving engines run the kernels to which the serving constants were fitted.
const REFERENCE: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_ampere),
    uses_nccl: true,
    serving_shares: None,
    training_measured: Measured::ByKindOfRun,
    serving_measured: Measured::ByKindOfRun,
    ..USUAL
};

static VOLTA: GenerationProperties = GenerationProperties { host_link_bw: 16e9, best_mfu: mfu(0.39), ..REFERENCE };
static WORKSTATION: GenerationProperties = GenerationProperties {
    multiplies_nvfp4: true,
    training_measured: Measured::Hardly,
    best_mfu: Some(BestMfu { share: 0.81, requires_bf16: true }),
    ..REFERENCE
};
static AMPERE: GenerationProperties = GenerationProperties { best_mfu: mfu(0.63), ..REFERENCE };
/// Reference: H100 SXM.
static HOPPER: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_hopper),
    reference: Some(ReferenceDevice {
        tdp_w: 700.0,
        peaks: [494.7e12, 989.4e12, 1978.9e12, 0.0],
        later_four_bit: None,
    }),
    asynchronous_units: true,
    switches_reduce: true,
    host_link_bw: PCIE_5.host_link_bw,
    host_memory_bw: PCIE_5.host_memory_bw,
    best_mfu: mfu(0.61),
    ..REFERENCE
};
/// Reference: GB200. Blackwell Ultra has 1.5 times its FP4 units at the same rates of other formats (NVIDIA, GB300 datasheet).
static BLACKWELL: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_blackwell),
    reference: Some(ReferenceDevice {
        tdp_w: 1200.0,
        peaks: [1250e12, 2500e12, 5000e12, 10_000e12],
        later_four_bit: Some(15_000e12),
    }),
    asynchronous_units: true,
    switches_reduce: true,
    multiplies_nvfp4: true,
    multiplies_narrow_keys: true,
    host_link_bw: PCIE_5.host_link_bw,
    host_memory_bw: PCIE_5.host_memory_bw,
    best_mfu: mfu(0.47),
    ..REFERENCE
};
static CDNA2: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_young),
    uses_nccl: true,
    serving_measured: Measured::WithCdna,
    best_mfu: mfu(0.42),
    ..USUAL
};
static CDNA3: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_young),
    uses_nccl: true,
    serving_shares: Some(CDNA_STACKS),
    serving_measured: Measured::WithCdna,
    best_mfu: mfu(0.40),
    ..PCIE_5
};
static CDNA4: GenerationProperties = GenerationProperties { best_mfu: mfu(0.35), ..CDNA3 };
static TPU: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_systolic),
    forwards_messages: true,
    links_per_dimension: true,
    compilation: Compilation::Steps,
    best_mfu: mfu(0.70),
    ..USUAL
};
/// Neuron's compiler reaches less of the systolic arrays than hand-written kernels do elsewhere.
static TRAINIUM: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_young),
    forwards_messages: true,
    compilation: Compilation::Steps,
    serving_shares: Some(ServingShares {
        arithmetic: ServingArithmetic::Less(constant!(neuron_fraction)),
        ..OTHER_STACKS
    }),
    serving_measured: Measured::WithOthers,
    best_mfu: mfu(0.45),
    ..USUAL
};
static GAUDI: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_other),
    plans_transfers: true,
    serving_shares: Some(OWN_STACKS),
    serving_measured: Measured::WithOthers,
    best_mfu: mfu(0.44),
    ..USUAL
};
static ASCEND: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_young), best_mfu: mfu(0.53), ..USUAL };
static PONTE_VECCHIO: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_other),
    serving_shares: Some(OWN_STACKS),
    best_mfu: mfu(0.15),
    ..USUAL
};
static OTHER: GenerationProperties = GenerationProperties {
    compilation: Compilation::Dataflow,
    serving_shares: Some(OWN_STACKS),
    training_measured: Measured::Hardly,
    ..USUAL
};

impl Generation {
    /// Every family, in the order of the fitted tables.
    pub const ALL: [Generation; 14] = [
        Generation::Volta,
        Generation::Workstation,
        Generation::Ampere,
        Generation::Hopper,
        Generation::Blackwell,
        Generation::Cdna2,
        Generation::Cdna3,
        Generation::Cdna4,
        Generation::Tpu,
        Generation::Trainium,
        Generation::Gaudi,
        Generation::Ascend,
        Generation::PonteVecchio,
        Generation::Other,
    ];

    /// Whether serving engines run the kernels on it to which the serving constants were fitted. Rates and latencies of
    /// other families are scaled from those.
    #[must_use]
    pub fn runs_reference_kernels(self) -> bool {
        self.properties().serving_shares.is_none()
    }

    /// Whether steps can be captured and replayed as graphs.
    #[must_use]
    pub fn captures_graphs(self) -> bool {
        self.uses_nccl()
    }

    /// Whether collectives run in NCCL or its port to ROCm (RCCL).
    #[must_use]
    pub fn uses_nccl(self) -> bool {
        self.properties().uses_nccl
    }

    /// What is known about the generation.
    #[must_use]
    pub fn properties(self) -> &'static GenerationProperties {
        match self {
            Generation::Volta => &VOLTA,
            Generation::Workstation => &WORKSTATION,
            Generation::Ampere => &AMPERE,
            Generation::Hopper => &HOPPER,
            Generation::Blackwell => &BLACKWELL,
            Generation::Cdna2 => &CDNA2,
            Generation::Cdna3 => &CDNA3,
            Generation::Cdna4 => &CDNA4,
            Generation::Tpu => &TPU,
            Generation::Trainium => &TRAINIUM,
            Generation::Gaudi => &GAUDI,
            Generation::Ascend => &ASCEND,
            Generation::PonteVecchio => &PONTE_VECCHIO,
            Generation::Other => &OTHER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_generation_names_a_constant() {
        let c = Constants::default();
        for generation in Generation::ALL {
            let share = generation.properties().gemm_share;
            let listed = c.table().find(|one| one.name == share.name).map(|one| one.value);
            assert_eq!(listed, Some((share.get)(&c)), "{generation:?}");
        }
    }
}
