//! From names on the command line to a scenario.

use std::path::{Path, PathBuf};

use super::args::Globals;
use super::failure::Failure;
use super::output::complain;
use atlas_config::Workload;
use atlas_config::library::Library;
use atlas_document::{Diagnostics, Severity};
use atlas_plan::knob::{Knob, Overrides};
use atlas_plan::scenario::{Parts, Scenario};

/// Loads the files the flags name. Errors in them are described on stderr at once, since they explain why a name may be
/// missing; warnings are counted.
#[must_use]
pub fn library(globals: &Globals) -> Library {
    let library = Library::load(&globals.sources(), None);
    print_problems(library.problems());
    library
}

/// Refuses files named by flags that cannot be used, with all that is wrong with them: what other files say, or what
/// ships, is not what was requested.
pub fn sound(globals: &Globals) -> Result<(), Failure> {
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

/// Errors of files that are shown by commands that need them for something else.
const MOST_SHOWN: usize = 50;

fn print_problems(problems: &Diagnostics) {
    for problem in problems.iter().filter(|problem| problem.severity == Severity::Error).take(MOST_SHOWN) {
        complain(&problem.to_string());
    }
    if problems.errors() > MOST_SHOWN {
        complain(&format!("{} more errors in the files; `atlas check` shows them", problems.errors() - MOST_SHOWN));
    }
    let warnings = problems.len() - problems.errors();
    if warnings > 0 {
        let plural = if warnings == 1 { "" } else { "s" };
        complain(&format!("{warnings} warning{plural} about the files; `atlas check` shows them"));
    }
}

/// Finds everything that the two names lead to, or complains about every one that leads nowhere.
pub fn pick(library: &Library, target: &str, workload: &str) -> Result<Parts, Failure> {
    Ok(Parts::find(library, target, workload)?)
}

/// The scenario from which thousands of others are tried: a simulation takes too long for that, so that the closed form of
/// the same physics tries them, and the user is informed.
pub fn tried(mut scenario: Scenario, overrides: &mut Overrides) -> Scenario {
    if scenario.engine.simulates() {
        let (requested, answers) = (scenario.engine.name(), scenario.engine.at_once());
        scenario.engine = answers;
        overrides.remove(&Knob::Engine);
        complain(&format!(
            "the {} engine weighs the candidates, in microseconds each; `atlas run --engine {requested}` simulates the one \
             you choose",
            answers.name()
        ));
    }
    scenario
}

/// The track to file under: the flag's, else the workload's, else the predecessor default.
#[must_use]
pub fn track<'a>(workload: &'a Workload, flag: Option<&'a str>) -> &'a str {
    flag.or(workload.track.as_deref()).unwrap_or("parity")
}
