//! The assistant: a pane for questions in words, which the engines answer on a separate thread. A question that starts
//! with `!` is sent to the endpoint that the user configured; with `!!`, the request is shown instead of being sent.
//!
//! * this file – the state, and what keys do to it
//! * `job` – the work
//! * `online` – the endpoint
//! * `view` – the picture

pub mod state;

pub use state::{Answer, Conversation, Question, Turn};

use atlas_core::sort;

mod job;
pub mod online;
#[cfg(test)]
mod tests;
pub mod view;

use std::sync::Arc;

use crate::demo::Setup;
use crate::tui::app::{App, Overlay};
use crate::tui::message::Effect;
use crate::tui::update::applying;
use crate::tui::update::status::{fail, note};
use crate::tui::widgets::line::Line;

/// Maximum number of turns that are kept, and (`KEPT_BYTES`) their maximum size, because every frame lays them out. The
/// last turn is always kept.
const MAX_TURNS: usize = 100;
const MAX_TURN_BYTES: usize = 128 << 10;

/// Opens the pane.
pub(in crate::tui) fn open(app: &mut App) {
    app.overlay = Some(Overlay::Assistant);
}

/// Opens the pane and asks a question.
pub(in crate::tui) fn ask(app: &mut App, text: &str) {
    open(app);
    let text = text.trim();
    if text.is_empty() {
        return;
    }
    let conversation = &mut app.assistant;
    conversation.serial += 1;
    conversation.pending =
        Some(Question { serial: conversation.serial, text: text.to_owned(), setup: app.now.setup.clone() });
    conversation.line = Line::default();
    conversation.recalled = None;
    conversation.scroll = usize::MAX;
}

/// Updates the text.
pub(in crate::tui) fn typed(app: &mut App, change: impl FnOnce(&mut Line) -> bool) {
    change(&mut app.assistant.line);
}

/// Asks the typed question. If nothing is typed, applies the change that the last answer proposes.
pub(in crate::tui) fn accept(app: &mut App, effects: &mut Vec<Effect>) {
    let text = app.assistant.line.text().trim().to_owned();
    if !text.is_empty() {
        return ask(app, &text);
    }
    let last = app.assistant.turns.last().and_then(|turn| turn.answer.as_ref().ok()).and_then(Answer::computed);
    let Some(suggestion) = last.and_then(|reply| reply.suggestion.clone()) else {
        return note(app, "type a question; the last answer proposes no change", effects);
    };
    let setup = Setup {
        target: suggestion.target.as_str().into(),
        workload: suggestion.workload.as_str().into(),
        overrides: sort::collect_unsorted(suggestion.overrides),
    };
    app.overlay = None;
    applying::apply_setup(app, setup, effects);
}

/// Puts the previous or next question into the input line.
pub(in crate::tui) fn recall(app: &mut App, by: i32) {
    let conversation = &mut app.assistant;
    let last = conversation.turns.len();
    let at = conversation.recalled.unwrap_or(last).saturating_add_signed(by as isize).min(last);
    conversation.recalled = (at < last).then_some(at);
    let text = conversation.turns.get(at).map(|turn| turn.question.clone());
    conversation.line = text.map_or_else(Line::default, Line::new);
}

/// Scrolls the conversation.
pub(in crate::tui) fn scroll(app: &mut App, by: i32) {
    let (rows, lines) = (view::visible_lines(app.size), view::lines(app).len());
    let last = lines.saturating_sub(rows);
    app.assistant.scroll =
        app.assistant.scroll.min(last).saturating_add_signed(by as isize * rows.max(1) as isize).min(last);
}

/// Copies the last answer, with the commands that reproduce it, to the clipboard.
pub(in crate::tui) fn copy(app: &mut App, effects: &mut Vec<Effect>) {
    let last = app.assistant.turns.last().map(|turn| match &turn.answer {
        Ok(reply) => format!("{}\n\n{}", turn.question, reply.text(100)),
        Err(refusal) => format!("{}\n\n{refusal}", turn.question),
    });
    match last {
        Some(text) => effects.push(Effect::Copy { text, what: "the answer".to_owned() }),
        None => fail(app, "nothing to copy"),
    }
}

/// Stops the running answer, or closes the pane if there is none.
pub(in crate::tui) fn escape(app: &mut App, effects: &mut Vec<Effect>) {
    if app.queries.assistant.stop(effects) {
        if let Some(question) = app.assistant.pending.take() {
            streamed(app);
            let arrived = std::mem::take(&mut app.assistant.arriving);
            let stopped = if arrived.is_empty() { "stopped".to_owned() } else { format!("{arrived}\n… stopped") };
            turn(app, Turn { question: question.text, answer: Err(stopped) });
        }
        return;
    }
    app.overlay = None;
}

/// The question that is being answered.
#[must_use]
pub fn pending(state: &Conversation) -> Option<&str> {
    state.pending.as_ref().map(|question| question.text.as_str())
}

/// Orders the answer to the pending question.
pub(in crate::tui) fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let Some(question) = app.assistant.pending.clone() else { return };
    if app.queries.assistant.current() == Some(&question) {
        return;
    }
    // Text that a stopped answer still sends goes to the previous buffer, which is no longer shown.
    app.assistant.live = online::PartialAnswer::default();
    app.assistant.arriving.clear();
    let (library, flags) = (Arc::clone(&app.library), app.assistant.flags.clone());
    let work = job::Work {
        library,
        question: question.clone(),
        flags,
        endpoint: online::Endpoint {
            talk: app.assistant.talk.clone(),
            settings: app.assistant.settings.clone(),
            live: app.assistant.live.clone(),
        },
    };
    let queries = &mut app.queries;
    queries.assistant.ask(question, &mut queries.serial, effects, |_| Ok(Arc::new(work)));
}

/// Takes over the part of the running answer that has arrived.
pub(in crate::tui) fn streamed(app: &mut App) {
    if app.assistant.pending.is_some() {
        app.assistant.arriving = app.assistant.live.text();
    }
}

/// Adds the answer that arrived to the conversation.
pub(in crate::tui) fn add_arrived_answer(app: &mut App) {
    let Some(question) = app.assistant.pending.clone() else { return };
    let answer = match (app.queries.assistant.question() == Some(&question), app.queries.assistant.answer()) {
        (true, Some(answer)) => Ok(answer.clone()),
        _ => match app.queries.assistant.problem() {
            Some(trouble) => Err(trouble.to_owned()),
            None => return,
        },
    };
    app.assistant.pending = None;
    app.assistant.arriving.clear();
    if let Ok(Answer::Endpoint(said)) = &answer {
        app.assistant.talk = said.talk.clone().or(app.assistant.talk.take());
    }
    turn(app, Turn { question: question.text, answer });
}

/// Adds a turn and scrolls to its first line.
fn turn(app: &mut App, turn: Turn) {
    let turns = &mut app.assistant.turns;
    turns.push(turn);
    let mut bytes = 0;
    let kept = turns.iter().rev().take(MAX_TURNS).take_while(|turn| {
        let first = bytes == 0;
        bytes += turn.bytes();
        first || bytes <= MAX_TURN_BYTES
    });
    let excess = turns.len() - kept.count();
    turns.drain(..excess);
    app.assistant.scroll = view::last_turn(app);
}
