//! Latency and bandwidth of a collective in a serving step.

use crate::accelerator::Accelerator;
use crate::constants::Constants;

/// Latency and rate of a collective over `ranks` accelerators.
pub(super) struct Fabric {
    /// Latency, s.
    pub(super) latency: f64,
    /// Bandwidth, bytes/s.
    pub(super) bw: f64,
}

impl Fabric {
    pub(super) fn of(acc: &Accelerator, ranks: f64, streamed: bool, c: &Constants) -> Fabric {
        if ranks > acc.domain.max(1.0) {
            // Two steps between nodes, and the exchange inside a node.
            let latency = 2.0 * c.nic_latency + c.one_shot_latency;
            return Fabric { latency, bw: (acc.nic_bw * c.nic_fraction).max(1e6) };
        }
        let bridge = acc.bridge.filter(|bridge| ranks <= bridge.ranks);
        let share = if bridge.is_some() { 1.0 } else { acc.link_share(ranks) };
        let latency = if acc.generation.properties().forwards_messages {
            2.0 * (ranks - 1.0).max(0.0) * c.link_latency
        } else if acc.over_pcie() && bridge.is_none() && !streamed {
            // Over PCIe, peers cannot load and store directly through a switch.
            c.pcie_latency
        } else {
            c.one_shot_latency
        };
        let bw = bridge.map_or(acc.effective_link_bw(c), |bridge| bridge.effective_bw(c));
        Fabric { latency, bw: bw * share }
    }
}
