//! `atlas compare`, and `atlas` alone where stdout is no terminal.

use std::sync::Arc;

use super::args::{Globals, KnobArgs, MeasuredArgs};
use super::failure::Failure;
use super::measured;
use super::output::{self, complain};
use super::pick;
use crate::engine;
use crate::library::Library;
use crate::report::Format;
use crate::report::comparison::{Column, Comparison};
use crate::scenario::{Parts, Scenario};
use crate::spec::{Diagnostics, Target, Workload};

/// Show targets side by side.
#[derive(Debug, Default, clap::Args)]
#[command(after_long_help = "Examples:
  atlas compare
  atlas compare --workload gpt5_1t_inference --baseline GROQ_LPU_NODE --set microbatch=8
  atlas compare --target NVIDIA_H100_8x_NVLink --target GROQ_LPU_NODE --format csv
  atlas compare --measured h100.json mi300x.json --model llama-3.1-8b --usd-per-gpu-hour 3")]
pub struct Args {
    /// Target to show; repeatable [default: all]
    #[arg(long, value_name = "NAME")]
    pub target: Vec<String>,
    /// Workload [default: the first]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Target that ratios refer to [default: the first column]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Measured runs.
    #[command(flatten)]
    pub measured: MeasuredArgs,
}

/// Prints the comparison.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    if !args.measured.measured.is_empty() {
        let wanted = !args.target.is_empty() || args.workload.is_some();
        let predicted = if wanted { Some(compare(&library, &args)?) } else { None };
        return measured::run(&args.measured, args.format, predicted.as_ref(), globals);
    }
    let comparison = compare(&library, &args)?;
    let text = match args.format {
        Format::Table => globals.charset().write(&comparison.table()).into_owned(),
        Format::Json => comparison.json()?,
        Format::Csv => comparison.csv(),
        Format::Yaml => comparison.yaml()?,
    };
    output::print(&text)?;
    let failed = comparison.columns.iter().filter_map(|column| Some((column, column.answer.as_ref().err()?)));
    let failed = failed.map(|(column, error)| complain(&format!("error: {}: {error}", column.target))).count();
    if failed == comparison.columns.len() { Err(Failure::Told.into()) } else { Ok(()) }
}

/// What `atlas` does where there is no terminal to take over.
pub fn without_terminal(globals: &Globals, workload: Option<&str>) -> color_eyre::Result<()> {
    let args = Args { workload: workload.map(str::to_owned), ..Args::default() };
    run(args, globals)?;
    complain("stdout is no terminal, so this is the plain comparison; run `atlas` in a terminal for the interface");
    Ok(())
}

fn compare(library: &Library, args: &Args) -> Result<Comparison, Failure> {
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
    // A baseline that is not among the targets asked for joins them, in front.
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
    let Some(workload) = workload else { return Err(Failure::usage(["there are no workloads in the files"])) };
    if targets.is_empty() {
        return Err(Failure::usage(["there are no targets in the files"]));
    }
    let index = targets.iter().position(|target| baseline.is_some_and(|baseline| baseline.name == target.name));
    let columns = targets.iter().map(|target| Column {
        target: target.name.to_string(),
        answer: scenario(library, target, workload, &args.knobs).map(|scenario| {
            let estimate = engine::estimate(&scenario);
            (scenario, estimate)
        }),
    });
    Ok(Comparison {
        workload: workload.name.to_string(),
        columns: columns.collect(),
        baseline: index.unwrap_or_default(),
    })
}

fn scenario(
    library: &Library,
    target: &Arc<Target>,
    workload: &Arc<Workload>,
    knobs: &KnobArgs,
) -> Result<Scenario, String> {
    let parts = Parts::of(library, target, workload).map_err(|problems| problems.to_string())?;
    let overrides = knobs.overrides(parts.fabrics()).map_err(|failure| failure.to_string())?;
    Scenario::resolve(&parts, &overrides).map_err(|error| error.to_string())
}
