//! `atlas compare`, and plain `atlas` if stdout is not a terminal.

use std::sync::Arc;
use std::time::Duration;

use super::args::{Globals, KnobArgs, MeasuredArgs};
use super::failure::Failure;
use super::goal::{self, Goal};
use super::measured;
use super::methodology::{best, parts};
use super::output::{self, write_stderr};
use super::{pick, run_with_progress};
use atlas_config::library::Library;
use atlas_config::{Target, Workload};
use atlas_document::Diagnostics;
use atlas_plan::engine;
use atlas_plan::engine::answer::event::estimate_until;
use atlas_plan::estimate::{Estimate, Metric};
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::Scenario;
use atlas_plan::search::methodology::{mixed_calibrations, mixed_prices};
use atlas_plan::search::{Gauge, Methodology};
use atlas_report::comparison::{Column, Comparison};
use atlas_report::configurations::Configurations;
use atlas_report::{Format, serialized};

/// Compare targets.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = "Examples:
  atlas compare
  atlas compare --workload llama3.1-70b-serve --baseline h100-sxm-8 --set concurrency=64
  atlas compare --workload llama3.1-70b-serve --target h100-sxm-8 --target mi300x-8 --format csv
  atlas compare --workload llama3.1-70b-serve --metrics tpot,ttft,cost --sort tpot
  atlas compare --workload W --methodology maximum-performance --objective cost --tpot 50
  atlas compare --config config.yaml --workload llama --methodology identical-config
  atlas compare --measured h100.json mi300x.json --model llama-3.1-8b --usd-per-gpu-hour 3
  atlas compare --measured a.json:global_batch_size=32,seq_len=2048 b.json --out compare.png
  atlas compare --config config.yaml --workload llama --measured

Choose a methodology: identical-config uses the same knobs everywhere and shows the effect of the hardware; \
maximum-performance uses the best knobs of each target under the constraints given by the flags under Search. With an \
experiment (--config), both take parallelism, precision and recomputation of each target from it, and its methodology is \
the default.")]
pub struct Args {
    /// Target; repeatable, or separated by commas [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub target: Vec<String>,
    /// Workload [default: the first]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Target that ratios are relative to [default: the first column]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Use the same knobs for all targets, or the best of each; lists the differences [default: identical-config]
    #[arg(long, value_parser = goal::methodology(), value_name = "METHOD")]
    pub methodology: Option<Methodology>,
    /// Metrics to show, in this order: tpot,ttft,mfu [default: depends on the workload]
    #[arg(long, value_name = "METRICS", value_delimiter = ',', value_parser = goal::metric)]
    pub metrics: Vec<&'static Metric>,
    /// Metric to sort by, best first [default: file order]
    #[arg(long, value_name = "METRIC", value_parser = goal::metric)]
    pub sort: Option<&'static Metric>,
    /// Objective and constraints under maximum-performance.
    #[command(flatten)]
    pub goal: Goal,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Measured runs.
    #[command(flatten)]
    pub measured: MeasuredArgs,
}

/// Prints the comparison.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let mut library = pick::library(globals);
    // An experiment defines its methodology.
    let requested = args.methodology.or(library.methodology());
    let methodology = requested.unwrap_or_default();
    if library.methodology().is_some() {
        library.compare_by(methodology);
    }
    args.goal.check_allowed(&[methodology])?;
    let gauge = Gauge::default();
    let measured = args.measured.measured.is_some();
    // With an experiment, runs are predicted with their own settings; `--workload` then names the model.
    let as_ran = measured && library.methodology().is_some() && args.target.is_empty();
    let wanted = !measured || (!as_ran && (!args.target.is_empty() || args.workload.is_some()));
    let predict = || compare(&library, &args, methodology, &gauge);
    let predicted = wanted.then(|| run_with_progress(&gauge, Duration::from_millis(500), "candidates", predict));
    let predicted = predicted.transpose()?.transpose()?;
    if measured {
        let workload = args.workload.as_deref();
        return measured::run(&args.measured, args.format, workload, predicted.as_ref(), &library, globals);
    }
    let Some(comparison) = predicted else { return Ok(()) };
    let ended = gauge.canceled();
    // If no methodology is given, the output is the plain comparison.
    let configurations = requested.map(|methodology| Configurations::of(&comparison, methodology));
    let text = match (args.format, configurations) {
        (Format::Table, Some(described)) => {
            globals.charset().write(&format!("{}{}", comparison.table(), described.table())).into_owned()
        }
        (Format::Table, None) => globals.charset().write(&comparison.table()).into_owned(),
        (Format::Json | Format::Yaml, Some(described)) => {
            serialized(&described.within(comparison.document()), args.format == Format::Yaml)?
        }
        (Format::Json, None) => comparison.json()?,
        (Format::Csv, described) => comparison.csv() + &described.map(|described| described.csv()).unwrap_or_default(),
        (Format::Yaml, None) => comparison.yaml()?,
    };
    output::print(&text)?;
    let answered = comparison.columns.iter().filter_map(|column| column.answer.as_ref().ok());
    if let Some(mixed) = mixed_prices(answered.map(|(scenario, _)| scenario)) {
        write_stderr(&format!("note: {mixed}"));
    }
    let answered = comparison.columns.iter().filter_map(|column| Some((column, column.answer.as_ref().ok()?)));
    let estimates = answered.map(|(column, (_, estimate))| (column.target.as_str(), estimate));
    if let Some(mixed) = mixed_calibrations(estimates) {
        write_stderr(&format!("note: {mixed}"));
    }
    if let Some(note) = adapted_workloads(&comparison) {
        write_stderr(&format!("note: {note}"));
    }
    let failed = comparison.columns.iter().filter_map(|column| Some((column, column.answer.as_ref().err()?)));
    let failed = failed.map(|(column, error)| write_stderr(&format!("error: {}: {error}", column.target))).count();
    if ended {
        write_stderr("interrupted: not all targets were searched");
    }
    if ended || failed == comparison.columns.len() { Err(Failure::Reported.into()) } else { Ok(()) }
}

/// Describes the targets on which the workload's batch or format was changed; see [`Scenario::adapt_to_target`].
fn adapted_workloads(comparison: &Comparison) -> Option<String> {
    let adapted = comparison.columns.iter().filter(|column| !column.adapted.is_empty());
    let adapted: Vec<String> =
        adapted.map(|column| format!("{} on {}", column.adapted.join(" "), column.target)).collect();
    (!adapted.is_empty()).then(|| format!("changed because the stated values cannot run: {}", adapted.join(", ")))
}

/// Plain `atlas` without a terminal that can show the TUI.
pub fn without_terminal(globals: &Globals, workload: Option<&str>, dumb: bool) -> color_eyre::Result<()> {
    let args = Args { workload: workload.map(str::to_owned), ..Args::default() };
    run(args, globals)?;
    write_stderr(if dumb {
        "TERM is dumb, so this is a plain comparison; run `atlas --plain` for the interface as lines of text"
    } else {
        "stdout is not a terminal, so this is a plain comparison; run `atlas` in a terminal to open the interface"
    });
    Ok(())
}

/// What is compared.
struct Selection<'l> {
    targets: Vec<&'l Arc<Target>>,
    /// Index of the baseline; `None`: the first column.
    baseline: Option<usize>,
    workload: &'l Arc<Workload>,
}

/// Looks up targets, baseline and workload; all unknown names are reported together.
fn selection<'l>(library: &'l Library, args: &Args) -> Result<Selection<'l>, Failure> {
    let mut problems = Diagnostics::new();
    let mut targets: Vec<&Arc<Target>> = Vec::new();
    for name in &args.target {
        match library.target(name) {
            Ok(target) if targets.iter().any(|known| known.name == target.name) => {}
            Ok(target) => targets.push(target),
            Err(problem) => problems.push(problem),
        }
    }
    if args.target.is_empty() {
        targets.extend(library.targets());
    }
    // A baseline that was not given as a target is added in front.
    let baseline = args.baseline.as_ref().map(|name| library.target(name)).transpose();
    let baseline = baseline.map_err(|problem| problems.push(problem)).ok().flatten();
    if let Some(target) = baseline.filter(|target| targets.iter().all(|known| known.name != target.name)) {
        targets.insert(0, target);
    }
    let workload = match &args.workload {
        Some(name) => library.workload(name).map_err(|problem| problems.push(problem)).ok(),
        None => library.workloads().first(),
    };
    if !problems.is_empty() {
        return Err(problems.into());
    }
    let Some(workload) = workload else { return Err(Failure::usage(["no workloads found"])) };
    if targets.is_empty() {
        return Err(Failure::usage(["no targets found"]));
    }
    let baseline = targets.iter().position(|target| baseline.is_some_and(|baseline| baseline.name == target.name));
    Ok(Selection { targets, baseline, workload })
}

/// A scenario with its estimate, the values of the workload that were changed for the target, and the settings that a
/// search chose.
type Answer = ((Scenario, Estimate), Vec<String>, Vec<(Knob, Setting)>);

/// Estimates a target, with the given knobs or with its best ones.
fn answer(
    library: &Library,
    (target, workload): (&Arc<Target>, &Arc<Workload>),
    args: &Args,
    methodology: Methodology,
    gauge: &Gauge,
) -> Result<Answer, String> {
    if gauge.canceled() {
        return Err("interrupted before this target".to_owned());
    }
    let (parts, mut overrides) = parts(library, target, workload, &args.knobs)?;
    // The experiment's settings count as the best of the platform, unless the command line states an objective.
    let from_experiment = library.has_experiment_for(target, workload) && args.goal.given_flags().is_empty();
    if methodology == Methodology::MaximumPerformance && !from_experiment {
        let best = best(&parts, &overrides, &args.goal, gauge)?.into_iter().next();
        let best = best.ok_or_else(|| "no candidate".to_owned())?;
        return Ok(((best.scenario, best.estimate), Vec::new(), best.changes));
    }
    let mut scenario = Scenario::resolve(&parts, &overrides).map_err(|error| error.to_string())?;
    let stated = overrides.clone();
    scenario.adapt_to_target(&mut overrides, &parts);
    let changed = overrides.iter().filter(|(knob, setting)| stated.get(knob) != Some(*setting));
    let adapted = changed.map(|(knob, setting)| format!("{}={setting}", knob.name())).collect();
    let mut estimate = Estimate::default();
    if !scenario.engine.simulates() {
        engine::estimate_into(&scenario, &mut estimate);
    } else if !estimate_until(&scenario, &gauge.part(), &mut estimate) {
        return Err("interrupted in the simulation of this target".to_owned());
    }
    Ok(((scenario, estimate), adapted, Vec::new()))
}

fn compare(library: &Library, args: &Args, methodology: Methodology, gauge: &Gauge) -> Result<Comparison, Failure> {
    let Selection { targets, baseline, workload } = selection(library, args)?;
    let columns = targets.iter().map(|target| {
        let (answer, adapted, changes) = match answer(library, (*target, workload), args, methodology, gauge) {
            Ok((answer, adapted, changes)) => (Ok(answer), adapted, changes),
            Err(why) => (Err(why), Vec::new(), Vec::new()),
        };
        Column { target: target.name.to_string(), answer, adapted, changes }
    });
    let mut comparison = Comparison {
        workload: workload.name.to_string(),
        columns: columns.collect(),
        baseline: baseline.unwrap_or_default(),
        chosen: args.metrics.clone(),
    };
    // Without an estimate, the errors of the targets are the answer.
    if comparison.columns.iter().any(|column| column.answer.is_ok()) {
        let chosen = args.metrics.iter().map(|metric| ("--metrics", metric));
        let unknown = chosen.chain(args.sort.iter().map(|metric| ("--sort", metric)));
        let unknown: Vec<String> = unknown
            .filter(|(_, metric)| !comparison.has(metric))
            .map(|(flag, metric)| format!("{flag}: {} does not apply here", metric.name))
            .collect();
        if !unknown.is_empty() {
            return Err(Failure::usage(unknown));
        }
    }
    if let Some(metric) = args.sort {
        comparison.sort_by(metric);
    }
    Ok(comparison)
}
