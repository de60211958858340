//! What can be run on what: every model of the catalog on every target, by whether it fits and how fast it would be.
//!
//! The workload on the screen says what is run: its lengths, load, formats and software; the model is another one, and the
//! layout the smallest that fits.
//!
//! * this file – the state, and what keys do
//! * `job` – the table, computed on a thread of its own
//! * `view` – the picture
//! * `export` – the same as a document

pub mod state;

pub mod export;
mod job;
#[cfg(test)]
mod tests;
pub mod view;

pub use state::{Cell, Grid, Question, Row, State};

use std::sync::Arc;

use atlas_config::{Mode, Target};
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::knob::{Knob, Setting};

use super::Spec;
use crate::tui::app::{App, Change};
use crate::tui::applying;
use crate::tui::form;
use crate::tui::layout;
use crate::tui::message::Effect;
use crate::tui::status::{fail, note};
use crate::tui::tables::state::Table;

/// The panel.
pub(super) static SPEC: Spec = Spec {
    name: "fits",
    title: "What runs",
    rows: view::rows,
    heading: |_| view::HEADING,
    page: |_, lines| lines.saturating_sub(usize::from(view::HEADING)),
    has_cursor: |_| true,
    draw: view::draw,
    info: view::info,
    document: export::document,
    opened,
    follow,
    accept: open,
    across,
    ..Spec::DEFAULT
};

/// The figure of a cell: how fast a user reads, or how fast an accelerator trains.
#[must_use]
pub fn speed(mode: Mode) -> &'static Metric {
    match mode {
        Mode::Inference => MetricId::TokensPerSecPerUser.metric(),
        Mode::Training => MetricId::TokensPerSecPerAccel.metric(),
    }
}

/// The models that the filter keeps.
#[must_use]
pub fn shown(app: &App) -> Vec<&Row> {
    let Some(grid) = app.panels.fits.table.answer() else { return Vec::new() };
    grid.rows.iter().filter(|row| app.asks_for(Table::Fits, &row.model)).collect()
}

/// The target and the model under the cursor, with their cell.
#[must_use]
pub fn here(app: &App) -> Option<(&Arc<str>, &Row, &Cell)> {
    let grid = app.panels.fits.table.answer()?;
    let row = shown(app).get(app.view_row).copied()?;
    Some((grid.targets.get(app.panels.fits.column)?, row, row.cells.get(app.panels.fits.column)?))
}

/// The targets asked about: the marked ones, or all where fewer than two are marked.
fn targets(app: &App) -> Vec<Arc<str>> {
    let marked = |target: &&Arc<Target>| app.now.marks.len() < 2 || app.now.marks.contains(&target.name);
    app.library.targets().iter().filter(marked).map(|target| Arc::clone(&target.name)).collect()
}

/// The cursor begins on the target and the model of the scenario.
pub(super) fn opened(app: &mut App) {
    let own = targets(app).iter().position(|name| *name == app.now.setup.target);
    app.panels.fits.column = own.unwrap_or_default();
    settle(app);
}

/// The row of the scenario's own model.
fn own(app: &App) -> Option<usize> {
    let model = app.answer.parts.as_ref().map(|parts| parts.model_name());
    shown(app).iter().position(|row| Some(&row.model) == model.as_ref())
}

fn settle(app: &mut App) {
    app.view_row = own(app).unwrap_or(app.view_row);
    center(app);
}

/// Scrolls so that models smaller and larger than the one under the cursor are seen.
fn center(app: &mut App) {
    let body = layout::areas(app).body;
    let page = layout::inner_rows(body).saturating_sub(usize::from(view::HEADING));
    let most = shown(app).len().saturating_sub(page);
    app.view_scroll = app.view_row.saturating_sub(page / 2).min(most);
}

/// Asks for the table, or for what is missing from it.
pub(super) fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let targets = targets(app);
    let table = &mut app.panels.fits.table;
    let same = |question: &&Question| (question.generation, &question.targets) == (app.generation, &targets);
    let known = table.question().filter(same).and_then(|_| table.answer()).cloned().unwrap_or_default();
    if known.of > 0 && known.done >= known.of {
        return;
    }
    let question = Question { generation: app.generation, targets: targets.clone(), done: known.done };
    let (library, setup) = (Arc::clone(&app.library), app.now.setup.clone());
    let work = || job::Work { library, setup, targets, known: Grid::clone(&known) };
    table.ask(question, &mut app.queries.serial, effects, |_| Ok(Arc::new(work())));
}

/// Takes the table; the cursor stays on its model, and begins on that of the scenario.
pub(super) fn arrived(app: &mut App, serial: u64, grid: Arc<Grid>) {
    let first = app.panels.fits.table.answer().is_none();
    let at = here(app).map(|(_, row, _)| Arc::clone(&row.model));
    if !app.panels.fits.table.arrived(serial, grid) {
        return;
    }
    if first {
        settle(app);
    }
    if let Some(at) = at {
        let line = app.view_row.saturating_sub(app.view_scroll);
        app.view_row = shown(app).iter().position(|row| row.model == at).unwrap_or(app.view_row);
        // On the scenario's own model the cursor has not been moved; elsewhere it stays on its line.
        match own(app) == Some(app.view_row) {
            true => center(app),
            false => app.view_scroll = app.view_row.saturating_sub(line),
        }
    }
}

/// The next or last target.
pub(super) fn across(app: &mut App, by: i32) {
    let last = app.panels.fits.table.answer().map_or(0, |grid| grid.targets.len().saturating_sub(1));
    let column = &mut app.panels.fits.column;
    *column = column.saturating_add_signed(by as isize).min(last);
}

/// Opens what is under the cursor: the target with that layout, and for another model a form for its workload.
pub(super) fn open(app: &mut App, effects: &mut Vec<Effect>) {
    let Some((target, row, cell)) = here(app) else { return };
    let (target, model) = (Arc::clone(target), Arc::clone(&row.model));
    let Cell::Fits { layout: (tp, pp), .. } = *cell else {
        let text = format!("{model} on {target}: {}", view::describe(app, cell));
        return fail(app, text);
    };
    let mut setup = app.now.setup.clone();
    setup.target = target;
    if app.answer.parts.as_ref().is_some_and(|parts| parts.model_name() == model) {
        for knob in job::LAYOUT {
            setup.overrides.remove(&knob);
        }
        setup.overrides.insert(Knob::Tp, Setting::Number(tp));
        setup.overrides.insert(Knob::Pp, Setting::Number(pp));
        return applying::take(app, setup, effects);
    }
    if setup.target != app.now.setup.target {
        app.remember(Change::Single);
        app.now.setup.target = setup.target;
        app.recompute();
    }
    form::open_for(app, &model, tp);
    note(app, format!("a workload for {model}: Enter on the last field shows the change to the file"), effects);
}
