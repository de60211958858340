//! State of goal seek.

use crate::tui::widgets::line::Line;
use atlas_plan::estimate::Metric;
use atlas_plan::search::goal::Goal;
use atlas_plan::search::goal::Way;
use std::sync::Arc;

/// The dialog.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalSeek {
    /// The metric.
    pub metric: &'static Metric,
    /// The wanted value being typed.
    pub line: Line,
    /// The changes that reach it, or why the text is not a value.
    pub found: Result<Goal, String>,
    /// Changes at which this target and a marked one swap ranks.
    pub flips: Vec<Flip>,
    /// The row under the cursor.
    pub cursor: usize,
}

impl GoalSeek {
    /// The rows of the list: the changes that reach the value, then the ranking flips.
    #[must_use]
    pub fn rows(&self) -> Vec<(&Way, Option<&Flip>)> {
        let ways = self.found.iter().flat_map(|goal| goal.ways.iter().chain(&goal.nearest)).map(|way| (way, None));
        ways.chain(self.flips.iter().map(|flip| (&flip.way, Some(flip)))).collect()
    }
}

/// The change at which this target and a marked one swap ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct Flip {
    /// The marked target.
    pub rival: Arc<str>,
    /// Whether this target becomes the better one; otherwise it becomes the worse one.
    pub passes: bool,
    /// The change of this target.
    pub way: Way,
}

impl Flip {
    /// Describes the flip.
    #[must_use]
    pub fn text(&self) -> String {
        if self.passes { format!("passes {}", self.rival) } else { format!("falls behind {}", self.rival) }
    }
}
