//! The distribution of a deployment over accelerators.

use atlas_core::count::Count;

/// Layout over accelerators: `dp` replicas of `pp` stages of `attention_dp` x `tp` ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Layout {
    /// Tensor-parallel ranks.
    pub tp: Count,
    /// Pipeline stages.
    pub pp: Count,
    /// Expert-parallel ranks, each with different whole experts; 1 = every rank holds a slice of every expert.
    pub ep: Count,
    /// Data-parallel attention groups inside a replica: each group has its own sequences, and all share the experts.
    pub attention_dp: Count,
    /// Independent replicas.
    pub dp: Count,
    /// Redundant copies of busy experts in a layer, spread over the ranks of a replica.
    pub redundant: Count,
}

impl Default for Layout {
    fn default() -> Self {
        Layout {
            tp: Count::ONE,
            pp: Count::ONE,
            ep: Count::ONE,
            attention_dp: Count::ONE,
            dp: Count::ONE,
            redundant: Count::ZERO,
        }
    }
}

impl Layout {
    /// Accelerators of one replica.
    pub fn replica(&self) -> f64 {
        self.tp * self.pp * self.attention_dp
    }

    /// All accelerators.
    pub fn accelerators(&self) -> f64 {
        self.replica() * self.dp
    }

    /// Clamps every axis to at least one rank.
    pub(super) fn bounded(self) -> Layout {
        let most = Count::new(1_000_000);
        let ranks = |x: Count| x.clamp(Count::ONE, most);
        Layout {
            tp: ranks(self.tp),
            pp: ranks(self.pp),
            ep: ranks(self.ep),
            attention_dp: ranks(self.attention_dp),
            dp: ranks(self.dp),
            redundant: self.redundant.min(most),
        }
    }
}

/// How expert parallelism runs where attention groups share the experts.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ExpertSpread {
    /// How tokens are exchanged.
    pub dispatch: Dispatch,
    /// Whether a batch is split in two halves, of which one computes while the other communicates.
    pub overlapped_half_batches: bool,
    /// Whether shared experts are part of the grouped GEMMs rather than separate kernels.
    pub fused_shared: bool,
}

/// How tokens are exchanged between attention groups and experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dispatch {
    /// With a collective among all ranks, at the speed of the slowest link between any two.
    #[default]
    Collective,
    /// With kernels that write directly to the memory of other ranks over the link between them. Decode sends one copy
    /// per expert; prefill sends one copy per domain, which is forwarded inside the domain.
    Direct,
}

/// Separate pools for prefill and decode (DistServe, arXiv 2401.09670; Splitwise, arXiv 2311.18677).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pools {
    /// Layout of the prefill pool.
    pub prefill: Layout,
    /// Layout of the decode pool.
    pub decode: Layout,
}
