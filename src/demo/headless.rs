//! Runs a tour without the interface: checks every expectation, runs and optimizes the scenario on every target, and
//! writes records and a report.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::document;
use super::report::{HeadlessReport, Run, StepReport, TargetReport};
use super::script::Demo;
use super::state::{Stage, check};
use atlas_config::library::Library;
use atlas_core::sort;
use atlas_document::files;
use atlas_plan::engine;
use atlas_plan::knob::{Knob, Overrides};
use atlas_plan::record::{Record, at};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::hill_climb::hill_climb;

/// Maximum number of directory names tried for the same second and tour.
const DIRECTORIES: u32 = 1000;

impl StepReport {
    /// Whether every action succeeded and every expectation holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.problems.is_empty() && self.outcomes.iter().all(|outcome| outcome.passed)
    }

    /// Errors and failed expectations, one line each.
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

    /// Number of expectations that hold, and the total number.
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

    /// Returns the knobs that the search changed, with their new values.
    #[must_use]
    pub fn changed(&self) -> Overrides {
        let differs = |knob: &Knob| self.found.scenario.get(*knob) != self.scenario.get(*knob);
        sort::collect_unsorted(Knob::all().filter(differs).map(|knob| (knob, self.found.scenario.get(knob))))
    }

    /// Writes the records from before and after the search.
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

/// Error of writing the directory or a file.
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

/// Checks a tour, runs and optimizes its scenario on each of its targets, and writes the records and the report to a
/// new directory below `out_root`, named after `now` and the tour. `progress` is called after each target.
///
/// # Errors
/// If the directory or a file in it cannot be written. Failed expectations are part of the returned report.
pub fn run_headless(
    demo: &Demo,
    library: &Library,
    out_root: &Path,
    now: Timestamp,
    progress: &mut dyn FnMut(),
) -> Result<HeadlessReport, HeadlessError> {
    let steps = check_steps(demo, library);
    let dir = own_directory(out_root, &demo.name, now)
        .map_err(|error| HeadlessError::new("create a directory in", out_root, error))?;
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

/// Applies the actions of every step and checks its expectations.
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

/// Creates `demo_<timestamp>_<name>`, with a numeric suffix if that exists. Never writes to an existing directory.
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
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("all names from {stem} to {stem}_{DIRECTORIES} exist")))
}
