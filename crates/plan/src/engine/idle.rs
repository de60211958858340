//! Settings of a serving scenario that change nothing where they stand, and why.

use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::plan::{KvTransfer, MoeDispatcher, SharedExperts};

/// Settings that are stated and have no effect, or that the software does not have.
pub(super) fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let (Some(model), Mode::Inference) = (scenario.model.as_ref(), scenario.mode()) else { return notes };
    let phase = &scenario.base;
    let (asked, pools) = (&phase.plan.serving, phase.pools());
    let own = &asked.pools.prefill;
    if pools.is_none() && own.workers.is_none_or(|workers| workers <= 0.0) {
        let stated = [
            ("prefill_tp", own.tp.is_some()),
            ("prefill_pp", own.pp.is_some()),
            ("prefill_ep", own.ep.is_some()),
            ("prefill_attention_dp", own.attention_dp.is_some()),
            ("kv_transfer", asked.kv_transfer.is_some()),
        ];
        add(&mut notes, &stated, "no accelerators prefill apart: set prefill_workers or prefill_accelerators");
    }
    let groups = pools
        .map_or(phase.decode_layout().attention_dp, |pools| pools.prefill.attention_dp.max(pools.decode.attention_dp));
    let dispatcher = phase.plan.switches.moe_dispatcher.is_some_and(|dispatcher| dispatcher != MoeDispatcher::AllToAll);
    let spread = [("moe_dispatcher", dispatcher), ("two_batch_overlap", asked.two_batch_overlap == Some(true))];
    if !model.is_moe() {
        let copies = ("redundant_experts", asked.redundant_experts.is_some_and(|copies| copies > 0.0));
        let [dispatcher, batches] = spread;
        add(&mut notes, &[dispatcher, batches, copies], "the model has no experts");
    } else if groups <= 1.0 {
        add(&mut notes, &spread, "no attention groups share the experts: set attention_dp");
    }
    if model.shared_ffn <= 0.0 {
        let fused = asked.shared_experts == Some(SharedExperts::Fused);
        add(&mut notes, &[("shared_experts", fused)], "the model has no shared experts");
    }
    if let (Some(pools), Some(KvTransfer::ScaleUp), Some(machine)) = (pools, asked.kv_transfer, scenario.machine) {
        let all = pools.prefill.accelerators() + pools.decode.accelerators();
        if all > machine.domain {
            notes.push(format!(
                "keys and values travel over the network: the pools take {all} accelerators, and {} share a scale-up domain",
                machine.domain
            ));
        }
    }
    if phase.spreads_experts() && model.is_moe() && groups > 1.0 && !scenario.in_force.serving.wide_ep {
        notes.push(format!(
            "{} has no dispatch straight to experts, copies of experts or two-batch overlap: the answer is for software \
             that has",
            scenario.in_force.name
        ));
    }
    notes
}

/// That those of these settings that are stated change nothing.
fn add(notes: &mut Vec<String>, stated: &[(&str, bool)], why: &str) {
    let names: Vec<&str> = stated.iter().filter(|(_, stated)| *stated).map(|(name, _)| *name).collect();
    if !names.is_empty() {
        let verb = if names.len() == 1 { "changes" } else { "change" };
        notes.push(format!("{} {verb} nothing: {why}", names.join(", ")));
    }
}
