//! Prefix reuse in a scenario: conversations, and the tiers that hold their KV cache.

use super::Phase;
use atlas_config::workload::PlanSpec;
use atlas_core::count::Count;
use atlas_core::plan::Routing;
use atlas_perf::serving::{Conversations, KvTier};

/// Default bandwidth to an accelerator, GB/s, from host memory (half of PCIe 5.0 x16 in one direction), local disks
/// (one NVMe drive on PCIe 5.0 per two accelerators) and remote storage (a share of a 100 Gb/s storage network).
const RATES: [f64; 3] = [32.0, 6.0, 3.0];

/// Capacity in GB per accelerator and bandwidth in GB/s of host memory, local disks and remote storage.
pub(super) fn tiers(plan: &PlanSpec) -> [(f64, f64); 3] {
    let [host, ssd, remote] = plan.serving.kv_tiers;
    let [first, second, third] = RATES;
    [(host, first), (ssd, second), (remote, third)]
        .map(|((room, rate), usual)| (room.unwrap_or(0.0), rate.unwrap_or(usual)))
}

impl Phase {
    /// Multi-turn conversations, if their number is stated and the model generates answers.
    #[must_use]
    pub fn conversations(&self) -> Option<Conversations> {
        let stated = &self.plan.serving;
        stated.conversations.filter(|_| self.generates).map(|count| Conversations {
            count,
            turns: stated.turns.unwrap_or(1.0),
            shared: stated.shared_prefix.unwrap_or(Count::ZERO),
        })
    }

    /// KV cache tiers outside device memory.
    #[must_use]
    pub fn kv_tiers(&self) -> [KvTier; 3] {
        tiers(&self.plan).map(|(room, rate)| KvTier { bytes: 1e9 * room, bandwidth: 1e9 * rate })
    }

    /// Whether requests are routed to the replica that has the longest prefix of their prompt in its cache.
    #[must_use]
    pub fn prefix_aware_routing(&self) -> bool {
        self.plan.serving.routing == Some(Routing::Prefix)
    }
}
