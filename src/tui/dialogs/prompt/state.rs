//! State of the prompt.

use crate::tui::widgets::line::Line;

/// The purpose of the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The name of the tab on the screen.
    TabName,
    /// The filter of the table that has the focus.
    Filter,
    /// The metrics of the comparison, in their order.
    Metrics,
    /// The name of a point of the history.
    PointName,
}

/// A line being typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Its purpose.
    pub purpose: Purpose,
    /// The text.
    pub line: Line,
    /// The text that Esc restores.
    pub before: String,
    /// Why the text is invalid.
    pub error: Option<String>,
}

impl Prompt {
    /// The label before the input.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self.purpose {
            Purpose::TabName => "name of this tab:",
            Purpose::Filter => "filter:",
            Purpose::Metrics => "metrics:",
            Purpose::PointName => "name of this point:",
        }
    }
}
