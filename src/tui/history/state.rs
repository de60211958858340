//! Points of the history.

use crate::demo::Setup;
use atlas_plan::estimate::METRICS;
use atlas_plan::estimate::Metric;
use std::sync::Arc;

/// A scenario on the way.
#[derive(Debug, Clone)]
pub struct Point {
    /// Steps of redo that lead there; negative for undo.
    pub step: i32,
    /// The scenario.
    pub setup: Setup,
    /// Whether it can run.
    pub fits: bool,
    /// Whether no simulation will change its figures.
    pub(in crate::tui) settled: bool,
    /// Its figures, in the order of [`METRICS`].
    pub(in crate::tui) values: Vec<Option<f64>>,
}

impl Point {
    /// A metric's value, if it applies to the scenario.
    #[must_use]
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        let at = METRICS.iter().position(|known| known == metric)?;
        self.values.get(at).copied().flatten()
    }
}

/// A scenario that the user gave a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Its name.
    pub name: Arc<str>,
    /// The scenario.
    pub setup: Setup,
}
