//! Which parts of the screen are out of date.
//!
//! Most keys move a cursor, which changes one pane and the information line. Drawing and comparing
//! only these makes such keys cheap.

use crate::demo::Pane;
use crate::demo::View;
use crate::tui::app::App;
pub use crate::tui::app::types::Stale;
use crate::tui::input::keymap::{Action, Mode};
use crate::tui::message::{Message, Timer};

impl Stale {
    /// The parts of the screen that an action in a mode can change.
    #[must_use]
    pub fn after(action: Action, mode: Mode) -> Stale {
        if !matches!(action, Action::Move(_) | Action::Page(_) | Action::First | Action::Last) {
            return Stale::All;
        }
        match mode {
            Mode::Knobs => Stale::Pane(Pane::Knobs),
            Mode::Results => Stale::Pane(Pane::Results),
            Mode::Race
            | Mode::Compare
            | Mode::Advice
            | Mode::Explain
            | Mode::Diff
            | Mode::Sensitivity
            | Mode::Problems
            | Mode::Schedule
            | Mode::Measurements
            | Mode::Panel(_)
            | Mode::Breakdown => Stale::View,
            // The cursors of the other modes change the scenario or are in overlays.
            _ => Stale::All,
        }
    }

    /// The parts of the screen that a message can change. For key presses, [`Stale::after`] determines them.
    #[must_use]
    pub(in crate::tui) fn by(message: &Message, app: &App) -> Stale {
        let overview = app.view == View::Main && app.overlay.is_none() && app.tour.is_none();
        match message {
            Message::Key(_) | Message::Expired(Timer::Outlook(_)) => Stale::Nothing,
            Message::Worked(serial, Ok(_))
                if overview && app.queries.outlook.awaits(*serial) && !app.queries.sweep.awaits(*serial) =>
            {
                Stale::Outlook
            }
            _ => Stale::All,
        }
    }
}

#[cfg(test)]
mod tests;
