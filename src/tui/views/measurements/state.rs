//! State of the measurements: the rows, and a proposed calibration.

use atlas_evidence::calibrate::Observation;
use atlas_evidence::calibrate::Outcome;
use atlas_evidence::calibrate::Start;
use atlas_evidence::calibrate::judge::EvaluatedMetric;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;

/// The measurements that were read, and the results derived from them.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// The rows.
    pub rows: Arc<Vec<Observation>>,
    /// Errors found while reading.
    pub problems: Vec<String>,
    /// Rows with predictions for the scenario's target, computed when first needed.
    pub(in crate::tui) evaluated: OnceCell<Vec<EvaluatedMetric>>,
    /// A proposed calibration.
    pub proposal: Option<Arc<Proposal>>,
}

/// A proposed calibration.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The outcome of the calibration.
    pub outcome: Outcome,
    /// The profile that it started from.
    pub start: Start,
    /// Vendor of the target.
    pub vendor: String,
    /// Path of the profile to be written.
    pub path: PathBuf,
    /// Whether a profile at that path is replaced.
    pub replaces: bool,
}

impl PartialEq for Proposal {
    fn eq(&self, other: &Proposal) -> bool {
        self.path == other.path && self.outcome.parameters == other.outcome.parameters
    }
}

impl Measured {
    /// Replaces the measurements by newly read ones.
    pub fn read(&mut self, rows: Arc<Vec<Observation>>, problems: Vec<String>) {
        (self.rows, self.problems) = (rows, problems);
        self.drop_derived();
    }

    /// Drops derived results after the scenario or the files changed.
    pub fn drop_derived(&mut self) {
        self.evaluated = OnceCell::new();
        self.proposal = None;
    }

    /// Whether there is anything to show.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.problems.is_empty()
    }
}
