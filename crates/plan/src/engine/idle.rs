//! Notes on settings that have no effect or that the software does not support.

use crate::knob::Knob;
use crate::scenario::Scenario;
use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::{DraftMethod, Engine, KvTransfer, LoadKind, MoeDispatcher};
use atlas_perf::serving::reuse::Prompt;
use atlas_perf::traits::MicroBatchOverlap;

/// Notes on stated settings that have no effect or that the software does not support.
pub(super) fn notes(scenario: &Scenario) -> Vec<String> {
    let mut notes: Vec<String> =
        scenario.ineffective_settings().iter().map(|(why, names)| changes_nothing(names, why)).collect();
    let other = scenario.settings_of_the_other_mode();
    if !other.is_empty() {
        notes.push(changes_nothing(&other, &format!("this is {}", scenario.mode().name())));
    }
    let mut simulated = Vec::new();
    if scenario.engine == Engine::Analytical {
        simulated = scenario.settings_of(Engine::Event);
        if !simulated.is_empty() {
            notes.push(changes_nothing(
                &simulated,
                "only used in simulations: set engine to event, or use atlas simulate",
            ));
        }
    }
    if scenario.engine.models_hardware() {
        let mut calibrated = scenario.settings_of(Engine::SemiEmpirical);
        calibrated.retain(|name| !simulated.contains(name));
        if !calibrated.is_empty() {
            notes.push(changes_nothing(&calibrated, "only used by the semi-empirical engine"));
        }
    }
    notes.extend(equivalent_dispatchers(scenario));
    notes.extend(overlaps_for_others(scenario));
    notes.extend(unsupported_by_software(scenario));
    let (Some(model), Mode::Inference) = (scenario.model.as_ref(), scenario.mode()) else { return notes };
    let phase = &scenario.base;
    let (serving, pools) = (&phase.plan.serving, phase.pools());
    if scenario.engine == Engine::Analytical && serving.load == Some(LoadKind::Open) && serving.request_rate.is_none() {
        notes.push(format!(
            "load is open, but no request_rate is stated: the estimate is that of a closed loop of {} requests",
            scenario.concurrency(phase)
        ));
    }
    let drafting = serving.draft_tokens.is_some_and(|tokens| tokens > 0.0);
    if drafting && scenario.assumes_acceptance(phase) {
        let (method, drafts) = (serving.draft_method.map_or("", DraftMethod::name), scenario.drafts(phase));
        notes.push(format!(
            "no published acceptance rate of {method} for this model: assuming {:.2} for the first draft token",
            drafts.acceptance
        ));
        if serving.draft_method == Some(DraftMethod::Mtp) {
            notes.push(
                "the catalog lists no multi-token-prediction layers of this model: the estimate assumes that it has them; \
                 else set draft_method"
                    .to_owned(),
            );
        }
    }
    if let Some(talk) = phase.conversations() {
        let prompt = Prompt::of(&talk, phase.shape.prompt, phase.shape.generate);
        if prompt.new <= 1.0 {
            notes.push(format!(
                "a mean prompt of {} tokens is too short for {} turns with outputs of {} tokens: raise prompt",
                phase.shape.prompt, talk.turns, phase.shape.generate
            ));
        }
        if let Some(requested) = serving.concurrency.filter(|requested| *requested > talk.count) {
            notes.push(format!(
                "{} of {requested} requests are in flight: a conversation has one at a time, and there are {}",
                talk.count, talk.count
            ));
        }
    }
    let groups = pools
        .map_or(phase.decode_layout().attention_dp, |pools| pools.prefill.attention_dp.max(pools.decode.attention_dp));
    if let (Some(pools), Some(KvTransfer::ScaleUp), Some(machine)) = (pools, serving.kv_transfer, scenario.machine) {
        let all = pools.prefill.accelerators() + pools.decode.accelerators();
        if all > machine.domain {
            notes.push(format!(
                "the KV cache is transferred over the network: the pools need {all} accelerators, but a scale-up domain has {}",
                machine.domain
            ));
        }
    }
    let straight = scenario.moe_dispatcher(phase) != MoeDispatcher::AllToAll;
    if straight && model.is_moe() && groups > 1.0 && !scenario.writes_directly() {
        notes.push(
            "direct expert dispatch (moe_dispatcher) writes over links between accelerators; these are connected by PCIe: the \
             estimate assumes software that supports it"
                .to_owned(),
        );
    }
    let software = &scenario.active_software;
    let lacks = [
        (groups > 1.0 && !software.serving.attention_dp, "attention groups (attention_dp)"),
        (pools.is_some() && !software.serving.pools, "separate prefill and decode accelerators"),
    ];
    for (_, what) in lacks.iter().filter(|(lacks, _)| *lacks && !software.family_assumed) {
        notes.push(format!("{} does not support {what}: the estimate assumes software that does", software.name));
    }
    if phase.spreads_experts() && model.is_moe() && groups > 1.0 && !scenario.active_software.serving.wide_ep {
        notes.push(format!(
            "{} does not support direct expert dispatch, redundant experts or two-batch overlap: the estimate assumes \
             software that does",
            scenario.active_software.name
        ));
    }
    notes
}

/// Note that the software does not support a requested overlap.
fn overlaps_for_others(scenario: &Scenario) -> Option<String> {
    let (plan, software) = (&scenario.base.plan, &scenario.active_software);
    let stated = scenario.mode() == Mode::Training && plan.switches.overlap_experts == Some(true);
    if !stated || !scenario.uses(Knob::OverlapExperts) {
        return None;
    }
    let chunks = f64::from(plan.vpp.unwrap_or(Count::ONE));
    let how = match software.training.overlap_experts {
        overlap if overlap.applies(chunks) => return None,
        MicroBatchOverlap::Interleaved => "overlaps the expert all-to-all only between model chunks (vpp above 1)",
        _ => "does not overlap the expert all-to-all",
    };
    Some(format!("{} {how}: the estimate assumes software that does", software.name))
}

/// Note that two dispatchers of experts differ in software only.
fn equivalent_dispatchers(scenario: &Scenario) -> Option<String> {
    let stated = scenario.base.plan.switches.moe_dispatcher;
    let named = stated.filter(|dispatcher| *dispatcher != MoeDispatcher::AllToAll)?;
    (scenario.mode() == Mode::Training && scenario.uses(Knob::MoeDispatcher)).then(|| {
        format!(
            "moe_dispatcher {}: deepep and hybridep have the same estimate, since both send a token once to each scale-up \
             domain",
            named.name()
        )
    })
}

/// Note on settings that the training software does not support.
fn unsupported_by_software(scenario: &Scenario) -> Option<String> {
    if scenario.mode() != Mode::Training {
        return None;
    }
    let lacks: Vec<String> = scenario.unsupported_training(&scenario.base).into_iter().map(|(_, what)| what).collect();
    (!lacks.is_empty()).then(|| {
        let name = &scenario.active_software.name;
        format!("{name} does not support {}: the estimate assumes software that does", lacks.join(", "))
    })
}

/// Formats a note that the settings `names` have no effect.
fn changes_nothing(names: &[&str], why: &str) -> String {
    let verb = if names.len() == 1 { "has" } else { "have" };
    format!("{} {verb} no effect: {why}", names.join(", "))
}
