//! Handles Enter and Esc in each mode.

use std::sync::Arc;

use super::files;
use crate::tui::app::{App, Change, Edit, Overlay, View};
use crate::tui::dialogs::{detecting, export, finder, form, goal, prompt};
use crate::tui::input::keymap::Mode;
use crate::tui::message::Effect;
use crate::tui::update::applying::select_target;
use crate::tui::update::asking;
use crate::tui::update::showing::{explain, explain_metric, explain_results, metric_under_cursor};
use crate::tui::views::{self, assistant, frontier, measurements, optimum, race, sweep, timeline, tornado};
use crate::tui::{tables, tour};

pub(super) fn accept(app: &mut App, mode: Mode, effects: &mut Vec<Effect>) {
    match mode {
        Mode::Editing => {
            let Some(edit) = app.edit.take() else { return };
            if let Some(error) = edit.error {
                // The last valid value stays in effect; the invalid text stays open for correction.
                app.edit = Some(Edit { error: Some(error), ..edit });
            } else if edit.before != app.now.setup {
                let after = std::mem::replace(&mut app.now.setup, edit.before);
                app.push_undo(Change::Single);
                app.now.setup = after;
            }
        }
        Mode::Prompting => prompt::accept(app),
        Mode::Filling => form::accept(app),
        Mode::Exporting => export::accept(app, effects),
        Mode::Finding => finder::accept(app),
        Mode::Confirming => {
            if let Some(Overlay::WriteBack { plan, .. }) = app.overlay.take() {
                effects.push(Effect::WriteBack(plan));
            }
        }
        Mode::Detecting => detecting::accept(app, effects),
        Mode::Results => explain_results(app, effects),
        Mode::View(View::Diff) => {
            if let Some(metric) = views::diff::metric_under_cursor(app) {
                app.figure = metric;
                explain(app);
            }
        }
        Mode::View(View::Schedule) => explain_metric(app, views::schedule::metric_here(app), effects),
        Mode::View(View::Breakdown) => explain_metric(app, views::breakdown::metric_here(app), effects),
        Mode::View(View::Problems) => files::open_editor(app, effects),
        Mode::View(View::Advice) => views::advice::apply(app, effects),
        // Enter applies a point. If the scenario is already at that point, Enter explains its metric.
        Mode::View(View::Sweep) | Mode::View(View::Frontier) | Mode::View(View::Optimum)
            if metric_under_cursor(app, mode).is_some() =>
        {
            let metric = metric_under_cursor(app, mode);
            explain_metric(app, metric, effects);
        }
        Mode::View(View::Sweep) => sweep::apply(app, effects),
        Mode::View(View::Frontier) => frontier::apply(app, effects),
        Mode::View(View::Sensitivity) => tornado::open(app, effects),
        Mode::View(View::Optimum) => optimum::accept(app, effects),
        Mode::Bounding => optimum::accept_bound(app),
        Mode::View(View::Race) => race::apply(app, effects),
        Mode::OptimizerForm => goal::accept(app, effects),
        Mode::Conversing => assistant::accept(app, effects),
        Mode::Asking => {
            if let Some(question) = race::accept_typed(app) {
                asking::ask(app, &question, effects);
            }
        }
        Mode::View(View::Timeline) => timeline::cause(app),
        Mode::View(View::Measurements) => {
            measurements::accept(app, views::measurements::view::prediction_under_cursor(app).cloned(), effects)
        }
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
        Mode::View(View::Compare) => {
            if let Some((name, _)) = app.columns.get(app.column) {
                let name = Arc::clone(name);
                select_target(app, name);
                explain(app);
            }
        }
        Mode::View(view) => (view.spec().accept)(app, effects),
        _ => {}
    }
}

pub(super) fn escape(app: &mut App, mode: Mode) {
    match mode {
        Mode::Editing => {
            if let Some(edit) = app.edit.take() {
                app.now.setup = edit.before;
                app.recompute();
            }
        }
        Mode::Finding
        | Mode::OptimizerForm
        | Mode::Commanding
        | Mode::Confirming
        | Mode::Detecting
        | Mode::Helping
        | Mode::Choosing
        | Mode::Filling
        | Mode::Exporting => app.overlay = None,
        Mode::Touring => tour::leave(app),
        Mode::Prompting => prompt::cancel(app),
        Mode::View(View::Measurements) if app.measured.proposal.is_some() => app.measured.proposal = None,
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
