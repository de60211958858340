//! `atlas sweep`.

mod columnar;
mod file;
mod rows;
mod slurm;

use std::path::PathBuf;
use std::time::Duration;

use self::columnar::{Batch, Columnar};
use self::file::Output;
use self::rows::{Columns, Shape};
use super::args::{Globals, KnobArgs};
use super::array::ArrayArgs;
use super::failure::Failure;
use super::output::{print, write_stderr};
use super::{keep, pick, run_with_progress};
use atlas_cluster::history::{Draft, EntryKind};
use atlas_config::library::Library;
use atlas_core::sort;
use atlas_document::Diagnostics;
use atlas_plan::estimate::{COMPARED, Metric, MetricId};
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::sweep::{Block, Row, Sweep};
use atlas_plan::search::{Axis, Condition, Gauge, Space, metric};

/// Estimate every combination of knobs.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas sweep --workload W --target T --over tp=1,2,4,8 --over micro=1..16
  atlas sweep --workload W --over 'tp=divisors(heads)' --over concurrency=1..1024 --where fits \\
    --out sweep.csv
  atlas sweep --target A,B --workload W --over precision=bf16,fp8 \\
    --metrics throughput,cost,headroom --out s.jsonl
  atlas sweep --workload W --over micro=1..64 --out sweep.parquet

VALUES can be a list (1,2,4), a range (1..16 doubles for knobs that grow by powers of two; 0..1:0.25 has a step), \
divisors(64), divisors(heads|layers|experts|accelerators|global), or all: every value of a switch or word, or every degree \
of parallelism (tp, pp, cp, dp, ep, attention_dp) that the target and the model allow. Results are written as they are computed: after \
Ctrl-C or a kill, run the same command again to resume.

With --slurm, a job array computes the points: atlas shows it, asks for confirmation and submits it. Failed tasks are resubmitted, requeued tasks start over, and finished parts are never computed twice. Run the same command again to resume after Ctrl-C or a kill, or add --cancel to cancel the array.")]
pub struct Args {
    /// Knob and values to sweep; repeatable, the last one varies fastest
    #[arg(long, value_name = "KNOB=VALUES", required = true)]
    pub over: Vec<String>,
    /// Target; repeatable, or separated by commas, also as --targets A,B if that is not a file [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub target: Vec<String>,
    /// Workload; repeatable, or separated by commas
    #[arg(long, value_name = "NAME", value_delimiter = ',', required = true)]
    pub workload: Vec<String>,
    /// Keep only points that satisfy this condition, such as fits or 'tpot<=50'; repeatable
    #[arg(long = "where", value_name = "CONDITION")]
    pub conditions: Vec<String>,
    /// Metrics to write [default: throughput, cost, and latency or time to train]
    #[arg(long, value_name = "METRICS", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Output file: .csv, .jsonl or .parquet [default: CSV on stdout]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Start over if the file exists
    #[arg(long)]
    pub restart: bool,
    /// Job array.
    #[command(flatten)]
    pub array: ArrayArgs,
}

/// Runs the sweep.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let shape = match &args.out {
        Some(path) => Shape::of(path).map_err(|problem| Failure::usage([problem]))?,
        None => Shape::Csv,
    };
    let library = pick::library(globals);
    let (sweep, metrics) = read(&args, &library)?;
    let columns = Columns::new(&sweep, &metrics, shape);
    let mut columnar = (shape == Shape::Parquet).then(|| Columnar::new(&sweep, &metrics));
    let size = sweep.size().ok_or_else(|| Failure::usage(["--over: too many points (more than 2^64)"]))?;
    let fingerprint = file::fingerprint(&columns.header(), &sweep, &args.conditions);
    if let Some(part) = &args.array.part {
        return slurm::part(part, &args, &sweep, &columns, fingerprint, size);
    }
    if args.array.slurm {
        if columnar.is_some() {
            return Err(Failure::usage(["--slurm writes .csv or .jsonl; for .parquet, run without --slurm"]).into());
        }
        slurm::run(&args, &columns.header(), fingerprint, size)?;
        if args.array.cancel {
            return Ok(());
        }
        keep::keep(EntryKind::Sweep, draft(&args, &sweep, size, fingerprint));
        return Ok(());
    }
    let mut output = match &args.out {
        Some(path) => Output::open(path, fingerprint, size, args.restart)?,
        None => Output::stdout(),
    };
    let from = output.next();
    if from == 0 {
        let header = columnar.as_ref().map_or_else(|| columns.header(), Columnar::header);
        output.write(&header, 0)?;
    } else {
        write_stderr(&format!("resuming at point {from} of {size}"));
    }
    let gauge = Gauge::default();
    let next = run_with_progress(&gauge, Duration::from_millis(500), "points", || {
        if let Some(columnar) = &mut columnar {
            let whole = Columnar::new(&sweep, &metrics);
            let write_row = |described: &mut Batch, row: &Row<'_>| whole.write_row(described, row);
            let take = |block: Block<Batch>| columnar.take(&block.described, block.next, &mut output);
            let next = sweep.run(from..size, &gauge, write_row, take)?;
            columnar.end(&mut output)?;
            return Ok(next);
        }
        let write_row = |described: &mut Vec<u8>, row: &Row<'_>| columns.write_row(described, row);
        sweep.run(from..size, &gauge, write_row, |block: Block<Vec<u8>>| output.write(&block.described, block.next))
    })??;
    output.finish(next == size)?;
    match &args.out {
        Some(path) if next < size => {
            write_stderr(&format!(
                "stopped at point {next} of {size}; {} is complete up to there; run the same command to resume",
                path.display()
            ));
            Err(Failure::Reported.into())
        }
        None if next < size => {
            write_stderr(&format!("stopped at point {next} of {size}"));
            Err(Failure::Reported.into())
        }
        Some(path) => {
            write_stderr(&format!("wrote {}", path.display()));
            keep::keep(EntryKind::Sweep, draft(&args, &sweep, size, fingerprint));
            Ok(())
        }
        None => Ok(print("")?),
    }
}

/// History entry: the swept space, and the path of the points.
fn draft(args: &Args, sweep: &Sweep, points: u64, fingerprint: u64) -> Draft {
    let list = |names: &[String]| names.join(" ").into();
    let names = |get: fn(&Parts) -> &str| -> String {
        let all: std::collections::BTreeSet<&str> =
            sort::collect_unsorted(sweep.contenders.iter().map(|(parts, _)| get(parts)));
        all.into_iter().collect::<Vec<_>>().join(",")
    };
    let out = args.out.as_deref().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()));
    let inputs = [
        ("over", list(&args.over)),
        ("where", list(&args.conditions)),
        ("metrics", list(&args.metrics)),
        ("set", list(&args.knobs.set)),
        ("file", out.map_or_else(String::new, |path| path.display().to_string()).into()),
        ("scenarios and axes", format!("{fingerprint:016x}").into()),
    ];
    Draft {
        target: Some(names(|parts| &parts.target.name)),
        workload: Some(names(|parts| &parts.workload.name)),
        engine: sweep.contenders.first().map(|(_, scenario)| scenario.engine.name().to_owned()),
        figures: sort::collect_unsorted([("points".to_owned(), points as f64)]),
        inputs: sort::collect_unsorted(inputs.map(|(name, value)| (name.to_owned(), value))),
        ..Draft::default()
    }
}

/// Contenders, axes, conditions and metrics; the error lists all problems.
fn read(args: &Args, library: &Library) -> Result<(Sweep, Vec<&'static Metric>), Failure> {
    let contenders = contenders(args, library)?;
    let Some((parts, first)) = contenders.first() else {
        return Err(Failure::usage(["no targets found"]));
    };
    let heeded = |uses: &dyn Fn(&Scenario) -> bool| contenders.iter().any(|(_, scenario)| uses(scenario));
    let mut problems = Vec::new();
    let mut axes = Vec::new();
    for text in &args.over {
        match Axis::parse(text, first, parts.fabrics()) {
            Ok(axis) if !heeded(&|scenario| scenario.offers(axis.knob)) => {
                problems.push(format!("--over: {}", first.ineffective_message(axis.knob)));
            }
            Ok(axis) => axes.push(axis),
            Err(error) => problems.push(format!("--over: {error}")),
        }
    }
    let space = Space::of(axes).map_err(|error| problems.push(format!("--over: {error}"))).unwrap_or_default();
    let mut conditions = Vec::new();
    for text in &args.conditions {
        match Condition::parse(text) {
            Ok(condition) => conditions.push(condition),
            Err(error) => problems.push(format!("--where: {error}")),
        }
    }
    let mut metrics: Vec<&'static Metric> = Vec::new();
    for name in &args.metrics {
        match metric::named(name) {
            Some(metric) if heeded(&|scenario| metric.applies_to(scenario)) => metrics.push(metric),
            Some(metric) => problems.push(format!("--metrics: {} does not apply here", metric.name)),
            None => problems.push(format!("--metrics: {}", metric::unknown(name))),
        }
    }
    if args.metrics.is_empty() {
        let usual = COMPARED.into_iter().chain([MetricId::Headroom]).map(MetricId::metric);
        metrics.extend(usual.filter(|metric| heeded(&|scenario| metric.applies_to(scenario))));
    }
    if !problems.is_empty() {
        return Err(Failure::usage(problems));
    }
    Ok((Sweep { contenders, space, conditions }, metrics))
}

/// All pairs of a target and a workload. Pairs without an estimate are reported and skipped.
fn contenders(args: &Args, library: &Library) -> Result<Vec<(Parts, Scenario)>, Failure> {
    let all = || library.targets().iter().map(|target| target.name.to_string()).collect();
    let targets: Vec<String> = if args.target.is_empty() { all() } else { args.target.clone() };
    let mut unknown = Diagnostics::new();
    for name in &targets {
        let _ = library.target(name).map_err(|problem| unknown.push(problem));
    }
    for name in &args.workload {
        let _ = library.workload(name).map_err(|problem| unknown.push(problem));
    }
    if !unknown.is_empty() {
        return Err(unknown.into());
    }
    let mut contenders = Vec::new();
    let mut failed = 0;
    for workload in &args.workload {
        for target in &targets {
            let resolved = Parts::find(library, target, workload).map_err(|problems| problems.to_string());
            let resolved = resolved.and_then(|parts| {
                let overrides = args.knobs.overrides(parts.fabrics()).map_err(|failure| failure.to_string())?;
                let scenario = Scenario::resolve(&parts, &overrides).map_err(|error| error.to_string())?;
                Ok((parts, scenario))
            });
            match resolved {
                Ok(contender) => contenders.push(contender),
                Err(problem) => {
                    write_stderr(&format!("error: skipping {target} × {workload}: {problem}"));
                    failed += 1;
                }
            }
        }
    }
    if contenders.is_empty() && failed > 0 { Err(Failure::Reported) } else { Ok(contenders) }
}
