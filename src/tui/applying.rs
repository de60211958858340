//! Taking what a search found for the scenario: the fewest overrides that lead there, as one step of undo.

use std::sync::Arc;

use super::app::{App, Change};
use super::message::Effect;
use super::update::note;
use crate::demo::Setup;
use atlas_config::library::Library;
use atlas_plan::engine::at_once;
use atlas_plan::knob::Knob;
use atlas_plan::scenario::{Parts, Scenario};

/// A setup on some target as a search can ask thousands of times: where its engine simulates, the same physics in closed
/// form. `None` where the target and its workload make no scenario.
#[must_use]
pub(super) fn resolve(library: &Library, target: &str, before: &Setup) -> Option<(Parts, Scenario)> {
    let parts = Parts::find(library, target, &before.workload).ok()?;
    let scenario = Scenario::resolve(&parts, &before.overrides).ok()?;
    Some((parts, at_once(&scenario)))
}

/// The setup that leads to `to`, found from `from`, which has the workload and the knobs of `before` on some target.
#[must_use]
pub(super) fn setup(before: &Setup, from: &Scenario, to: &Scenario, parts: &Parts) -> Setup {
    let mut overrides = before.overrides.clone();
    let files = Scenario::from_files(parts);
    // Replicas that fill the target, and a global batch that follows from the layout, go on doing so.
    let follows = |knob: Knob| match knob {
        Knob::Dp => from.base.plan.dp.is_none() && to.base.plan.dp.is_none(),
        Knob::Global => from.base.plan.global.is_none() && to.base.plan.global.is_none(),
        // A search asks the closed form where the scenario's own engine simulates: nothing was turned.
        Knob::Engine => from.engine == to.engine,
        _ => from.follows(knob) && to.follows(knob),
    };
    if from.base.plan.global.is_none() && to.base.plan.global.is_some() && to.heeds(Knob::Global) {
        overrides.insert(Knob::Global, to.get(Knob::Global));
    }
    // What some knobs are depends on others: what still differs once those are turned is turned itself.
    for dependent in [false, true] {
        let Ok(now) = Scenario::resolve(parts, &overrides) else { break };
        let differs = |knob: &Knob| to.heeds(*knob) && now.get(*knob) != to.get(*knob) && !follows(*knob);
        for knob in Knob::all().filter(differs).filter(|knob| dependent || !depends(*knob)) {
            let setting = to.get(knob);
            if files.get(knob) == setting && !dependent {
                overrides.remove(&knob);
            } else {
                overrides.insert(knob, setting);
            }
        }
    }
    Setup { target: Arc::clone(&parts.target.name), workload: Arc::clone(&before.workload), overrides }
}

/// Whether a knob follows other knobs unless it is set.
fn depends(knob: Knob) -> bool {
    matches!(
        knob,
        Knob::Dp
            | Knob::Sp
            | Knob::Sharding
            | Knob::Shard
            | Knob::MaxNumSeqs
            | Knob::MaxNumBatchedTokens
            | Knob::Concurrency
    )
}

/// Makes a setup the scenario.
pub(super) fn take(app: &mut App, setup: Setup, effects: &mut Vec<Effect>) {
    if setup == app.now.setup {
        return note(app, "this is the scenario as it stands", effects);
    }
    let before = &app.now.setup;
    let changed = |knob: &Knob| setup.overrides.get(knob) != before.overrides.get(knob);
    let described = |knob: Knob| match setup.overrides.get(&knob) {
        Some(setting) => format!("{} {setting}", knob.name()),
        None => format!("{} as the files say", knob.name()),
    };
    let target = (setup.target != before.target).then(|| setup.target.to_string());
    let words: Vec<String> = target.into_iter().chain(Knob::all().filter(changed).map(described)).collect();
    app.remember(Change::Single);
    app.now.setup = setup;
    app.recompute();
    note(app, format!("{}; u takes it back", words.join(", ")), effects);
}
