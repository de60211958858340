//! The update function: changes the state for a message and returns effects. It uses no I/O and no clock, so that tests
//! can send keys and inspect the state.
//!
//! * this file – messages and keys
//! * `act` – what an action does, unless the view that is shown performs it
//! * `accept` – what Enter and Esc do in each mode
//! * `files` – keys that save a record, and open an entry in the editor

mod accept;
pub(super) mod act;
pub(in crate::tui) mod applying;
pub(in crate::tui) mod asking;
pub(in crate::tui) mod copying;
pub(in crate::tui) mod edit_knob;
pub(in crate::tui) mod files;
pub(in crate::tui) mod reload;
pub(in crate::tui) mod showing;
pub mod status;
use crossterm::event::{KeyEvent, KeyEventKind};

use self::act::act;
use super::app::App;
use super::message::{Effect, Message, Timer};
use super::{tour, work};
use crate::tui::app::stale::DirtyRegion;
use crate::tui::dialogs::{export, finder, form, goal, palette, prompt};
use crate::tui::input::keymap::{Action, Mode, lookup};
use crate::tui::input::{mouse, scrolling};
use crate::tui::screen;
use crate::tui::update::status::{fail, note};
use crate::tui::views::{assistant, idle, optimum, outlook, race, watch};
use crate::tui::widgets::line::Line;

/// Handles one message.
pub fn update(app: &mut App, message: Message) -> Vec<Effect> {
    let mut effects = Vec::new();
    let typing = app.mode().types();
    let part = DirtyRegion::changed_by_message(&message, app);
    app.stale = app.stale.and(part);
    let quiet = part == DirtyRegion::Outlook || matches!(message, Message::Expired(Timer::Outlook(_)));
    match message {
        Message::Key(key) if key.kind == KeyEventKind::Release => {}
        Message::Key(key) => press(app, &key, &mut effects),
        Message::Paste(text) => paste(app, &text),
        Message::Mouse(event) => {
            app.after = None;
            mouse::mouse(app, event, &mut effects);
        }
        Message::Resize(columns, rows) => app.size = (columns, rows),
        Message::Reloaded(library, demos, themes, problems) => {
            reload::adopt_themes(app, themes);
            reload::reloaded(app, library, demos, problems, &mut effects);
        }
        Message::Measured(rows, problems) => app.measured.read(rows, problems),
        Message::Done(text) => note(app, text, &mut effects),
        Message::Failed(text) => fail(app, text),
        Message::NotExported { dialog, why, exists } => export::reopen_with_error(app, *dialog, why, exists),
        Message::Expired(timer) => expired(app, timer, &mut effects),
        Message::Progress(serial, progress) => work::progressed(app, serial, progress),
        Message::WorkFinished(serial, product) => work::handle_result(app, serial, product, &mut effects),
    }
    work::follow(app, &mut effects);
    // Enable bracketed paste only while text can be typed.
    if app.mode().types() != typing {
        effects.push(Effect::Paste(app.mode().types()));
    }
    // A description of several lines covers other parts of the screen.
    let tall = screen::is_multiline(app);
    if std::mem::replace(&mut app.tall, tall) || tall {
        app.stale = DirtyRegion::All;
    }
    scrolling::follow(app);
    if !effects.is_empty() && !quiet {
        app.stale = DirtyRegion::All;
    }
    effects
}

/// Handles the second key of a two-key sequence. A key that is not bound cancels the sequence.
fn press_second(app: &mut App, after: Mode, key: &KeyEvent, effects: &mut Vec<Effect>) {
    app.after = None;
    app.stale = DirtyRegion::All;
    match lookup(after, key) {
        Some(Action::Escape) | None => {}
        Some(action) => act(app, app.mode(), action, effects),
    }
}

fn press(app: &mut App, key: &KeyEvent, effects: &mut Vec<Effect>) {
    if let Some(after) = app.after {
        return press_second(app, after, key, effects);
    }
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
        app.stale = app.stale.and(DirtyRegion::changed_by_action(action, mode));
        return;
    }
    app.stale = DirtyRegion::All;
    match mode {
        Mode::Editing => edit_knob::typed(app, |line| line.key(key)),
        Mode::Finding => finder::typed(app, |line| line.key(key)),
        Mode::Commanding => palette::typed(app, |line| line.key(key)),
        Mode::Bounding => optimum::typed(app, |line| line.key(key)),
        Mode::Asking => race::typed(app, |line| line.key(key)),
        Mode::OptimizerForm => goal::typed(app, |line| line.key(key)),
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
        Mode::OptimizerForm => goal::typed(app, insert),
        Mode::Conversing => assistant::typed(app, insert),
        Mode::Prompting => prompt::typed(app, insert),
        Mode::Filling => form::typed(app, insert),
        Mode::Exporting => export::typed(app, insert),
        _ => {}
    }
}

fn expired(app: &mut App, timer: Timer, effects: &mut Vec<Effect>) {
    match timer {
        Timer::Status(serial) if app.status.as_ref().is_some_and(|status| status.serial == serial) => app.status = None,
        Timer::Flash(serial) if app.serial >= serial => app.flash = super::app::Flash::default(),
        Timer::Outlook(serial) => outlook::start_query(app, serial, effects),
        Timer::Auto(step) => tour::auto(app, step, effects),
        Timer::Watch(look) => watch::read_due(app, look),
        Timer::Idle(request) => idle::query_due(app, request),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
