//! The status line: notes, which disappear after a while, and errors, which stay until Esc.

use crate::tui::app::{App, Status};
use crate::tui::message::{Effect, Timer};

/// How long a note stays in the status line.
const STATUS_MS: u64 = 4_000;

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
