//! The baseline of deltas, and undo and redo.

pub mod state;
mod trail;
pub mod view;

use std::sync::Arc;

pub use state::{NamedPoint, Point};
pub use trail::MAX_NAMED_POINTS;

use crate::tui::app::{Answer, App, Change, Setup, Snapshot, View};
use crate::tui::dialogs::prompt::state::{Prompt, Purpose};
use crate::tui::input::keymap::Mode;
use crate::tui::message::Effect;
use crate::tui::update::status::note;
use crate::tui::views::scenarios;
use crate::tui::widgets::line::Line;
use atlas_plan::knob::Knob;

/// Sets the baseline to the current scenario or to the column under the cursor.
pub(in crate::tui) fn baseline(app: &mut App, mode: Mode, effects: &mut Vec<Effect>) {
    app.push_undo(Change::Single);
    let mut setup = app.now.setup.clone();
    if mode == Mode::View(View::Compare)
        && let Some((name, _)) = app.columns.get(app.column)
    {
        setup.target = Arc::clone(name);
    }
    let text = format!("baseline: {} × {}", setup.target, setup.workload);
    app.now.baseline = Some(setup);
    let text = if scenarios::unpin(app) { format!("{text} (unpinned the tab)") } else { text };
    app.recompute();
    note(app, text, effects);
}

/// Sets the baseline to the values in the files.
pub(in crate::tui) fn clear_baseline(app: &mut App, effects: &mut Vec<Effect>) {
    if app.now.baseline.is_none() && app.tabs.pinned().is_none() {
        return note(app, "the baseline is already the saved values", effects);
    }
    app.push_undo(Change::Single);
    scenarios::unpin(app);
    app.now.baseline = None;
    app.recompute();
    note(app, "baseline: saved values", effects);
}

/// Undo.
pub(in crate::tui) fn undo(app: &mut App, effects: &mut Vec<Effect>) {
    if app.last_change == Some(Change::Closed) {
        scenarios::reopen(app, effects);
        return;
    }
    match app.past.pop() {
        Some(before) => {
            let text = format!("undid {}", difference(&app.answer, &before, &app.now));
            let after = scenarios::exchange(app, before);
            app.future.push(after);
            note(app, text, effects);
        }
        None => return note(app, "nothing to undo", effects),
    }
    app.last_change = None;
    app.recompute();
}

/// Redo.
pub(in crate::tui) fn redo(app: &mut App, effects: &mut Vec<Effect>) {
    match app.future.pop() {
        Some(after) => {
            let text = format!("redid {}", difference(&app.answer, &app.now, &after));
            let before = scenarios::exchange(app, after);
            app.past.push(before);
            note(app, text, effects);
        }
        None => return note(app, "nothing to redo", effects),
    }
    app.last_change = None;
    app.recompute();
}

/// Moves along the history; negative steps undo.
pub(in crate::tui) fn go(app: &mut App, steps: i32, effects: &mut Vec<Effect>) {
    for _ in 0..steps.unsigned_abs() {
        if steps < 0 { undo(app, effects) } else { redo(app, effects) }
    }
}

/// Opens the prompt for the name of the current point.
pub(in crate::tui) fn name(app: &mut App) {
    let known = app.points.iter().find(|point| point.setup == app.now.setup);
    let line = Line::selected(known.map_or("", |point| &*point.name));
    app.prompt = Some(Prompt { purpose: Purpose::PointName, line, before: String::new(), error: None });
}

/// Names the current scenario in the history; an empty name removes it.
pub(in crate::tui) fn set_name(app: &mut App, name: &str) {
    let setup = app.now.setup.clone();
    app.points.retain(|point| point.setup != setup && *point.name != *name.trim());
    if !name.trim().is_empty() {
        app.points.push(NamedPoint { name: name.trim().into(), setup });
        let excess = app.points.len().saturating_sub(MAX_NAMED_POINTS);
        app.points.drain(..excess);
    }
}

/// Goes to a named point; undo returns.
pub(in crate::tui) fn go_to(app: &mut App, index: usize, effects: &mut Vec<Effect>) {
    let Some(NamedPoint { name, setup }) = app.points.get(index).cloned() else { return };
    if setup == app.now.setup {
        return note(app, format!("{name} is already the current scenario"), effects);
    }
    app.push_undo(Change::Single);
    app.now.setup = setup;
    app.recompute();
    note(app, format!("restored {name}; u undoes it"), effects);
}

/// The changes from one scenario to another, in words.
#[must_use]
pub fn describe_changes(answer: &Answer, before: &Setup, after: &Setup) -> String {
    let of = |setup: &Setup| Snapshot { setup: setup.clone(), ..Snapshot::default() };
    difference(answer, &of(before), &of(after))
}

/// Maximum number of changes that are listed individually.
const NAMED: usize = 3;

/// The changes from one state to another, in words.
fn difference(answer: &Answer, before: &Snapshot, after: &Snapshot) -> String {
    let (from, to) = (&before.setup, &after.setup);
    let mut words = Vec::new();
    if from.target != to.target {
        words.push(format!("{} → {}", from.target, to.target));
    }
    if from.workload != to.workload {
        words.push(format!("{} → {}", from.workload, to.workload));
    }
    // The values in the files are known for the target and workload on the screen.
    let known = |setup: &Setup| (&setup.target, &setup.workload) == (&answer.setup.target, &answer.setup.workload);
    let value = |setup: &Setup, knob: &Knob| match (setup.overrides.get(knob), &answer.files) {
        (Some(setting), _) => setting.to_string(),
        (None, Some(files)) if known(setup) => files.get(*knob).to_string(),
        (None, _) => "saved value".to_owned(),
    };
    let changed = Knob::all().filter(|knob| from.overrides.get(knob) != to.overrides.get(knob));
    words.extend(changed.map(|knob| format!("{} {} → {}", knob.name(), value(from, &knob), value(to, &knob))));
    if before.marks != after.marks {
        let (some, fewer) = (after.marks.len(), before.marks.len());
        words.push(format!("marked targets {fewer} → {some}"));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tui::app::snapshot::MAX_STEPS;
    use crate::tui::testing::TestApp;

    #[test]
    fn undo_history_is_bounded_in_steps_and_bytes() {
        let mut h = TestApp::new();
        let first = h.app.now.setup.target.clone();
        for number in 0..3 * MAX_STEPS {
            h.app.push_undo(Change::Single);
            h.app.now.setup.target = format!("t{number}").into();
        }
        assert_eq!(h.app.past.len(), MAX_STEPS);
        assert!(h.app.past.iter().all(|snapshot| snapshot.setup.target != first));
        let last: Arc<str> = format!("t{}", 3 * MAX_STEPS - 2).into();
        assert_eq!(h.app.past.last().unwrap().setup.target, last);
        for number in 0..100_000 {
            h.app.now.marks.insert(format!("a mark of some length {number}").into());
        }
        for _ in 0..3 {
            h.app.push_undo(Change::Single);
        }
        let bytes: usize = h.app.past.iter().map(Snapshot::bytes).sum();
        assert_eq!(h.app.past.len(), 1, "one alone is larger than the bound: {bytes}");
    }
}
