//! The mouse: a click selects, a click on the selected item changes or opens it, the wheel scrolls.

use std::sync::Arc;

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use crate::tui::app::{App, Overlay, Pane, View};
use crate::tui::dialogs::prompt;
use crate::tui::input::keymap::{Action, Mode};
use crate::tui::message::Effect;
use crate::tui::screen;
use crate::tui::update::act::act;
use crate::tui::update::applying;
use crate::tui::views::results::{self, Place};
use crate::tui::views::{self, comparison, edits, scenarios};
use crate::tui::widgets::layout;
use atlas_plan::knob::ValueType;

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
    if let Some(place) = views::scenarios::view::tab_at(app, layout::areas(app).scenarios, event.column, event.row) {
        return scenarios::show(app, place, effects);
    }
    if let Some(action) = screen::tabs::tab_at(app, layout::areas(app).tabs, event.column, event.row) {
        // A click on the current view does nothing: `Show` would return to the overview.
        if action != Action::Show(app.view) {
            act(app, mode, action, effects);
        }
        return;
    }
    if let Some(steps) = views::edits::view::step_at(app, event.column, event.row) {
        return edits::go(app, steps, effects);
    }
    if app.view == View::Compare {
        if let Some(metric) = views::comparison::view::metric_at(app, event.column, event.row) {
            // A click on a heading sorts by it. A click on the label of a row selects it first, and sorts if it was
            // selected.
            let again = app.figure == metric || views::comparison::view::is_list(app);
            app.figure = metric;
            if again {
                comparison::act::order(app);
            }
            return;
        }
        if let Some(column) = views::comparison::view::column_at(app, event.column, event.row) {
            app.column = column;
        }
        return;
    }
    let again = match app.view {
        View::Sweep => views::sweep::view::click(app, event.column, event.row),
        View::Frontier => views::frontier::view::click(app, event.column, event.row),
        View::Optimum => match views::optimum::view::row_at(app, event.column, event.row) {
            Some(row) => std::mem::replace(&mut app.view_row, row) == row,
            None => false,
        },
        _ => false,
    };
    if again {
        return act(app, mode, Action::Accept, effects);
    }
    if matches!(
        app.view,
        View::Race
            | View::Advice
            | View::Explain
            | View::Sensitivity
            | View::Problems
            | View::Schedule
            | View::Diff
            | View::Measurements
            | View::Watch
            | View::History
            | View::Launch
            | View::Releases
            | View::Fits
    ) && let Some(row) = screen::row_at(app, event.row)
    {
        let again = app.view_row == row;
        app.view_row = row;
        if again {
            let action = if app.view == View::Explain { Action::Fold } else { Action::Accept };
            act(app, mode, action, effects);
        }
    }
    if app.view != View::Main {
        return;
    }
    let Some((pane, area)) = layout::pane_at(&layout::areas(app), event.column, event.row) else { return };
    let focused = app.pane == pane;
    app.pane = pane;
    let inside = event.row.checked_sub(area.y + 1).filter(|row| usize::from(*row) < layout::inner_rows(area));
    let Some(row) = inside.map(usize::from) else { return };
    match pane {
        Pane::Targets => {
            let name = app.targets().nth(row + app.scroll[0]).map(|(_, target)| Arc::clone(&target.name));
            if let Some(name) = name {
                applying::select_target(app, name);
            }
        }
        Pane::Workloads => {
            let name = app.workloads().nth(row + app.scroll[1]).map(|workload| Arc::clone(&workload.name));
            if let Some(name) = name {
                applying::select_workload(app, name);
            }
        }
        Pane::Knobs => {
            let Some(knob) = screen::knobs::knob_at(app, row + app.scroll[2]) else { return };
            let again = app.knob == knob;
            app.knob = knob;
            if again {
                let toggles = matches!(knob.spec().kind, ValueType::Toggle | ValueType::Choice(_) | ValueType::Fabric);
                act(app, Mode::Knobs, if toggles { Action::Toggle } else { Action::Edit }, effects);
            }
        }
        Pane::Results => {
            let here = app.selected_metric().map(Place::Figure);
            let here = app.headline().map(Place::Above).or(here);
            let Some(place) = results::place_at(app, layout::inner(area), event.column, event.row) else { return };
            match place {
                Place::Above(line) => app.above = Some(line),
                Place::Figure(figure) => {
                    app.above = None;
                    app.figure = figure;
                }
                Place::Folded(section) => results::fold(app, section),
            }
            if focused && Some(place) == here {
                act(app, Mode::Results, Action::Accept, effects);
            }
        }
    }
}
