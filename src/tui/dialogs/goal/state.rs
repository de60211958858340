//! State of goal seek.

use crate::tui::widgets::line::Line;
use atlas_plan::estimate::Metric;
use atlas_plan::search::goal::Goal;
use atlas_plan::search::goal::Solution;
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
    pub rank_changes: Vec<RankChange>,
    /// The row under the cursor.
    pub cursor: usize,
}

impl GoalSeek {
    /// The rows of the list: the changes that reach the value, then the ranking flips.
    #[must_use]
    pub fn rows(&self) -> Vec<(&Solution, Option<&RankChange>)> {
        let ways = self.found.iter().flat_map(|goal| goal.solutions.iter().chain(&goal.closest)).map(|way| (way, None));
        ways.chain(self.rank_changes.iter().map(|flip| (&flip.way, Some(flip)))).collect()
    }
}

/// The change at which this target and a marked one swap ranks.
#[derive(Debug, Clone, PartialEq)]
pub struct RankChange {
    /// The marked target.
    pub rival: Arc<str>,
    /// Whether this target becomes the better one; otherwise it becomes the worse one.
    pub passes: bool,
    /// The change of this target.
    pub way: Solution,
}

impl RankChange {
    /// Describes the flip.
    #[must_use]
    pub fn text(&self) -> String {
        if self.passes { format!("passes {}", self.rival) } else { format!("falls behind {}", self.rival) }
    }
}
