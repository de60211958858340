//! What a scenario says of prompts that repeat: conversations, and where their keys and values are kept.

use super::Phase;
use atlas_config::workload::PlanSpec;
use atlas_core::count::Count;
use atlas_core::plan::Routing;
use atlas_perf::serving::{Conversations, KvTier};

/// Gigabytes per second to an accelerator by default from host memory (half of PCIe 5.0 x16 one way), from local disks (one
/// NVMe drive on PCIe 5.0 for two accelerators), and from remote stores (a share of a 100 Gb/s storage network).
const RATES: [f64; 3] = [32.0, 6.0, 3.0];

/// Gigabytes for each accelerator and gigabytes per second of host memory, local disks and remote stores.
pub(super) fn tiers(plan: &PlanSpec) -> [(f64, f64); 3] {
    let [host, ssd, remote] = plan.serving.kv_tiers;
    let [first, second, third] = RATES;
    [(host, first), (ssd, second), (remote, third)]
        .map(|((room, rate), usual)| (room.unwrap_or(0.0), rate.unwrap_or(usual)))
}

impl Phase {
    /// Conversations of several turns, where some are under way.
    #[must_use]
    pub fn conversations(&self) -> Option<Conversations> {
        let stated = &self.plan.serving;
        stated.conversations.map(|count| Conversations {
            count,
            turns: stated.turns.unwrap_or(1.0),
            shared: stated.shared_prefix.unwrap_or(Count::ZERO),
        })
    }

    /// Places outside device memory that keep keys and values.
    #[must_use]
    pub fn kv_tiers(&self) -> [KvTier; 3] {
        tiers(&self.plan).map(|(room, rate)| KvTier { bytes: 1e9 * room, bandwidth: 1e9 * rate })
    }

    /// Whether requests go to the replica that has the beginning of their prompt.
    #[must_use]
    pub fn routed_by_prefix(&self) -> bool {
        self.plan.serving.routing == Some(Routing::Prefix)
    }
}
