//! `atlas sensitivity`.

use super::args::{Globals, KnobArgs};
use super::goal::figure_of;
use super::{failure::Failure, output, pick};
use atlas_plan::scenario::Scenario;
use atlas_plan::search::sensitivity;
use atlas_report::Format;
use atlas_report::tornado;

/// Show what matters most.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas sensitivity --target T --workload W
  atlas sensitivity --target T --workload W --metric cost --set tp=4

Every knob is moved a step down and up, every hardware number ten per cent, alone, all else as it stands; replicas follow tp, pp, cp and \
the number of nodes.")]
pub struct Args {
    /// Target, by name
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Workload, by name
    #[arg(long, value_name = "NAME")]
    pub workload: String,
    /// The figure that is watched: throughput, cost, latency, energy, or any metric
    #[arg(long, value_name = "FIGURE", default_value = "throughput")]
    pub metric: String,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// What is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Moves every lever, and prints them by how far they reach.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    args.knobs.check()?;
    let library = pick::library(globals);
    let parts = pick::pick(&library, &args.target, &args.workload)?;
    let mut overrides = args.knobs.overrides(parts.fabrics())?;
    let scenario = pick::tried(Scenario::resolve(&parts, &overrides)?, &mut overrides);
    let metric =
        figure_of(&args.metric, &scenario).map_err(|problem| Failure::usage([format!("--metric: {problem}")]))?;
    let tornado = sensitivity(&scenario, &parts, metric);
    let text = match args.format {
        Format::Table => globals.charset().write(&tornado::table(&parts, &tornado)).into_owned(),
        Format::Json => tornado::serialized(&tornado, false)?,
        Format::Yaml => tornado::serialized(&tornado, true)?,
        Format::Csv => tornado::csv(&tornado),
    };
    Ok(output::print(&text)?)
}
