//! State of the detection.

use crate::tui::work::query::Query;
use std::sync::Arc;

/// The state.
#[derive(Debug, Clone, Default)]
pub struct State {
    pub(in crate::tui) found: Query<u64, Arc<DetectedTargets>>,
    pub(in crate::tui) requests: u64,
    /// The first line of the dialog that is shown.
    pub(in crate::tui) scroll: usize,
}

/// What was detected.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectedTargets {
    /// The targets as YAML.
    pub text: String,
    /// Number of targets.
    pub targets: usize,
    /// What could not be determined, and why.
    pub open: Vec<String>,
}
