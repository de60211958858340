//! One accelerator as its datasheet describes it, in SI units (FLOP/s, bytes, bytes/s, W).

use crate::constants::Constants;
use crate::constants::documented::A100_CLOCK;
pub use crate::constants::generation::Generation;
use atlas_core::network::{LinkPath, Network};
use atlas_core::plan::Format;

/// Numeric format of the operands of a matrix multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Single precision on vector units.
    Fp32,
    /// 19-bit TensorFloat of NVIDIA tensor cores.
    Tf32,
    /// 16-bit with an 8-bit exponent.
    Bf16,
    /// 16-bit half precision.
    Fp16,
    /// 8-bit floating point, per-tensor or block-scaled.
    Fp8,
    /// 8-bit integer.
    Int8,
    /// 6-bit floating point, block-scaled.
    Fp6,
    /// 4-bit floating point, block-scaled (NVFP4, MXFP4).
    Fp4,
    /// 4-bit integer weights, multiplied in a wider format: no faster than bf16 where compute-bound.
    Int4,
}

impl From<Format> for Precision {
    fn from(format: Format) -> Precision {
        match format {
            Format::Fp32 => Precision::Fp32,
            Format::Tf32 => Precision::Tf32,
            Format::Bf16 => Precision::Bf16,
            Format::Fp16 => Precision::Fp16,
            Format::Fp8 | Format::Mxfp8 => Precision::Fp8,
            Format::Int8 => Precision::Int8,
            Format::Fp6 => Precision::Fp6,
            Format::Fp4 => Precision::Fp4,
            Format::Int4 => Precision::Int4,
        }
    }
}

impl Precision {
    /// Number of formats, the length of [`Accelerator::flops`].
    pub const COUNT: usize = 9;

    /// Bytes of one element, without block scales.
    pub const fn bytes(self) -> f64 {
        match self {
            Precision::Fp32 | Precision::Tf32 => 4.0,
            Precision::Bf16 | Precision::Fp16 => 2.0,
            Precision::Fp8 | Precision::Int8 => 1.0,
            Precision::Fp6 => 0.75,
            Precision::Fp4 | Precision::Int4 => 0.5,
        }
    }

    /// The next wider format, whose units are used where a device lacks this one.
    const fn wider(self) -> Option<Precision> {
        match self {
            Precision::Fp4 | Precision::Fp6 => Some(Precision::Fp8),
            Precision::Fp8 | Precision::Int8 | Precision::Int4 => Some(Precision::Bf16),
            Precision::Bf16 => Some(Precision::Fp16),
            Precision::Fp16 => Some(Precision::Tf32),
            Precision::Tf32 => Some(Precision::Fp32),
            Precision::Fp32 => None,
        }
    }

    /// Whether the format is narrow, so that operands are quantized on the fly.
    pub const fn is_narrow(self) -> bool {
        matches!(self, Precision::Fp8 | Precision::Int8 | Precision::Fp6 | Precision::Fp4)
    }
}

/// A direct link among a few accelerators of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bridge {
    /// Number of accelerators that it connects.
    pub ranks: f64,
    /// Bandwidth per accelerator, bytes/s, one way.
    pub bw: f64,
}

impl Bridge {
    /// Bandwidth that large collectives reach, bytes/s, one way.
    pub fn effective_bw(&self, c: &Constants) -> f64 {
        (self.bw * c.link_fraction).max(1e6)
    }
}

/// One accelerator. FLOP rates are dense; link bandwidths are one-way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Accelerator {
    /// Family of hardware.
    pub generation: Generation,
    /// Dense matrix FLOP/s by [`Precision`] (index = discriminant); 0 where the device lacks the format.
    pub flops: [f64; Precision::COUNT],
    /// Device memory as stated in the datasheet, bytes; see [`Accelerator::capacity`].
    pub mem_bytes: f64,
    /// Share of that memory available to software: below 1 where error correction or the system reserve part of it.
    pub usable_share: f64,
    /// Device memory bandwidth, bytes/s.
    pub mem_bw: f64,
    /// Number of independent matrix cores that a wave of tiles fills: SMs, CUs, MXUs.
    pub cores: f64,
    /// Maximum clock of the cores, Hz; that of A100 where none is published.
    pub clock: f64,
    /// Thermal design power, W, if published.
    pub tdp_w: Option<f64>,
    /// Scale-up bandwidth per accelerator, bytes/s, one way.
    pub link_bw: f64,
    /// Whether these links pass through the host. A bridge never does.
    pub link_path: LinkPath,
    /// Number of accelerators in the scale-up domain.
    pub domain: f64,
    /// Bridges, if they are faster than the fabric of the node.
    pub bridge: Option<Bridge>,
    /// Whether the scale-up fabric is switched, so that every pair has the full [`Accelerator::link_bw`].
    pub switched: bool,
    /// Number of accelerators that share [`Accelerator::link_bw`] because each has links of its own (full mesh); `None`
    /// for switches, rings, tori and PCIe.
    pub mesh_peers: Option<f64>,
    /// Scale-out bandwidth per accelerator, bytes/s, one way.
    pub nic_bw: f64,
    /// Topology of the network between the NICs.
    pub network: Network,
}

impl Default for Accelerator {
    /// A100 SXM 80 GB (NVIDIA A100 datasheet, 2020): the device of most measurements.
    fn default() -> Self {
        let mut flops = [0.0; Precision::COUNT];
        for (slot, value) in flops.iter_mut().zip([19.5e12, 156e12, 312e12, 312e12, 0.0, 624e12]) {
            *slot = value;
        }
        Accelerator {
            generation: Generation::Ampere,
            flops,
            mem_bytes: 80e9,
            usable_share: 1.0,
            mem_bw: 2.039e12,
            cores: 108.0,
            clock: A100_CLOCK,
            tdp_w: Some(400.0),
            link_bw: 300e9,
            link_path: LinkPath::Direct,
            domain: 8.0,
            bridge: None,
            switched: true,
            mesh_peers: None,
            nic_bw: 25e9,
            network: Network { nics: 8.0, ..Network::default() },
        }
    }
}

/// Share of a mesh's bandwidth that a group of `ranks` neighbors can use: links to accelerators outside of the group are
/// idle. 1 without a mesh.
pub(crate) fn mesh_share(peers: Option<f64>, ranks: f64) -> f64 {
    peers.map_or(1.0, |peers| ((ranks - 1.0).max(1.0) / peers.max(1.0)).min(1.0))
}

impl Accelerator {
    /// Whether scale-up traffic passes through the host's PCIe tree.
    pub fn over_pcie(&self) -> bool {
        self.link_path == LinkPath::Host
    }

    /// Share of the scale-up bandwidth that a group of `ranks` neighbors can use; in a mesh, links to others are idle.
    pub fn link_share(&self, ranks: f64) -> f64 {
        mesh_share(self.mesh_peers, ranks)
    }

    /// Bandwidth that large collectives reach on the scale-up links, bytes/s, one way.
    pub fn effective_link_bw(&self, c: &Constants) -> f64 {
        (self.link_bw * if self.over_pcie() { c.pcie_fraction } else { c.link_fraction }).max(1e6)
    }

    /// The format whose units multiply `precision`: itself, or the next wider format that the device supports.
    pub fn units(&self, precision: Precision) -> Precision {
        let mut at = precision;
        while !self.supports(at) {
            let Some(wider) = at.wider() else { return precision };
            at = wider;
        }
        at
    }

    /// Dense FLOP/s in `precision`, or in the next wider format that the device supports.
    pub fn peak(&self, precision: Precision) -> f64 {
        self.peak_of(self.units(precision))
    }

    /// Dense FLOP/s of `units`; 1 for units that the device lacks.
    pub(crate) fn peak_of(&self, units: Precision) -> f64 {
        let rate = self.flops.get(units as usize).copied().unwrap_or(0.0);
        if rate > 0.0 { rate } else { 1.0 }
    }

    /// Device memory available to software, bytes. Datasheets state GB for memory that is sized in GiB (an "80 GB" A100
    /// reports 81,920 MiB).
    pub fn capacity(&self) -> f64 {
        self.usable_share * self.mem_bytes * (1024.0 * 1024.0 * 1024.0 / 1e9)
    }

    /// Rate of all cores, given that of one core of an A100. The units of a core that load, unpack and keep requests in
    /// flight work per clock.
    pub fn core_rate(&self, each: f64) -> f64 {
        each * self.cores.max(1.0) * self.clock / A100_CLOCK
    }

    /// One of `dies` equal dies, tiles or cores that software sees as separate devices.
    #[must_use]
    pub fn split(self, dies: f64) -> Accelerator {
        Accelerator {
            flops: self.flops.map(|rate| rate / dies),
            mem_bytes: self.mem_bytes / dies,
            mem_bw: self.mem_bw / dies,
            cores: (self.cores / dies).max(1.0),
            link_bw: self.link_bw / dies,
            nic_bw: self.nic_bw / dies,
            domain: self.domain * dies,
            bridge: self.bridge.map(|bridge| Bridge { ranks: bridge.ranks * dies, bw: bridge.bw / dies }),
            ..self
        }
    }

    /// Whether matrix units apply a scale per block of values (MX formats, NVFP4). All FP4 and FP6 matrix units do, and
    /// no others: Blackwell, CDNA4, Trainium3.
    #[must_use]
    pub fn scales_blocks(&self) -> bool {
        self.supports(Precision::Fp4) || self.supports(Precision::Fp6)
    }

    /// Whether matrix units apply the 8-bit floating-point scales of NVFP4. Those of other vendors apply only the powers
    /// of two of MX formats (AMD, CDNA4 ISA; OCP Microscaling Formats specification 1.0, section 5.3).
    #[must_use]
    pub fn multiplies_nvfp4(&self) -> bool {
        self.supports(Precision::Fp4) && self.generation.properties().multiplies_nvfp4
    }

    /// Whether the device multiplies in `format` natively.
    #[must_use]
    pub fn multiplies(&self, format: Format) -> bool {
        self.supports(Precision::from(format)) && (format != Format::Mxfp8 || self.scales_blocks())
    }

    /// Whether the device multiplies in `precision` natively, without falling back to a wider format.
    pub fn supports(&self, precision: Precision) -> bool {
        self.flops.get(precision as usize).is_some_and(|&f| f > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_format_falls_back_to_a_wider_one() {
        let a = Accelerator::default();
        assert_eq!(a.peak(Precision::Fp8), 312e12);
        assert_eq!(a.peak(Precision::Fp4), 312e12);
        assert_eq!(a.peak(Precision::Int8), 624e12);
        assert!(!a.supports(Precision::Fp8));
    }
}
