//! `atlas calibrate`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::Value;

use super::args::{Globals, help_list};
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::{keep, pick, report, save};
use atlas_cluster::history::{Draft, EntryKind, readings_of};
use atlas_config::library::Library;
use atlas_config::profile::stem_for;
use atlas_config::{Target, Workload};
use atlas_evidence::calibrate;
use atlas_evidence::calibrate::columns::COLUMNS;
use atlas_evidence::calibrate::scripts;
use atlas_evidence::calibrate::scripts::ScriptTarget;
use atlas_evidence::calibrate::sources::{LabeledSource, label};
use atlas_evidence::calibrate::{Observation, RowPredictor, Start, document, plan};
use atlas_evidence::validate::columns::COLUMNS as TYPED;
use atlas_ingest::Warmup;
use atlas_plan::record::now;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_report::calibration as described;
use atlas_report::file_format::FileFormat;

/// Calibrate a target: fit coefficients and corrections of the analytical engine to measurements.
#[derive(Debug, clap::Args)]
#[command(after_long_help = after_long_help())]
pub struct Args {
    /// Logs, benchmark JSON, measurement YAML or CSV; FILE:NAME=VALUE,… adds settings that a file does not state; a
    /// directory is read recursively; - is stdin
    #[arg(value_name = "MEASUREMENTS", required_unless_present = "plan")]
    pub measurements: Vec<String>,
    /// Target that was measured
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Workload that ran; it fills in settings stated by neither the files nor --set
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Write the profile to this file; with --plan, the directory for the scripts
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Write a report to this file: .html, .pdf, .md, .json
    #[arg(long, value_name = "FILE", conflicts_with = "plan")]
    pub report: Option<PathBuf>,
    /// Do not write the profile
    #[arg(long, alias = "dry_run")]
    pub dry_run: bool,
    /// Overwrite existing files
    #[arg(long)]
    pub force: bool,
    /// Print which measurements would reduce uncertainty most, and write scripts that take them
    #[arg(long)]
    pub plan: bool,
    /// Profile to take initial coefficients from [default: the target's]
    #[arg(long, value_name = "NAME")]
    pub base: Option<String>,
    /// Add a setting that the files do not state: num_gpus=64, seq_len=4096, …; repeatable
    #[arg(long, value_name = "NAME=VALUE", long_help = set_help())]
    pub set: Vec<String>,
    /// Warm-up to discard from logs: the first step, all steps until the time settles, or N steps
    #[arg(long, value_name = "first|change-point|N", default_value = "first", value_parser = super::args::warmup)]
    pub warmup: Warmup,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// Tables
    #[default]
    Table,
    /// The whole result as one object
    Json,
}

const EXAMPLES: &str = "Examples:
  atlas calibrate train.log --target h100-sxm-8 --workload llama3.1-8b-train
  atlas calibrate sweep.csv ib.log:fabric=IB roce.log:fabric=RoCE --target NVIDIA_H100_8x_NVLink
  atlas calibrate graphs.log:cuda_graphs=on plain.log:cuda_graphs=off --target T --dry-run
  atlas calibrate measurements.yaml --target T --out profiles/mine.yaml --report calibration.html
  atlas calibrate --plan --target T                 suggest measurements; write their scripts

Measurements can be anything that `atlas ingest` reads or writes, or CSV with one row per measurement. The profile is \
written to workload/profiles/TARGET.yaml, where it takes effect for the target; use --out for another file and --force to \
overwrite. A fit that predicts its own measurements worse than before is not written.

One to three runs are enough to start: the analytical engine is corrected for effects of the cluster, the software, the \
model and the dominant operators, as far as the runs support (docs/calibration.md). Coefficients of the semi-empirical \
model are fitted one by one, as in the predecessor's calibration guide.";

fn after_long_help() -> String {
    let table: Vec<&str> = TYPED.iter().map(|column| column.name).collect();
    format!(
        "{EXAMPLES}\n\nCSV columns for measured values:\n\n{}\n\nCSV columns for settings, also accepted by --set:\n\n{}\n\n\
         Columns of workload/measurements/*.csv are accepted, too: {}.",
        columns(true),
        columns(false),
        table.join(", ")
    )
}

fn set_help() -> String {
    format!(
        "Add a setting that the files do not state; repeatable. The settings, which are also CSV columns, are:\n\n{}",
        columns(false)
    )
}

fn columns(figures: bool) -> String {
    let wanted = COLUMNS.iter().filter(|column| column.figure.is_some() == figures);
    help_list(wanted.map(|column| (column.name, column.help.to_owned())).collect())
}

/// How measurements are read.
pub struct Reading<'a> {
    /// Files, each with its settings.
    pub measurements: &'a [String],
    /// Settings for all files.
    pub set: &'a [String],
    /// Definition of the warm-up to discard.
    pub warmup: Warmup,
}

/// Reads all measurements. All invalid arguments are reported together. Files without measurements are reported, and
/// cause an error.
///
/// # Errors
/// An argument is invalid, or a file has no measurements.
pub fn gather(reading: &Reading<'_>) -> color_eyre::Result<Vec<Observation>> {
    let mut problems = Vec::new();
    let mut labels = Vec::new();
    for text in reading.set {
        label(text)
            .map(|label| labels.push(label))
            .unwrap_or_else(|problem| problems.push(format!("--set: {problem}")));
    }
    let mut files: Vec<LabeledSource> = Vec::new();
    for argument in reading.measurements {
        LabeledSource::parse(argument).map(|file| files.push(file)).unwrap_or_else(|problem| problems.push(problem));
    }
    if !problems.is_empty() {
        return Err(Failure::usage(problems).into());
    }
    let (mut rows, mut failed) = (Vec::new(), false);
    for mut file in files {
        file.labels = labels.iter().cloned().chain(file.labels).collect();
        let found = file.read(reading.warmup);
        found.notes.iter().for_each(|note| write_stderr(&format!("note: {note}")));
        found.problems.iter().for_each(|problem| write_stderr(&format!("error: {problem}")));
        failed |= !found.problems.is_empty();
        rows.extend(found.rows);
    }
    if failed { Err(Failure::Reported.into()) } else { Ok(rows) }
}

/// Target, workload, and starting point of a calibration.
pub struct Subject<'a> {
    /// The target.
    pub target: &'a Arc<Target>,
    /// The workload, if given.
    pub workload: Option<&'a Arc<Workload>>,
    /// Coefficients before the calibration.
    pub start: Start,
}

/// Resolves the names; all unknown ones are reported together.
///
/// # Errors
/// A name is unknown.
pub fn subject<'a>(
    library: &'a Library,
    target: &str,
    workload: Option<&str>,
    base: Option<&str>,
) -> Result<Subject<'a>, Failure> {
    let mut problems = atlas_document::Diagnostics::new();
    let target = library.target(target).map_err(|problem| problems.push(problem)).ok();
    let workload = workload.map(|name| library.workload(name)).transpose().map_err(|problem| problems.push(problem));
    let base = base.map(|name| library.profile(name)).transpose().map_err(|problem| problems.push(problem));
    let (Some(target), Ok(workload), Ok(base)) = (target, workload, base) else { return Err(problems.into()) };
    let mut start = Start::of(library, target);
    start.profile = base.map(Arc::clone).or(start.profile);
    Ok(Subject { target, workload, start })
}

/// Calibrates, prints the result and writes the profile.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    const REPORTS: [FileFormat; 4] = [FileFormat::Html, FileFormat::Pdf, FileFormat::Markdown, FileFormat::Json];
    let report = args.report.as_deref().map(|path| report::file(path, &REPORTS)).transpose()?;
    let library = pick::library(globals);
    let subject = subject(&library, &args.target, args.workload.as_deref(), args.base.as_deref())?;
    let rows = gather(&Reading { measurements: &args.measurements, set: &args.set, warmup: args.warmup })?;
    let bench = RowPredictor::new(&library, subject.target, subject.workload);
    if args.plan {
        return plan(&args, globals, &bench, &subject, &rows);
    }
    let path = args.out.clone().unwrap_or_else(|| default_path(globals, subject.target));
    let writes = !args.dry_run;
    if writes && !args.force {
        save::refuse_existing([path.as_path()], save::FORCE_OR_OTHER_FILE)?;
    }
    let outcome = calibrate::calibrate(&bench, &rows, &subject.start);
    let date = now().get(..10).unwrap_or_default().to_owned();
    let text = match args.format {
        Format::Table => globals.charset().write(&described::table(&outcome)).into_owned(),
        Format::Json => {
            let mut document = described::document(&outcome, &date);
            if let (true, Some(map)) = (writes && !outcome.is_empty(), document.as_object_mut()) {
                map.insert("profile".to_owned(), path.display().to_string().into());
            }
            serde_json::to_string_pretty(&document)? + "\n"
        }
    };
    output::print(&text)?;
    if let Some(report) = report {
        let document = match report.format {
            FileFormat::Json => {
                (serde_json::to_string_pretty(&described::document(&outcome, &date))? + "\n").into_bytes()
            }
            format => {
                let title = format!("Calibration of {}", outcome.target);
                report::render_blocks(format, &title, &described::blocks(&outcome, &date, &report::command()))?
            }
        };
        report.save(document)?;
    }
    if outcome.is_empty() {
        write_stderr("error: these measurements determine no parameter; see above for what each needs");
        return Err(Failure::Reported.into());
    }
    remarks(&subject, &outcome);
    if !writes {
        return Ok(());
    }
    let yaml = document::profile(&outcome, &subject.start, &subject.target.vendor, &date);
    if args.force {
        save::write(&path, &yaml)?;
    } else {
        save::write_new(&path, &yaml, save::FORCE_OR_OTHER_FILE)?;
    }
    write_stderr(&format!("wrote {}", path.display()));
    let body = described::document(&outcome, &date);
    keep::keep(EntryKind::Calibration, draft(&args, globals, &subject, &path, body));
    Ok(())
}

/// History entry: the fit, the runs that it is based on, and a fingerprint that links it to the predictions it
/// corrects.
fn draft(args: &Args, globals: &Globals, subject: &Subject<'_>, profile: &Path, body: Value) -> Draft {
    let files: Vec<String> = args
        .measurements
        .iter()
        .filter_map(|text| LabeledSource::parse(text).ok())
        .map(|named| keep::absolute(named.path))
        .collect();
    let entries = keep::entries(&[EntryKind::Run, EntryKind::Measurement]);
    let sources = readings_of(&entries, &files).into_iter().map(str::to_owned).collect();
    let mut inputs: std::collections::BTreeMap<String, Value> = [
        ("measurements", args.measurements.join(" ")),
        ("set", args.set.join(" ")),
        ("profile", keep::absolute(profile)),
    ]
    .map(|(name, value)| (name.to_owned(), value.into()))
    .into();
    // The library is loaded again so that it includes the new profile.
    let library = pick::library(globals);
    inputs
        .extend(library.corrections_for(subject.target).map(|corrections| keep::contents_of_corrections(corrections)));
    Draft {
        target: Some(subject.target.name.to_string()),
        workload: args.workload.clone(),
        figures: keep::numbers(&body),
        inputs,
        sources,
        body,
        ..Draft::default()
    }
}

/// Prints what the user should know before relying on the profile.
fn remarks(subject: &Subject<'_>, outcome: &calibrate::Outcome) {
    let target = &subject.target.name;
    if outcome.figures.is_none() {
        write_stderr(&format!(
            "note: no profile has coefficients for {target}, so only corrections of the analytical engine are calibrated; \
             --base NAME starts from those of another"
        ));
    }
}

/// Default path of a target's own profile.
pub fn default_path(globals: &Globals, target: &Target) -> PathBuf {
    let dir = globals.workload_dir.clone().unwrap_or_else(|| PathBuf::from("workload"));
    dir.join("profiles").join(format!("{}.yaml", stem_for(&target.name)))
}

/// Prints the most useful measurements, and writes scripts that take them.
fn plan(
    args: &Args,
    globals: &Globals,
    bench: &RowPredictor<'_>,
    subject: &Subject<'_>,
    rows: &[Observation],
) -> color_eyre::Result<()> {
    let outcome = (!rows.is_empty()).then(|| calibrate::calibrate(bench, rows, &subject.start));
    let today = now().get(..10).unwrap_or_default().to_owned();
    let plan = plan::plan(bench, &subject.start, outcome.as_ref(), &today);
    let probe = bench.library.workloads().iter().find_map(|workload| {
        let parts = Parts::of(bench.library, subject.target, workload).ok()?;
        Scenario::from_files(&parts).machine
    });
    let site = ScriptTarget { target: subject.target, machine: probe.as_ref() };
    let files = scripts::scripts(&site, &plan.steps);
    let dir = args.out.clone().unwrap_or_else(|| Path::new("calibration").join(stem_for(&subject.target.name)));
    let mut document = serde_json::to_value(&plan)?;
    if let (Some(map), false) = (document.as_object_mut(), args.dry_run) {
        map.insert("directory".to_owned(), dir.display().to_string().into());
        map.insert("files".to_owned(), files.iter().map(|file| Value::from(file.name.as_str())).collect());
    }
    let text = match args.format {
        Format::Table => globals.charset().write(&described::plan(&subject.target.name, &plan)).into_owned(),
        Format::Json => serde_json::to_string_pretty(&document)? + "\n",
    };
    output::print(&text)?;
    if args.dry_run {
        return Ok(());
    }
    let paths: Vec<PathBuf> = files.iter().map(|file| dir.join(&file.name)).collect();
    if !args.force {
        save::refuse_existing(paths.iter().map(PathBuf::as_path), save::FORCE_OR_OTHER_DIRECTORY)?;
    }
    for (file, path) in files.iter().zip(&paths) {
        save::write(path, &file.text)?;
        if file.executable {
            save::make_executable(path)?;
        }
    }
    write_stderr(&format!("wrote {} files to {}", files.len(), dir.display()));
    Ok(())
}
