//! Which parts of the screen are out of date.
//!
//! Most keys move a cursor, which changes one pane and the information line. Drawing and comparing
//! only these makes such keys cheap.

use crate::demo::Pane;
use crate::demo::View;
use crate::tui::app::App;
pub use crate::tui::app::types::DirtyRegion;
use crate::tui::input::keymap::{Action, Mode};
use crate::tui::message::{Message, Timer};

impl DirtyRegion {
    /// The parts of the screen that an action in a mode can change.
    #[must_use]
    pub fn changed_by_action(action: Action, mode: Mode) -> DirtyRegion {
        if !matches!(action, Action::Move(_) | Action::Page(_) | Action::First | Action::Last) {
            return DirtyRegion::All;
        }
        match mode {
            Mode::Knobs => DirtyRegion::Pane(Pane::Knobs),
            Mode::Results => DirtyRegion::Pane(Pane::Results),
            // Their cursors change the charts or the form.
            Mode::View(View::Sweep | View::Frontier | View::Timeline | View::Optimum) => DirtyRegion::All,
            Mode::View(_) => DirtyRegion::View,
            // The cursors of the other modes change the scenario or are in overlays.
            _ => DirtyRegion::All,
        }
    }

    /// The parts of the screen that a message can change. For key presses, [`DirtyRegion::changed_by_action`]
    /// determines them.
    #[must_use]
    pub(in crate::tui) fn changed_by_message(message: &Message, app: &App) -> DirtyRegion {
        let overview = app.view == View::Main && app.overlay.is_none() && app.tour.is_none();
        match message {
            Message::Key(_) | Message::Expired(Timer::Outlook(_)) => DirtyRegion::Nothing,
            Message::WorkFinished(serial, Ok(_))
                if overview && app.queries.outlook.awaits(*serial) && !app.queries.sweep.awaits(*serial) =>
            {
                DirtyRegion::Outlook
            }
            _ => DirtyRegion::All,
        }
    }
}

#[cfg(test)]
mod tests;
