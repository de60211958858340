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
    let unpinned = scenarios::unpin(app);
    if app.now.baseline.is_some() {
        app.remember(Change::Single);
        app.now.baseline = None;
    } else if !unpinned {
        return note(app, "baseline: the files' values, as before", effects);
    }
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
        Some(before) => app.future.push(std::mem::replace(&mut app.now, before)),
        None => return note(app, "nothing to undo", effects),
    }
    app.last_change = None;
    app.recompute();
}

/// Makes it again.
pub(super) fn redo(app: &mut App, effects: &mut Vec<Effect>) {
    match app.future.pop() {
        Some(after) => app.past.push(std::mem::replace(&mut app.now, after)),
        None => return note(app, "nothing to redo", effects),
    }
    app.last_change = None;
    app.recompute();
}
