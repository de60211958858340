//! Performs actions.

use super::{accept, files};
use crate::tui::app::{App, Change, Overlay, PANES, Pane, View};
use crate::tui::dialogs::{detecting, export, finder, form, goal, palette, write_back};
use crate::tui::input::cursor::move_cursor;
use crate::tui::input::keymap::{Action, Mode};
use crate::tui::input::movement::Movement;
use crate::tui::message::Effect;
use crate::tui::update::showing::{self, show};
use crate::tui::update::status::{fail, note};
use crate::tui::update::{copying, edit_knob};
use crate::tui::views::edits::{self, baseline, clear_baseline, redo, undo};
use crate::tui::views::{
    self, assistant, comparison, frontier, measurements, optimum, race, results, scenarios, sweep, timeline,
};
use crate::tui::{tables, tour, work};

/// Performs an action.
pub(in crate::tui) fn act(app: &mut App, mode: Mode, action: Action, effects: &mut Vec<Effect>) {
    match action {
        Action::Quit => effects.push(Effect::Quit),
        Action::Suspend => effects.push(Effect::Suspend),
        Action::Repaint => effects.push(Effect::Repaint),
        Action::Reload => effects.push(Effect::Reload),
        Action::Move(by) => move_cursor(app, mode, Movement::By(by)),
        Action::Page(by) => move_cursor(app, mode, Movement::Page(by)),
        Action::First => move_cursor(app, mode, Movement::To(0)),
        Action::Last => move_cursor(app, mode, Movement::To(usize::MAX)),
        Action::Focus(by) if mode == Mode::View(View::Compare) => comparison::act::across(app, by),
        Action::Focus(by) if matches!(mode, Mode::View(View::Launch | View::Fits)) => (app.view.spec().across)(app, by),
        Action::Mark if mode == Mode::View(View::History) => (app.view.spec().mark)(app),
        Action::Sort if mode == Mode::View(View::History) => (app.view.spec().trend)(app),
        Action::Escape if mode == Mode::View(View::History) && (app.view.spec().back)(app) => {}
        Action::Focus(by) if mode == Mode::View(View::Schedule) => views::schedule::across(app, by),
        Action::Focus(by) if mode == Mode::View(View::Sweep) => sweep::go(app, (by, 0)),
        Action::Focus(by) if mode == Mode::View(View::Frontier) => frontier::go(app, (by, 0)),
        Action::Step(by) if mode == Mode::View(View::Optimum) => optimum::step(app, by),
        Action::Reset if mode == Mode::View(View::Optimum) => optimum::clear(app),
        Action::Figure(by) if mode == Mode::View(View::Frontier) => frontier::next_pair(app, by),
        Action::Search => optimum::search(app, effects),
        Action::Focus(by) if mode == Mode::View(View::Diff) => scenarios::diff_against(app, by),
        Action::Focus(by) if mode == Mode::View(View::Timeline) => timeline::along(app, by),
        Action::Across(_) if mode == Mode::View(View::Timeline) => timeline::next_chart(app),
        Action::Zoom(by) => timeline::zoom(app, by),
        Action::Focus(by) if mode == Mode::View(View::Explain) => {
            views::explain::other_figure(app, by);
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
        Action::Mark => comparison::act::mark(app, mode),
        Action::MarkNext => {
            comparison::act::mark(app, mode);
            // One undo step reverts both.
            app.last_change = Some(Change::Movement(Pane::Targets));
            move_cursor(app, mode, Movement::By(1));
        }
        Action::Goal => goal::open(app),
        Action::UnmarkAll => comparison::act::unmark_all(app, effects),
        Action::Question => race::edit(app),
        Action::NextMatch(by) => finder::next(app, by, effects),
        Action::Baseline => baseline(app, mode, effects),
        Action::ClearBaseline => clear_baseline(app, effects),
        Action::Show(view)
            if mode == Mode::View(View::Race) && !matches!(view, View::Race | View::Main | View::Compare) =>
        {
            showing::open_from_race(app, view, effects);
            optimum::opened(app, effects);
        }
        Action::Show(view) => {
            show(app, view);
            optimum::opened(app, effects);
        }
        Action::Sort if mode == Mode::View(View::Compare) => comparison::act::order(app),
        Action::Sort => tables::sort(app, effects),
        Action::SortByName => comparison::act::order_by_name(app),
        Action::HideMetric => comparison::hide(app, effects),
        Action::ShiftMetric(by) => comparison::shift(app, by),
        Action::ChooseMetrics => comparison::open(app),
        Action::Fold if mode == Mode::Results => views::results::fold_here(app),
        Action::Fold => views::explain::fold(app),
        Action::Across(by) => sweep::turn_across(app, by),
        Action::Against(by) => sweep::turn_against(app, by),
        Action::Figure(by) => results::move_to_metric(app, &Movement::By(by), 1),
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
        Action::Calibrate => measurements::propose(app, effects),
        Action::Discard if !measurements::discard(app, effects) => {
            note(app, "no proposed calibration to discard", effects)
        }
        Action::Discard => {}
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
        Action::Escape if mode == Mode::Bounding => app.seeking.typing = None,
        Action::Escape if mode == Mode::Asking => race::cancel_typed(app),
        Action::Escape if mode == Mode::Conversing => assistant::escape(app, effects),
        Action::Escape if app.overlay.is_none() && work::stop(app, effects) => {}
        Action::Escape => accept::escape(app, mode),
        Action::Close if app.view == View::Main => effects.push(Effect::Quit),
        Action::Close => show(app, app.view),
    }
}
