//! What of the screen no longer shows the state.
//!
//! Most keys move a cursor, which changes one pane and the line that tells what is under it. Drawing and comparing
//! nothing else is what makes such a key cheap.

use super::app::Pane;
use super::keymap::{Action, Mode};

/// What has to be drawn anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stale {
    /// Everything.
    #[default]
    All,
    /// What fills the screen between its first and its last lines, and the line about what is under the cursor.
    View,
    /// One pane, and that line.
    Pane(Pane),
    /// Nothing.
    Nothing,
}

impl Stale {
    /// What an action in a mode can change.
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
            // Their cursors choose what is estimated, or stand in boxes over the screen.
            _ => Stale::All,
        }
    }

    /// What has to be drawn anew after both.
    #[must_use]
    pub fn and(self, other: Stale) -> Stale {
        match (self, other) {
            (Stale::Nothing, only) | (only, Stale::Nothing) => only,
            (one, other) if one == other => one,
            _ => Stale::All,
        }
    }
}

#[cfg(test)]
mod tests;
