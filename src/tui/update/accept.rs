//! Handles Enter and Esc in each mode.

use crate::tui::app::{App, Change, Edit, Overlay};
use crate::tui::dialogs::{detecting, export, finder, form, goal, prompt};
use crate::tui::input::keymap::Mode;
use crate::tui::message::Effect;
use crate::tui::update::asking;
use crate::tui::update::showing::explain_results;
use crate::tui::views::{assistant, optimum, race};
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
        Mode::View(view) => (view.spec().accept)(app, effects),
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
        Mode::Bounding => optimum::accept_bound(app),
        Mode::OptimizerForm => goal::accept(app, effects),
        Mode::Conversing => assistant::accept(app, effects),
        Mode::Asking => {
            if let Some(question) = race::accept_typed(app) {
                asking::ask(app, &question, effects);
            }
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
