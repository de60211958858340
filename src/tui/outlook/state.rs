//! State of the curve beside the results.

use crate::tui::sweeping::state::Question;
use atlas_plan::knob::Knob;

/// The question to ask.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outlook {
    /// The knob that was changed last.
    pub changed: Option<Knob>,
    /// The question to ask when the timer ends.
    pub(in crate::tui) wanted: Option<Question>,
    /// Counts timers: only the last one asks.
    pub(in crate::tui) serial: u64,
}
