//! `atlas calibrate`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::Value;

use super::args::Globals;
use super::failure::Failure;
use super::output::{self, complain};
use super::pick;
use crate::calibrate::observation::{COLUMNS, column};
use crate::calibrate::{self, Bench, Observation, Start, document, intake};
use crate::ingest::{Context, Warmup, files_below};
use crate::library::Library;
use crate::record::{now, write_atomically, write_new};
use crate::report::calibration as told;
use crate::scenario::{Parts, Scenario};
use crate::spec::profile::stem_for;
use crate::spec::{Efficiency, Profile, Target, Workload};

/// Fit a target's coefficients and efficiency factors to measurements.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas calibrate train.log --target h100-sxm-8 --workload llama3.1-8b-train
  atlas calibrate sweep.csv ib.log:fabric=IB roce.log:fabric=RoCE --target NVIDIA_H100_8x_NVLink
  atlas calibrate graphs.log:cuda_graphs=on plain.log:cuda_graphs=off --target T --dry-run
  atlas calibrate measurements.yaml --target T --out profiles/mine.yaml --format json
  atlas calibrate --plan --target T                 which measurements would tell most, and scripts for them

Measurements are what `atlas ingest` reads or writes, and CSV with a row a measurement. The profile is written where it \
is in force for the target by itself, workload/profiles/TARGET.yaml, unless --out says otherwise; it is never written \
over another without --force.", long_about = long_about())]
pub struct Args {
    /// Logs, benchmark JSON, measurement YAML, CSV; FILE:NAME=VALUE,… says what a file does not; a directory means all below
    #[arg(value_name = "MEASUREMENTS", required_unless_present = "plan")]
    pub measurements: Vec<String>,
    /// Target that was measured
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Workload that ran: it fills what neither the files nor --set tell
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Write the profile here; with --plan, the directory of the scripts
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Write nothing
    #[arg(long, alias = "dry_run")]
    pub dry_run: bool,
    /// Write over what is there
    #[arg(long)]
    pub force: bool,
    /// Print which measurements would shrink the uncertainty most, and write scripts that take them
    #[arg(long)]
    pub plan: bool,
    /// Profile that the coefficients start from [default: the one in force for the target]
    #[arg(long, value_name = "NAME")]
    pub base: Option<String>,
    /// Say what all files do not: num_gpus=64, seq_len=4096, …; repeatable
    #[arg(long, value_name = "NAME=VALUE", long_help = set_help())]
    pub set: Vec<String>,
    /// Warm-up taken off logs: the first step, all until the time settles, or N steps
    #[arg(long, value_name = "first|change-point|N", default_value = "first", value_parser = super::ingest::warmup)]
    pub warmup: Warmup,
    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Tables to read
    #[default]
    Table,
    /// All of it, one object
    Json,
}

fn long_about() -> String {
    let figures = columns(true);
    format!(
        "Fit a target's coefficients and efficiency factors to measurements.\n\nThe coefficients of the calibrated \
         model follow the calibration guide, parameter by parameter; the factors of the analytical engine start from \
         the shipped constants and move as far as the measurements can tell. Figures that a CSV's columns may hold:\n\n\
         {figures}"
    )
}

fn set_help() -> String {
    format!(
        "Say what all files do not; repeatable. The settings, which are also columns of CSV, are:\n\n{}",
        columns(false)
    )
}

fn columns(figures: bool) -> String {
    let wanted = COLUMNS.iter().filter(|column| column.figure == figures);
    wanted.map(|column| format!("  {:<24} {}", column.name, column.help)).collect::<Vec<_>>().join("\n")
}

/// A setting by name, and its value.
type Label = (&'static str, Value);

/// Reads `NAME=VALUE`.
fn label(text: &str) -> Result<Label, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err(format!("\"{text}\": expected NAME=VALUE"));
    };
    let known = column(name).filter(|column| !column.figure);
    let Some(known) = known else {
        let names = COLUMNS.iter().filter(|column| !column.figure).map(|column| column.name);
        let near = names.max_by(|a, b| strsim::jaro(a, name).total_cmp(&strsim::jaro(b, name)));
        return Err(format!(
            "no setting \"{name}\"{}",
            near.map_or(String::new(), |near| format!("; did you mean {near}?"))
        ));
    };
    let value = value.trim();
    Ok((
        known.name,
        match (value, value.parse::<f64>()) {
            ("true" | "on" | "yes", _) => true.into(),
            ("false" | "off" | "no", _) => false.into(),
            (_, Ok(number)) if number.is_finite() => number.into(),
            _ => value.into(),
        },
    ))
}

/// A file and what the user says of it: `ib.log:fabric=IB,num_gpus=8`.
fn named(argument: &str) -> Result<(PathBuf, Vec<Label>), String> {
    let whole = Path::new(argument);
    let parts = argument.rsplit_once(':').filter(|(_, rest)| rest.contains('=') && !whole.exists());
    let Some((path, rest)) = parts else { return Ok((whole.to_owned(), Vec::new())) };
    let labels: Result<Vec<Label>, String> = rest.split(',').map(label).collect();
    labels.map(|labels| (PathBuf::from(path), labels)).map_err(|problem| format!("{argument}: {problem}"))
}

/// What measurements are read with.
pub struct Reading<'a> {
    /// Files, with what is said of each.
    pub measurements: &'a [String],
    /// What is said of all.
    pub set: &'a [String],
    /// What counts as warm-up.
    pub warmup: Warmup,
}

/// Reads all measurements. Every bad argument is told at once; files that give nothing are complained about, and then
/// there is no result.
///
/// # Errors
/// A bad argument, or a file that gives nothing.
pub fn gather(reading: &Reading<'_>) -> color_eyre::Result<Vec<Observation>> {
    let mut problems = Vec::new();
    let mut labels = Vec::new();
    for text in reading.set {
        label(text)
            .map(|label| labels.push(label))
            .unwrap_or_else(|problem| problems.push(format!("--set: {problem}")));
    }
    let mut files = Vec::new();
    for argument in reading.measurements {
        named(argument).map(|file| files.push(file)).unwrap_or_else(|problem| problems.push(problem));
    }
    if !problems.is_empty() {
        return Err(Failure::usage(problems).into());
    }
    let (mut rows, mut failed) = (Vec::new(), false);
    for (path, own) in files {
        let labels: Vec<Label> = labels.iter().cloned().chain(own).collect();
        let (found, bad) = gather_path(&path, &labels, reading.warmup);
        rows.extend(found);
        failed |= bad;
    }
    if failed { Err(Failure::Told.into()) } else { Ok(rows) }
}

/// The rows of a file, or of all files below a directory; whether something failed.
fn gather_path(path: &Path, labels: &[Label], warmup: Warmup) -> (Vec<Observation>, bool) {
    let (mut rows, mut failed) = (Vec::new(), false);
    let below = match files_below(path) {
        Ok(below) => below,
        Err(error) => {
            complain(&format!("error: {}: cannot be read: {error}", path.display()));
            return (rows, true);
        }
    };
    let directory = path.is_dir();
    for file in below {
        let name = file.display().to_string();
        let context = Context { name: name.clone(), warmup, seed: 1337, ..Context::default() };
        let opened = File::open(&file).map_err(|error| format!("{name}: cannot be read: {error}"));
        let gathered =
            opened.and_then(|file| intake::gather(file, &context, labels).map_err(|error| error.to_string()));
        match gathered {
            Ok(gathered) => {
                gathered.notes.iter().for_each(|note| complain(&format!("note: {note}")));
                rows.extend(gathered.rows);
            }
            Err(problem) if directory => complain(&format!("passed over: {problem}")),
            Err(problem) => {
                complain(&format!("error: {problem}"));
                failed = true;
            }
        }
    }
    if directory && rows.is_empty() {
        complain(&format!("error: {}: no measurement below it", path.display()));
        failed = true;
    }
    (rows, failed)
}

/// The target, the workload, and what calibration starts from.
pub struct Subject<'a> {
    /// The target.
    pub target: &'a Arc<Target>,
    /// The workload, where one is named.
    pub workload: Option<&'a Arc<Workload>>,
    /// Numbers in force.
    pub start: Start,
}

/// Finds them; every name that leads nowhere is told at once.
///
/// # Errors
/// Names that lead nowhere.
pub fn subject<'a>(
    library: &'a Library,
    target: &str,
    workload: Option<&str>,
    base: Option<&str>,
) -> Result<Subject<'a>, Failure> {
    let mut problems = crate::spec::Diagnostics::new();
    let target = library.target(target).map_err(|problem| problems.push(problem)).ok();
    let workload = workload.map(|name| library.workload(name)).transpose().map_err(|problem| problems.push(problem));
    let base = base.map(|name| library.profile(name)).transpose().map_err(|problem| problems.push(problem));
    let (Some(target), Ok(workload), Ok(base)) = (target, workload, base) else { return Err(problems.into()) };
    let in_force = library.profile_for(target).ok();
    let profile: Option<Arc<Profile>> = base.or(in_force).map(Arc::clone);
    // What is in force is what the target's file says, then its own profile.
    let efficiency = target.efficiency.or_else(|| in_force.and_then(|profile| profile.efficiency));
    Ok(Subject { target, workload, start: Start { profile, efficiency: efficiency.unwrap_or_default() } })
}

/// Calibrates, prints, writes.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    let library = pick::library(globals);
    let subject = subject(&library, &args.target, args.workload.as_deref(), args.base.as_deref())?;
    let rows = gather(&Reading { measurements: &args.measurements, set: &args.set, warmup: args.warmup })?;
    let bench = Bench { library: &library, target: subject.target, workload: subject.workload };
    let path = args.out.clone().unwrap_or_else(|| usual_place(globals, subject.target));
    let writes = !args.dry_run;
    if writes && !args.force && path.exists() {
        let path = path.display();
        return Err(color_eyre::eyre::eyre!(
            "{path} is there already: --force writes over it, --out names another file"
        ));
    }
    let outcome = calibrate::calibrate(&bench, &rows, &subject.start);
    let date = now().get(..10).unwrap_or_default().to_owned();
    let text = match args.format {
        Format::Table => globals.charset().write(&told::table(&outcome, &subject.start.efficiency)).into_owned(),
        Format::Json => {
            let mut document = told::document(&outcome, &subject.start.efficiency, &date);
            if let (true, Some(map)) = (writes && !outcome.is_empty(), document.as_object_mut()) {
                map.insert("profile".to_owned(), path.display().to_string().into());
            }
            serde_json::to_string_pretty(&document)? + "\n"
        }
    };
    output::print(&text)?;
    if outcome.is_empty() {
        complain("error: these measurements tell no parameter; what each needs is listed above");
        return Err(Failure::Told.into());
    }
    remarks(&subject, &outcome);
    if !writes {
        return Ok(());
    }
    let yaml = document::profile(&outcome, &subject.start, &subject.target.vendor, &date);
    let written = if args.force { write_atomically(&path, &yaml) } else { write_new(&path, &yaml) };
    written.map_err(|error| color_eyre::eyre::eyre!("{} cannot be written: {error}", path.display()))?;
    complain(&format!("wrote {}", path.display()));
    Ok(())
}

/// What the user should know before relying on the profile.
fn remarks(subject: &Subject<'_>, outcome: &calibrate::Outcome) {
    let target = &subject.target.name;
    if outcome.figures.is_none() {
        complain(&format!(
            "note: no profile has coefficients for {target}: only efficiency factors are calibrated; --base NAME starts \
             from those of another"
        ));
    }
    if subject.target.efficiency.is_some() && outcome.efficiency != Efficiency::default() {
        complain(&format!("note: the entry of {target} has an `efficiency` of its own, which wins over the profile's"));
    }
}

/// Where a target's own profile is found by itself.
pub fn usual_place(globals: &Globals, target: &Target) -> PathBuf {
    let dir = globals.workload_dir.clone().unwrap_or_else(|| PathBuf::from("workload"));
    dir.join("profiles").join(format!("{}.yaml", stem_for(&target.name)))
}

/// A scenario of the target and a workload, as it stands.
pub fn standing(library: &Library, subject: &Subject<'_>) -> Option<Scenario> {
    let parts = Parts::of(library, subject.target, subject.workload?).ok()?;
    Some(Scenario::from_files(&parts))
}
