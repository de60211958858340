//! `atlas optimize`.

mod best;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::args::{Globals, KnobArgs, Method, milliseconds};
use super::failure::Failure;
use super::goal::Goal;
use super::output::{self, write_stderr};
use super::save::write_error;
use super::{keep, pick};
use atlas_cluster::history::EntryKind;
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_core::units;
use atlas_document::Diagnostics;
use atlas_evidence::support;
use atlas_plan::estimate::METRICS;
use atlas_plan::estimate::digits;
use atlas_plan::knob::{Knob, Overrides};
use atlas_plan::record::Record;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::hill_climb::{HillClimb, hill_climb};
use atlas_report as report;
use atlas_report::table::{Table, left, right};
use atlas_report::{Format, rows};

/// Look for better knobs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas optimize --record out/last_run.json --sla 100.0 --out out
  atlas optimize --target h100-sxm-8 --workload llama3.1-70b-serve --ttft 500 --tpot 30
  atlas optimize --target T --workload W --objective cost --tpot 50 --ttft 2000 \\
    --front throughput,interactivity
  atlas optimize --target T --workload W --over tp=1,2,4,8 --over micro=1..16 \\
    --where 'headroom>=10%'

The exhaustive method (default for the analytical engine) evaluates every combination of the knobs and reports what each \
constraint costs. The hill-climb method comes from the predecessor system and is the default for its calibrated model: it \
tries six single changes to the starting knobs, ignores the schedule, and keeps a change that is more than 3 % faster \
and, in inference, within the SLA.")]
pub struct Args {
    /// Record to start from
    #[arg(long, value_name = "FILE", required_unless_present_all = ["target", "workload"])]
    pub record: Option<PathBuf>,
    /// Target to start from, instead of a record
    #[arg(long, value_name = "NAME", conflicts_with = "record", requires = "workload")]
    pub target: Option<String>,
    /// Workload to start from, instead of a record
    #[arg(long, value_name = "NAME", conflicts_with = "record", requires = "target")]
    pub workload: Option<String>,
    /// Label that groups records, saved with the record [default: the record's, else the workload's, else parity]
    #[arg(long, value_name = "NAME")]
    pub track: Option<String>,
    /// Maximum p99 latency of inference, ms [default: 100 for hill-climb, else none]
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub sla: Option<f64>,
    /// Search method [default: exhaustive with the analytical engine, else hill-climb]
    #[arg(long, value_enum)]
    pub method: Option<Method>,
    /// Objective and constraints of the exhaustive method.
    #[command(flatten)]
    pub goal: Goal,
    /// Knobs, applied on top of those in the record.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Directory to write the record of the result to
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Bound on p99 latency in the predecessor system, ms.
const PREDECESSOR_SLA_MS: f64 = 100.0;

/// Searches, writes the record of the result, and prints the metrics before and after.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let (picked, mut overrides, track) = match (&args.record, &args.target, &args.workload) {
        (Some(path), ..) => from_record(&library, path)?,
        (None, Some(target), Some(workload)) => (pick::pick(&library, target, workload)?, Overrides::new(), None),
        _ => return Err(Failure::usage(["--record, or --target and --workload, is required"]).into()),
    };
    args.knobs.apply_to(&mut overrides, Some(picked.fabrics()))?;
    let mut start = pick::search_start(Scenario::resolve(&picked, &overrides)?, &mut overrides);
    let usual = if start.engine == Engine::Analytical { Method::Exhaustive } else { Method::HillClimb };
    if args.method.unwrap_or(usual) == Method::Exhaustive {
        let track = pick::track(&picked.workload, args.track.as_deref().or(track.as_deref())).to_owned();
        return best::run(&args, globals, &picked, overrides, &start, &track);
    }
    let unheeded = args.goal.given_flags();
    if !unheeded.is_empty() {
        let flags = unheeded.join(", ");
        return Err(
            Failure::usage([format!("--method hill-climb does not support {flags}; use --method exhaustive")]).into()
        );
    }
    let sla = args.sla.unwrap_or(PREDECESSOR_SLA_MS);
    // The search ignores the schedule, so there is no queue to report.
    start.phases.clear();
    let found = hill_climb(&start, &picked, sla);
    found.estimate.finite().map_err(|problem| color_eyre::eyre::eyre!(problem))?;
    // Changes of the search are applied on top of the user's overrides.
    for knob in Knob::all().filter(|knob| found.scenario.get(*knob) != start.get(*knob)) {
        overrides.insert(knob, found.scenario.get(knob));
    }
    let track = pick::track(&picked.workload, args.track.as_deref().or(track.as_deref()));
    let record = Record::new(
        &picked.target.name,
        &picked.workload,
        track,
        "post-opt",
        &found.scenario,
        &overrides,
        &found.estimate,
    );
    let path =
        record.write(&args.out, &record.optimized_file_name()).map_err(|error| write_error(&args.out, &error))?;
    let body = record.to_value()?;
    keep::keep(EntryKind::Optimum, keep::of_estimate(&picked, &found.scenario, &found.estimate, body));
    match args.format {
        Format::Table => output::print(&globals.charset().write(&table(&picked, &start, &found, sla)))?,
        format => {
            let supports = support::of(&picked, &found.scenario);
            output::print(&rows::record(&record, &found.scenario, &found.estimate, &supports, format)?)?;
        }
    }
    write_stderr(&format!("wrote {}", path.display()));
    Ok(())
}

/// Reads target, workload, knobs and track from a record; the error lists all problems.
fn from_record(
    library: &atlas_config::library::Library,
    path: &Path,
) -> Result<(Parts, Overrides, Option<String>), Failure> {
    let mut problems = Diagnostics::new();
    let start = report::read::start(path, library, &mut problems);
    for problem in problems.iter().filter(|problem| problem.severity == atlas_document::Severity::Warning) {
        write_stderr(&problem.to_string());
    }
    let start = start.ok_or_else(|| Failure::Input(errors_of(problems)))?;
    Ok((start.parts, start.overrides, start.track))
}

fn errors_of(problems: Diagnostics) -> Diagnostics {
    let mut errors = Diagnostics::new();
    for problem in problems.iter().filter(|problem| problem.severity == atlas_document::Severity::Error) {
        errors.push(problem.clone());
    }
    errors
}

/// Renders the metrics before and after, and every change that was tried.
fn table(picked: &Parts, start: &Scenario, found: &HillClimb, sla: f64) -> String {
    let mut out = format!("{} × {}\n", picked.target.name, picked.workload.name);
    let inference = start.mode() == Mode::Inference;
    let sla_text = if inference { format!(", p99 within {}", units::duration_ms(sla)) } else { String::new() };
    let _ = writeln!(out, "{}, hill-climb{sla_text}; schedules are ignored\n", start.mode().name());
    let mut table = Table::new([left(""), right("before"), right("after"), right("change")]);
    for metric in METRICS.iter().filter(|metric| metric.applies_to(start)) {
        let values = metric.value(&found.start, start).zip(metric.value(&found.estimate, &found.scenario));
        let change = values.map_or_else(String::new, |(before, after)| metric.change(before, after));
        let shown = [(start, &found.start), (&found.scenario, &found.estimate)]
            .map(|(scenario, estimate)| digits::shown(metric, scenario, estimate));
        let [first, second] = shown;
        table.row([metric.label.to_owned(), first, second, change]);
    }
    for knob in Knob::all().filter(|knob| found.scenario.get(*knob) != start.get(*knob)) {
        let cells = [knob.name().to_owned(), start.get(knob).to_string(), found.scenario.get(knob).to_string()];
        table.row(cells);
    }
    out.push_str(&table.render());
    out.push('\n');
    let mut tried = Table::new([left("tried"), right("tokens/s"), right("p99"), left("")]);
    for trial in &found.tried {
        let p99 = trial.p99_ms.map_or_else(|| "n/a".to_owned(), units::duration_ms);
        let tokens = trial
            .tokens_per_sec
            .map_or_else(|| "not calibrated".to_owned(), |rate| units::with_unit(&units::si(rate), "tok/s"));
        let verdict = if trial.kept { "best so far" } else { "" };
        tried.row([format!("{}={}", trial.knob.name(), trial.setting), tokens, p99, verdict.to_owned()]);
    }
    out.push_str(&tried.render());
    let same = Knob::all().all(|knob| found.scenario.get(knob) == start.get(knob));
    if same {
        out.push_str("\nno single change is more than 3 % faster");
        out.push_str(if inference { " within the SLA; knobs unchanged\n" } else { "; knobs unchanged\n" });
    }
    let p99 = found.estimate.total.latency.map(|latency| latency.p99);
    if let Some(p99) = p99.filter(|p99| *p99 > sla.max(1.0)) {
        let p99 = units::duration_ms(p99);
        let _ = writeln!(out, "\nnote: the SLA is not met: p99 is {p99}");
    }
    out
}
