//! Actions of the comparison: its cursor, its order, and the targets marked for it.

use std::sync::Arc;

use super::view;
use crate::tui::app::{App, Change, View};
use crate::tui::input::keymap::{Action, Mode};
use crate::tui::input::movement::Movement;
use crate::tui::message::Effect;
use crate::tui::tables::state::{Sort, Table};
use crate::tui::update::applying::select_target;
use crate::tui::update::showing::explain;
use crate::tui::update::status::note;
use atlas_plan::estimate::Metric;

/// Selects the target under the cursor and explains the metric.
pub(super) fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    if let Some((name, _)) = app.columns.get(app.column) {
        let name = Arc::clone(name);
        select_target(app, name);
        explain(app, effects);
    }
}

/// Performs an action of the view.
pub(super) fn update(app: &mut App, action: Action, effects: &mut Vec<Effect>) -> bool {
    match action {
        Action::Focus(by) => across(app, by),
        Action::Sort => order(app),
        Action::SortByName => order_by_name(app),
        Action::HideMetric => super::hide(app, effects),
        Action::ShiftMetric(by) => super::shift(app, by),
        Action::ChooseMetrics => super::open(app),
        _ => return false,
    }
    true
}

/// A click on a heading sorts by it. A click on the label of a row selects it first, and sorts if it was selected.
pub(super) fn click(app: &mut App, (column, row): (u16, u16)) -> Option<Action> {
    if let Some(metric) = view::metric_at(app, column, row) {
        let again = app.figure == metric || view::is_list(app);
        app.figure = metric;
        return again.then_some(Action::Sort);
    }
    app.column = view::column_at(app, column, row).unwrap_or(app.column);
    None
}

/// Moves down the comparison: metrics, or targets if they are the rows.
pub(super) fn move_cursor(app: &mut App, movement: &Movement, page: usize) {
    if view::is_list(app) {
        app.column = movement.from(app.column, app.columns.len(), page);
        return;
    }
    let row = view::metric_index(app);
    let metrics: Vec<&'static Metric> = view::metrics(app).collect();
    app.figure = metrics.get(movement.from(row, metrics.len(), page)).copied().unwrap_or(app.figure);
}

/// Moves across the comparison: over targets, or over metrics if targets are the rows.
fn across(app: &mut App, by: i32) {
    if view::is_list(app) {
        let metrics: Vec<&'static Metric> = view::metrics(app).collect();
        let next = view::metric_index(app).saturating_add_signed(by as isize);
        app.figure = metrics.get(next.min(metrics.len().saturating_sub(1))).copied().unwrap_or(app.figure);
    } else {
        app.column = app.column.saturating_add_signed(by as isize).min(app.columns.len().saturating_sub(1));
    }
}

/// Sorts the comparison by the metric under the cursor, or by file order if it is already sorted by that metric.
fn order(app: &mut App) {
    let metric = view::metrics(app).nth(view::metric_index(app));
    app.order = if app.order == metric { None } else { metric };
    app.tables.set_sort(Table::Compare, Sort::Natural);
    reorder(app);
    if app.order.is_some() {
        // Move the cursor to the best target.
        (app.column, app.view_scroll) = (0, 0);
    }
}

/// Toggles sorting the comparison by the names of targets.
fn order_by_name(app: &mut App) {
    let by_name = app.tables.sort(Table::Compare) == Sort::Name;
    app.tables.set_sort(Table::Compare, if by_name { Sort::Natural } else { Sort::Name });
    reorder(app);
}

/// Sorts the comparison again. The cursor stays on its target.
fn reorder(app: &mut App) {
    let target = app.columns.get(app.column).map(|(name, _)| Arc::clone(name));
    app.recompute_columns();
    let place = app.columns.iter().position(|(name, _)| Some(name) == target.as_ref());
    app.column = place.unwrap_or(app.column);
}

pub(in crate::tui) fn mark(app: &mut App, mode: Mode) {
    let name = match mode {
        Mode::View(View::Compare) => app.columns.get(app.column).map(|(name, _)| Arc::clone(name)),
        _ => app.answer.target.as_ref().map(|target| Arc::clone(&target.name)),
    };
    let Some(name) = name.filter(|_| mode != Mode::Targets || app.target_row().is_some()) else { return };
    app.push_undo(Change::Single);
    if !app.now.marks.remove(&name) {
        app.now.marks.insert(name);
    }
    app.recompute_columns();
}

pub(in crate::tui) fn unmark_all(app: &mut App, effects: &mut Vec<Effect>) {
    let marks = app.now.marks.len();
    if marks == 0 {
        return note(app, "no target is marked", effects);
    }
    app.push_undo(Change::Single);
    app.now.marks.clear();
    app.recompute_columns();
    note(app, format!("unmarked {marks}; u undoes it"), effects);
}
