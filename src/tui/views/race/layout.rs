//! Formats the layout of a row.

use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::Scenario;

use super::ChosenLayout;

/// Formats the knobs of a layout in the syntax of the command line.
#[must_use]
pub fn layout(pick: &ChosenLayout) -> String {
    layout_of(&pick.scenario)
}

/// Formats the layout briefly for a column, without knobs that are 1 or follow from others: `tp=2 dp=4 users=512`.
pub(super) fn brief(pick: &ChosenLayout) -> String {
    const SHARED: [Knob; 7] = [Knob::Tp, Knob::Pp, Knob::Dp, Knob::Cp, Knob::Ep, Knob::AttentionDp, Knob::Vpp];
    const RUN: [(Knob, &str); 4] = [
        (Knob::Concurrency, "users"),
        (Knob::Microbatch, "microbatch"),
        (Knob::Sharding, "sharding"),
        (Knob::Recompute, "recompute"),
    ];
    let scenario = &pick.scenario;
    let run = RUN.into_iter().filter(|(knob, _)| knob.spec().mode.is_none_or(|mode| mode == scenario.mode()));
    let all = SHARED.into_iter().map(|knob| (knob, knob.name())).chain(run);
    let said = all.filter(|(knob, _)| scenario.uses(*knob) && scenario.get(*knob) != Setting::Number(1.0));
    let words: Vec<String> = said.map(|(knob, name)| format!("{name}={}", scenario.get(knob))).collect();
    if words.is_empty() { "tp=1".to_owned() } else { words.join(" ") }
}

/// Formats the layout knobs of a scenario in the syntax of the command line.
#[must_use]
pub fn layout_of(scenario: &Scenario) -> String {
    const ALWAYS: [Knob; 3] = [Knob::Tp, Knob::Pp, Knob::Dp];
    const BEYOND_ONE: [Knob; 4] = [Knob::Cp, Knob::Ep, Knob::AttentionDp, Knob::Vpp];
    const RUN: [Knob; 6] = [
        Knob::Microbatch,
        Knob::Recompute,
        Knob::Sharding,
        Knob::Concurrency,
        Knob::MaxNumSeqs,
        Knob::MaxNumBatchedTokens,
    ];
    let one = |knob: &Knob| scenario.get(*knob) == Setting::Number(1.0);
    let layout = ALWAYS.into_iter().chain(BEYOND_ONE.into_iter().filter(|knob| !one(knob)));
    let run = RUN.into_iter().filter(|knob| knob.spec().mode.is_none_or(|mode| mode == scenario.mode()));
    let heeded = layout.chain(run).filter(|knob| scenario.uses(*knob));
    heeded.map(|knob| format!("{}={}", knob.name(), scenario.get(knob))).collect::<Vec<_>>().join(" ")
}
