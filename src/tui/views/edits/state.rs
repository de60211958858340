//! Points of the history.

use crate::demo::Setup;
use atlas_plan::estimate::METRICS;
use atlas_plan::estimate::Metric;
use std::sync::Arc;

/// A scenario of the history.
#[derive(Debug, Clone)]
pub struct Point {
    /// Number of redo steps that lead to it; negative for undo.
    pub step: i32,
    /// The scenario.
    pub setup: Setup,
    /// Whether it can run.
    pub fits: bool,
    /// Whether its metrics are final, because no simulation is pending.
    pub(in crate::tui) settled: bool,
    /// Values of its metrics, in the order of [`METRICS`].
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
pub struct NamedPoint {
    /// Its name.
    pub name: Arc<str>,
    /// The scenario.
    pub setup: Setup,
}
