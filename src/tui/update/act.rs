//! Performs actions.

use super::{accept, files};
use crate::tui::app::{App, Change, Overlay, PANES, Pane, View};
use crate::tui::dialogs::{detecting, export, finder, form, goal, palette, write_back};
use crate::tui::input::cursor::move_cursor;
use crate::tui::input::keymap::{Action, Mode};
use crate::tui::input::movement::Movement;
use crate::tui::message::Effect;
use crate::tui::update::showing::show;
use crate::tui::update::status::fail;
use crate::tui::update::{copying, edit_knob};
use crate::tui::views::edits::{self, baseline, clear_baseline, redo, undo};
use crate::tui::views::{assistant, comparison, race, results, scenarios};
use crate::tui::{tables, tour, work};

/// Performs an action.
pub(in crate::tui) fn act(app: &mut App, mode: Mode, action: Action, effects: &mut Vec<Effect>) {
    if let Mode::View(view) = mode
        && (view.spec().update)(app, action, effects)
    {
        return;
    }
    match action {
        Action::Quit => effects.push(Effect::Quit),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::Repaint => effects.push(Effect::Repaint),
        Action::Reload => effects.push(Effect::Reload),
        Action::Move(by) => move_cursor(app, mode, Movement::By(by)),
        Action::Page(by) => move_cursor(app, mode, Movement::Page(by)),
        Action::First => move_cursor(app, mode, Movement::To(0)),
        Action::Last => move_cursor(app, mode, Movement::To(usize::MAX)),
        Action::Focus(by) => focus_next(app, by),
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
        Action::Mark => comparison::act::mark(app, mode),
        Action::MarkNext => {
            comparison::act::mark(app, mode);
            // One undo step reverts both.
            app.last_change = Some(Change::Movement(Pane::Targets));
            move_cursor(app, mode, Movement::By(1));
        }
        Action::Goal => goal::open(app),
        Action::UnmarkAll => comparison::act::unmark_all(app, effects),
        Action::NextMatch(by) => finder::next(app, by, effects),
        Action::Baseline => baseline(app, mode, effects),
        Action::ClearBaseline => clear_baseline(app, effects),
        Action::Show(view) => show(app, view, effects),
        Action::Sort => tables::sort(app, effects),
        Action::Fold => results::fold_here(app),
        Action::Metric(by) => results::move_to_metric(app, &Movement::By(by), 1),
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
        Action::Help => app.overlay = Some(Overlay::Help { scroll: 0 }),
        Action::NamePoint => edits::name(app),
        Action::NewEntry if mode == Mode::Workloads => form::open(app, form::EntryKind::Workload),
        Action::NewEntry => form::open(app, form::EntryKind::Target),
        Action::NewPrice => form::open(app, form::EntryKind::Offer),
        Action::NewProfile => form::open(app, form::EntryKind::Profile),
        Action::Undo => undo(app, effects),
        Action::Redo => redo(app, effects),
        Action::Save => files::save(app, effects),
        Action::OpenEditor => files::open_editor(app, effects),
        Action::After(mode) => app.after = Some(mode),
        Action::Demos if app.demos.is_empty() => fail(app, "no tours could be loaded"),
        Action::Demos => app.overlay = Some(Overlay::Demos { cursor: 0 }),
        Action::NextStep => tour::go(app, 1, effects),
        Action::PreviousStep => tour::go(app, -1, effects),
        Action::Accept if mode == Mode::Commanding => {
            if let Some(action) = palette::accept(app, effects) {
                act(app, app.mode_below(), action, effects);
            }
        }
        Action::Accept => accept::accept(app, mode, effects),
        Action::Escape if mode == Mode::Bounding => app.optimizer.typing = None,
        Action::Escape if mode == Mode::Asking => race::cancel_typed(app),
        Action::Escape if mode == Mode::Conversing => assistant::escape(app, effects),
        Action::Escape if app.overlay.is_none() && work::stop(app, effects) => {}
        Action::Escape => accept::escape(app, mode),
        Action::Close if app.view == View::Main => effects.push(Effect::Quit),
        Action::Close => show(app, app.view, effects),
        // These are bound only in views.
        Action::SortByName
        | Action::HideMetric
        | Action::ShiftMetric(_)
        | Action::ChooseMetrics
        | Action::Across(_)
        | Action::Against(_)
        | Action::Question
        | Action::Search
        | Action::Zoom(_)
        | Action::Calibrate
        | Action::Discard => {}
    }
}

/// Moves the focus by a number of panes, from the last to the first.
fn focus_next(app: &mut App, by: i32) {
    let index = PANES.iter().position(|pane| *pane == app.pane).unwrap_or_default();
    let next = (index as i32 + by).rem_euclid(PANES.len() as i32);
    app.pane = PANES.get(next as usize).copied().unwrap_or(Pane::Targets);
}
