//! State and message in, state and effects out. No I/O, no clock: a test types keys and looks at the state.

use std::path::PathBuf;
use std::sync::Arc;

use crossterm::event::{KeyEvent, KeyEventKind};

use super::app::{App, Change, Edit, Overlay, PANES, Pane, Status, View};
use super::cursor::{Walk, walk, walk_results};
use super::history::{baseline, clear_baseline, redo, undo};
use super::keymap::{Action, Mode, lookup};
use super::line::Line;
use super::message::{Effect, Message, Saving, Timer};
use super::showing::{explain, explain_metric, explain_results, show, standing};
use super::stale::Stale;
use super::tables::{Sort, Table};
use super::{
    assistant, comparison, copying, edit_knob, export, finder, form, frontier, goal, history, layout, measured, mouse,
    optimum, outlook, palette, prompt, race, reload, scenarios, sweeping, tables, timeline, tornado, tour, view, work,
    write_back,
};
use atlas_plan::record::Record;

/// How long a note stands in the line of status.
const STATUS_MS: u64 = 4_000;

/// Takes one message.
pub fn update(app: &mut App, message: Message) -> Vec<Effect> {
    let mut effects = Vec::new();
    let typing = app.mode().types();
    if !matches!(message, Message::Key(_)) {
        app.stale = Stale::All;
    }
    match message {
        Message::Key(key) if key.kind == KeyEventKind::Release => {}
        Message::Key(key) => press(app, &key, &mut effects),
        Message::Paste(text) => paste(app, &text),
        Message::Mouse(event) => mouse::mouse(app, event, &mut effects),
        Message::Resize(columns, rows) => app.size = (columns, rows),
        Message::Reloaded(library, demos, themes, problems) => {
            reload::adopt_themes(app, themes);
            reload::reloaded(app, library, demos, problems, &mut effects);
        }
        Message::Measured(rows, problems) => app.measured.read(rows, problems),
        Message::Done(text) => note(app, text, &mut effects),
        Message::Failed(text) => fail(app, text),
        Message::NotExported(dialog, why, exists) => export::refused(app, *dialog, why, exists),
        Message::Expired(timer) => expired(app, timer, &mut effects),
        Message::Progress(serial, progress) => work::progressed(app, serial, progress),
        Message::Worked(serial, product) => work::arrived(app, serial, product, &mut effects),
    }
    work::follow(app, &mut effects);
    // Pasted text is only wanted while something can be typed.
    if app.mode().types() != typing {
        effects.push(Effect::Paste(app.mode().types()));
    }
    // What is described over more than its line stands over what else is there.
    let tall = view::is_tall(app);
    if std::mem::replace(&mut app.tall, tall) || tall {
        app.stale = Stale::All;
    }
    layout::follow(app);
    if !effects.is_empty() {
        app.stale = Stale::All;
    }
    effects
}

fn press(app: &mut App, key: &KeyEvent, effects: &mut Vec<Effect>) {
    let mode = app.mode();
    // A note was about what went before; an error stays until Esc.
    if app.status.as_ref().is_some_and(|status| !status.error) {
        app.status = None;
    }
    if let Some(action) = lookup(mode, key) {
        if action != Action::OpenEditor {
            app.offer = None;
        }
        act(app, mode, action, effects);
        app.stale = app.stale.and(Stale::after(action, mode));
        return;
    }
    app.stale = Stale::All;
    match mode {
        Mode::Editing => edit_knob::typed(app, |line| line.key(key)),
        Mode::Finding => finder::typed(app, |line| line.key(key)),
        Mode::Commanding => palette::typed(app, |line| line.key(key)),
        Mode::Bounding => optimum::typed(app, |line| line.key(key)),
        Mode::Asking => race::typed(app, |line| line.key(key)),
        Mode::Seeking => goal::typed(app, |line| line.key(key)),
        Mode::Conversing => assistant::typed(app, |line| line.key(key)),
        Mode::Prompting => prompt::typed(app, |line| line.key(key)),
        Mode::Filling => form::typed(app, |line| line.key(key)),
        Mode::Exporting => export::typed(app, |line| line.key(key)),
        _ => {}
    }
}

fn paste(app: &mut App, text: &str) {
    let insert = |line: &mut Line| {
        line.insert(text.trim());
        true
    };
    match app.mode() {
        Mode::Editing => edit_knob::typed(app, insert),
        Mode::Finding => finder::typed(app, insert),
        Mode::Commanding => palette::typed(app, insert),
        Mode::Bounding => optimum::typed(app, insert),
        Mode::Asking => race::typed(app, insert),
        Mode::Seeking => goal::typed(app, insert),
        Mode::Conversing => assistant::typed(app, insert),
        Mode::Prompting => prompt::typed(app, insert),
        Mode::Filling => form::typed(app, insert),
        Mode::Exporting => export::typed(app, insert),
        _ => {}
    }
}

/// Says something in the line of status, for a while.
pub fn note(app: &mut App, text: impl Into<String>, effects: &mut Vec<Effect>) {
    app.serial += 1;
    app.status = Some(Status { text: text.into(), error: false, serial: app.serial });
    effects.push(Effect::After { ms: STATUS_MS, timer: Timer::Status(app.serial) });
}

/// Says what went wrong, until Esc.
pub fn fail(app: &mut App, text: impl Into<String>) {
    app.serial += 1;
    app.status = Some(Status { text: text.into(), error: true, serial: app.serial });
}

fn expired(app: &mut App, timer: Timer, effects: &mut Vec<Effect>) {
    match timer {
        Timer::Status(serial) if app.status.as_ref().is_some_and(|status| status.serial == serial) => app.status = None,
        Timer::Flash(serial) if app.serial >= serial => app.flash = super::app::Flash::default(),
        Timer::Outlook(serial) => outlook::due(app, serial, effects),
        Timer::Auto(step) => tour::auto(app, step, effects),
        _ => {}
    }
}

/// Does what a key or a click asks for.
pub fn act(app: &mut App, mode: Mode, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::Quit => effects.push(Effect::Quit),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::Repaint => effects.push(Effect::Repaint),
        Action::Reload => effects.push(Effect::Reload),
        Action::Move(by) => walk(app, mode, Walk::By(by)),
        Action::Page(by) => walk(app, mode, Walk::Page(by)),
        Action::First => walk(app, mode, Walk::To(0)),
        Action::Last => walk(app, mode, Walk::To(usize::MAX)),
        Action::Focus(by) if mode == Mode::Compare => across(app, by),
        Action::Focus(by) if mode == Mode::Schedule => view::schedule::across(app, by),
        Action::Focus(by) if mode == Mode::Sweep => sweeping::go(app, (by, 0)),
        Action::Focus(by) if mode == Mode::Frontier => frontier::go(app, (by, 0)),
        Action::Step(by) if mode == Mode::Optimum => optimum::step(app, by),
        Action::Reset if mode == Mode::Optimum => optimum::clear(app),
        Action::Figure(by) if mode == Mode::Frontier => frontier::turn(app, by),
        Action::Search => optimum::search(app, effects),
        Action::Focus(by) if mode == Mode::Diff => scenarios::diff_against(app, by),
        Action::Focus(by) if mode == Mode::Timeline => timeline::along(app, by),
        Action::Across(_) if mode == Mode::Timeline => timeline::turn(app),
        Action::Zoom(by) => timeline::zoom(app, by),
        Action::Focus(by) if mode == Mode::Explain => {
            view::explain::other_figure(app, by);
            (app.view_row, app.view_scroll) = (0, 0);
            app.toggled.clear();
        }
        Action::Focus(by) => {
            let index = PANES.iter().position(|pane| *pane == app.pane).unwrap_or_default();
            let next = (index as i32 + by).rem_euclid(PANES.len() as i32);
            app.pane = PANES.get(next as usize).copied().unwrap_or(Pane::Targets);
        }
        Action::FocusPane(number) => {
            app.view = View::Main;
            app.back.clear();
            app.recompute_columns();
            app.pane = PANES.get(usize::from(number).saturating_sub(1)).copied().unwrap_or(app.pane);
        }
        Action::Step(by) => edit_knob::step(app, by),
        Action::Edit => edit_knob::begin_edit(app),
        Action::Toggle => edit_knob::toggle(app),
        Action::Reset => edit_knob::reset(app, effects),
        Action::ResetAll => edit_knob::reset_all(app, effects),
        Action::Mark => mark(app, mode),
        Action::MarkNext => {
            mark(app, mode);
            // One step of undo takes both back.
            app.last_change = Some(Change::Walk(Pane::Targets));
            walk(app, mode, Walk::By(1));
        }
        Action::Goal => goal::open(app),
        Action::UnmarkAll => unmark_all(app, effects),
        Action::Question => race::edit(app),
        Action::NextMatch(by) => finder::next(app, by, effects),
        Action::Baseline => baseline(app, mode, effects),
        Action::ClearBaseline => clear_baseline(app, effects),
        Action::Show(view) if mode == Mode::Race && !matches!(view, View::Race | View::Main | View::Compare) => {
            race::open(app, view, effects);
        }
        Action::Show(view) => show(app, view),
        Action::Sort if mode == Mode::Compare => order(app),
        Action::Sort => tables::sort(app, effects),
        Action::SortByName => order_by_name(app),
        Action::HideMetric => comparison::hide(app, effects),
        Action::ShiftMetric(by) => comparison::shift(app, by),
        Action::ChooseMetrics => comparison::open(app),
        Action::Fold if mode == Mode::Results => view::results::fold_here(app),
        Action::Fold => view::explain::fold(app),
        Action::Across(by) => sweeping::turn_across(app, by),
        Action::Against(by) => sweeping::turn_against(app, by),
        Action::Figure(by) => walk_results(app, &Walk::By(by), 1),
        Action::Tab(by) => scenarios::step(app, by, effects),
        Action::TabAt(place) => scenarios::show(app, usize::from(place), effects),
        Action::DuplicateTab => scenarios::open(app, true, effects),
        Action::NewTab => scenarios::open(app, false, effects),
        Action::RenameTab => scenarios::rename(app),
        Action::CloseTab => scenarios::close(app, effects),
        Action::ReopenTab => drop(scenarios::reopen(app, effects)),
        Action::PinTab => scenarios::pin(app, effects),
        Action::Filter => tables::open_filter(app),
        Action::Export => export::open(app),
        Action::Find => finder::open(app),
        Action::Palette => palette::open(app),
        Action::Assistant => assistant::open(app),
        Action::Copy if mode == Mode::Conversing => assistant::copy(app, effects),
        Action::Copy => copying::copy(app, false, effects),
        Action::CopyAll => copying::copy(app, true, effects),
        Action::WriteBack => write_back::open(app, effects),
        Action::Calibrate => measured::propose(app, effects),
        Action::Discard if !measured::discard(app, effects) => note(app, "nothing is proposed", effects),
        Action::Discard => {}
        Action::Help => app.overlay = Some(Overlay::Help { scroll: 0 }),
        Action::NamePoint => history::name(app),
        Action::NewEntry if mode == Mode::Workloads => form::open(app, form::Kind::Workload),
        Action::NewEntry => form::open(app, form::Kind::Target),
        Action::Undo => undo(app, effects),
        Action::Redo => redo(app, effects),
        Action::Save => save(app, effects),
        Action::OpenEditor => open_editor(app, effects),
        Action::NextTheme => next_theme(app, effects),
        Action::Demos if app.demos.is_empty() => fail(app, "no tours: demo/ has no file that could be read"),
        Action::Demos => app.overlay = Some(Overlay::Demos { cursor: 0 }),
        Action::NextStep => tour::go(app, 1, effects),
        Action::PreviousStep => tour::go(app, -1, effects),
        Action::Accept => accept(app, mode, effects),
        Action::Escape if mode == Mode::Bounding => app.seeking.typing = None,
        Action::Escape if mode == Mode::Asking => race::cancel_typed(app),
        Action::Escape if mode == Mode::Conversing => assistant::escape(app, effects),
        Action::Escape if app.overlay.is_none() && work::stop(app, effects) => {}
        Action::Escape => escape(app, mode),
        Action::Close if app.view == View::Main => effects.push(Effect::Quit),
        Action::Close => show(app, app.view),
    }
}

/// Across the comparison: targets, or metrics where targets are the rows.
fn across(app: &mut App, by: i32) {
    if view::compare::is_list(app) {
        let metrics: Vec<&'static str> = view::compare::metrics(app).map(|metric| metric.name).collect();
        let next = view::compare::metric_index(app).saturating_add_signed(by as isize);
        app.figure = metrics.get(next.min(metrics.len().saturating_sub(1))).copied().unwrap_or(app.figure);
    } else {
        app.column = app.column.saturating_add_signed(by as isize).min(app.columns.len().saturating_sub(1));
    }
}

/// Orders the comparison by the metric under the cursor, or as the files are where it is ordered by that already.
pub(super) fn order(app: &mut App) {
    let metric = view::compare::metrics(app).nth(view::compare::metric_index(app)).map(|metric| metric.name);
    app.order = if app.order == metric { None } else { metric };
    app.tables.set_sort(Table::Compare, Sort::Natural);
    reorder(app);
    if app.order.is_some() {
        // The winner is what one sorts for.
        (app.column, app.view_scroll) = (0, 0);
    }
}

/// Orders the comparison by the names of targets, or as it was before.
fn order_by_name(app: &mut App) {
    let by_name = app.tables.sort(Table::Compare) == Sort::Name;
    app.tables.set_sort(Table::Compare, if by_name { Sort::Natural } else { Sort::Name });
    reorder(app);
}

/// Orders the comparison anew. The cursor stays on its target.
fn reorder(app: &mut App) {
    let target = app.columns.get(app.column).map(|(name, _)| Arc::clone(name));
    app.recompute_columns();
    let place = app.columns.iter().position(|(name, _)| Some(name) == target.as_ref());
    app.column = place.unwrap_or(app.column);
}

/// Selects a target by name.
pub fn select_target(app: &mut App, name: Arc<str>) {
    if app.now.setup.target != name {
        app.remember(Change::Walk(Pane::Targets));
        app.now.setup.target = name;
        app.recompute();
    }
}

/// Selects a workload by name.
pub fn select_workload(app: &mut App, name: Arc<str>) {
    if app.now.setup.workload != name {
        app.remember(Change::Walk(Pane::Workloads));
        app.now.setup.workload = name;
        app.recompute();
    }
}

fn accept(app: &mut App, mode: Mode, effects: &mut Vec<Effect>) {
    match mode {
        Mode::Editing => {
            let Some(edit) = app.edit.take() else { return };
            if let Some(error) = edit.error {
                // What was last a value stays; what is typed stays open to be mended.
                app.edit = Some(Edit { error: Some(error), ..edit });
            } else if edit.before != app.now.setup {
                let after = std::mem::replace(&mut app.now.setup, edit.before);
                app.remember(Change::Single);
                app.now.setup = after;
            }
        }
        Mode::Prompting => prompt::accept(app),
        Mode::Filling => form::accept(app),
        Mode::Exporting => export::accept(app, effects),
        Mode::Finding => finder::accept(app),
        Mode::Commanding => palette::accept(app, effects),
        Mode::Confirming => {
            if let Some(Overlay::WriteBack { plan, .. }) = app.overlay.take() {
                effects.push(Effect::WriteBack(plan));
            }
        }
        Mode::Results => explain_results(app, effects),
        Mode::Diff => {
            if let Some(metric) = view::diff::figure_here(app) {
                app.figure = metric.name;
                explain(app);
            }
        }
        Mode::Schedule => explain_metric(app, view::schedule::metric_here(app), effects),
        Mode::Breakdown => explain_metric(app, view::breakdown::metric_here(app), effects),
        Mode::Problems => open_editor(app, effects),
        Mode::Advice => view::advice::apply(app, effects),
        // A point is taken; where the scenario stands on it already, its figure is explained.
        Mode::Sweep | Mode::Frontier | Mode::Optimum if standing(app, mode).is_some() => {
            let metric = standing(app, mode);
            explain_metric(app, metric, effects);
        }
        Mode::Sweep => sweeping::apply(app, effects),
        Mode::Frontier => frontier::apply(app, effects),
        Mode::Sensitivity => tornado::open(app, effects),
        Mode::Optimum => optimum::accept(app, effects),
        Mode::Bounding => optimum::accept_bound(app),
        Mode::Race => race::apply(app, effects),
        Mode::Seeking => goal::accept(app, effects),
        Mode::Conversing => assistant::accept(app, effects),
        Mode::Asking => race::accept_typed(app, effects),
        Mode::Timeline => timeline::cause(app),
        Mode::Measurements => measured::accept(app, effects),
        Mode::Choosing => {
            let chosen = match app.overlay {
                Some(Overlay::Demos { cursor }) => app.demos.get(cursor).cloned(),
                _ => None,
            };
            if let Some(demo) = chosen {
                app.overlay = None;
                tour::begin(app, demo, None, effects);
            }
        }
        Mode::Compare => {
            if let Some((name, _)) = app.columns.get(app.column) {
                let name = Arc::clone(name);
                select_target(app, name);
                explain(app);
            }
        }
        _ => {}
    }
}

fn escape(app: &mut App, mode: Mode) {
    match mode {
        Mode::Editing => {
            if let Some(edit) = app.edit.take() {
                app.now.setup = edit.before;
                app.recompute();
            }
        }
        Mode::Finding
        | Mode::Seeking
        | Mode::Commanding
        | Mode::Confirming
        | Mode::Helping
        | Mode::Choosing
        | Mode::Filling
        | Mode::Exporting => app.overlay = None,
        Mode::Touring => tour::leave(app),
        Mode::Prompting => prompt::cancel(app),
        Mode::Measurements if app.measured.proposal.is_some() => app.measured.proposal = None,
        _ if app.status.is_some() => app.status = None,
        _ if tables::clear_filter(app) => {}
        _ => {
            app.subject = None;
            (app.view, app.view_row) = app.back.pop().unwrap_or_default();
            app.view_scroll = 0;
            app.recompute_columns();
        }
    }
}

fn mark(app: &mut App, mode: Mode) {
    let name = match mode {
        Mode::Compare => app.columns.get(app.column).map(|(name, _)| Arc::clone(name)),
        _ => app.answer.target.as_ref().map(|target| Arc::clone(&target.name)),
    };
    let Some(name) = name.filter(|_| mode != Mode::Targets || app.target_row().is_some()) else { return };
    app.remember(Change::Single);
    if !app.now.marks.remove(&name) {
        app.now.marks.insert(name);
    }
    app.recompute_columns();
}

fn unmark_all(app: &mut App, effects: &mut Vec<Effect>) {
    let marks = app.now.marks.len();
    if marks == 0 {
        return note(app, "no target is marked", effects);
    }
    app.remember(Change::Single);
    app.now.marks.clear();
    app.recompute_columns();
    note(app, format!("unmarked {marks}; u undoes it"), effects);
}

fn save(app: &mut App, effects: &mut Vec<Effect>) {
    let (Some(workload), Some(scenario), Ok(estimate)) =
        (&app.answer.workload, &app.answer.scenario, &app.answer.outcome)
    else {
        return fail(app, "nothing to save: there is no estimate");
    };
    let setup = &app.now.setup;
    let track = workload.track.as_deref().unwrap_or("parity");
    let record = Record::new(&setup.target, workload, track, "pre-opt", scenario, &setup.overrides, estimate);
    match serde_json::to_string_pretty(&record) {
        Ok(json) => effects.push(Effect::Save(Box::new(Saving {
            dir: app.out.clone(),
            name: record.file_name(),
            json: json + "\n",
        }))),
        Err(error) => fail(app, format!("the record cannot be written: {error}")),
    }
}

fn open_editor(app: &mut App, effects: &mut Vec<Effect>) {
    let origin = match app.pane {
        _ if app.view == View::Problems => {
            let shown = app.problems_shown();
            shown.get(app.view_row).map(|problem| (Arc::clone(&problem.file), problem.at.line))
        }
        Pane::Targets => {
            app.answer.target.as_ref().map(|target| (Arc::clone(&target.origin.file), target.origin.at.line))
        }
        Pane::Workloads | Pane::Knobs => {
            app.answer.workload.as_ref().map(|workload| (Arc::clone(&workload.origin.file), workload.origin.at.line))
        }
        Pane::Results => {
            app.answer.profile.as_ref().map(|profile| (Arc::clone(&profile.origin.file), profile.origin.at.line))
        }
    };
    match origin {
        None => fail(app, "nothing to open"),
        Some((file, line)) if file.starts_with(atlas_document::Origin::BUILT_IN) => {
            let path = PathBuf::from(file.trim_start_matches(atlas_document::Origin::BUILT_IN));
            if app.offer.take().as_ref() == Some(&path) {
                effects.push(Effect::Adopt { path, line: line.max(1) });
            } else {
                let text =
                    format!("this entry ships inside the binary; e again writes {} here and opens it", path.display());
                app.offer = Some(path);
                note(app, text, effects);
            }
        }
        Some((file, line)) => effects.push(Effect::Edit { path: PathBuf::from(&*file), line: line.max(1) }),
    }
}

fn next_theme(app: &mut App, effects: &mut Vec<Effect>) {
    if app.themes.is_empty() {
        return;
    }
    app.theme = (app.theme + 1) % app.themes.len();
    if let Some(name) = app.theme().map(|theme| theme.name().to_owned()) {
        note(app, format!("theme: {name}"), effects);
    }
}

#[cfg(test)]
mod tests;
