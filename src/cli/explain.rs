//! `atlas explain`.

use color_eyre::eyre::eyre;

use super::args::{Globals, KnobArgs};
use super::failure::Failure;
use super::{output, pick};
use atlas_evidence::support;
use atlas_plan::estimate::standing::is_available;
use atlas_plan::{engine, explain};
use atlas_report::{evidence, explanation, to_json};

/// Show how a metric is computed.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas explain tokens_per_sec --target h100-sxm-8 --workload llama3.1-70b-serve
  atlas explain mfu --target T --workload W --set tp=4 --depth 6
  atlas explain dollar_per_1m_tokens --target T --workload W --format json

Shows every term with its value, its equation in symbols and numbers, and its origin: file and line, catalog entry and \
source, knob, or constant.")]
pub struct Args {
    /// Metric, by name or by label
    #[arg(value_name = "METRIC")]
    pub metric: String,
    /// Target
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Workload
    #[arg(long, value_name = "NAME")]
    pub workload: String,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Levels to show below the metric
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u8).range(0..=64))]
    pub depth: u8,
    /// Output format; JSON has all levels
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// How derivations and advice are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// JSON
    Json,
}

/// A derivation with the measured rows that support it.
#[derive(serde::Serialize)]
struct Derivation<'a> {
    #[serde(flatten)]
    tree: &'a explain::Term,
    evidence: &'a [support::Support],
}

/// Prints the derivation.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let (parts, scenario) = pick::scenario(globals, &args.target, &args.workload, &args.knobs)?;
    let metric = explain::metric(&args.metric, &scenario).map_err(|error| Failure::usage([error.to_string()]))?;
    let answer = engine::estimate(&scenario);
    answer.finite().map_err(|problem| eyre!(problem))?;
    if !is_available(metric, &answer) {
        pick::check_runs(&parts, &answer)?;
    }
    let tree = explain::explain(&scenario, &parts, &answer, metric)
        .ok_or_else(|| Failure::usage([metric.inapplicable(&scenario)]))?;
    let mut supports = support::of(&parts, &scenario);
    let figure = support::accuracy_metric(metric.id, scenario.mode());
    supports.retain(|support| support.figure == figure);
    match args.format {
        Format::Table => {
            let text = explanation::render(&tree, metric.name, usize::from(args.depth), output::width());
            let text = text + "\n" + &evidence::render(&supports, output::width());
            output::print(&globals.charset().write(&text))?;
        }
        Format::Json => output::print(&to_json(&Derivation { tree: &tree, evidence: &supports })?)?,
    }
    Ok(())
}
