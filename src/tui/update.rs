//! The update function: state and message in, new state and effects out. No I/O and no clock, so that tests can type keys and inspect the state.
//!
//! * this file – messages and actions
//! * `accept` – what Enter and Esc do in each mode
//! * `compare` – keys of the comparison
//! * `files` – keys that save a record, and open an entry in the editor

mod accept;
pub(super) mod compare;
mod files;

use std::sync::Arc;

use crossterm::event::{KeyEvent, KeyEventKind};

use super::app::{App, Change, Overlay, PANES, Pane, Status, View};
use super::cursor::{Movement, move_cursor, move_in_results};
use super::history::{baseline, clear_baseline, redo, undo};
use super::keymap::{Action, Mode, lookup};
use super::line::Line;
use super::message::{Effect, Message, Timer};
use super::showing::show;
use super::stale::Stale;
use super::{
    assistant, comparison, copying, detecting, edit_knob, export, finder, form, frontier, goal, history, layout,
    measured, mouse, optimum, outlook, palette, panels, prompt, race, reload, scenarios, sweeping, tables, timeline,
    tour, view, work, write_back,
};

/// How long a note stays in the status line.
const STATUS_MS: u64 = 4_000;

/// Handles one message.
pub fn update(app: &mut App, message: Message) -> Vec<Effect> {
    let mut effects = Vec::new();
    let typing = app.mode().types();
    let part = Stale::by(&message, app);
    app.stale = app.stale.and(part);
    let quiet = part == Stale::Outlook || matches!(message, Message::Expired(Timer::Outlook(_)));
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
    // Enable bracketed paste only while text can be typed.
    if app.mode().types() != typing {
        effects.push(Effect::Paste(app.mode().types()));
    }
    // A description of several lines covers other parts of the screen.
    let tall = view::is_tall(app);
    if std::mem::replace(&mut app.tall, tall) || tall {
        app.stale = Stale::All;
    }
    layout::follow(app);
    if !effects.is_empty() && !quiet {
        app.stale = Stale::All;
    }
    effects
}

fn press(app: &mut App, key: &KeyEvent, effects: &mut Vec<Effect>) {
    let mode = app.mode();
    // A note disappears with the next key; an error stays until Esc.
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

/// Shows a note in the status line for a while.
pub fn note(app: &mut App, text: impl Into<String>, effects: &mut Vec<Effect>) {
    app.serial += 1;
    app.status = Some(Status { text: text.into(), error: false, serial: app.serial });
    effects.push(Effect::After { ms: STATUS_MS, timer: Timer::Status(app.serial) });
}

/// Shows an error in the status line until Esc.
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
        Timer::Watch(look) => panels::watch::due(app, look),
        Timer::Idle(asked) => panels::idle::due(app, asked),
        _ => {}
    }
}

/// Performs an action.
pub fn act(app: &mut App, mode: Mode, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::Quit => effects.push(Effect::Quit),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::Repaint => effects.push(Effect::Repaint),
        Action::Reload => effects.push(Effect::Reload),
        Action::Move(by) => move_cursor(app, mode, Movement::By(by)),
        Action::Page(by) => move_cursor(app, mode, Movement::Page(by)),
        Action::First => move_cursor(app, mode, Movement::To(0)),
        Action::Last => move_cursor(app, mode, Movement::To(usize::MAX)),
        Action::Focus(by) if mode == Mode::Compare => compare::across(app, by),
        Action::Focus(by) if matches!(mode, Mode::Panel(_)) => {
            panels::act(app, |app, panel| panels::across(app, panel, by))
        }
        Action::Mark if matches!(mode, Mode::Panel(_)) => panels::act(app, panels::mark),
        Action::Sort if matches!(mode, Mode::Panel(_)) => panels::act(app, panels::trend),
        Action::Escape if matches!(mode, Mode::Panel(_)) && panels::goes_back(app) => {}
        Action::Focus(by) if mode == Mode::Schedule => view::schedule::across(app, by),
        Action::Focus(by) if mode == Mode::Sweep => sweeping::go(app, (by, 0)),
        Action::Focus(by) if mode == Mode::Frontier => frontier::go(app, (by, 0)),
        Action::Step(by) if mode == Mode::Optimum => optimum::step(app, by),
        Action::Reset if mode == Mode::Optimum => optimum::clear(app),
        Action::Figure(by) if mode == Mode::Frontier => frontier::next_pair(app, by),
        Action::Search => optimum::search(app, effects),
        Action::Focus(by) if mode == Mode::Diff => scenarios::diff_against(app, by),
        Action::Focus(by) if mode == Mode::Timeline => timeline::along(app, by),
        Action::Across(_) if mode == Mode::Timeline => timeline::next_chart(app),
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
        Action::Mark => compare::mark(app, mode),
        Action::MarkNext => {
            compare::mark(app, mode);
            // One undo step reverts both.
            app.last_change = Some(Change::Movement(Pane::Targets));
            move_cursor(app, mode, Movement::By(1));
        }
        Action::Goal => goal::open(app),
        Action::UnmarkAll => compare::unmark_all(app, effects),
        Action::Question => race::edit(app),
        Action::NextMatch(by) => finder::next(app, by, effects),
        Action::Baseline => baseline(app, mode, effects),
        Action::ClearBaseline => clear_baseline(app, effects),
        Action::Show(view) if mode == Mode::Race && !matches!(view, View::Race | View::Main | View::Compare) => {
            race::open(app, view, effects);
        }
        Action::Show(view) => show(app, view),
        Action::Sort if mode == Mode::Compare => compare::order(app),
        Action::Sort => tables::sort(app, effects),
        Action::SortByName => compare::order_by_name(app),
        Action::HideMetric => comparison::hide(app, effects),
        Action::ShiftMetric(by) => comparison::shift(app, by),
        Action::ChooseMetrics => comparison::open(app),
        Action::Fold if mode == Mode::Results => view::results::fold_here(app),
        Action::Fold => view::explain::fold(app),
        Action::Across(by) => sweeping::turn_across(app, by),
        Action::Against(by) => sweeping::turn_against(app, by),
        Action::Figure(by) => move_in_results(app, &Movement::By(by), 1),
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
        Action::Detect => detecting::open(app),
        Action::Copy if mode == Mode::Conversing => assistant::copy(app, effects),
        Action::Copy => copying::copy(app, false, effects),
        Action::CopyAll => copying::copy(app, true, effects),
        Action::WriteBack => write_back::open(app, effects),
        Action::Calibrate => measured::propose(app, effects),
        Action::Discard if !measured::discard(app, effects) => note(app, "no proposed calibration to discard", effects),
        Action::Discard => {}
        Action::Help => app.overlay = Some(Overlay::Help { scroll: 0 }),
        Action::NamePoint => history::name(app),
        Action::NewEntry if mode == Mode::Workloads => form::open(app, form::Kind::Workload),
        Action::NewEntry => form::open(app, form::Kind::Target),
        Action::NewPrice => form::open(app, form::Kind::Offer),
        Action::NewProfile => form::open(app, form::Kind::Profile),
        Action::Undo => undo(app, effects),
        Action::Redo => redo(app, effects),
        Action::Save => files::save(app, effects),
        Action::OpenEditor => files::open_editor(app, effects),
        Action::NextTheme => next_theme(app, effects),
        Action::Demos if app.demos.is_empty() => fail(app, "no tours: demo/ has no file that could be read"),
        Action::Demos => app.overlay = Some(Overlay::Demos { cursor: 0 }),
        Action::NextStep => tour::go(app, 1, effects),
        Action::PreviousStep => tour::go(app, -1, effects),
        Action::Accept => accept::accept(app, mode, effects),
        Action::Escape if mode == Mode::Bounding => app.seeking.typing = None,
        Action::Escape if mode == Mode::Asking => race::cancel_typed(app),
        Action::Escape if mode == Mode::Conversing => assistant::escape(app, effects),
        Action::Escape if app.overlay.is_none() && work::stop(app, effects) => {}
        Action::Escape => accept::escape(app, mode),
        Action::Close if app.view == View::Main => effects.push(Effect::Quit),
        Action::Close => show(app, app.view),
    }
}

/// Selects a target by name.
pub fn select_target(app: &mut App, name: Arc<str>) {
    if app.now.setup.target != name {
        app.remember(Change::Movement(Pane::Targets));
        app.now.setup.target = name;
        app.recompute();
    }
}

/// Selects a workload by name.
pub fn select_workload(app: &mut App, name: Arc<str>) {
    if app.now.setup.workload != name {
        app.remember(Change::Movement(Pane::Workloads));
        app.now.setup.workload = name;
        app.recompute();
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
