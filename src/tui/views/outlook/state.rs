//! State of the outlook.

use crate::tui::views::sweep::state::Question;
use atlas_plan::knob::Knob;

/// State of the outlook.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outlook {
    /// The knob that was changed last.
    pub changed: Option<Knob>,
    /// The query to start when the timer expires.
    pub(in crate::tui) wanted: Option<Question>,
    /// Serial number of the last timer. Only this one starts a query.
    pub(in crate::tui) serial: u64,
}
