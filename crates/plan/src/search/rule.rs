//! Rules of valid layouts that depend only on knobs, so that whole branches of a space can be pruned before estimating.

use crate::knob::Knob;
use crate::scenario::{Phase, Scenario};
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_perf::serving::Layout;

/// Rule of valid layouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// tp × pp × cp × dp equals the number of accelerators (or is at most that, if they may idle; searched nodes may
    /// not all idle).
    Accelerators,
    /// tp divides the attention heads.
    Heads,
    /// pp × vpp is at most the number of layers plus two: the first and last chunk may be empty (arXiv 2407.21783,
    /// section 3.3.2).
    Layers,
    /// The software supports the layout: sharding with a pipeline, attention groups, pools.
    Software,
    /// ep divides the experts, and ep × etp the ranks that they are distributed over.
    Experts,
    /// dp × micro divides the global batch.
    Batch,
    /// The number of micro-batches of an interleaved pipeline is a multiple of pp (Megatron-LM, arXiv 2104.04473,
    /// section 2.2).
    Rounds,
    /// A knob without effect has the first value of its axis; otherwise the candidate would be a duplicate.
    Redundant,
}

impl Rule {
    /// All rules, cheapest first.
    pub const ALL: [Rule; 8] = [
        Rule::Heads,
        Rule::Layers,
        Rule::Accelerators,
        Rule::Experts,
        Rule::Batch,
        Rule::Rounds,
        Rule::Software,
        Rule::Redundant,
    ];

    /// Knobs that the rule depends on.
    #[must_use]
    pub fn reads(self) -> &'static [Knob] {
        const LAYOUT: [Knob; 6] = [Knob::NumNodes, Knob::Tp, Knob::Pp, Knob::Cp, Knob::Dp, Knob::AttentionDp];
        match self {
            Rule::Software => &[
                Knob::Software,
                Knob::Tp,
                Knob::Pp,
                Knob::Sharding,
                Knob::AttentionDp,
                Knob::Ep,
                Knob::PrefillAccelerators,
                Knob::PrefillTp,
                Knob::PrefillEp,
                Knob::PrefillAttentionDp,
                Knob::MoeDispatcher,
                Knob::TwoBatchOverlap,
            ],
            Rule::Heads => &[Knob::Tp],
            Rule::Layers => &[Knob::Pp, Knob::Vpp],
            Rule::Accelerators => &LAYOUT,
            Rule::Experts => &[Knob::NumNodes, Knob::Tp, Knob::Pp, Knob::Cp, Knob::Dp, Knob::AttentionDp, Knob::Ep],
            Rule::Batch => &[Knob::NumNodes, Knob::Tp, Knob::Pp, Knob::Cp, Knob::Dp, Knob::Microbatch, Knob::Global],
            Rule::Rounds => {
                &[Knob::NumNodes, Knob::Tp, Knob::Pp, Knob::Cp, Knob::Dp, Knob::Microbatch, Knob::Global, Knob::Vpp]
            }
            Rule::Redundant => &[
                Knob::NumNodes,
                Knob::Tp,
                Knob::Pp,
                Knob::Cp,
                Knob::Dp,
                Knob::Vpp,
                Knob::Sp,
                Knob::Ep,
                Knob::PipelineSchedule,
                Knob::Sharding,
                Knob::Shard,
                Knob::AttentionDp,
                Knob::PrefillAccelerators,
                Knob::PrefillWorkers,
                Knob::PrefillTp,
                Knob::PrefillEp,
                Knob::PrefillAttentionDp,
                Knob::RedundantExperts,
                Knob::MoeDispatcher,
                Knob::TwoBatchOverlap,
            ],
        }
    }

    /// Describes the rule.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Rule::Accelerators => "tp × pp × cp × dp = accelerators",
            Rule::Heads => "tp divides the attention heads",
            Rule::Layers => "pp × vpp is at most the number of layers plus two empty ends",
            Rule::Software => "the software supports sharding, attention groups, expert ranks and pools",
            Rule::Experts => "ep divides the experts, ep × etp the ranks of a stage",
            Rule::Batch => "dp × micro divides the global batch",
            Rule::Rounds => "interleaved: pp divides the micro-batches",
            Rule::Redundant => "equivalent to another candidate",
        }
    }

    /// Whether the base phase of a scenario obeys the rule. `idle`: accelerators may idle. `turned`: whether a knob has
    /// another value than the first of its axis, so that values without effect are represented by the first.
    #[must_use]
    pub fn holds(self, scenario: &Scenario, idle: bool, turned: &dyn Fn(Knob) -> bool) -> bool {
        let phase = &scenario.base;
        let Phase { shape, plan, .. } = phase;
        let training = shape.mode == Mode::Training;
        let model = scenario.model.unwrap_or_default();
        let cp = plan.cp.unwrap_or(Count::ONE);
        let ep = phase.ep();
        let vpp = if training { plan.vpp.unwrap_or(Count::ONE) } else { Count::ONE };
        match self {
            Rule::Accelerators => {
                let devices = scenario.devices();
                let used = scenario.working_devices();
                // Nodes without work are only a more expensive form of the same layout.
                let idle_node = turned(Knob::NumNodes) && used <= devices * (1.0 - 1.0 / scenario.num_nodes);
                if idle { used <= devices && !idle_node } else { used == devices }
            }
            Rule::Heads => model.heads <= 0.0 || divides(f64::from(shape.tp), f64::from(model.heads)),
            // Training and serving software both distribute layers unevenly if necessary.
            Rule::Layers if training => model.layers <= 0.0 || shape.pp <= 1.0 || shape.pp * vpp <= model.depth() + 2.0,
            Rule::Layers => model.layers <= 0.0 || shape.pp <= model.layers,
            Rule::Software => scenario.software_supports(phase),
            Rule::Experts if !model.is_moe() => true,
            // Within one stage in training, over the ranks of a replica in serving.
            Rule::Experts if training => {
                divides(f64::from(ep), f64::from(model.experts))
                    && divides(ep * scenario.expert_tensor_ranks(phase), shape.tp * phase.groups() * shape.dp)
            }
            Rule::Experts => {
                let fits = |layout: &Layout| {
                    let ranks = layout.tp * layout.attention_dp;
                    divides(f64::from(layout.ep), model.experts + layout.redundant)
                        && divides(f64::from(layout.ep), ranks)
                };
                phase
                    .pools()
                    .map_or_else(|| fits(&phase.decode_layout()), |pools| fits(&pools.prefill) && fits(&pools.decode))
            }
            Rule::Batch => !training || divides(shape.dp * scenario.microbatch, scenario.global(phase)),
            Rule::Rounds => {
                let micros = scenario.global(phase) / (shape.dp * scenario.microbatch);
                !training || vpp <= 1.0 || divides(f64::from(shape.pp), micros)
            }
            Rule::Redundant => {
                let no_pipeline = training && shape.pp <= 1.0;
                // Pools consist of whole replicas and are not empty.
                let replica = shape.tp * shape.pp * phase.groups();
                let pools = plan.serving.prefill_accelerators.filter(|_| !training).is_none_or(|prefill| {
                    divides(phase.prefill_layout().replica(), f64::from(prefill))
                        && divides(replica, replica * shape.dp - prefill)
                        && prefill < replica * shape.dp
                });
                let no_pools = !training && phase.pools().is_none();
                let of_prefill = [Knob::PrefillTp, Knob::PrefillEp, Knob::PrefillAttentionDp];
                // Without attention groups, tokens are not dispatched.
                let groups = phase.pools().map_or_else(
                    || phase.decode_layout().attention_dp,
                    |pools| pools.prefill.attention_dp.max(pools.decode.attention_dp),
                );
                let no_dispatch = !training && groups <= 1.0;
                let one_replica = training && shape.dp * cp <= 1.0;
                let redundant = (no_pipeline && (turned(Knob::Vpp) || turned(Knob::PipelineSchedule)))
                    || (shape.tp <= 1.0 && turned(Knob::Sp))
                    || (!model.is_moe() && turned(Knob::Ep))
                    || (one_replica && (turned(Knob::Sharding) || turned(Knob::Shard)))
                    || (plan.shard.is_some_and(|shard| shard >= shape.dp * cp) && turned(Knob::Shard));
                let redundant = redundant
                    || (no_pools && of_prefill.into_iter().any(turned))
                    || (no_dispatch && (turned(Knob::MoeDispatcher) || turned(Knob::TwoBatchOverlap)));
                pools && !redundant
            }
        }
    }
}

fn divides(by: f64, of: f64) -> bool {
    by > 0.0 && of >= by && (of / by).fract() == 0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divides_requires_a_nonzero_exact_divisor() {
        assert!(divides(8.0, 64.0) && divides(1.0, 1.0));
        assert!(!divides(3.0, 64.0) && !divides(128.0, 64.0) && !divides(0.0, 64.0));
    }
}
