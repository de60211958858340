//! `atlas check`.

mod kind;
mod snippet;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::kind::Kind;
use super::args::Globals;
use super::config;
use super::failure::Failure;
use super::output::{self, write_stderr};
use crate::demo::{Demo, Demos};
use crate::theme::{ColorDepth, Theme, Themes};
use atlas_catalog::Catalog;
use atlas_config::library::Library;
use atlas_config::profile::{ProfileKey, choose};
use atlas_config::{Target, Workload};
use atlas_core::sort;
use atlas_document::sources::{config_dir, read_text};
use atlas_document::{Diagnostic, Diagnostics, Position, Severity, Sources, parse};
use atlas_plan::scenario::{ContradictedMemory, Parts, implausible};
use atlas_plan::simulation::config::Config;
use atlas_report::read;

/// Validate files.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas check                          check all files in use
  atlas check my_target.yaml themes/   these files; a directory stands for its YAML files

The type of a file is determined by its content, else by its name. The exit status is 1 if there are errors, and 0 if \
there are at most warnings.")]
pub struct Args {
    /// Files and directories to check [default: all files in use]
    pub files: Vec<PathBuf>,
}

/// Result of the check.
#[derive(Debug, Default)]
struct CheckResult {
    problems: Diagnostics,
    /// Numbers of entries in words: `3 targets`.
    found: Vec<String>,
}

/// Prints all diagnostics with their source lines, and a summary.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    let mut checked = if args.files.is_empty() { check_all(globals) } else { check_named(&args.files, globals) };
    checked.problems.sort();
    let mut snippets = snippet::Snippets::default();
    for problem in &checked.problems {
        write_stderr(&snippets.render(problem));
    }
    let problems = &checked.problems;
    output::print(&globals.charset().write(&format!(
        "checked {}: {}\n",
        checked.found.join(", "),
        problems.summary()
    )))?;
    if problems.has_errors() { Err(Failure::Reported.into()) } else { Ok(()) }
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn check_all(globals: &Globals) -> CheckResult {
    let library = Library::load(&globals.sources(), None);
    let mut problems = library.problems().clone();
    problems.extend(Catalog::load(&globals.sources(), None).problems().clone());
    problems.extend(check_across_files(&library, library.targets(), library.workloads(), &[]));
    let config = config_dir();
    let (themes, theme_problems) = Themes::load(config.as_deref(), ColorDepth::TrueColor);
    problems.extend(theme_problems);
    let (demos, demo_problems) = Demos::load(config.as_deref(), Some(Path::new("")));
    problems.extend(demo_problems);
    let found = vec![
        count(library.targets().len(), "target", "targets"),
        count(library.workloads().len(), "workload", "workloads"),
        count(library.profiles().count(), "profile", "profiles"),
        count(themes.len(), "theme", "themes"),
        count(demos.len(), "tour", "tours"),
    ];
    CheckResult { problems, found }
}

/// Diagnostics that concern several files: targets without a profile, and fabrics for which a profile is not
/// calibrated. The files remain usable, so these are warnings; estimating such a pair is an error.
fn check_across_files(
    library: &Library,
    targets: &[Arc<Target>],
    workloads: &[Arc<Workload>],
    more: &[ProfileKey],
) -> Diagnostics {
    let mut problems = Diagnostics::new();
    for target in targets {
        match Parts::accelerator_of(library.catalog(), target) {
            Err(problem) => problems.push(problem),
            Ok(sheet) => {
                let mut warn = |at, message| {
                    problems.push(Diagnostic {
                        severity: Severity::Warning,
                        file: Arc::clone(&target.origin.file),
                        at,
                        path: target.name.to_string(),
                        message,
                        help: None,
                    });
                };
                if let Some(memory) = sheet.as_ref().and_then(|sheet| ContradictedMemory::of(target, sheet)) {
                    warn(target.origin.at, memory.to_string());
                }
                for found in implausible(target, sheet.as_deref()) {
                    let path: Vec<&str> = found.path.split('.').collect();
                    let field = target.document.at_path(&path);
                    warn(field.map_or(target.origin.at, |field| field.at), found.to_string());
                }
            }
        }
    }
    for workload in workloads {
        match Parts::model_of(library.catalog(), workload) {
            Err(found) => problems.extend(found),
            Ok(model) => problems.extend(model.map(|model| model.warnings.clone()).unwrap_or_default()),
        }
    }
    // A target that names its accelerator is estimated by the analytical engine and needs no profile.
    let calibrated = |target: &&Arc<Target>| target.accelerator.is_none();
    for target in
        targets.iter().filter(calibrated).filter(|target| choose(more, &target.name, &target.vendor).is_none())
    {
        if let Err(problem) = library.profile_for(target) {
            problems.push(Diagnostic { severity: Severity::Warning, ..problem });
        }
    }
    for workload in workloads {
        let fabric = workload.tuning.fabric.as_deref().unwrap_or(atlas_plan::scenario::FABRIC);
        let unfit =
            library.targets().iter().filter(|target| target.accelerator.is_none()).filter(|target| {
                library.profile_for(target).is_ok_and(|profile| profile.fabric_factor(fabric).is_none())
            });
        let unfit: Vec<&str> = unfit.map(|target| &*target.name).collect();
        if !unfit.is_empty() {
            problems.push(Diagnostic {
                severity: Severity::Warning,
                file: Arc::clone(&workload.origin.file),
                at: workload.origin.at,
                path: workload.name.to_string(),
                message: format!("fabric `{fabric}` is not calibrated for {}", unfit.join(", ")),
                help: Some("set the knob `fabric` for these targets".to_owned()),
            });
        }
    }
    problems
}

fn check_named(paths: &[PathBuf], globals: &Globals) -> CheckResult {
    let mut checked = CheckResult::default();
    let mut files = Vec::new();
    for path in paths {
        collect(path, &mut files);
    }
    let kinds: Vec<(PathBuf, Kind)> = files
        .into_iter()
        .filter_map(|path| {
            let kind = kind_of(&path, &mut checked.problems);
            kind.map(|kind| (path, kind))
        })
        .collect();
    // A target may depend on a profile that is given as well.
    let profiles = kinds.iter().filter(|(_, kind)| *kind == Kind::Profile);
    let keys: Vec<ProfileKey> = profiles.filter_map(|(path, _)| profile_key(path)).collect();
    for (path, kind) in &kinds {
        let mut problems = check_file(path, *kind, globals, &keys);
        checked.found.push(format!("{} ({}, {})", path.display(), kind.name(), problems.summary()));
        problems.sort();
        checked.problems.extend(problems);
    }
    if checked.found.is_empty() {
        checked.found.push("nothing".to_owned());
        if checked.problems.is_empty() {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            let message = "no YAML files".to_owned();
            checked.problems.push(Diagnostic {
                severity: Severity::Error,
                file: paths.join(", ").into(),
                at: Position::default(),
                path: String::new(),
                message,
                help: None,
            });
        }
    }
    checked
}

/// Collects a file itself, or the YAML files below a directory.
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(path) else {
        files.push(path.to_owned());
        return;
    };
    let mut inside: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    sort::ascending(&mut inside);
    for path in inside {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        // Links to directories may form a cycle.
        let linked = path.is_symlink() && path.is_dir();
        if !hidden && !linked && (path.is_dir() || path.extension().is_some_and(|ext| ext == "yaml" || ext == "yml")) {
            collect(&path, files);
        }
    }
}

/// Type of the file; reports files that cannot be read or identified.
fn kind_of(path: &Path, problems: &mut Diagnostics) -> Option<Kind> {
    let file: Arc<str> = path.display().to_string().into();
    let complain = |message: String, help: Option<String>| Diagnostic {
        severity: Severity::Error,
        file: Arc::clone(&file),
        at: Position::default(),
        path: String::new(),
        message,
        help,
    };
    let text = match read_text(path) {
        Ok(text) => text,
        Err(message) => {
            problems.push(complain(message, None));
            return None;
        }
    };
    let mut broken = Diagnostics::new();
    let root = parse::parse(&file, &text, &mut broken);
    let kind = Kind::guess(path, root.as_ref());
    if kind.is_none() {
        problems.extend(broken);
        if root.is_some() {
            let help = "expected targets, workloads, a profile, a theme, a tour, a record, a simulation, \
                        accelerators, models, prices, software, an experiment or dashboard scenarios";
            problems.push(complain("unknown type of file".to_owned(), Some(help.to_owned())));
        }
    }
    kind
}

fn profile_key(path: &Path) -> Option<ProfileKey> {
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    let node = parse::parse(&stem.as_str().into(), &read_text(path).ok()?, &mut Diagnostics::new())?;
    Some(ProfileKey::of(&stem, &node))
}

/// Diagnostics of one file.
fn check_file(path: &Path, kind: Kind, globals: &Globals, profiles: &[ProfileKey]) -> Diagnostics {
    let label = path.display().to_string();
    let owned = Some(path.to_owned());
    let mut problems = Diagnostics::new();
    // Problems of entries of this file that are in files they refer to.
    let mut referenced = Diagnostics::new();
    match kind {
        Kind::Targets | Kind::Workloads | Kind::Profile => {
            let usual = globals.sources();
            let sources = match kind {
                Kind::Targets => Sources { targets: owned, ..usual },
                Kind::Workloads => Sources { workloads: owned, ..usual },
                _ => Sources { hardware: owned, ..usual },
            };
            let library = Library::load(&sources, None);
            problems.extend(library.problems().clone());
            match kind {
                Kind::Targets => {
                    let own = library.targets().iter().filter(|target| *target.origin.file == *label);
                    let own: Vec<_> = own.cloned().collect();
                    referenced.extend(check_across_files(&library, &own, &[], profiles));
                }
                Kind::Workloads => {
                    let own = library.workloads().iter().filter(|workload| *workload.origin.file == *label);
                    let own: Vec<_> = own.cloned().collect();
                    referenced.extend(check_across_files(&library, &[], &own, profiles));
                }
                _ => {}
            }
        }
        Kind::Software => {
            let (file, text) = (label.as_str().into(), read_text(path).unwrap_or_default());
            if let Some(root) = parse::parse(&file, &text, &mut problems) {
                drop(atlas_catalog::software::Family::decode(&file, &root, &mut problems));
            }
        }
        Kind::Experiment => match config::read(path, globals) {
            Ok((_, _, found)) => problems.extend(found),
            Err(error) => write_stderr(&error.to_string()),
        },
        Kind::Scenarios => {
            let library = Library::load(&Sources { config: owned, ..globals.sources() }, None);
            problems.extend(library.problems().clone());
        }
        Kind::Demo => {
            let text = read_text(path).unwrap_or_default();
            drop(Demo::read(&label.as_str().into(), &text.into(), &mut problems));
        }
        Kind::Theme => {
            let text = read_text(path).unwrap_or_default();
            let (known, _) = Themes::load(config_dir().as_deref(), ColorDepth::TrueColor);
            drop(Theme::read(&label.as_str().into(), &text.into(), ColorDepth::TrueColor, &known, &mut problems));
        }
        Kind::Record => drop(read::entries(path, &mut problems)),
        Kind::Simulation => {
            let text = read_text(path).unwrap_or_default();
            let library = Library::load(&globals.sources(), None);
            drop(Config::read(&label.as_str().into(), &text, &library, &mut problems));
        }
        Kind::Catalog(part) => {
            let (file, text) = (label.as_str().into(), read_text(path).unwrap_or_default());
            if let Some(root) = parse::parse(&file, &text, &mut problems) {
                part.check(&file, &root, &mut problems);
            }
        }
    }
    // Other files of the library were only loaded to resolve references, so their diagnostics are dropped.
    let mut own = referenced;
    for problem in problems.iter().filter(|problem| *problem.file == *label) {
        own.push(problem.clone());
    }
    own
}
