//! Report of a tour that was run without the interface.

use std::path::PathBuf;
use std::sync::Arc;

use super::state::Outcome;
use atlas_config::{Profile, Target, Workload};
use atlas_plan::estimate::Estimate;
use atlas_plan::scenario::Scenario;
use atlas_plan::search::hill_climb::HillClimb;

/// Report of a tour.
#[derive(Debug, Clone)]
pub struct HeadlessReport {
    /// Directory of the records and the report.
    pub dir: PathBuf,
    /// Report of each step.
    pub steps: Vec<StepReport>,
    /// Result of the scenario on each target.
    pub runs: Vec<TargetReport>,
    /// The records and, last, the report; `last_run.json` is a copy of the last record.
    pub files: Vec<PathBuf>,
}

/// Report of a step.
#[derive(Debug, Clone)]
pub struct StepReport {
    /// Its heading.
    pub title: String,
    /// Error messages of failed actions.
    pub problems: Vec<String>,
    /// Results of its expectations.
    pub outcomes: Vec<Outcome>,
}

/// Result of the scenario on one target.
#[derive(Debug, Clone)]
pub struct TargetReport {
    /// The target's name.
    pub target: Arc<str>,
    /// The run, or why it failed.
    pub run: Result<Run, String>,
}

/// The scenario on one target before and after the search.
#[derive(Debug, Clone)]
pub struct Run {
    /// The target.
    pub target: Arc<Target>,
    /// The workload.
    pub workload: Arc<Workload>,
    /// The profile in effect.
    pub profile: Option<Arc<Profile>>,
    /// Scenario without overrides.
    pub scenario: Scenario,
    /// Its estimate.
    pub estimate: Estimate,
    /// Result of the search. Its estimate ignores the schedule.
    pub found: HillClimb,
}
