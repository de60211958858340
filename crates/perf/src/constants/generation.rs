//! Properties of device generations, as documented: nothing here is fitted.

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

/// What is documented about a device generation.
#[derive(Debug, Clone, Copy)]
pub struct GenerationProperties {
    /// Share of the dense peak that a large GEMM sustains; on the reference device, if there is one.
    pub gemm_share: NamedConstant,
    /// The reference device, if large GEMMs run at the power limit.
    pub reference: Option<ReferenceDevice>,
    /// Whether matrix units work asynchronously, so that kernels written for earlier generations do not reach their rate
    /// (FlashAttention-3, arXiv 2407.08608, section 1).
    pub asynchronous_units: bool,
    /// Whether switches of the scale-up network can reduce (NVLink switches of the third generation and later, NVLS).
    pub switches_reduce: bool,
    /// Whether matrix units for 4-bit formats apply the 8-bit floating-point scales of NVFP4. Those of other vendors apply
    /// only the powers of two of MX formats (AMD, CDNA4 ISA; OCP Microscaling Formats specification 1.0, section 5.3).
    pub multiplies_nvfp4: bool,
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
    pub best_mfu: Option<f64>,
}

macro_rules! constant {
    ($name:ident) => {
        NamedConstant { name: stringify!($name), get: |c| c.$name }
    };
}

/// PCIe x16 and host memory of nodes with PCIe of the fourth generation.
const USUAL: GenerationProperties = GenerationProperties {
    gemm_share: constant!(gemm_unmeasured),
    reference: None,
    asynchronous_units: false,
    switches_reduce: false,
    multiplies_nvfp4: false,
    host_link_bw: 32e9,
    host_memory_bw: 410e9 / 8.0,
    best_mfu: None,
};

/// As [`USUAL`], with PCIe of the fifth generation.
const PCIE_5: GenerationProperties = GenerationProperties { host_link_bw: 64e9, host_memory_bw: 614e9 / 8.0, ..USUAL };

static VOLTA: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_ampere), host_link_bw: 16e9, best_mfu: Some(0.39), ..USUAL };
static WORKSTATION: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_ampere), multiplies_nvfp4: true, best_mfu: Some(0.81), ..USUAL };
static AMPERE: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_ampere), best_mfu: Some(0.63), ..USUAL };
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
    best_mfu: Some(0.61),
    ..PCIE_5
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
    best_mfu: Some(0.47),
    ..PCIE_5
};
static CDNA2: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_young), best_mfu: Some(0.42), ..USUAL };
static CDNA3: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_young), best_mfu: Some(0.40), ..PCIE_5 };
static CDNA4: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_young), best_mfu: Some(0.35), ..PCIE_5 };
static TPU: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_systolic), best_mfu: Some(0.70), ..USUAL };
static TRAINIUM: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_young), best_mfu: Some(0.45), ..USUAL };
static GAUDI: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_other), best_mfu: Some(0.44), ..USUAL };
static ASCEND: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_young), best_mfu: Some(0.53), ..USUAL };
static PONTE_VECCHIO: GenerationProperties =
    GenerationProperties { gemm_share: constant!(gemm_other), best_mfu: Some(0.15), ..USUAL };
static OTHER: GenerationProperties = USUAL;

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
    pub const fn runs_reference_kernels(self) -> bool {
        matches!(
            self,
            Generation::Volta
                | Generation::Workstation
                | Generation::Ampere
                | Generation::Hopper
                | Generation::Blackwell
        )
    }

    /// Whether steps can be captured and replayed as graphs.
    pub const fn captures_graphs(self) -> bool {
        self.uses_nccl()
    }

    /// Whether collectives run in NCCL or its port to ROCm (RCCL).
    pub const fn uses_nccl(self) -> bool {
        self.runs_reference_kernels() || matches!(self, Generation::Cdna2 | Generation::Cdna3 | Generation::Cdna4)
    }

    /// What is documented about the generation.
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
