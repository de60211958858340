//! `atlas optimize` with the exhaustive method.

use std::time::Duration;

use crate::cli::args::Globals;
use crate::cli::failure::Failure;
use crate::cli::keep;
use crate::cli::output;
use crate::cli::output::write_stderr;
use crate::cli::run_with_progress;
use crate::cli::save::write_error;
use atlas_cluster::history::EntryKind;
use atlas_plan::knob::{Knob, Overrides};
use atlas_plan::record::Record;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::search::optimize::freed;
use atlas_plan::search::{Gauge, optimize};
use atlas_report::{Format, optimum as described};

/// Searches, writes the record of the best candidate and prints the result.
pub(super) fn run(
    args: &super::Args,
    globals: &Globals,
    parts: &Parts,
    mut overrides: Overrides,
    requested: &Scenario,
    track: &str,
) -> color_eyre::Result<()> {
    // Knobs set on the command line are kept, except those with an axis in `--over`.
    let mut held = Overrides::new();
    args.knobs.apply_to(&mut held, Some(parts.fabrics()))?;
    let start = freed(requested, &|knob| held.contains_key(&knob) || args.goal.has_axis(knob), parts);
    let problem = args.goal.problem(requested, &start, parts, &held, args.sla)?;
    let gauge = Gauge::default();
    let found = run_with_progress(&gauge, Duration::from_millis(500), "candidates", || optimize(&problem, &gauge))?;
    if let Some(best) = &found.best {
        // The global batch follows from the layout and is fixed here, so that it is not derived again.
        let global = requested.base.plan.global.is_none() && best.scenario.uses(Knob::Global);
        let pinned = if global { vec![(Knob::Global, best.scenario.get(Knob::Global))] } else { Vec::new() };
        let searched = problem.space.axes().iter().map(|axis| axis.knob).filter(|knob| best.scenario.uses(*knob));
        let searched = searched.map(|knob| (knob, best.scenario.get(knob)));
        overrides.extend(searched.chain(best.changes.iter().cloned()).chain(pinned));
    }
    let text = match args.format {
        Format::Table => globals.charset().write(&described::table(&problem, &found)).into_owned(),
        Format::Json => described::json(&problem, &found)?,
        Format::Yaml => described::yaml(&problem, &found)?,
        Format::Csv => described::csv(&problem, &found),
    };
    output::print(&text)?;
    if gauge.canceled() {
        write_stderr("interrupted: this is the best of the candidates evaluated so far; no record is written");
        return Err(Failure::Reported.into());
    }
    let Some(best) = &found.best else {
        write_stderr(&format!("{}; no record is written", found.why_none()));
        return Err(Failure::Reported.into());
    };
    // In the search, all candidates had the calibration of the start.
    let scenario = Scenario { corrections: requested.corrections.clone(), ..best.scenario.clone() };
    let estimate = atlas_plan::engine::estimate(&scenario);
    let (target, workload) = (&parts.target.name, &parts.workload);
    let record = Record::new(target, workload, track, "post-opt", &scenario, &overrides, &estimate);
    let path =
        record.write(&args.out, &record.optimized_file_name()).map_err(|error| write_error(&args.out, &error))?;
    let body = record.to_value()?;
    keep::keep(EntryKind::Optimum, keep::of_estimate(parts, &scenario, &estimate, body));
    write_stderr(&format!("wrote {}", path.display()));
    Ok(())
}
