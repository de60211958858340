//! State of the frontier view: the pair of metrics, and the frontiers.

use crate::demo::Setup;
use atlas_plan::estimate::Metric;
use atlas_plan::search::optimize::Candidate;
use atlas_plan::search::trade_off::Pair;
use std::sync::Arc;

/// Settings of the view.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrontierSettings {
    /// Index of the pair of metrics among those that apply.
    pub pair: usize,
    /// Index of the curve under the cursor.
    pub curve: usize,
    /// Index of the point under the cursor; if unset, the point nearest to the scenario.
    pub point: Option<usize>,
}

/// The query of the view.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Generation of the scenario.
    pub generation: u64,
    /// The pair of metrics.
    pub pair: &'static Pair,
    /// The targets, the selected one first.
    pub targets: Vec<Arc<str>>,
}

/// The frontier of a target.
#[derive(Debug, Clone)]
pub struct Curve {
    /// The target.
    pub target: Arc<str>,
    /// Its points from left to right, each with its setup.
    pub points: Vec<(Setup, Candidate)>,
}

/// The answer: a curve for each target.
#[derive(Debug, Clone)]
pub struct FrontierCurves {
    /// The pair of metrics.
    pub pair: &'static Pair,
    /// The metric of the horizontal axis.
    pub across: &'static Metric,
    /// The metric of the vertical axis.
    pub up: &'static Metric,
    /// The curves; targets that cannot run the workload have none.
    pub curves: Vec<Curve>,
}

impl FrontierCurves {
    /// Coordinates of a candidate, if it has both metrics.
    #[must_use]
    pub fn place(&self, candidate: &Candidate) -> Option<(f64, f64)> {
        candidate.value(self.across).zip(candidate.value(self.up))
    }
}
