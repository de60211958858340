//! The mouse: a click selects, a click on the selected item changes or opens it, the wheel scrolls.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use crate::tui::app::{App, Overlay, Pane, View};
use crate::tui::dialogs::prompt;
use crate::tui::input::keymap::{Action, Mode};
use crate::tui::message::Effect;
use crate::tui::screen;
use crate::tui::update::act::act;
use crate::tui::views::layout;
use crate::tui::views::{edits, scenarios};

/// Rows per notch of the wheel.
const ROWS_PER_NOTCH: i32 = 3;

pub(in crate::tui) fn mouse(app: &mut App, event: MouseEvent, effects: &mut Vec<Effect>) {
    let mode = app.mode();
    match event.kind {
        MouseEventKind::ScrollDown => wheel(app, mode, event, 1, effects),
        MouseEventKind::ScrollUp => wheel(app, mode, event, -1, effects),
        MouseEventKind::Down(MouseButton::Left) => click(app, mode, event, effects),
        _ => {}
    }
}

fn wheel(app: &mut App, mode: Mode, event: MouseEvent, by: i32, effects: &mut Vec<Effect>) {
    // The wheel scrolls what is under the pointer, without moving the focus.
    let under = layout::pane_at(&layout::areas(app), event.column, event.row).map(|(pane, _)| pane);
    match (mode, under) {
        (Mode::Targets | Mode::Workloads | Mode::Knobs | Mode::Results, Some(pane)) => {
            let (mode, by) = match pane {
                Pane::Targets => (Mode::Targets, by),
                Pane::Workloads => (Mode::Workloads, by),
                Pane::Knobs => (Mode::Knobs, by),
                Pane::Results => (Mode::Results, by * ROWS_PER_NOTCH),
            };
            act(app, mode, Action::Move(by), effects);
        }
        (Mode::Editing | Mode::Bounding | Mode::Touring, _) => {}
        (Mode::Finding | Mode::Commanding | Mode::Choosing, _) => act(app, mode, Action::Move(by), effects),
        _ => act(app, mode, Action::Move(by * ROWS_PER_NOTCH), effects),
    }
}

fn click(app: &mut App, mode: Mode, event: MouseEvent, effects: &mut Vec<Effect>) {
    match mode {
        Mode::Touring => return act(app, mode, Action::NextStep, effects),
        // A click outside a value being typed accepts the value; a click outside a dialog closes the dialog.
        Mode::Editing | Mode::Bounding => act(app, mode, Action::Accept, effects),
        Mode::Prompting => prompt::accept(app),
        Mode::Confirming | Mode::Detecting | Mode::Exporting => return act(app, mode, Action::Escape, effects),
        Mode::Finding | Mode::Commanding | Mode::Choosing => {
            let row = screen::popup_row(app, event.column, event.row);
            match (row, &mut app.overlay) {
                (Some(row), Some(Overlay::Finder(finder))) if row < finder.matches.len() => finder.cursor = row,
                (Some(row), Some(Overlay::Palette(palette))) if row < palette.matches.len() => palette.cursor = row,
                (Some(row), Some(Overlay::Demos { cursor })) if row < app.demos.len() => *cursor = row,
                (Some(_), _) => return,
                (None, _) => return act(app, mode, Action::Escape, effects),
            }
            return act(app, mode, Action::Accept, effects);
        }
        Mode::Helping => return act(app, mode, Action::Escape, effects),
        _ => {}
    }
    if let Some(place) = scenarios::view::tab_at(app, layout::areas(app).scenarios, event.column, event.row) {
        return scenarios::show(app, place, effects);
    }
    if let Some(action) = screen::tabs::tab_at(app, layout::areas(app).tabs, event.column, event.row) {
        // A click on the current view does nothing: `Show` would return to the overview.
        if action != Action::Show(app.view) {
            act(app, mode, action, effects);
        }
        return;
    }
    if let Some(steps) = edits::view::step_at(app, event.column, event.row) {
        return edits::go(app, steps, effects);
    }
    if let Some(action) = (app.view.spec().click)(app, (event.column, event.row)) {
        // In the overview a click can move the focus to another pane.
        let mode = if app.view == View::Main { app.mode_below() } else { mode };
        act(app, mode, action, effects);
    }
}
