//! The hardware and the model, as the analytical engine reasons about them.

use super::Parts;
use crate::engine::datasheet;
use atlas_catalog::Accelerator as Sheet;
use atlas_config::Target;
use atlas_core::count::Count;
use atlas_perf::accelerator::{Accelerator, Bridge};
use atlas_perf::arch::{Architecture, Attention};

/// Accelerators and the fabrics that join them, one way, in SI units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// One device as software sees it: an accelerator, or one of its dies.
    pub device: Accelerator,
    /// Devices that software sees of one accelerator.
    pub dies: f64,
    /// Devices that the close fabric could join.
    reach: f64,
    /// Devices that it joins here: no more than the target has.
    pub domain: f64,
    /// Downlinks over uplinks of the network between domains.
    pub oversubscription: f64,
    /// Boost clock that the datasheet states, MHz.
    pub boost_mhz: Option<f64>,
}

impl Machine {
    /// The machine of a target that names an accelerator whose datasheet says enough.
    pub(super) fn of(parts: &Parts) -> Option<Machine> {
        Machine::of_target(&parts.target, parts.accelerator.as_ref()?)
    }

    /// The machine of a target with accelerators of this datasheet, where that says enough.
    #[must_use]
    pub fn of_target(target: &Target, sheet: &Sheet) -> Option<Machine> {
        let mut device = datasheet::accelerator(sheet);
        // The target's memory may be another than the catalog's: a variant of the same part.
        if contradicted_memory_gb(target, sheet).is_none() && target.memory_gb_per_accel > 0.0 {
            device.mem_bytes = target.memory_gb_per_accel * 1e9;
        }
        let link = target.interconnect.as_ref();
        // Datasheets and targets count both directions.
        if let Some(both_ways) = link.and_then(|link| link.bw_gbytes_per_sec) {
            device.link_bw = both_ways * 0.5e9;
        }
        // The part may be linked otherwise than in its usual box: a DGX-2's V100 through switches.
        device.switched |= link.is_some_and(|link| link.kind.contains("NVSwitch"));
        if let Some(gbits) = target.network.as_ref().and_then(|network| network.gbits_per_accel) {
            device.nic_bw = gbits * 1e9 / 8.0;
        }
        device.network.topology = target.network.as_ref().and_then(|network| network.topology).unwrap_or_default();
        let node = target.accelerators_per_node;
        // A fabric that reaches beyond one host (NVL72, a TPU slice) joins what the catalog says; any other, the node.
        let usual = if device.domain > node.max(Count::new(8)) { device.domain } else { f64::from(node) };
        let reach = link.and_then(|link| link.domain_size).map_or(usual, f64::from);
        let beyond = sheet.scale_up.as_ref().and_then(|link| link.node_gbytes_per_sec);
        if let Some(beyond) = beyond.filter(|_| link.is_none_or(|link| link.bw_gbytes_per_sec.is_none()))
            && reach > device.domain
        {
            device.bridge = Some(Bridge { ranks: device.domain, bw: device.link_bw });
            device.link_bw = beyond * 1e9;
        }
        let dies = sheet.ranks;
        if dies > 1.0 {
            device = device.split(f64::from(dies));
        }
        let sound = device.mem_bw > 0.0 && device.mem_bytes > 0.0 && device.flops.iter().any(|rate| *rate > 0.0);
        let oversubscription = target.network.as_ref().and_then(|n| n.oversubscription).unwrap_or(1.0);
        let mut machine = Machine {
            device,
            dies: f64::from(dies),
            reach: reach * dies,
            domain: 1.0,
            oversubscription,
            boost_mhz: sheet.boost_clock_mhz,
        };
        machine.spread(target.accelerators());
        sound.then_some(machine)
    }

    /// One node of 8 devices, for tests.
    #[cfg(test)]
    pub(crate) fn alone(device: Accelerator) -> Machine {
        Machine { device, dies: 1.0, reach: 8.0, domain: 8.0, oversubscription: 1.0, boost_mhz: None }
    }

    /// Lets the close fabric join what there is of this many accelerators: a slice of a pod is a fabric of its own.
    pub(super) fn spread(&mut self, accelerators: f64) {
        self.domain = self.reach.min(accelerators * self.dies).max(1.0);
        self.device.domain = self.domain;
        // Dies of an accelerator share its NIC.
        self.device.network.nics = self.domain / self.dies.max(1.0);
    }
}

/// Stated memory may differ by this share from the datasheet's: error correction, a reserve, GB against GiB, stacks that
/// one vendor enables and another does not.
const MEMORY_TOLERANCE: f64 = 0.25;

/// The memory that a target states for an accelerator, GB, where no such part exists: memory in the package comes in the
/// size of the datasheet. A target copied from another accelerator's often keeps its memory.
pub(super) fn contradicted_memory_gb(target: &Target, sheet: &Sheet) -> Option<f64> {
    let stated = target.memory_gb_per_accel;
    let known = sheet.memory.gb;
    (sheet.memory.is_in_package() && stated > 0.0 && (stated / known - 1.0).abs() > MEMORY_TOLERANCE).then_some(stated)
}

/// The architecture of a workload: the catalog's, overridden by `params`; else `params` alone,
/// read as a GPT (unless stated, a plain MLP four times as wide as the hidden size, and a key-value head for each query head).
#[must_use]
pub fn architecture(parts: &Parts) -> Option<Architecture> {
    let workload = &parts.workload;
    let (hidden, layers) = (workload.shape.hidden.nonzero(), workload.shape.layers.nonzero());
    let vocab = workload.vocab_size.and_then(Count::nonzero);
    if let Some(model) = &parts.model {
        let known = datasheet::model(model);
        let layers = layers.unwrap_or(known.layers);
        // A shortened model keeps the share of its leading dense layers, at least one.
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

/// Tokens of GPT-2's vocabulary (Radford et al. 2019): what a workload without one is read with.
const GPT2_VOCABULARY: Count = Count::new(50_257);
