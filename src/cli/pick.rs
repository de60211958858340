//! Resolution of names on the command line to a scenario.

use std::path::{Path, PathBuf};

use color_eyre::eyre::eyre;

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::output::write_stderr;
use atlas_config::Workload;
use atlas_config::library::Library;
use atlas_document::{Diagnostics, Severity};
use atlas_plan::estimate::Estimate;
use atlas_plan::knob::{Knob, Overrides};
use atlas_plan::scenario::{Parts, Scenario};

/// Loads the input files. Errors are printed to stderr immediately, since they may explain a missing name; warnings are
/// only counted.
#[must_use]
pub fn library(globals: &Globals) -> Library {
    let library = Library::load(&globals.sources(), None);
    print_problems(library.problems());
    library
}

/// Fails if a file given by a flag has errors: a fallback to other files or to built-in entries would yield an estimate
/// for different inputs.
pub fn check_given_files(globals: &Globals) -> Result<(), Failure> {
    let sources = globals.sources();
    let named = [&sources.workload_dir, &sources.targets, &sources.workloads, &sources.hardware, &sources.config];
    let named: Vec<&Path> = named.into_iter().flatten().map(PathBuf::as_path).collect();
    if named.is_empty() {
        return Ok(());
    }
    let library = Library::load(&sources, None);
    let mut own = Diagnostics::new();
    let concerns = |file: &str| named.iter().any(|path| Path::new(file).starts_with(path));
    library.problems().iter().filter(|problem| concerns(&problem.file)).for_each(|problem| own.push(problem.clone()));
    own.sort();
    if own.has_errors() { Err(own.into()) } else { Ok(()) }
}

/// Maximum file errors printed by commands other than `atlas check`.
const MAX_PRINTED_ERRORS: usize = 50;

fn print_problems(problems: &Diagnostics) {
    for problem in problems.iter().filter(|problem| problem.severity == Severity::Error).take(MAX_PRINTED_ERRORS) {
        write_stderr(&problem.to_string());
    }
    if problems.errors() > MAX_PRINTED_ERRORS {
        write_stderr(&format!(
            "{} more errors in the files; run `atlas check` to see them",
            problems.errors() - MAX_PRINTED_ERRORS
        ));
    }
    let warnings = problems.len() - problems.errors();
    if warnings > 0 {
        let plural = if warnings == 1 { "" } else { "s" };
        write_stderr(&format!("{warnings} warning{plural} in the files; run `atlas check` to see them"));
    }
}

/// Returns an error that states why a scenario cannot run, unless it can.
pub fn check_runs(parts: &Parts, estimate: &Estimate) -> color_eyre::Result<()> {
    match &estimate.detail {
        Some(detail) if !estimate.runs() => {
            Err(eyre!("{} × {}: {}", parts.target.name, parts.workload.name, detail.verdict.describe()))
        }
        _ => Ok(()),
    }
}

/// Resolves target and workload with everything that they refer to; the error lists all unknown names.
pub fn pick(library: &Library, target: &str, workload: &str) -> Result<Parts, Failure> {
    Ok(Parts::find(library, target, workload)?)
}

/// Loads the input files, and resolves the scenario of a target and a workload with knobs.
pub fn scenario(
    globals: &Globals,
    target: &str,
    workload: &str,
    knobs: &KnobArgs,
) -> color_eyre::Result<(Parts, Scenario)> {
    knobs.check()?;
    let parts = pick(&library(globals), target, workload)?;
    let scenario = Scenario::resolve(&parts, &knobs.overrides(parts.fabrics())?)?;
    Ok((parts, scenario))
}

/// Scenario that a search starts from. A simulation is too slow for thousands of candidates, so the analytical engine
/// replaces it, and the user is informed.
pub fn search_start(mut scenario: Scenario, overrides: &mut Overrides) -> Scenario {
    if scenario.engine.simulates() {
        let (requested, answers) = (scenario.engine.name(), scenario.engine.analytical());
        scenario.engine = answers;
        overrides.remove(&Knob::Engine);
        write_stderr(&format!(
            "searching with the {} engine, since a simulation per candidate would take too long; to simulate your choice, \
             use `atlas run --engine {requested}`",
            answers.name()
        ));
    }
    scenario
}

/// Track of the record: the flag's, else the workload's, else the predecessor's default.
#[must_use]
pub fn track<'a>(workload: &'a Workload, flag: Option<&'a str>) -> &'a str {
    flag.or(workload.track.as_deref()).unwrap_or("parity")
}
