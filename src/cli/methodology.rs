//! Scenarios under a methodology: all targets with the same knobs, or each with its own best knobs.

use std::sync::Arc;

use atlas_config::library::Library;
use atlas_config::{Target, Workload};
use atlas_plan::knob::Overrides;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::{Candidate, Proof, freed};
use atlas_plan::search::{Gauge, optimize};
use atlas_report::optimum::{defaults, describe_extent};

use super::args::KnobArgs;
use super::goal::Goal;
use super::output::write_stderr;
use super::pick;

/// Resolves a target and a workload with the knobs of the command line.
pub(super) fn parts(
    library: &Library,
    target: &Arc<Target>,
    workload: &Arc<Workload>,
    knobs: &KnobArgs,
) -> Result<(Parts, Overrides), String> {
    let parts = Parts::of(library, target, workload).map_err(|problems| problems.to_string())?;
    let overrides = knobs.overrides(parts.fabrics()).map_err(|failure| failure.to_string())?;
    Ok((parts, overrides))
}

/// Best candidate of a scenario, followed by the runners-up that `goal` requests. Knobs in `held` are kept.
pub(super) fn best(parts: &Parts, held: &Overrides, goal: &Goal, gauge: &Gauge) -> Result<Vec<Candidate>, String> {
    let start = Scenario::resolve(parts, held).map_err(|error| error.to_string())?;
    let mut held = held.clone();
    let requested = pick::search_start(start, &mut held);
    let keeps = |knob| held.contains_key(&knob) || goal.has_axis(knob);
    let start = freed(&requested, &keeps, parts);
    let problem = goal.problem(&requested, &start, parts, &held, None).map_err(|failure| failure.to_string())?;
    let found = optimize(&problem, gauge);
    let target = &parts.target.name;
    if !problem.default_conditions.is_empty() {
        write_stderr(&format!("{target}: {}", defaults(&problem, &found)));
    }
    let best = found.best.ok_or("no combination of the knobs meets all constraints")?;
    if found.extent.proof != Proof::Exhaustive {
        write_stderr(&format!("{target}: {}", describe_extent(&found.extent)));
    }
    Ok(std::iter::once(best).chain(found.runners_up).collect())
}
