//! What was: the baseline that deltas are against, and the changes that can be taken back.

use std::sync::Arc;

use super::app::{App, Change};
use super::keymap::Mode;
use super::message::Effect;
use super::scenarios;
use super::update::note;

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
            let after = scenarios::exchange(app, before);
            app.future.push(after);
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
            let before = scenarios::exchange(app, after);
            app.past.push(before);
        }
        None => return note(app, "nothing to redo", effects),
    }
    app.last_change = None;
    app.recompute();
}
