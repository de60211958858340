//! Hardware and model architecture, as used by the analytical engine.

use std::fmt;

use super::Parts;
use atlas_catalog::Accelerator as Sheet;
use atlas_catalog::datasheet;
use atlas_config::Target;
use atlas_core::count::Count;
use atlas_core::network::LinkPath;
use atlas_perf::accelerator::{Accelerator, Bridge};
use atlas_perf::arch::{Architecture, Attention};

/// Accelerators and their fabrics. Bandwidths are per direction, in SI units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// One device as seen by software: an accelerator, or one of its dies.
    pub device: Accelerator,
    /// Devices that software sees per accelerator.
    pub dies: f64,
    /// Maximum number of devices in a scale-up domain.
    max_domain: f64,
    /// Devices in a scale-up domain here: at most as many as the target has.
    pub domain: f64,
    /// Oversubscription of the network between domains: downlinks over uplinks.
    pub oversubscription: f64,
    /// Boost clock according to the datasheet, MHz.
    pub boost_mhz: Option<f64>,
    /// Share of the host that belongs to one device.
    pub host: HostShare,
}

/// Share of the host that belongs to one device. Bandwidths are nominal, in bytes/s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct HostShare {
    /// Bandwidth of the link, one way; `None` if unknown.
    pub link_bw: Option<f64>,
    /// Bandwidth of the host memory; `None` if unknown.
    pub memory_bw: Option<f64>,
    /// Whether host and device share one memory.
    pub unified: bool,
}

impl Machine {
    /// Machine of a target, if it names an accelerator with a sufficient datasheet.
    pub(super) fn of(parts: &Parts) -> Option<Machine> {
        Machine::of_target(&parts.target, parts.accelerator.as_ref()?)
    }

    /// Machine of a target with accelerators of this datasheet; `None` if the datasheet lacks memory or compute rates.
    #[must_use]
    pub fn of_target(target: &Target, sheet: &Sheet) -> Option<Machine> {
        let mut device = datasheet::accelerator(sheet);
        // The memory of the target may differ from that of the catalog: a variant of the same part.
        if target.memory_gb_per_accel > 0.0 {
            device.mem_bytes = memory_gb(target, sheet) * 1e9;
        }
        let link = target.interconnect.as_ref();
        // Datasheets and targets state the sum of both directions.
        if let Some(both_ways) = link.and_then(|link| link.bw_gbytes_per_sec) {
            device.link_bw = both_ways * 0.5e9;
            device.link_path = link.map_or(device.link_path, |link| LinkPath::named(&link.kind));
        }
        // The part may be connected differently than in its usual system: V100s in a DGX-2 through switches.
        device.switched |= link.is_some_and(|link| link.kind.contains("NVSwitch"));
        if device.switched || device.over_pcie() {
            device.mesh_peers = None;
        }
        if let Some(gbits) = target.network.as_ref().and_then(|network| network.gbits_per_accel) {
            device.nic_bw = gbits * 1e9 / 8.0;
        }
        device.network.topology = target.network.as_ref().and_then(|network| network.topology).unwrap_or_default();
        let node = target.accelerators_per_node;
        // A fabric that spans several hosts (NVL72, a TPU slice) has the domain size of the catalog, any other that of
        // the node.
        let usual = if device.domain > node.max(Count::new(8)) { device.domain } else { f64::from(node) };
        let max_domain = link.and_then(|link| link.domain_size).map_or(usual, f64::from);
        let unbridged = sheet.scale_up.as_ref().and_then(|link| link.node_gbytes_per_sec);
        if let Some(unbridged) = unbridged.filter(|_| link.is_none_or(|link| link.bw_gbytes_per_sec.is_none()))
            && max_domain > device.domain
        {
            device.bridge = Some(Bridge { ranks: device.domain, bw: device.link_bw });
            device.link_bw = unbridged * 1e9;
            device.link_path = LinkPath::Host;
        }
        let dies = sheet.ranks;
        if dies > 1.0 {
            device = device.split(f64::from(dies));
        }
        let complete = device.mem_bw > 0.0 && device.mem_bytes > 0.0 && device.flops.iter().any(|rate| *rate > 0.0);
        let oversubscription = target.network.as_ref().and_then(|n| n.oversubscription).unwrap_or(1.0);
        let mut machine = Machine {
            device,
            dies: f64::from(dies),
            max_domain: max_domain * dies,
            domain: 1.0,
            oversubscription,
            boost_mhz: sheet.boost_clock_mhz,
            host: HostShare {
                link_bw: sheet.host_link_gbytes_per_sec().map(|gbytes| gbytes * 1e9 / f64::from(dies)),
                memory_bw: sheet.host.memory_gbytes_per_sec.map(|gbytes| gbytes * 1e9 / f64::from(dies)),
                unified: sheet.host.unified,
            },
        };
        machine.set_accelerators(target.accelerators());
        complete.then_some(machine)
    }

    /// Machine with one node of 8 devices, for tests.
    #[cfg(test)]
    pub(crate) fn alone(device: Accelerator) -> Machine {
        Machine {
            device,
            dies: 1.0,
            max_domain: 8.0,
            domain: 8.0,
            oversubscription: 1.0,
            boost_mhz: None,
            host: HostShare::default(),
        }
    }

    /// Adapts the domain to the number of accelerators in use: a slice of a pod is a domain of its own.
    pub(super) fn set_accelerators(&mut self, accelerators: f64) {
        self.domain = self.max_domain.min(accelerators * self.dies).max(1.0);
        self.device.domain = self.domain;
        // The dies of an accelerator share its NIC.
        self.device.network.nics = self.domain / self.dies.max(1.0);
    }
}

/// Maximum relative difference between stated memory and that of the datasheet. Reasons for differences: error
/// correction, a reserve, GB or GiB, memory stacks that only one vendor enables.
const MEMORY_TOLERANCE: f64 = 0.25;

/// Memory size stated by a target for an accelerator that does not exist with that size: in-package memory has the size
/// of the datasheet. Targets copied from another accelerator's often keep its memory size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContradictedMemory {
    /// Memory that the target states, GB.
    pub stated: f64,
    /// Memory of the datasheet, GB.
    pub known: f64,
}

impl ContradictedMemory {
    /// The contradiction, if there is one.
    #[must_use]
    pub fn of(target: &Target, sheet: &Sheet) -> Option<ContradictedMemory> {
        let (stated, known) = (target.memory_gb_per_accel, sheet.memory.gb);
        let differs = stated > 0.0 && (stated / known - 1.0).abs() > MEMORY_TOLERANCE;
        (sheet.memory.is_in_package() && differs).then_some(ContradictedMemory { stated, known })
    }

    /// Memory to plan with, GB: that of the datasheet, since the target also names the accelerator. Use
    /// `gpu_memory_utilization` to plan with a part of it.
    #[must_use]
    pub fn used(self) -> f64 {
        self.known
    }
}

impl fmt::Display for ContradictedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "memory_gb_per_accel is {}, but this accelerator has {} GB, which is used instead: correct the target, describe a custom \
             accelerator, or limit a server's memory with gpu_memory_utilization",
            self.stated, self.known
        )
    }
}

/// Memory of one accelerator of a target, GB.
pub(super) fn memory_gb(target: &Target, sheet: &Sheet) -> f64 {
    ContradictedMemory::of(target, sheet).map_or(target.memory_gb_per_accel, ContradictedMemory::used)
}

/// Architecture of a workload's model: that of the catalog, overridden by `params`, or `params` alone, interpreted as a
/// GPT (unless stated, a plain MLP four times as wide as the hidden size, and a KV head for each query head).
#[must_use]
pub fn architecture(parts: &Parts) -> Option<Architecture> {
    let workload = &parts.workload;
    let (hidden, layers) = (workload.shape.hidden.nonzero(), workload.shape.layers.nonzero());
    let vocab = workload.vocab_size.and_then(Count::nonzero);
    if let Some(model) = &parts.model {
        let known = datasheet::model(model);
        let layers = layers.unwrap_or(known.layers);
        // A model with a changed number of layers keeps its share of leading dense layers, at least one.
        let dense_layers = match known.dense_layers > 0.0 && layers != known.layers {
            true => Count::floor((known.dense_layers * layers / known.layers).round()).max(Count::ONE),
            false => known.dense_layers,
        };
        return Some(Architecture {
            hidden: hidden.unwrap_or(known.hidden),
            layers,
            dense_layers,
            heads: workload.n_heads.and_then(Count::nonzero).unwrap_or(known.heads),
            kv_heads: workload.n_kv_heads.and_then(Count::nonzero).unwrap_or(known.kv_heads),
            ffn: workload.ffn_hidden_size.and_then(Count::nonzero).unwrap_or(known.ffn),
            vocab: vocab.unwrap_or(known.vocab),
            ..known
        });
    }
    let (hidden, layers) = (hidden?, layers?);
    let heads = workload.n_heads.and_then(Count::nonzero).unwrap_or(Count::floor((hidden / 128.0).ceil()));
    Some(Architecture {
        layers,
        hidden,
        heads,
        kv_heads: workload.n_kv_heads.and_then(Count::nonzero).unwrap_or(heads),
        head_dim: hidden / heads,
        ffn: workload.ffn_hidden_size.and_then(Count::nonzero).unwrap_or(Count::floor(4.0 * hidden)),
        gated: false,
        vocab: vocab.unwrap_or(GPT2_VOCABULARY),
        attention: Attention::Grouped,
        ..Architecture::default()
    })
}

/// Vocabulary size of GPT-2 (Radford et al. 2019), the default for workloads that state none.
const GPT2_VOCABULARY: Count = Count::new(50_257);
