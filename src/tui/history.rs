//! What was: the baseline that deltas are against, and the changes that can be taken back.

use std::sync::Arc;

use super::app::{App, Change, Snapshot};
use super::keymap::Mode;
use super::message::Effect;
use super::scenarios;
use super::update::note;
use atlas_plan::knob::Knob;

/// Makes what is on the screen, or the column under the cursor, what deltas are against.
pub(super) fn baseline(app: &mut App, mode: Mode, effects: &mut Vec<Effect>) {
    app.remember(Change::Single);
    let mut setup = app.now.setup.clone();
    if mode == Mode::Compare
        && let Some((name, _)) = app.columns.get(app.column)
    {
        setup.target = Arc::clone(name);
    }
    let text = format!("baseline: {} × {}", setup.target, setup.workload);
    app.now.baseline = Some(setup);
    let text = if scenarios::unpin(app) { format!("{text}; the pinned tab no longer") } else { text };
    app.recompute();
    note(app, text, effects);
}

/// Makes the files' values what deltas are against.
pub(super) fn clear_baseline(app: &mut App, effects: &mut Vec<Effect>) {
    if app.now.baseline.is_none() && app.tabs.pinned().is_none() {
        return note(app, "baseline: the files' values, as before", effects);
    }
    app.remember(Change::Single);
    scenarios::unpin(app);
    app.now.baseline = None;
    app.recompute();
    note(app, "baseline: the files' values", effects);
}

/// Takes the last change back.
pub(super) fn undo(app: &mut App, effects: &mut Vec<Effect>) {
    if app.last_change == Some(Change::Closed) {
        scenarios::reopen(app, effects);
        return;
    }
    match app.past.pop() {
        Some(before) => {
            let text = format!("undid {}", difference(&before, &app.now));
            let after = scenarios::exchange(app, before);
            app.future.push(after);
            note(app, text, effects);
        }
        None => return note(app, "nothing to undo", effects),
    }
    app.last_change = None;
    app.recompute();
}

/// Makes it again.
pub(super) fn redo(app: &mut App, effects: &mut Vec<Effect>) {
    match app.future.pop() {
        Some(after) => {
            let text = format!("redid {}", difference(&app.now, &after));
            let before = scenarios::exchange(app, after);
            app.past.push(before);
            note(app, text, effects);
        }
        None => return note(app, "nothing to redo", effects),
    }
    app.last_change = None;
    app.recompute();
}

/// Most changes that are named one by one.
const NAMED: usize = 3;

/// What led from one state to another, in words.
fn difference(before: &Snapshot, after: &Snapshot) -> String {
    let (from, to) = (&before.setup, &after.setup);
    let mut words = Vec::new();
    if from.target != to.target {
        words.push(format!("{} → {}", from.target, to.target));
    }
    if from.workload != to.workload {
        words.push(format!("{} → {}", from.workload, to.workload));
    }
    let value = |setup: &crate::demo::Setup, knob: &Knob| match setup.overrides.get(knob) {
        Some(setting) => setting.to_string(),
        None => "file value".to_owned(),
    };
    let changed = Knob::all().filter(|knob| from.overrides.get(knob) != to.overrides.get(knob));
    words.extend(changed.map(|knob| format!("{} {} → {}", knob.name(), value(from, &knob), value(to, &knob))));
    if before.marks != after.marks {
        let (some, fewer) = (after.marks.len(), before.marks.len());
        words.push(format!("{some} marked instead of {fewer}"));
    }
    if before.baseline != after.baseline || before.pinned != after.pinned {
        words.push("the baseline".to_owned());
    }
    if before.name != after.name {
        words.push("the name of the tab".to_owned());
    }
    let more = words.len().saturating_sub(NAMED);
    words.truncate(NAMED);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    words.join(", ") + &rest
}
