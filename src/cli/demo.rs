//! `atlas demo`.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::args::{Globals, seconds};
use super::failure::Failure;
use super::output::{self, Charset, write_stderr};
use super::progress::Progress;
use super::{pick, tui};
use crate::demo::{Demo, Demos, HeadlessReport, StepReport, run_headless};
use atlas_document::suggestion::{clause, nearest};
use atlas_report::table::{Table, left, right};

/// Play a guided tour, or check its expectations.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas demo                                play the first tour in the terminal
  atlas demo gpt5_1t_training --auto 20     play this tour, advancing every 20 seconds
  atlas demo --list                         list all tours
  atlas demo --headless                     check all tours; exit 1 on failure

Tours are YAML files: the built-in ones, then demo/ in your configuration directory, then ./demo. Later files replace \
earlier ones of the same name.")]
pub struct Args {
    /// Tour; several with --headless [default: the first, or all with --headless]
    #[arg(value_name = "NAME")]
    pub name: Vec<String>,
    /// List the tours
    #[arg(long, conflicts_with_all = ["name", "headless", "auto"])]
    pub list: bool,
    /// Check every expectation, run and optimize the scenario on its targets, and write records and a report; the
    /// default without a terminal
    #[arg(long, conflicts_with = "auto")]
    pub headless: bool,
    /// Advance automatically after this many seconds per step
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub auto: Option<Duration>,
    /// Directory for records and reports
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
}

/// Plays a tour or checks tours.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    let (demos, problems) = Demos::load(globals.sources().config_dir.as_deref(), Some(Path::new("")));
    for problem in &problems {
        write_stderr(&problem.to_string());
    }
    if args.list {
        return Ok(output::print(&globals.charset().write(&list(&demos)))?);
    }
    let chosen = choose(&demos, &args.name)?;
    let terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if !args.headless && terminal {
        return play(&chosen, args, globals);
    }
    if !args.headless {
        write_stderr(
            "not a terminal, so the tours are checked instead of played; use --headless to silence this message",
        );
    }
    check(&chosen, &args.out, globals)?;
    // A tour that could not be read has not been checked, so the check fails.
    if problems.has_errors() && args.name.is_empty() { Err(Failure::Reported.into()) } else { Ok(()) }
}

fn list(demos: &[Arc<Demo>]) -> String {
    let mut table = Table::new([left("name"), right("steps"), left("title")]);
    for demo in demos {
        table.row([demo.name.to_string(), demo.steps.len().to_string(), demo.title.clone()]);
    }
    table.render()
}

/// Tours with these names, or all; the error lists all unknown names.
fn choose(demos: &[Arc<Demo>], names: &[String]) -> Result<Vec<Arc<Demo>>, Failure> {
    if demos.is_empty() {
        return Err(Failure::usage(["no tours found"]));
    }
    if names.is_empty() {
        return Ok(demos.to_vec());
    }
    let known = || demos.iter().map(|demo| &*demo.name);
    let mut chosen: Vec<Arc<Demo>> = Vec::new();
    let mut problems = Vec::new();
    for name in names {
        match demos.iter().find(|demo| &*demo.name == name) {
            Some(demo) if chosen.iter().any(|twice| twice.name == demo.name) => {}
            Some(demo) => chosen.push(Arc::clone(demo)),
            None => {
                let near = clause(nearest(name, known()));
                problems.push(format!(
                    "unknown tour `{name}`; known tours: {}{near}",
                    known().collect::<Vec<_>>().join(", ")
                ));
            }
        }
    }
    if problems.is_empty() { Ok(chosen) } else { Err(Failure::usage(problems)) }
}

/// Opens the TUI with the tour.
fn play(chosen: &[Arc<Demo>], args: Args, globals: &Globals) -> color_eyre::Result<()> {
    if args.name.len() > 1 {
        return Err(Failure::usage(["only one tour can be played at a time; use --headless to check several"]).into());
    }
    let demo = chosen.first().map(|demo| demo.name.to_string());
    tui::play(demo, args.auto, args.out, globals)
}

/// Checks all tours and prints every step. Fails at the end if a step or a target failed.
fn check(chosen: &[Arc<Demo>], out: &Path, globals: &Globals) -> color_eyre::Result<()> {
    let library = pick::library(globals);
    let charset = globals.charset();
    let targets = chosen.iter().map(|demo| demo.targets.len() as u64).sum();
    let mut progress = Progress::new(Some(targets), "{bar:30} {pos} of {len} targets, {eta} left", true);
    let mut failed = false;
    for demo in chosen {
        let report = run_headless(demo, &library, out, jiff::Timestamp::now(), &mut || progress.advance(1))?;
        failed |= !report.passed();
        progress.suspend(|| output::print(&charset.write(&summary(demo, &report, charset))))?;
    }
    if failed { Err(Failure::Reported.into()) } else { Ok(()) }
}

fn mark(passed: bool, charset: Charset) -> &'static str {
    match (passed, charset) {
        (true, Charset::Unicode) => "✓",
        (false, Charset::Unicode) => "✗",
        (true, Charset::Ascii) => "ok    ",
        (false, Charset::Ascii) => "FAILED",
    }
}

/// One line per step, with its failed expectations; then the targets that could not run, and the path of the report.
fn summary(demo: &Demo, report: &HeadlessReport, charset: Charset) -> String {
    let mut out = format!("{}: {}\n", demo.name, demo.title);
    for (i, step) in report.steps.iter().enumerate() {
        let StepReport { title, outcomes, .. } = step;
        let held = outcomes.iter().filter(|outcome| outcome.passed).count();
        let count = format!("{held} of {}", outcomes.len());
        let _ = writeln!(out, "{} {:>2}  {title}  ({count})", mark(step.passed(), charset), i + 1);
        for failure in step.failures() {
            let _ = writeln!(out, "        {failure}");
        }
    }
    for run in &report.runs {
        if let Err(error) = &run.run {
            let _ = writeln!(out, "{} {}: {error}", mark(false, charset), run.target);
        }
    }
    let (held, all) = report.held();
    let path = report.dir.join("report.md");
    let _ = writeln!(out, "{held} of {all} expectations hold; wrote {}\n", path.display());
    out
}
