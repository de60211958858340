//! The table of models and targets: every model of the catalog on every target, whether it fits, and how fast it would
//! be.
//!
//! Sequence lengths, load, formats and software are those of the current workload. Only the model differs, and the
//! layout is the smallest that fits in memory.
//!
//! * this file – key handling and updates of the state
//! * `job` – computes the table on a worker thread
//! * `view` – drawing
//! * `export` – the table as a document

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

use super::{Spec, Tab};
use crate::tui::app::{App, Change, View};
use crate::tui::dialogs::form;
use crate::tui::input::keymap::{Action, Keys, SharedKeys, bind};
use crate::tui::message::Effect;
use crate::tui::tables::state::Table;
use crate::tui::update::applying;
use crate::tui::update::status::{fail, note};
use crate::tui::views::layout;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "What runs",
    tab: Tab { place: 11, name: "What runs", short: "Runs" },
    synonyms: "what runs fits models hardware browser catalog",
    opening: Some(bind(
        &["#", "vw"],
        Action::Show(View::Fits),
        "what runs: which models fit which targets",
        Some("what runs"),
    )),
    keys: &[Keys::Own(&[
        bind(
            &["Enter"],
            Action::Accept,
            "apply target and layout; for another model, open a form for its workload",
            Some("open"),
        ),
        bind(&["→", "l"], Action::Focus(1), "next target", Some("target")),
        bind(&["←", "h"], Action::Focus(-1), "previous target", None),
    ])],
    shared_keys: &[SharedKeys::Filter],
    table: |_| Some(Table::Fits),
    rows: view::rows,
    lines_of: super::one_line,
    heading: |_| view::HEADING,
    draw: view::draw,
    info: view::info,
    document: |app, _| export::document(app),
    opened: |app, _| opened(app),
    follow,
    works: |app, action| action != Action::Accept || view::rows(app) > 0,
    accept: open,
    update: |app, action, _| {
        match action {
            Action::Focus(by) => across(&mut app.fits, by),
            _ => return false,
        }
        true
    },
    ..Spec::DEFAULT
};

/// Returns the metric shown in a cell: tokens/s per user in serving, tokens/s per accelerator in training.
#[must_use]
pub fn speed(mode: Mode) -> &'static Metric {
    match mode {
        Mode::Inference => MetricId::TokensPerSecPerUser.metric(),
        Mode::Training => MetricId::TokensPerSecPerAccel.metric(),
    }
}

/// Returns the rows whose models match the filter.
#[must_use]
pub fn filtered_rows(app: &App) -> Vec<&Row> {
    let Some(grid) = app.fits.table.answer() else { return Vec::new() };
    grid.rows.iter().filter(|row| app.matches_filter(Table::Fits, &row.model)).collect()
}

/// Returns the target and the row under the cursor, and their cell.
#[must_use]
pub fn cell_under_cursor(app: &App) -> Option<(&Arc<str>, &Row, &Cell)> {
    let grid = app.fits.table.answer()?;
    let row = filtered_rows(app).get(app.view_row).copied()?;
    Some((grid.targets.get(app.fits.column)?, row, row.cells.get(app.fits.column)?))
}

/// Returns the targets of the table: the marked ones, or all if fewer than two are marked.
fn targets(app: &App) -> Vec<Arc<str>> {
    let marked = |target: &&Arc<Target>| app.now.marks.len() < 2 || app.now.marks.contains(&target.name);
    app.library.targets().iter().filter(marked).map(|target| Arc::clone(&target.name)).collect()
}

/// Places the cursor on the target and the model of the scenario.
fn opened(app: &mut App) {
    let own = targets(app).iter().position(|name| *name == app.now.setup.target);
    app.fits.column = own.unwrap_or_default();
    clamp_cursor(app);
}

/// Returns the row of the scenario's model.
fn own(app: &App) -> Option<usize> {
    let model = app.answer.parts.as_ref().map(|parts| parts.model_name());
    filtered_rows(app).iter().position(|row| Some(&row.model) == model.as_ref())
}

fn clamp_cursor(app: &mut App) {
    app.view_row = own(app).unwrap_or(app.view_row);
    center(app);
}

/// Scrolls so that the row under the cursor is in the middle, with smaller and larger models around it.
fn center(app: &mut App) {
    let body = layout::areas(app).body;
    let page = layout::inner_rows(body).saturating_sub(usize::from(view::HEADING));
    let most = filtered_rows(app).len().saturating_sub(page);
    app.view_scroll = app.view_row.saturating_sub(page / 2).min(most);
}

/// Requests the table, or its missing rows.
fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let targets = targets(app);
    let table = &mut app.fits.table;
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

/// Stores the table. The cursor stays on its model; the first time, it is placed on the scenario's model.
pub(in crate::tui) fn store_grid(app: &mut App, serial: u64, grid: Arc<Grid>) {
    let first = app.fits.table.answer().is_none();
    let at = cell_under_cursor(app).map(|(_, row, _)| Arc::clone(&row.model));
    if !app.fits.table.store_answer(serial, grid) {
        return;
    }
    if first {
        clamp_cursor(app);
    }
    if let Some(at) = at {
        let line = app.view_row.saturating_sub(app.view_scroll);
        app.view_row = filtered_rows(app).iter().position(|row| row.model == at).unwrap_or(app.view_row);
        // On the scenario's own model the cursor has not been moved; on any other it keeps its line on the screen.
        match own(app) == Some(app.view_row) {
            true => center(app),
            false => app.view_scroll = app.view_row.saturating_sub(line),
        }
    }
}

/// Moves the cursor by `by` targets.
fn across(state: &mut State, by: i32) {
    let last = state.table.answer().map_or(0, |grid| grid.targets.len().saturating_sub(1));
    state.column = state.column.saturating_add_signed(by as isize).min(last);
}

/// Applies the target and layout under the cursor. For another model, opens a form to create its workload.
fn open(app: &mut App, effects: &mut Vec<Effect>) {
    let Some((target, row, cell)) = cell_under_cursor(app) else { return };
    let (target, model) = (Arc::clone(target), Arc::clone(&row.model));
    let Cell::Fits { layout: (tp, pp), .. } = *cell else {
        let text = format!("{model} on {target}: {}", view::describe(app.answer.mode(), cell));
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
        return applying::apply_setup(app, setup, effects);
    }
    if setup.target != app.now.setup.target {
        app.push_undo(Change::Single);
        app.now.setup.target = setup.target;
        app.recompute();
    }
    form::open_for(app, &model, tp);
    note(app, format!("new workload for {model}: Enter on the last field shows the change to the file"), effects);
}
