//! Formats the layout of a row.

use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::Scenario;

use super::ChosenLayout;

/// Formats the knobs of a layout in the syntax of the command line, including all that the search or the user changed.
#[must_use]
pub fn layout(pick: &ChosenLayout) -> String {
    let mut knobs = layout_knobs(&pick.scenario);
    let changed = pick.setup.overrides.keys().copied().filter(|knob| pick.scenario.uses(*knob));
    for knob in changed {
        if !knobs.contains(&knob) {
            knobs.push(knob);
        }
    }
    assignments(&pick.scenario, &knobs)
}

/// Formats the layout briefly for a column, without knobs that are 1 or follow from others: `tp=2 dp=4 users=512`.
pub(super) fn brief(pick: &ChosenLayout) -> String {
    const SHARED: [Knob; 7] = [Knob::Tp, Knob::Pp, Knob::Dp, Knob::Cp, Knob::Ep, Knob::AttentionDp, Knob::Vpp];
    const RUN: [(Knob, &str); 5] = [
        (Knob::PrefillAccelerators, "prefill"),
        (Knob::Concurrency, "users"),
        (Knob::Microbatch, "microbatch"),
        (Knob::Sharding, "sharding"),
        (Knob::Recompute, "recompute"),
    ];
    let scenario = &pick.scenario;
    let run = RUN.into_iter().filter(|(knob, _)| knob.spec().mode.is_none_or(|mode| mode == scenario.mode()));
    let all = SHARED.into_iter().map(|knob| (knob, knob.name())).chain(run);
    let inert = |knob| matches!(scenario.get(knob), Setting::Number(value) if value == 1.0 || value == 0.0);
    let said = all.filter(|(knob, _)| scenario.uses(*knob) && !inert(*knob));
    let words: Vec<String> = said.map(|(knob, name)| format!("{name}={}", scenario.get(knob))).collect();
    if words.is_empty() { "tp=1".to_owned() } else { words.join(" ") }
}

/// Formats the layout knobs of a scenario in the syntax of the command line.
#[must_use]
pub fn layout_of(scenario: &Scenario) -> String {
    assignments(scenario, &layout_knobs(scenario))
}

/// Knobs that describe a layout.
fn layout_knobs(scenario: &Scenario) -> Vec<Knob> {
    const ALWAYS: [Knob; 3] = [Knob::Tp, Knob::Pp, Knob::Dp];
    const BEYOND_ONE: [Knob; 4] = [Knob::Cp, Knob::Ep, Knob::AttentionDp, Knob::Vpp];
    const PREFILL: [Knob; 4] = [Knob::PrefillAccelerators, Knob::PrefillTp, Knob::PrefillAttentionDp, Knob::PrefillEp];
    const RUN: [Knob; 6] = [
        Knob::Microbatch,
        Knob::Recompute,
        Knob::Sharding,
        Knob::Concurrency,
        Knob::MaxNumSeqs,
        Knob::MaxNumBatchedTokens,
    ];
    let is = |knob: &Knob, value| scenario.get(*knob) == Setting::Number(value);
    let layout = ALWAYS.into_iter().chain(BEYOND_ONE.into_iter().filter(|knob| !is(knob, 1.0)));
    let pools = PREFILL.into_iter().filter(|knob| !is(knob, 0.0));
    let run = pools.chain(RUN).filter(|knob| knob.spec().mode.is_none_or(|mode| mode == scenario.mode()));
    layout.chain(run).filter(|knob| scenario.uses(*knob)).collect()
}

/// Formats knobs with their values in the syntax of the command line.
fn assignments(scenario: &Scenario, knobs: &[Knob]) -> String {
    let words: Vec<String> = knobs.iter().map(|knob| format!("{}={}", knob.name(), scenario.get(*knob))).collect();
    words.join(" ")
}
