//! The query of the sensitivity view.

use atlas_plan::estimate::Metric;

/// The query of the view.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Generation of the scenario.
    pub generation: u64,
    /// The metric.
    pub metric: &'static Metric,
}
