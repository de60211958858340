//! `atlas report`.

use std::path::{Path, PathBuf};

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::output::{self, complain};
use super::pick;
use super::run::writing;
use crate::library::Library;
use crate::record::{now, write_atomically};
use crate::report::comparison::{Column, Comparison};
use crate::report::study::{Entry, Study, html, markdown};
use crate::report::summary::Summary;
use crate::report::{Format, read};
use crate::scenario::Parts;
use crate::spec::{Diagnostics, Severity};

/// Summarise records, or tell of targets and a workload in full.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas report --records out --out out/report.md
  atlas report --format csv > means.csv
  atlas report --records out --out out/report.html
  atlas report --target h100-sxm-8 --target mi300x-8 --workload llama3.1-70b-serve --out study.html

A report on records is a table of means in Markdown, CSV, JSON or YAML. As HTML, and for targets named here, it is a \
study: recommendation, comparison, charts, breakdowns, assumptions and their sources, and the command that makes it \
again.")]
pub struct Args {
    /// Directory of records, or a file of them; repeatable [default: out]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["target", "workload"])]
    pub records: Vec<PathBuf>,
    /// Target of a study, by name; repeatable
    #[arg(long, value_name = "NAME", requires = "workload")]
    pub target: Vec<String>,
    /// Workload of a study, by name [without --target: on every target]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// File to write the report to: .html, .md, .csv, .json or .yaml, anything else is Markdown
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Prints the report, and writes it where asked.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    if args.workload.is_some() {
        return study(&args, globals);
    }
    let records = if args.records.is_empty() { vec![PathBuf::from("out")] } else { args.records.clone() };
    let mut problems = Diagnostics::new();
    let mut entries = Vec::new();
    for path in &records {
        entries.extend(read::entries(path, &mut problems));
    }
    for problem in &problems {
        complain(&problem.to_string());
    }
    let summary = Summary::of(&entries);
    if summary.rows.is_empty() {
        let places: Vec<String> = records.iter().map(|path| path.display().to_string()).collect();
        return Err(color_eyre::eyre::eyre!("no records in {}; `atlas run` writes some", places.join(", ")));
    }
    let text = summary.write(args.format)?;
    match args.format {
        Format::Table => output::print(&globals.charset().write(&text))?,
        _ => output::print(&text)?,
    }
    if let Some(out) = &args.out {
        let document = match extension(out) {
            "csv" => summary.write(Format::Csv)?,
            "json" => summary.write(Format::Json)?,
            "yaml" | "yml" => summary.write(Format::Yaml)?,
            "html" | "htm" => html::write(&of_records(&records, &pick::library(globals))?),
            _ => summary.markdown(),
        };
        save(out, &document)?;
    }
    // A summary of some of the records must not pass for one of all.
    if problems.has_errors() { Err(Failure::Told.into()) } else { Ok(()) }
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn save(out: &Path, document: &str) -> color_eyre::Result<()> {
    write_atomically(out, document).map_err(|error| writing(out, &error))?;
    complain(&format!("wrote {}", out.display()));
    Ok(())
}

/// The command line as it was given, to be given again.
pub(super) fn command() -> String {
    let quoted = |word: String| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let words = std::env::args().skip(1).map(quoted);
    std::iter::once("atlas".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A study of the named targets, or of all.
fn study(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let workload = args.workload.as_deref().unwrap_or_default();
    let all = library.targets().iter().map(|target| target.name.to_string());
    let names: Vec<String> = if args.target.is_empty() { all.collect() } else { args.target.clone() };
    let mut study = Study { made: now(), command: command(), entries: Vec::new(), failed: Vec::new() };
    let mut missing = Diagnostics::new();
    for name in names {
        match Parts::find(&library, &name, workload) {
            Ok(parts) => {
                let overrides = args.knobs.overrides(parts.fabrics())?;
                match Entry::of(name.clone(), parts, overrides) {
                    Ok(entry) => study.entries.push(entry),
                    Err(why) => study.failed.push((name, why)),
                }
            }
            Err(problems) => missing.extend(problems),
        }
    }
    if missing.has_errors() {
        return Err(Failure::from(missing).into());
    }
    if study.entries.is_empty() {
        let why: Vec<String> = study.failed.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        return Err(color_eyre::eyre::eyre!("no target can be answered: {}", why.join("; ")));
    }
    let studies = [study];
    let text = write(&studies, args.format)?;
    // What goes to a file need not be said as well.
    match (&args.out, args.format) {
        (Some(_), Format::Table) => {}
        (_, Format::Table) => output::print(&globals.charset().write(&text))?,
        _ => output::print(&text)?,
    }
    if let Some(out) = &args.out {
        let document = match extension(out) {
            "html" | "htm" => html::write(&studies),
            "csv" => write(&studies, Format::Csv)?,
            "json" => write(&studies, Format::Json)?,
            "yaml" | "yml" => write(&studies, Format::Yaml)?,
            _ => markdown::write(&studies),
        };
        save(out, &document)?;
    }
    Ok(())
}

/// Studies in Markdown, or their comparison as data.
fn write(studies: &[Study], format: Format) -> color_eyre::Result<String> {
    let comparisons = studies.iter().map(|study| Comparison {
        workload: study.entries.first().map_or_else(String::new, |entry| entry.parts.workload.name.to_string()),
        columns: study
            .entries
            .iter()
            .map(|entry| Column {
                target: entry.name.clone(),
                answer: Ok((entry.scenario.clone(), entry.estimate.clone())),
            })
            .collect(),
        baseline: 0,
    });
    let pieces: Vec<String> = match format {
        Format::Table => return Ok(markdown::write(studies)),
        Format::Json => comparisons.map(|comparison| comparison.json()).collect::<Result<_, _>>()?,
        Format::Yaml => comparisons.map(|comparison| comparison.yaml()).collect::<Result<_, _>>()?,
        Format::Csv => comparisons.map(|comparison| comparison.csv()).collect(),
    };
    Ok(pieces.concat())
}

/// The studies that records make: one a workload, its records in the order of their files.
fn of_records(records: &[PathBuf], library: &Library) -> color_eyre::Result<Vec<Study>> {
    let mut studies: Vec<(String, Study)> = Vec::new();
    let mut told = Diagnostics::new();
    for path in records.iter().flat_map(|path| read::files(path, &mut Diagnostics::new())) {
        let mut problems = Diagnostics::new();
        let Some(start) = read::start(&path, library, &mut problems) else {
            told.extend(problems);
            continue;
        };
        let workload = start.parts.workload.name.to_string();
        let target = start.parts.target.name.to_string();
        let at = studies.iter().position(|(name, _)| *name == workload).unwrap_or_else(|| {
            let empty = Study { made: now(), command: command(), entries: Vec::new(), failed: Vec::new() };
            studies.push((workload, empty));
            studies.len() - 1
        });
        let Some((_, study)) = studies.get_mut(at) else { continue };
        let times = study.entries.iter().filter(|entry| entry.parts.target.name == start.parts.target.name).count();
        let name = if times > 0 { format!("{target} ({})", times + 1) } else { target };
        match Entry::of(name.clone(), start.parts, start.overrides) {
            Ok(entry) => study.entries.push(entry),
            Err(why) => study.failed.push((name, why)),
        }
    }
    for problem in told.iter().filter(|problem| problem.severity == Severity::Error) {
        complain(&problem.to_string());
    }
    let studies: Vec<Study> = studies.into_iter().map(|(_, study)| study).filter(|s| !s.entries.is_empty()).collect();
    if studies.is_empty() {
        return Err(color_eyre::eyre::eyre!("no record names a target and a workload of the files"));
    }
    Ok(studies)
}
