//! `atlas advise`.

use serde::Serialize;

use super::args::{Globals, KnobArgs};
use super::explain::Format;
use super::failure::Failure;
use super::{output, pick};
use atlas_plan::advice;
use atlas_plan::advice::{Objective, fit};
use atlas_plan::engine;
use atlas_plan::knob::Overrides;
use atlas_report::{advice as described, to_json};

/// Recommend changes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:
  atlas advise --target h100-sxm-8 --workload llama3.1-70b-serve
  atlas advise --target T --workload W --objective latency --set tp=4
  atlas advise --target T --workload W --objective cost --format json
  atlas advise --target T --workload W --objective energy      or mfu, memory

Tests every rule of the playbook on the scenario and reports the estimated gain. If the scenario cannot run, the smallest \
changes that make it run come first.")]
pub struct Args {
    /// Target
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Workload
    #[arg(long, value_name = "NAME")]
    pub workload: String,
    /// Objective to improve
    #[arg(long, value_name = "OBJECTIVE", value_parser = objective, default_value = "throughput")]
    pub objective: Objective,
    /// Knobs.
    #[command(flatten)]
    pub knobs: KnobArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

fn objective(text: &str) -> Result<Objective, String> {
    let found = Objective::ALL.into_iter().find(|objective| objective.name().eq_ignore_ascii_case(text.trim()));
    found.ok_or_else(|| format!("expected one of {}", Objective::NAMES.join(", ")))
}

#[derive(Serialize)]
struct Answer<'a> {
    target: &'a str,
    workload: &'a str,
    objective: &'static str,
    /// Why the scenario cannot run; absent if it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<String>,
    /// Bytes in use beyond the capacity of the fullest device; absent unless memory is the problem.
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_bytes: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fixes: Vec<described::Row<'a>>,
    advice: Vec<described::Row<'a>>,
}

/// Prints the advice.
pub fn run(args: &Args, globals: &Globals) -> color_eyre::Result<()> {
    let (parts, scenario) = pick::scenario(globals, &args.target, &args.workload, &args.knobs)?;
    let scenario = pick::search_start(scenario, &mut Overrides::new());
    let metric = args.objective.metric(&scenario);
    if metric.lacks_price(&scenario) {
        return Err(Failure::usage([format!("--objective: {}", metric.inapplicable(&scenario))]).into());
    }
    let estimate = engine::estimate(&scenario);
    let fit = fit::fit(&scenario, &parts, &estimate);
    let all = advice::advise(&scenario, &parts, &estimate, args.objective);
    match args.format {
        Format::Table => {
            output::print(&globals.charset().write(&described::render(fit.as_ref(), &all, output::width())))?
        }
        Format::Json => {
            let answer = Answer {
                target: &parts.target.name,
                workload: &parts.workload.name,
                objective: args.objective.name(),
                verdict: fit.as_ref().map(|fit| fit.verdict.describe()),
                excess_bytes: fit.as_ref().map(|fit| fit.excess_bytes).filter(|bytes| *bytes > 0.0),
                fixes: fit.as_ref().map_or_else(Vec::new, |fit| described::rows(&fit.fixes)),
                advice: described::rows(&all),
            };
            output::print(&to_json(&answer)?)?;
        }
    }
    Ok(())
}
