//! `atlas sensitivity`.

use super::args::{Globals, KnobArgs};
use super::goal::figure_of;
use super::{failure::Failure, output, pick};
use atlas_plan::engine::{analytical_scenario, estimate};
use atlas_plan::estimate::standing::is_available;
use atlas_plan::knob::Overrides;
use atlas_plan::search::sensitivity;
use atlas_report::Format;
use atlas_report::tornado;

/// Show what matters most.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas sensitivity --target T --workload W
  atlas sensitivity --target T --workload W --metric cost --set tp=4

Changes one input at a time: each knob by one step down and up, each hardware parameter by ±10 %. Replicas follow tp, pp, \
cp and the number of nodes.")]
pub struct Args {
    /// Target
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Workload
    #[arg(long, value_name = "NAME")]
    pub workload: String,
    /// Metric to examine: throughput, cost, latency, energy, or any other metric
    #[arg(long, value_name = "METRIC", default_value = "throughput")]
    pub metric: String,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// Varies every input and prints the inputs in order of their effect.
pub fn run(args: Args, globals: &Globals) -> color_eyre::Result<()> {
    let (parts, scenario) = pick::scenario(globals, &args.target, &args.workload, &args.knobs)?;
    let scenario = pick::search_start(scenario, &mut Overrides::new());
    let metric =
        figure_of(&args.metric, &scenario).map_err(|problem| Failure::usage([format!("--metric: {problem}")]))?;
    let answer = estimate(&analytical_scenario(&scenario));
    if !is_available(metric, &answer) {
        pick::check_runs(&parts, &answer)?;
    }
    let tornado =
        sensitivity(&scenario, &parts, metric).ok_or_else(|| Failure::usage([metric.inapplicable(&scenario)]))?;
    let text = match args.format {
        Format::Table => globals.charset().write(&tornado::table(&parts, &tornado)).into_owned(),
        Format::Json => tornado::serialized(&tornado, false)?,
        Format::Yaml => tornado::serialized(&tornado, true)?,
        Format::Csv => tornado::csv(&tornado),
    };
    Ok(output::print(&text)?)
}
