//! A tour without a player: every expectation checked, its scenario run and optimized on every target, records and a
//! report written.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::document;
use super::script::Demo;
use super::state::{Outcome, Stage, check};
use atlas_config::library::Library;
use atlas_config::{Profile, Target, Workload};
use atlas_core::sort;
use atlas_document::files;
use atlas_plan::engine;
use atlas_plan::estimate::Estimate;
use atlas_plan::knob::{Knob, Overrides};
use atlas_plan::record::{Record, at};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::hill_climb::{Found, hill_climb};

/// Directories of one second and name that are tried before giving up.
const DIRECTORIES: u32 = 1000;

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

impl StepReport {
    /// Whether every action could be done and every expectation holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.problems.is_empty() && self.outcomes.iter().all(|outcome| outcome.passed)
    }

    /// What went wrong, a line each.
    pub fn failures(&self) -> impl Iterator<Item = &str> {
        let failed = self.outcomes.iter().filter(|outcome| !outcome.passed).map(|outcome| outcome.text.as_str());
        self.problems.iter().map(String::as_str).chain(failed)
    }
}

impl HeadlessReport {
    /// Whether every step passed and every target could be run.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.steps.iter().all(StepReport::passed) && self.runs.iter().all(|run| run.run.is_ok())
    }

    /// Expectations that hold, and all of them.
    #[must_use]
    pub fn held(&self) -> (usize, usize) {
        let all = || self.steps.iter().flat_map(|step| &step.outcomes);
        (all().filter(|outcome| outcome.passed).count(), all().count())
    }
}

impl Run {
    fn of(demo: &Demo, target: &str, library: &Library) -> Result<Run, String> {
        let parts = Parts::find(library, target, &demo.workload).map_err(|problems| problems.messages())?;
        let scenario = Scenario::resolve(&parts, &Overrides::new()).map_err(|error| error.to_string())?;
        let estimate = engine::estimate(&scenario);
        let found = hill_climb(&scenario, &parts, demo.sla_p99_ms);
        let Parts { target, workload, profile, .. } = parts;
        Ok(Run { target, workload, profile, scenario, estimate, found })
    }

    /// The knobs the search changed.
    #[must_use]
    pub fn changed(&self) -> Overrides {
        let differs = |knob: &Knob| self.found.scenario.get(*knob) != self.scenario.get(*knob);
        sort::filled(Knob::all().filter(differs).map(|knob| (knob, self.found.scenario.get(knob))))
    }

    /// Writes the records of before and after the search.
    fn write(&self, dir: &Path) -> io::Result<[PathBuf; 2]> {
        let track = self.workload.track.as_deref().unwrap_or("parity");
        let record = |label, scenario, overrides, estimate| {
            Record::new(&self.target.name, &self.workload, track, label, scenario, overrides, estimate)
        };
        let unchanged = Overrides::new();
        let before = record("pre-opt", &self.scenario, &unchanged, &self.estimate);
        let changed = self.changed();
        let after = record("post-opt", &self.found.scenario, &changed, &self.found.estimate);
        Ok([before.write(dir, &before.file_name())?, after.write(dir, &after.optimized_file_name())?])
    }
}

/// What could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {deed} {}: {error}", path.display())]
pub struct HeadlessError {
    deed: &'static str,
    path: PathBuf,
    #[source]
    error: io::Error,
}

impl HeadlessError {
    fn new(deed: &'static str, path: &Path, error: io::Error) -> HeadlessError {
        HeadlessError { deed, path: path.to_owned(), error }
    }
}

/// Checks a tour, runs and optimizes its scenario on each of its targets, and writes everything below `out_root`, into
/// a directory of its own named after `now` and the tour. `progress` is called whenever a target is done.
///
/// # Errors
/// Where the directory or a file in it cannot be written. Expectations that fail are no error: they are in the answer.
pub fn run_headless(
    demo: &Demo,
    library: &Library,
    out_root: &Path,
    now: Timestamp,
    progress: &mut dyn FnMut(),
) -> Result<HeadlessReport, HeadlessError> {
    let steps = check_steps(demo, library);
    let dir = own_directory(out_root, &demo.name, now)
        .map_err(|error| HeadlessError::new("make a directory below", out_root, error))?;
    let mut report = HeadlessReport { dir, steps, runs: Vec::new(), files: Vec::new() };
    for target in &demo.targets {
        let run = Run::of(demo, target, library);
        if let Ok(run) = &run {
            let files = run.write(&report.dir);
            report.files.extend(files.map_err(|error| HeadlessError::new("write to", &report.dir, error))?);
        }
        report.runs.push(TargetReport { target: Arc::clone(target), run });
        progress();
    }
    let path = report.dir.join("report.md");
    files::write(&path, document::markdown(demo, &report, now))
        .map_err(|error| HeadlessError::new("write", &path, error))?;
    report.files.push(path);
    Ok(report)
}

/// Plays every step and checks what it expects.
#[must_use]
pub fn check_steps(demo: &Demo, library: &Library) -> Vec<StepReport> {
    let mut stage = Stage::of(demo);
    let steps = demo.steps.iter().map(|step| {
        let failed = step.actions.iter().filter_map(|action| stage.apply(action, library).err());
        let problems = failed.map(|error| error.to_string()).collect();
        let outcomes = step.expects.iter().map(|expect| check(expect, &stage, library)).collect();
        StepReport { title: step.title.clone(), problems, outcomes }
    });
    steps.collect()
}

/// Makes `demo_<timestamp>_<name>`, with a number behind where that is taken: nothing that exists is ever written into.
fn own_directory(out_root: &Path, name: &str, now: Timestamp) -> io::Result<PathBuf> {
    std::fs::create_dir_all(out_root)?;
    let plain = |c: char| if c.is_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' };
    let name: String = name.chars().take(100).map(plain).collect();
    let moment = at(now).replace(['-', ':', 'Z'], "").replace('T', "_");
    let stem = format!("demo_{moment}_{name}");
    for number in 1..=DIRECTORIES {
        let dir = out_root.join(if number == 1 { stem.clone() } else { format!("{stem}_{number}") });
        match std::fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{stem} and {DIRECTORIES} more are taken")))
}
