//! What a tour without a player came to.

use std::path::PathBuf;
use std::sync::Arc;

use super::state::Outcome;
use atlas_config::{Profile, Target, Workload};
use atlas_plan::estimate::Estimate;
use atlas_plan::scenario::Scenario;
use atlas_plan::search::hill_climb::Found;

/// What a tour came to.
#[derive(Debug, Clone)]
pub struct HeadlessReport {
    /// The directory with the records and the report.
    pub dir: PathBuf,
    /// Its steps.
    pub steps: Vec<StepReport>,
    /// Its scenario on each of its targets.
    pub runs: Vec<TargetReport>,
    /// The records and, last, the report; `last_run.json` is a copy of the last record.
    pub files: Vec<PathBuf>,
}

/// How a step came out.
#[derive(Debug, Clone)]
pub struct StepReport {
    /// Its heading.
    pub title: String,
    /// Actions that could not be done, and why.
    pub problems: Vec<String>,
    /// Its expectations.
    pub outcomes: Vec<Outcome>,
}

/// The scenario on one target.
#[derive(Debug, Clone)]
pub struct TargetReport {
    /// The target's name.
    pub target: Arc<str>,
    /// The run, or why it failed.
    pub run: Result<Run, String>,
}

/// The scenario on one target, before and after the search.
#[derive(Debug, Clone)]
pub struct Run {
    /// The target.
    pub target: Arc<Target>,
    /// The workload.
    pub workload: Arc<Workload>,
    /// The profile in effect.
    pub profile: Option<Arc<Profile>>,
    /// The scenario as the files have it.
    pub scenario: Scenario,
    /// Its estimate.
    pub estimate: Estimate,
    /// What the search found; its figures leave the schedule out.
    pub found: Found,
}
