//! Applies a selection or a search result to the scenario. A search result becomes the fewest overrides that produce
//! it, as one undo step.

use std::sync::Arc;

use crate::demo::Setup;
use crate::tui::app::{App, Change, Pane};
use crate::tui::message::Effect;
use crate::tui::update::status::note;
use atlas_config::library::Library;
use atlas_plan::engine::analytical_scenario;
use atlas_plan::knob::Knob;
use atlas_plan::scenario::{Parts, Scenario};

/// Resolves a scenario for searches, which evaluate it thousands of times. An engine that simulates is replaced by the
/// analytical one. Returns `None` if the target and the workload do not form a valid scenario.
#[must_use]
pub(in crate::tui) fn resolve(library: &Library, target: &str, before: &Setup) -> Option<(Parts, Scenario)> {
    let parts = Parts::find(library, target, &before.workload).ok()?;
    let scenario = Scenario::resolve(&parts, &before.overrides).ok()?;
    Some((parts, analytical_scenario(&scenario)))
}

/// The setup whose scenario is `to`, the result of a search that started at `from`. `from` was resolved from the
/// workload and the overrides of `before`.
#[must_use]
pub(in crate::tui) fn setup(before: &Setup, from: &Scenario, to: &Scenario, parts: &Parts) -> Setup {
    let mut overrides = before.overrides.clone();
    let files = Scenario::from_files(parts);
    // A layout and a global batch size that are derived in both scenarios stay derived.
    let follows = |knob: Knob| match knob {
        Knob::Tp => from.base.plan.tp.is_none() && to.base.plan.tp.is_none(),
        Knob::Pp => from.base.plan.pp.is_none() && to.base.plan.pp.is_none(),
        Knob::Dp => from.base.plan.dp.is_none() && to.base.plan.dp.is_none(),
        Knob::Global => from.base.plan.global.is_none() && to.base.plan.global.is_none(),
        // The search used the analytical engine instead of a simulation; that is not a change.
        Knob::Engine => from.engine == to.engine,
        _ => from.follows(knob) && to.follows(knob),
    };
    if from.base.plan.global.is_none() && to.base.plan.global.is_some() && to.uses(Knob::Global) {
        overrides.insert(Knob::Global, to.get(Knob::Global));
    }
    // Some knobs are derived from others: set only those that still differ after the others are set.
    for dependent in [false, true] {
        let Ok(now) = Scenario::resolve(parts, &overrides) else { break };
        let differs = |knob: &Knob| to.uses(*knob) && now.get(*knob) != to.get(*knob) && !follows(*knob);
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

/// Whether a knob is derived from others unless set.
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

/// Makes a setup the current scenario.
pub(in crate::tui) fn apply_setup(app: &mut App, setup: Setup, effects: &mut Vec<Effect>) {
    if setup == app.now.setup {
        return note(app, "the scenario is unchanged", effects);
    }
    let before = &app.now.setup;
    let changed = |knob: &Knob| setup.overrides.get(knob) != before.overrides.get(knob);
    let described = |knob: Knob| match setup.overrides.get(&knob) {
        Some(setting) => format!("{} {setting}", knob.name()),
        None => format!("{} reset to the saved value", knob.name()),
    };
    let target = (setup.target != before.target).then(|| setup.target.to_string());
    let words: Vec<String> = target.into_iter().chain(Knob::all().filter(changed).map(described)).collect();
    app.push_undo(Change::Single);
    app.now.setup = setup;
    app.recompute();
    note(app, format!("{}; u undoes it", words.join(", ")), effects);
}

/// Selects a target by name.
pub(in crate::tui) fn select_target(app: &mut App, name: Arc<str>) {
    if app.now.setup.target != name {
        app.push_undo(Change::Movement(Pane::Targets));
        app.now.setup.target = name;
        app.recompute();
    }
}

/// Selects a workload by name.
pub(in crate::tui) fn select_workload(app: &mut App, name: Arc<str>) {
    if app.now.setup.workload != name {
        app.push_undo(Change::Movement(Pane::Workloads));
        app.now.setup.workload = name;
        app.recompute();
    }
}
