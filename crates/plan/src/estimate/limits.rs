//! Bottlenecks: shares of the time by cause.

use atlas_core::sort;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// Bottleneck: what time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Matrix multiplication units.
    Compute,
    /// Device memory bandwidth.
    MemoryBandwidth,
    /// The fabric inside a node or rack.
    IntraNode,
    /// The network between nodes.
    InterNode,
    /// Idle pipeline stages.
    PipelineBubble,
    /// Kernel launches and the host.
    Launch,
    /// The slowest rank.
    Stragglers,
}

impl Cause {
    /// All causes, in the order of their discriminants.
    pub const ALL: [Cause; 7] = [
        Cause::Compute,
        Cause::MemoryBandwidth,
        Cause::IntraNode,
        Cause::InterNode,
        Cause::PipelineBubble,
        Cause::Launch,
        Cause::Stragglers,
    ];

    /// Name of the cause.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Compute => "compute",
            Cause::MemoryBandwidth => "memory bandwidth",
            Cause::IntraNode => "intra-node links",
            Cause::InterNode => "inter-node network",
            Cause::PipelineBubble => "pipeline bubble",
            Cause::Launch => "launch overhead",
            Cause::Stragglers => "stragglers",
        }
    }
}

/// Shares of the time by cause. They sum to 1.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    shares: [f64; Cause::ALL.len()],
    /// Whether memory capacity limits the batch: more requests wait than the KV cache can hold.
    pub memory_capacity: bool,
    /// Whether the offered load, not the hardware, limits the throughput.
    pub load: bool,
    /// Whether requests wait for the prefill pool, so that `shares`, those of a decode step, do not limit throughput.
    pub prefill_pool: bool,
}

impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("first", self.first().name())?;
        map.serialize_entry("margin", &self.margin())?;
        map.serialize_entry("memory_capacity", &self.memory_capacity)?;
        map.serialize_entry("load", &self.load)?;
        map.serialize_entry("prefill_pool", &self.prefill_pool)?;
        for cause in Cause::ALL {
            map.serialize_entry(cause.name(), &self.share(cause))?;
        }
        map.end()
    }
}

impl Limits {
    /// Creates the limits from seconds by cause.
    #[must_use]
    pub fn of(seconds: [(Cause, f64); Cause::ALL.len()]) -> Limits {
        let total: f64 = seconds.iter().map(|(_, s)| s).sum();
        let mut limits = Limits::default();
        for &(cause, s) in &seconds {
            if let Some(share) = limits.shares.get_mut(cause as usize) {
                *share = if total > 0.0 { s / total } else { 0.0 };
            }
        }
        limits
    }

    /// Share of the time of a cause.
    #[must_use]
    pub fn share(&self, cause: Cause) -> f64 {
        self.shares.get(cause as usize).copied().unwrap_or_default()
    }

    /// Causes and their shares, largest first.
    #[must_use]
    pub fn ranked(&self) -> [(Cause, f64); Cause::ALL.len()] {
        let mut ranked = Cause::ALL.map(|cause| (cause, self.share(cause)));
        sort::by(&mut ranked, |a, b| b.1.total_cmp(&a.1));
        ranked
    }

    /// The largest bottleneck.
    #[must_use]
    pub fn first(&self) -> Cause {
        self.ranked()[0].0
    }

    /// Fraction by which the largest share would have to shrink to equal the second largest.
    #[must_use]
    pub fn margin(&self) -> f64 {
        let [(_, first), (_, second), ..] = self.ranked();
        if first > 0.0 { 1.0 - second / first } else { 0.0 }
    }

    /// Formats the limits as text: `bound by compute 71 %, then memory bandwidth 27 %`.
    #[must_use]
    pub fn describe(&self) -> String {
        let [(first, share), (second, next), ..] = self.ranked();
        let capacity = if self.memory_capacity { "memory capacity limits the batch; " } else { "" };
        let load = if self.load { "the offered load limits throughput; " } else { "" };
        let (pool, of) =
            if self.prefill_pool { ("the prefill pool limits throughput; ", "decode is ") } else { ("", "") };
        format!(
            "{capacity}{load}{pool}{of}bound by {} {:.0} %, then {} {:.0} %",
            first.name(),
            100.0 * share,
            second.name(),
            100.0 * next
        )
    }
}
