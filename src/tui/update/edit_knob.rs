//! Changing knobs: by steps, by toggling, by typing.

use crate::tui::app::{App, Change, Edit};
use crate::tui::message::Effect;
use crate::tui::update::status::note;
use crate::tui::widgets::line::Line;
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting, ValueType};

/// The value a knob has now.
fn value(app: &App, knob: Knob) -> Option<Setting> {
    app.answer.scenario.as_ref().map(|scenario| scenario.get(knob))
}

/// Changes the knob under the cursor, or the value being typed, by steps.
pub(in crate::tui) fn step(app: &mut App, by: i32) {
    if let Some(edit) = &app.edit {
        // While a valid value is typed, the arrows change it.
        let (knob, text) = (edit.knob, edit.line.text().to_owned());
        if let Ok(now) = knob.parse(&text, app.answer.fabrics()) {
            let next = knob.step(&now, by, app.answer.fabrics());
            typed(app, |line| {
                *line = Line::selected(next.to_string());
                true
            });
        }
        return;
    }
    let knob = app.selected_knob();
    let Some(now) = value(app, knob) else { return };
    let next = knob.step(&now, by, app.answer.fabrics());
    if next != now {
        app.push_undo(Change::Step(knob));
        app.set_knob(knob, next);
    }
}

/// Toggles the knob or selects its next choice. For a number, starts editing instead.
pub(in crate::tui) fn toggle(app: &mut App) {
    let knob = app.selected_knob();
    let Some(now) = value(app, knob) else { return };
    let next = match (&now, knob.spec().kind) {
        (Setting::Toggle(on), _) => Setting::Toggle(!on),
        (Setting::Choice(_), ValueType::Choice(_) | ValueType::Fabric) => {
            let up = knob.step(&now, 1, app.answer.fabrics());
            // After the last choice, wraps around to the first.
            if up == now { knob.step(&now, -i32::from(i16::MAX), app.answer.fabrics()) } else { up }
        }
        _ => return begin_edit(app),
    };
    app.push_undo(Change::Single);
    app.set_knob(knob, next);
}

/// Resets the knob to the value in the file.
pub(in crate::tui) fn reset(app: &mut App, effects: &mut Vec<Effect>) {
    let knob = app.selected_knob();
    if app.now.setup.overrides.contains_key(&knob) {
        app.push_undo(Change::Single);
        app.now.setup.overrides.remove(&knob);
        app.recompute();
    } else {
        note(app, format!("{} already has the saved value", knob.name()), effects);
    }
}

/// Resets all knobs.
pub(in crate::tui) fn reset_all(app: &mut App, effects: &mut Vec<Effect>) {
    if app.now.setup.overrides.is_empty() {
        note(app, "all knobs already have the saved values", effects);
        return;
    }
    app.push_undo(Change::Single);
    app.now.setup.overrides = Overrides::new();
    app.recompute();
}

/// Starts editing the value of the knob under the cursor.
pub(in crate::tui) fn begin_edit(app: &mut App) {
    let knob = app.selected_knob();
    let Some(now) = value(app, knob) else { return };
    app.edit = Some(Edit { knob, line: Line::selected(now.to_string()), before: app.now.setup.clone(), error: None });
}

/// Changes the text being typed. Whenever it is a valid value, the scenario is updated.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    let Some(edit) = &mut app.edit else { return };
    let before = edit.line.text().to_owned();
    change(&mut edit.line);
    if edit.line.text() == before {
        return;
    }
    match edit.knob.parse(edit.line.text(), app.answer.fabrics()) {
        Ok(setting) => {
            edit.error = None;
            let knob = edit.knob;
            app.set_knob(knob, setting);
        }
        Err(error) => edit.error = Some(error.to_string()),
    }
}
