//! Layouts of a serving phase: common to all replicas, or separate for prefill and decode replicas.

use super::{Phase, Scenario};
use atlas_config::Mode;
use atlas_config::workload::PoolSpec;
use atlas_core::count::Count;
use atlas_core::plan::MoeDispatcher;
use atlas_perf::serving::{Layout, Pools};

impl Phase {
    /// Layout stated by `parallelism`.
    fn common_layout(&self) -> Layout {
        let (shape, plan) = (&self.shape, &self.plan);
        Layout {
            tp: shape.tp,
            pp: shape.pp,
            ep: self.ep(),
            attention_dp: plan.attention_dp.unwrap_or(self.default_groups),
            dp: shape.dp,
            redundant: plan.serving.redundant_experts.unwrap_or(Count::ZERO),
        }
    }

    /// Layout of a replica; of a decode replica if prefill is disaggregated.
    #[must_use]
    pub fn decode_layout(&self) -> Layout {
        let own = if self.generates { self.plan.serving.pools.decode } else { PoolSpec::default() };
        with_pool_spec(self.common_layout(), &own)
    }

    /// Layout of a prefill replica if prefill is disaggregated.
    #[must_use]
    pub fn prefill_layout(&self) -> Layout {
        with_pool_spec(self.common_layout(), &self.plan.serving.pools.prefill)
    }

    /// Prefill and decode pools. The size is stated in workers, or in accelerators, rounded down to whole replicas.
    /// `None` if all replicas do both, or the model does not generate.
    #[must_use]
    pub fn pools(&self) -> Option<Pools> {
        let workers = self.prefill_workers();
        let stated = self.plan.serving.prefill_accelerators.filter(|_| self.generates);
        if workers.is_none() && stated.is_none() {
            return None;
        }
        let (prefill, decode) = (self.prefill_layout(), self.decode_layout());
        if workers.is_some() {
            return Some(Pools { prefill, decode });
        }
        let stated = stated.unwrap_or(Count::ZERO);
        let workers = (stated / prefill.replica()).floor();
        let rest = (decode.dp - workers * prefill.replica() / decode.replica()).floor();
        (workers >= 1.0 && rest >= 1.0).then_some(Pools {
            prefill: Layout { dp: Count::floor(workers), ..prefill },
            decode: Layout { dp: Count::floor(rest), ..decode },
        })
    }

    /// Whether the phase uses a feature of wide expert parallelism: a dispatcher other than all-to-all, redundant
    /// experts, or two-batch overlap.
    #[must_use]
    pub fn spreads_experts(&self) -> bool {
        let serving = &self.plan.serving;
        self.plan.switches.moe_dispatcher.is_some_and(|dispatcher| dispatcher != MoeDispatcher::AllToAll)
            || [
                serving.redundant_experts,
                serving.pools.prefill.redundant_experts,
                serving.pools.decode.redundant_experts,
            ]
            .into_iter()
            .flatten()
            .any(|copies| copies > 0.0)
            || serving.two_batch_overlap == Some(true)
    }

    /// Number of prefill replicas, if stated.
    fn prefill_workers(&self) -> Option<Count> {
        let pools = self.generates && self.shape.mode == Mode::Inference;
        self.plan.serving.pools.prefill.workers.filter(|workers| pools && *workers > 0.0)
    }

    /// Accelerators of the prefill pool if its workers are stated and decode replicas fill the rest of the target.
    pub(crate) fn dedicated_accelerators(&self) -> f64 {
        match self.prefill_workers() {
            Some(_) if self.plan.serving.pools.decode.workers.is_none() => self.prefill_layout().accelerators(),
            _ => 0.0,
        }
    }
}

/// Returns `layout` with the values that a pool states itself.
fn with_pool_spec(layout: Layout, own: &PoolSpec) -> Layout {
    Layout {
        tp: own.tp.unwrap_or(layout.tp),
        pp: own.pp.unwrap_or(layout.pp),
        ep: own.ep.unwrap_or(layout.ep),
        attention_dp: own.attention_dp.unwrap_or(layout.attention_dp),
        dp: own.workers.unwrap_or(layout.dp),
        redundant: own.redundant_experts.unwrap_or(layout.redundant),
    }
}

impl Scenario {
    /// Accelerators used by a serving phase, in both pools.
    pub(crate) fn serving_ranks(&self, phase: &Phase) -> f64 {
        match phase.pools() {
            Some(pools) => pools.prefill.accelerators() + pools.decode.accelerators(),
            None => phase.decode_layout().accelerators(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing;
    use atlas_core::plan::Engine;

    #[test]
    fn pools_may_have_different_numbers_of_redundant_experts() {
        let parts = testing::parts("h100-sxm-128", "deepseek-v3-wide-ep");
        let mut scenario = Scenario::resolve(&parts, &testing::with_engine(Engine::Analytical, &[])).unwrap();
        let copies = |scenario: &Scenario| {
            let pools = scenario.base.pools().unwrap();
            [pools.prefill.redundant, pools.decode.redundant].map(f64::from)
        };
        assert_eq!(copies(&scenario), [32.0, 32.0]);
        scenario.base.plan.serving.pools.prefill.redundant_experts = Some(Count::new(64));
        assert_eq!(copies(&scenario), [64.0, 32.0]);
    }
}
