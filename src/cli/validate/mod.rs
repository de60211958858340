//! `atlas validate`.

mod fit;
mod tables;

use std::borrow::Cow;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use color_eyre::eyre::eyre;

use super::args::Globals;
use super::output::{self, write_stderr};
use super::{run_with_progress, save};
use atlas_core::plan::Engine;
use atlas_core::units;
use atlas_evidence::validate;
use atlas_evidence::validate::verdict::Verdict;
use atlas_evidence::validate::{MeasurementKind, ValidateError, scatter};
use atlas_perf::interval::Release;
use atlas_plan::search::Gauge;
use atlas_report::table::{Table, left, right};
use atlas_report::{Format, serialized};

/// Check predictions against published measurements, or against your own.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas validate                                  all shipped measurements
  atlas validate --kind training --source vTrain
  atlas validate --measurements mine.csv --format json
  atlas validate --kind latency --svg scatter.svg
  atlas validate --row ID                         explain the prediction of one row
  atlas validate --measured run.log prod.csv --target T --workload W
  atlas validate --engine event --kind training   use the simulation instead of the closed form

The error is predicted / measured - 1. Training rows are compared by tokens per second per accelerator, inference rows by \
the throughput they state, latency rows by TTFT and TPOT.

With --measured, predictions for a target are compared with your own measurements: rates must be within 15 %, latency \
percentiles within 10 % and scaling within 20 %; exit 1 if a check fails. The report also lists the age of each calibrated \
parameter and when to recalibrate.")]
pub struct Args {
    /// Measurements with the columns of workload/measurements/*.csv [default: the built-in tables]
    #[arg(long, value_name = "FILE.csv")]
    pub measurements: Option<PathBuf>,
    /// Kind of measurements
    #[arg(long, value_enum)]
    pub kind: Option<MeasurementKind>,
    /// Only sources whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub source: Option<String>,
    /// Refit the constants and report leave-one-source-out errors; takes minutes
    #[arg(long, conflicts_with_all = ["kind", "svg", "source", "measurements"])]
    pub fit: bool,
    /// Report the errors over all sources that are held out from every fit
    #[arg(long, conflicts_with_all = ["fit", "kind", "svg", "source", "measurements", "format"])]
    pub exam: bool,
    /// Explain the prediction of the row with this id
    #[arg(long, value_name = "ID", conflicts_with_all = ["fit", "format", "svg", "source"])]
    pub row: Option<String>,
    /// Ignore the software releases that rows state
    #[arg(long, conflicts_with_all = ["fit", "exam", "row", "scenarios"])]
    pub without_release: bool,
    /// Print the scenario of every row as input for `atlas run --batch`, without predicting it
    #[arg(long, conflicts_with_all = ["fit", "row", "svg", "source"])]
    pub scenarios: bool,
    /// Also write a scatter plot of predicted against measured
    #[arg(long, value_name = "FILE.svg")]
    pub svg: Option<PathBuf>,
    /// Engine: analytical, or event (takes minutes); with --measured also semi-empirical [default: analytical, or
    /// semi-empirical with --measured if the target names no accelerator]
    #[arg(long, value_name = "NAME", value_parser = engine, conflicts_with = "fit")]
    pub engine: Option<Engine>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Measurements of a target's own.
    #[command(flatten)]
    pub own: super::validate_measured::OwnArgs,
}

fn engine(text: &str) -> Result<Engine, String> {
    let reasoning = [Engine::Analytical, Engine::Event, Engine::SemiEmpirical];
    let found = Engine::named(text).filter(|engine| reasoning.contains(engine));
    found.ok_or_else(|| format!("expected one of {}", reasoning.map(Engine::name).join(", ")))
}

/// A table of measurements and its origin.
struct Measurements {
    kind: MeasurementKind,
    text: String,
    /// The user's file; `None` for built-in tables.
    path: Option<PathBuf>,
}

/// Maximum invalid cells that are listed.
const NAMED: usize = 20;

impl Measurements {
    /// Prints invalid cells to stderr.
    fn complain_of_bad_cells(&self) -> color_eyre::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let bad = validate::bad_cells(&self.text).map_err(|problem| self.named(problem))?;
        let file = path.display();
        for cell in bad.iter().take(NAMED) {
            write_stderr(&format!("{file}:{cell}; skipping the row"));
        }
        if bad.len() > NAMED {
            write_stderr(&format!("{file}: {} more invalid cells", bad.len() - NAMED));
        }
        Ok(())
    }

    /// Adds the file name to an error.
    fn named(&self, problem: validate::ValidateError) -> color_eyre::Report {
        match &self.path {
            Some(path) => eyre!("{}: {problem}", path.display()),
            None => problem.into(),
        }
    }
}

/// Tables selected on the command line.
fn tables(args: &Args) -> color_eyre::Result<Vec<Measurements>> {
    let Some(path) = &args.measurements else {
        let kinds = MeasurementKind::ALL.into_iter().filter(|kind| args.kind.is_none_or(|wanted| wanted == *kind));
        return kinds.map(|kind| Ok(Measurements { kind, text: validate::shipped(kind)?, path: None })).collect();
    };
    let text = atlas_document::sources::read_text(path).map_err(|problem| eyre!("{}: {problem}", path.display()))?;
    let named = |problem: ValidateError| eyre!("{}: {problem}", path.display());
    // The table is converted once; all further steps use the typed table.
    let text = match validate::table::with_current_columns(&text).map_err(named)? {
        Cow::Borrowed(_) => text,
        Cow::Owned(typed) => {
            write_stderr(&format!(
                "note: {} has the columns of version 0.1 and is converted; notes, source and date are ignored",
                path.display()
            ));
            typed
        }
    };
    let kind = args.kind.map_or_else(|| MeasurementKind::of(&text), Ok).map_err(named)?;
    Ok(vec![Measurements { kind, text, path: Some(path.clone()) }])
}

/// Prints the scenarios of all rows that have one.
fn scenarios(args: &Args) -> color_eyre::Result<()> {
    let mut out = std::io::stdout().lock();
    for table in tables(args)? {
        table.complain_of_bad_cells()?;
        let (lines, rows) = validate::scenarios(table.kind, &table.text).map_err(|problem| table.named(problem))?;
        for line in &lines {
            writeln!(out, "{line}")?;
        }
        if lines.len() < rows {
            let (kind, without) = (table.kind.name(), rows - lines.len());
            write_stderr(&format!(
                "{kind}: {without} of {rows} rows have no scenario; run `atlas validate` to see why"
            ));
        }
    }
    Ok(())
}

/// Evaluates the predictions for the measurements and prints the verdicts.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    if args.own.is_given() {
        return super::validate_measured::run(&args.own, args.engine, args.format, globals);
    }
    let engine = args.engine.unwrap_or(Engine::Analytical);
    if engine == Engine::SemiEmpirical {
        let problem = "--engine: semi-empirical cannot predict published rows, since it has no model architectures; use --measured FILE…";
        return Err(super::failure::Failure::usage([problem]).into());
    }
    if args.fit {
        return fit::fit(args.format, globals);
    }
    if args.exam {
        return fit::exam(globals);
    }
    if let Some(id) = &args.row {
        return row(id, &args, globals);
    }
    if args.scenarios {
        return scenarios(&args);
    }
    let gauge = Gauge::default();
    let method = validate::Method { engine, release: Release::assumed_if(args.without_release) };
    let mut judged = Vec::new();
    for table in tables(&args)? {
        table.complain_of_bad_cells()?;
        let work = || validate::judge_by(table.kind, &table.text, method, &gauge);
        let rows = run_with_progress(&gauge, Duration::from_millis(500), "rows", work)?
            .map_err(|problem| table.named(problem))?;
        judged.push((table.kind, rows));
    }
    let (done, of) = gauge.progress();
    let stopped = gauge.canceled() && done < of;
    let mut verdicts = judged;
    if let Some(source) = &args.source {
        let wanted = source.to_lowercase();
        for (_, rows) in &mut verdicts {
            rows.retain(|verdict| verdict.source.to_lowercase().contains(&wanted));
        }
        verdicts.retain(|(_, rows)| !rows.is_empty());
        if verdicts.is_empty() {
            return Err(eyre!("no source matches \"{source}\""));
        }
    }
    let all: Vec<Verdict> = verdicts.iter().flat_map(|(_, rows)| rows.iter().cloned()).collect();
    match args.format {
        Format::Table => {
            let text: String = verdicts.iter().map(|(kind, rows)| tables::page(*kind, rows)).collect();
            output::print(&globals.charset().write(&text))?;
        }
        Format::Csv => output::print(&tables::csv(&all))?,
        format => {
            let partial = stopped.then_some((done, of));
            output::print(&serialized(&tables::document(&verdicts, partial), format == Format::Yaml)?)?;
        }
    }
    if let Some(path) = &args.svg {
        let names: Vec<&str> = verdicts.iter().map(|(kind, _)| kind.name()).collect();
        let picture = scatter::svg(&all, &format!("Predicted against measured: {}", names.join(", ")));
        save::save(path, picture)?;
    }
    match stopped {
        true => Err(eyre!("interrupted after {done} of {of} rows: the output covers only these")),
        false => Ok(()),
    }
}

/// Explains one row: its cells, their interpretation, the time breakdown, prediction and measurement.
fn row(id: &str, args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    for table in tables(args)? {
        let engine = args.engine.unwrap_or(Engine::Analytical);
        let story = validate::story::explain_row(table.kind, &table.text, id, engine)
            .map_err(|problem| table.named(problem))?;
        if let Some(story) = story {
            return Ok(output::print(&globals.charset().write(&render(&story)))?);
        }
    }
    Err(eyre!("unknown row \"{id}\"; run `atlas validate --format csv` to list all ids"))
}

fn render(story: &validate::story::RowExplanation) -> String {
    let two = |rows: Vec<(String, String)>| {
        let mut table = Table::new([left(""), left("")]);
        rows.into_iter().for_each(|(name, value)| table.row([format!("  {name}"), value]));
        table.render()
    };
    let mut out = format!("the row states\n{}", two(story.states.clone()));
    let steps = story.steps.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    if !story.steps.is_empty() {
        out += &format!("\nread and predicted\n{}", two(steps.collect()));
    }
    if let Some(time) = &story.time {
        let mut table = Table::new([left(""), right(""), right("")]);
        for (part, seconds) in time.parts().filter(|(_, seconds)| *seconds > 0.0) {
            table.row([format!("  {}", part.name()), units::duration(seconds), units::percent(seconds / time.total())]);
        }
        table.row(["  all".to_owned(), units::duration(time.total()), units::percent(1.0)]);
        out += &format!("\nwhere the time goes\n{}", table.render());
    }
    out += "\npredicted against measured\n";
    for verdict in &story.verdicts {
        out += &match (verdict.predicted, verdict.measured, verdict.error()) {
            (Some(predicted), Some(measured), Some(error)) => format!(
                "  {}: {} predicted, {} measured, {:+.1} %; 90 % interval {} to {}\n",
                verdict.metric_name(),
                units::significant(predicted, 4),
                units::significant(measured, 4),
                100.0 * error,
                verdict.lower.map_or_else(String::new, |end| units::significant(end, 4)),
                verdict.upper.map_or_else(String::new, |end| units::significant(end, 4)),
            ),
            _ => format!("  {}: {}\n", verdict.metric_name(), verdict.reason.as_deref().unwrap_or("not predicted")),
        };
    }
    out
}
