//! `atlas run`.

use std::path::PathBuf;

use color_eyre::eyre::eyre;

use super::args::{Globals, KnobArgs, Method, milliseconds};
use super::failure::Failure;
use super::output::{self, write_stderr};
use super::{batch, keep, pick, save};
use atlas_cluster::history::EntryKind;
use atlas_evidence::support;
use atlas_plan::advice::{Objective, advise};
use atlas_plan::engine;
use atlas_plan::record::Record;
use atlas_plan::scenario::Scenario;
use atlas_report::{Format, estimate, evidence, rows};

/// Options that conflict with `--batch`. clap does not enforce that another option requires it beside one of them.
const NOT_BATCH: [&str; 4] = ["target", "workload", "track", "format"];

/// Estimate one workload on one target.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas run --target h100-sxm-8 --workload llama3.1-70b-serve --set software=sglang
  atlas run --target h100-sxm-64 --workload llama3.1-70b-train --set num_nodes=4 --set tp=4 \\
    --format json
  atlas run --batch sweep.jsonl > answers.jsonl
  generate | atlas run --batch - --method hill-climb --sla 100

A batch line: {\"id\": 1, \"target\": …, \"workload\": …, \"profile\": …, \"knobs\": {\"tp\": 8}, \"seed\": 1337}, where \
target, workload and profile are names or whole objects. Without a profile, it is selected by the name or vendor of \
the target. For an invalid line, the answer is {\"id\": …, \"error\": …}.")]
pub struct Args {
    /// Target
    #[arg(long, value_name = "NAME", required_unless_present = "batch")]
    pub target: Option<String>,
    /// Workload
    #[arg(long, value_name = "NAME", required_unless_present = "batch")]
    pub workload: Option<String>,
    /// Label that groups records, saved with the record [default: the workload's, else parity]
    #[arg(long, value_name = "NAME")]
    pub track: Option<String>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Directory to write the record to
    #[arg(long, value_name = "DIR", default_value = "out")]
    pub out: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Read scenarios from this file (JSON Lines; - is stdin) and print one answer per line; writes no record
    #[arg(long, value_name = "FILE", conflicts_with_all = NOT_BATCH, help_heading = "Batch")]
    pub batch: Option<PathBuf>,
    /// Optimize every line instead of estimating it
    #[arg(long, value_enum, requires = "batch", conflicts_with_all = NOT_BATCH, help_heading = "Batch")]
    pub method: Option<Method>,
    /// Maximum p99 latency with --method, ms
    #[arg(long, value_name = "MS", requires = "method", conflicts_with_all = NOT_BATCH, value_parser = milliseconds, default_value = "100", help_heading = "Batch")]
    pub sla: f64,
    /// Add notes (assumptions and known weaknesses) to every answer, and the measured rows that support its throughput:
    /// their number, the nearest row and the prediction error there
    #[arg(long, requires = "batch", conflicts_with_all = NOT_BATCH, help_heading = "Batch")]
    pub evidence: bool,
}

/// Estimates the scenario, writes the record and prints the result.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    if let Some(input) = &args.batch {
        if args.method == Some(Method::Exhaustive) {
            return Err(Failure::usage([
                "--batch supports only --method hill-climb; use `atlas optimize` for an exhaustive search",
            ])
            .into());
        }
        let sla_p99_ms = args.method.map(|_| args.sla);
        let options = batch::Options { knobs: args.knobs.clone(), sla_p99_ms, evidence: args.evidence };
        return batch::run(input, options, globals);
    }
    args.knobs.check()?;
    let (Some(target), Some(workload)) = (&args.target, &args.workload) else {
        return Err(Failure::usage(["--target and --workload are required"]).into());
    };
    let library = pick::library(globals);
    let picked = pick::pick(&library, target, workload)?;
    let overrides = args.knobs.overrides(picked.fabrics())?;
    let scenario = Scenario::resolve(&picked, &overrides)?;
    let answer = engine::estimate(&scenario);
    answer.finite().map_err(|problem| eyre!(problem))?;
    let track = pick::track(&picked.workload, args.track.as_deref());
    let record = Record::new(&picked.target.name, &picked.workload, track, "pre-opt", &scenario, &overrides, &answer);
    let path = record.write(&args.out, &record.file_name()).map_err(|error| save::write_error(&args.out, &error))?;
    let supports = support::of(&picked, &scenario);
    keep::keep(EntryKind::Prediction, keep::of_estimate(&picked, &scenario, &answer, record.to_value()?));
    match args.format {
        Format::Table => {
            let advice = advise(&scenario, &picked, &answer, Objective::default());
            let text = estimate::render(&picked, track, &scenario, &answer, &advice, output::width());
            let text = text + "\n" + &evidence::render(&supports, output::width());
            output::print(&globals.charset().write(&text))?;
        }
        format => output::print(&rows::record(&record, &scenario, &answer, &supports, format)?)?,
    }
    write_stderr(&format!("wrote {}", path.display()));
    Ok(())
}
