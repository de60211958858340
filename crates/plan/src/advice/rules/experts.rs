//! Rules on expert parallelism with attention groups, over many accelerators.

use super::super::case::{number, toggle, word};
use super::super::{Case, Changes, Rule};
use super::serving;
use crate::knob::{Knob, Setting};
use atlas_core::plan::MoeDispatcher;

/// Minimum number of redundant experts in published deployments.
const MIN_REDUNDANT_EXPERTS: f64 = 32.0;

/// Attention groups that share experts; 1 for dense models.
fn groups(case: &Case<'_>) -> f64 {
    if case.arch.is_moe() { case.number(Knob::AttentionDp) } else { 1.0 }
}

/// Smallest number of redundant experts, at least [`MIN_REDUNDANT_EXPERTS`], with which the experts divide evenly over
/// the ranks.
fn copies(case: &Case<'_>) -> f64 {
    let ranks = case.ep.max(1.0);
    ((case.arch.experts + MIN_REDUNDANT_EXPERTS) / ranks).ceil() * ranks - case.arch.experts
}

fn direct() -> (Knob, Setting) {
    word(Knob::MoeDispatcher, MoeDispatcher::DeepEp.name())
}

fn propose_direct(case: &Case<'_>, out: &mut Vec<Changes>) {
    if groups(case) > 1.0 && case.scenario.moe_dispatcher(&case.scenario.base) == MoeDispatcher::AllToAll {
        out.push(vec![direct()]);
        out.push(vec![direct(), toggle(Knob::TwoBatchOverlap, true)]);
    }
}

fn propose_copies(case: &Case<'_>, out: &mut Vec<Changes>) {
    if groups(case) > 1.0 && case.ep > 1.0 && case.number(Knob::RedundantExperts) <= 0.0 {
        out.push(vec![number(Knob::RedundantExperts, copies(case))]);
    }
}

fn propose_halves(case: &Case<'_>, out: &mut Vec<Changes>) {
    if groups(case) > 1.0 {
        let now = case.scenario.base.plan.serving.two_batch_overlap == Some(true);
        out.push(vec![toggle(Knob::TwoBatchOverlap, !now)]);
    }
}

pub(super) static RULES: &[Rule] = &[
    serving(
        "dispatch tokens with DeepEP",
        "all-to-all collectives send a token to every rank that may need it; DeepEP writes it once to each of its \
         experts",
        "DeepSeek, DeepEP; SGLang, Deploying DeepSeek with PD Disaggregation and Large-Scale Expert Parallelism (2025)",
        propose_direct,
    ),
    serving(
        "replicate busy experts (EPLB)",
        "all ranks wait for the one with the busiest experts; copies divide its tokens, at the cost of memory",
        "DeepSeek-V3, arXiv 2412.19437, section 3.4; DeepSeek, EPLB",
        propose_copies,
    ),
    serving(
        "turn two-batch overlap on or off",
        "one half of the batch computes while the other half communicates; this pays off if communication takes \
         longer than reading the weights a second time",
        "DeepSeek-V3, arXiv 2412.19437, section 3.4; SGLang, Large-Scale Expert Parallelism (2025), section on TBO",
        propose_halves,
    ),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::RULES;
    use crate::advice::{Objective, advise};
    use crate::engine::estimate;

    use crate::scenario::Scenario;
    use crate::testing;

    #[test]
    fn wide_ep_across_nodes_is_advised_deepep_and_eplb() {
        let parts = testing::parts("h100-sxm-64", "deepseek-v3-serve");
        let of = |set: &[&str]| {
            let set = testing::overrides(set);
            let scenario = Scenario::resolve(&parts, &set).unwrap();
            let advice = advise(&scenario, &parts, &estimate(&scenario), Objective::Throughput);
            let own = advice.iter().filter(|one| RULES.iter().any(|rule| rule.name == one.rule.name));
            own.map(|one| one.rule.name).collect::<Vec<_>>()
        };
        let wide = ["software=sglang", "tp=1", "ep=32", "attention_dp=32", "dp=2", "concurrency=8192"];
        let shared = of(&wide);
        assert!(shared.contains(&"dispatch tokens with DeepEP"), "{shared:?}");
        let dispatched = of(&[&wide[..], &["moe_dispatcher=deepep"]].concat());
        assert!(dispatched.contains(&"replicate busy experts (EPLB)"), "{dispatched:?}");
        // Replicas without attention groups do not dispatch tokens.
        assert_eq!(of(&["software=sglang"]), Vec::<&str>::new());
    }
}
