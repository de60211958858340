//! Settings of a serving scenario that have no effect, and why.

use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::plan::{DraftMethod, Engine, KvTransfer, MoeDispatcher, SharedExperts};
use atlas_perf::serving::reuse::Prompt;

/// Settings that are stated and have no effect, or that the software does not have.
pub(super) fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes = Vec::new();
    let (Some(model), Mode::Inference) = (scenario.model.as_ref(), scenario.mode()) else { return notes };
    let phase = &scenario.base;
    let (asked, pools) = (&phase.plan.serving, phase.pools());
    let drafting = asked.draft_tokens.is_some_and(|tokens| tokens > 0.0);
    if !drafting {
        let stated = [
            ("draft_method", asked.draft_method.is_some()),
            ("draft_decline", asked.draft_decline.is_some()),
            ("draft_max_batch", asked.draft_max_batch.is_some()),
        ];
        add(&mut notes, &stated, "nothing is drafted: set draft_tokens");
    } else if scenario.assumes_acceptance(phase) {
        let (method, drafts) = (asked.draft_method.map_or("", DraftMethod::name), scenario.drafts(phase));
        notes.push(format!(
            "nothing is published of {method} for this model: {:.2} of the first drafted tokens are taken to be accepted",
            drafts.acceptance
        ));
    }
    if asked.draft_params_b.is_some() && asked.draft_method != Some(DraftMethod::DraftModel) {
        add(&mut notes, &[("draft_params_b", true)], "no model of its own drafts: set draft_method to draft-model");
    }
    let (talk, kept) = (phase.conversations(), phase.kv_tiers());
    let held = |tier: usize| kept.get(tier).is_some_and(|tier| tier.bytes > 0.0);
    if talk.is_none() {
        let stated = [
            ("turns", asked.turns.is_some()),
            ("shared_prefix", asked.shared_prefix.is_some()),
            ("kv_host_gb", held(0)),
            ("kv_ssd_gb", held(1)),
            ("kv_remote_gb", held(2)),
        ];
        add(&mut notes, &stated, "no conversations are under way: set conversations");
    } else if asked.prefix_hit.is_some_and(|share| share > 0.0) {
        add(&mut notes, &[("prefix_hit", true)], "conversations decide how much of a prompt is found");
    }
    let rates: Vec<(&str, bool)> = ["kv_host_gbps", "kv_ssd_gbps", "kv_remote_gbps"]
        .into_iter()
        .zip(asked.kv_tiers)
        .enumerate()
        .map(|(tier, (name, (_, rate)))| (name, rate.is_some() && !held(tier)))
        .collect();
    add(&mut notes, &rates, "the place keeps nothing: set its size");
    if talk.is_none() && asked.routing.is_some() && scenario.engine == Engine::Analytical {
        add(
            &mut notes,
            &[("routing", true)],
            "requests are all alike to the closed form: set conversations or engine event",
        );
    }
    if let Some(talk) = talk {
        let prompt = Prompt::of(&talk, phase.shape.prompt, phase.shape.generate);
        if prompt.new <= 1.0 {
            notes.push(format!(
                "a mean prompt of {} tokens has no room for new ones after {} turns with answers of {}: raise prompt",
                phase.shape.prompt, talk.turns, phase.shape.generate
            ));
        }
    }
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
