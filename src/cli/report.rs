//! `atlas report`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::goal::{self, Goal};
use super::output::{self, write_stderr};
use super::pick;
use super::run_with_progress;
use super::save;
use atlas_config::library::Library;
use atlas_core::escape;
use atlas_document::{Diagnostics, Severity};
use atlas_plan::knob::Overrides;
use atlas_plan::record::now;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::freed;
use atlas_plan::search::{Gauge, Methodology, optimize};
use atlas_report::comparison::{Column, Comparison};
use atlas_report::document::DocumentFormat;
use atlas_report::file_format::{self, FileFormat};
use atlas_report::study::{Block, Entry, Study, content, html, markdown, optimum};
use atlas_report::summary::Summary;
use atlas_report::sweep;
use atlas_report::{Format, pdf, read};

/// Summarize saved records, or write a full study of a workload.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas report --records out --out out/report.md
  atlas report --format csv > means.csv
  atlas report --records out --out out/report.html
  atlas report --target h100-sxm-8 --target mi300x-8 --workload llama3.1-70b-serve \\
    --out study.html
  atlas report --workload llama3.1-70b-serve --methodology maximum-performance --tpot 50 \\
    --out best.html
  atlas report --target h100-sxm-8 --workload llama3.1-70b-serve --out study.pdf
  atlas report --sweep sweep.csv --out sweep.html

A report on records is a table of means in Markdown, CSV, JSON or YAML. With --target, or as HTML, PDF or PNG, it is a \
study: recommendation, comparison, charts, breakdowns, assumptions and their sources, and the command that \
reproduces it.")]
pub struct Args {
    /// Directory or file with records; repeatable [default: out]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["target", "workload"])]
    pub records: Vec<PathBuf>,
    /// Target to study; repeatable, or separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "workload")]
    pub target: Vec<String>,
    /// Workload to study; without --target, on every target
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Use the same knobs for all targets, or the best of each, with the search described [default: identical-config]
    #[arg(long, value_parser = goal::methodology(), value_name = "METHOD", requires = "workload", conflicts_with_all = ["records", "sweep"])]
    pub methodology: Option<Methodology>,
    /// Report on a sweep (.csv) instead of records: its best points and curves over its knobs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["records", "target", "workload"])]
    pub sweep: Option<PathBuf>,
    /// Objective and constraints under maximum-performance.
    #[command(flatten)]
    pub goal: Goal,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Output file: .html, .pdf, .md, .png (charts only), .csv, .json or .yaml
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Prints the report, or writes it to a file.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    // An unsupported file extension is rejected before anything is computed.
    let to = args.out.as_deref().map(|out| file(out, &FileFormat::ALL)).transpose()?;
    let methodology = args.methodology.unwrap_or_default();
    let unheeded = args.goal.given_flags();
    let searches = methodology == Methodology::MaximumPerformance;
    // A sweep is ranked by the objective; other search flags do not apply.
    let described = args.sweep.is_some() && unheeded == ["--objective"];
    if !searches && !unheeded.is_empty() && !described {
        let flags = unheeded.join(", ");
        return Err(Failure::usage([format!("{flags} requires --methodology maximum-performance")]).into());
    }
    if let Some(path) = &args.sweep {
        return sweep(path, &args, to, globals);
    }
    if args.workload.is_some() {
        return study(&args, to, globals);
    }
    let records = if args.records.is_empty() { vec![PathBuf::from("out")] } else { args.records.clone() };
    let mut problems = Diagnostics::new();
    let mut entries = Vec::new();
    for path in &records {
        entries.extend(read::entries(path, &mut problems));
    }
    for problem in &problems {
        write_stderr(&problem.to_string());
    }
    let summary = Summary::of(&entries);
    if summary.rows.is_empty() {
        let places: Vec<String> = records.iter().map(|path| path.display().to_string()).collect();
        return Err(color_eyre::eyre::eyre!("no records in {}; create one with `atlas run`", places.join(", ")));
    }
    let text = summary.write(args.format)?;
    match args.format {
        Format::Table => output::print(&globals.charset().write(&text))?,
        _ => output::print(&text)?,
    }
    if let Some(to) = to {
        let document = match to.format {
            FileFormat::Csv => summary.write(Format::Csv)?.into_bytes(),
            FileFormat::Json => summary.write(Format::Json)?.into_bytes(),
            FileFormat::Yaml => summary.write(Format::Yaml)?.into_bytes(),
            FileFormat::Markdown => summary.markdown().into_bytes(),
            FileFormat::Html | FileFormat::Pdf | FileFormat::Png => {
                let studies = of_records(&records, &pick::library(globals))?;
                let blocks: Vec<Block> = studies.iter().flat_map(content::blocks).collect();
                render_blocks(to.format, &html::title(&studies), &blocks)?
            }
        };
        to.save(document)?;
    }
    // An incomplete summary must not look like a complete one.
    if problems.has_errors() { Err(Failure::Reported.into()) } else { Ok(()) }
}

/// An output file and its format.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputFile<'a> {
    path: &'a Path,
    /// Format given by the extension.
    pub format: FileFormat,
}

/// Determines the format of a file, out of the supported ones.
pub(super) fn file<'a>(path: &'a Path, possible: &[FileFormat]) -> Result<OutputFile<'a>, Failure> {
    let format = FileFormat::of(path, possible).map_err(|problem| Failure::usage([problem]))?;
    Ok(OutputFile { path, format })
}

impl OutputFile<'_> {
    /// Writes the file and prints its path.
    pub(super) fn save(self, document: impl AsRef<[u8]>) -> color_eyre::Result<()> {
        Ok(save::save(self.path, document)?)
    }
}

/// Renders blocks in a document format.
pub(super) fn render_blocks(format: FileFormat, title: &str, blocks: &[Block]) -> color_eyre::Result<Vec<u8>> {
    Ok(match format {
        FileFormat::Pdf => pdf::write(title, blocks),
        FileFormat::Png => file_format::picture(blocks)
            .ok_or_else(|| color_eyre::eyre::eyre!("no charts to write as PNG; use .html or .pdf"))??,
        FileFormat::Html => html::page(title, blocks).into_bytes(),
        _ => markdown::text(blocks).into_bytes(),
    })
}

/// Command line that reproduces the report.
pub(super) fn command() -> String {
    // Arguments may be file names that are not valid UTF-8.
    let words = std::env::args_os().skip(1).map(|word| escape::shell(&word.to_string_lossy()));
    std::iter::once("atlas".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

/// Writes a study of the named targets, or of all.
fn study(args: &Args, to: Option<OutputFile<'_>>, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let workload = args.workload.as_deref().unwrap_or_default();
    let all = library.targets().iter().map(|target| target.name.to_string());
    let names: Vec<String> = if args.target.is_empty() { all.collect() } else { args.target.clone() };
    let mut study = Study { created_at: now(), command: command(), entries: Vec::new(), failed: Vec::new() };
    let mut searches = Vec::new();
    let gauge = Gauge::default();
    let mut missing = Diagnostics::new();
    let mut refused = None;
    for name in names {
        match Parts::find(&library, &name, workload) {
            Ok(parts) => {
                let overrides = args.knobs.overrides(parts.fabrics())?;
                let found = match args.methodology {
                    Some(Methodology::MaximumPerformance) => {
                        match best(&name, parts, overrides, args, &gauge, &mut searches) {
                            // The engine of some targets lacks metrics of the goal; the others are reported.
                            Err(error) if error.is::<Failure>() => {
                                let why = error.to_string();
                                refused.get_or_insert(error);
                                Err(why)
                            }
                            found => found?,
                        }
                    }
                    _ => Entry::of(name.clone(), parts, overrides),
                };
                if gauge.canceled() {
                    write_stderr("interrupted: not all targets were searched; nothing written");
                    return Err(Failure::Reported.into());
                }
                match found {
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
        if let Some(error) = refused {
            return Err(error);
        }
        let why: Vec<String> = study.failed.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        return Err(color_eyre::eyre::eyre!("no target has an estimate: {}", why.join("; ")));
    }
    let studies = [study];
    let described = Reported { studies: &studies, methodology: args.methodology, searches };
    let text = described.write(args.format)?;
    // The report is not printed in addition to being written to a file.
    match (&args.out, args.format) {
        (Some(_), Format::Table) => {}
        (_, Format::Table) => output::print(&globals.charset().write(&text))?,
        _ => output::print(&text)?,
    }
    if let Some(to) = to {
        let document = match to.format {
            FileFormat::Csv => described.write(Format::Csv)?.into_bytes(),
            FileFormat::Json => described.write(Format::Json)?.into_bytes(),
            FileFormat::Yaml => described.write(Format::Yaml)?.into_bytes(),
            format => render_blocks(format, &html::title(&studies), &described.blocks())?,
        };
        to.save(document)?;
    }
    Ok(())
}

/// Entry of a target with its own best knobs; knobs set on the command line are kept. A description of the search is
/// added to `searches`.
fn best(
    name: &str,
    parts: Parts,
    held: Overrides,
    args: &Args,
    gauge: &Gauge,
    searches: &mut Vec<Block>,
) -> color_eyre::Result<Result<Entry, String>> {
    let start = match Scenario::resolve(&parts, &held) {
        Ok(start) => start,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let keeps = |knob| held.contains_key(&knob) || args.goal.has_axis(knob);
    let requested = start;
    let start = freed(&requested, &keeps, &parts);
    let problem = args.goal.problem(&requested, &start, &parts, &held, None)?;
    let found = run_with_progress(gauge, Duration::from_millis(500), "candidates", || optimize(&problem, gauge))?;
    searches.extend(optimum::blocks(&problem, &found));
    let Some(best) = found.best else {
        return Ok(Err("no combination of the knobs meets all constraints".to_owned()));
    };
    let mut overrides = held;
    overrides.extend(best.changes.iter().cloned());
    let entry = Entry {
        name: name.to_owned(),
        overrides,
        scenario: best.scenario,
        estimate: best.estimate,
        changes: best.changes,
        parts: parts.clone(),
    };
    Ok(Ok(entry))
}

/// Studies with the methodology and descriptions of the searches.
struct Reported<'a> {
    studies: &'a [Study],
    methodology: Option<Methodology>,
    searches: Vec<Block>,
}

impl Reported<'_> {
    fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = self.studies.iter().flat_map(content::blocks).collect();
        let Some(methodology) = self.methodology else { return blocks };
        blocks.push(Block::Heading(2, format!("Methodology: {}", methodology.name())));
        blocks.push(Block::Text(
            match methodology {
                Methodology::IdenticalConfig => {
                    "All targets use the same knobs, so the differences are due to the hardware."
                }
                Methodology::MaximumPerformance => {
                    "Every target uses its own best knobs under the same constraints, as a buyer would. \
                     The table below the comparison lists where the configurations differ; how each was found:"
                }
            }
            .to_owned(),
        ));
        blocks.extend(self.searches.iter().cloned());
        blocks
    }

    fn markdown(&self) -> String {
        markdown::text(&self.blocks())
    }

    fn write(&self, format: Format) -> color_eyre::Result<String> {
        if format == Format::Table { Ok(self.markdown()) } else { write(self.studies, format) }
    }
}

/// Reports on a sweep file.
fn sweep(path: &Path, args: &Args, to: Option<OutputFile<'_>>, globals: &Globals) -> color_eyre::Result<()> {
    let file = std::fs::File::open(path)
        .map_err(|error| color_eyre::eyre::eyre!("cannot read {}: {error}", path.display()))?;
    let name = path.display().to_string();
    let described = sweep::read(std::io::BufReader::new(file), &name, args.goal.objective.as_deref());
    let document = described.map_err(|problem| color_eyre::eyre::eyre!(problem))?;
    let kind = match args.format {
        Format::Table | Format::Yaml => DocumentFormat::Markdown,
        Format::Json => DocumentFormat::Json,
        Format::Csv => DocumentFormat::Csv,
    };
    let text = document.write(kind);
    match (&args.out, args.format) {
        (Some(_), Format::Table) => {}
        (_, Format::Table) => output::print(&globals.charset().write(&text))?,
        _ => output::print(&text)?,
    }
    if let Some(to) = to {
        let text = match to.format {
            FileFormat::Csv => document.write(DocumentFormat::Csv).into_bytes(),
            FileFormat::Json => document.write(DocumentFormat::Json).into_bytes(),
            FileFormat::Yaml => {
                let rows: serde_json::Value = serde_json::from_str(&document.write(DocumentFormat::Json))?;
                serde_yaml::to_string(&rows)?.into_bytes()
            }
            format => render_blocks(format, &document.title, &document.blocks)?,
        };
        to.save(text)?;
    }
    Ok(())
}

/// Studies as Markdown, or their comparisons as data.
fn write(studies: &[Study], format: Format) -> color_eyre::Result<String> {
    let comparisons = studies.iter().map(|study| Comparison {
        workload: study.entries.first().map_or_else(String::new, |entry| entry.parts.workload.name.to_string()),
        columns: study
            .entries
            .iter()
            .map(|entry| Column {
                target: entry.name.clone(),
                answer: Ok((entry.scenario.clone(), entry.estimate.clone())),
                adapted: Vec::new(),
                changes: entry.changes.clone(),
            })
            .collect(),
        baseline: 0,
        chosen: Vec::new(),
    });
    let pieces: Vec<String> = match format {
        Format::Table => return Ok(markdown::write(studies)),
        Format::Json => comparisons.map(|comparison| comparison.json()).collect::<Result<_, _>>()?,
        Format::Yaml => comparisons.map(|comparison| comparison.yaml()).collect::<Result<_, _>>()?,
        Format::Csv => comparisons.map(|comparison| comparison.csv()).collect(),
    };
    Ok(pieces.concat())
}

/// Builds studies from records: one per workload, with its records in the order of the files.
fn of_records(records: &[PathBuf], library: &Library) -> color_eyre::Result<Vec<Study>> {
    let mut studies: Vec<(String, Study)> = Vec::new();
    let mut described = Diagnostics::new();
    for path in records.iter().flat_map(|path| read::files(path, &mut Diagnostics::new())) {
        let mut problems = Diagnostics::new();
        let Some(start) = read::start(&path, library, &mut problems) else {
            described.extend(problems);
            continue;
        };
        let workload = start.parts.workload.name.to_string();
        let target = start.parts.target.name.to_string();
        let at = studies.iter().position(|(name, _)| *name == workload).unwrap_or_else(|| {
            let empty = Study { created_at: now(), command: command(), entries: Vec::new(), failed: Vec::new() };
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
    for problem in described.iter().filter(|problem| problem.severity == Severity::Error) {
        write_stderr(&problem.to_string());
    }
    let studies: Vec<Study> = studies.into_iter().map(|(_, study)| study).filter(|s| !s.entries.is_empty()).collect();
    if studies.is_empty() {
        return Err(color_eyre::eyre::eyre!("no record has a known target and workload"));
    }
    Ok(studies)
}
