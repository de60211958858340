//! `atlas simulate --step-trace`: replays a recorded step, and predicts it on a target.

use std::path::Path;

use atlas_catalog::Accelerator;
use atlas_catalog::datasheet;
use atlas_config::Target;
use atlas_config::library::Library;
use atlas_document::sources::read_bytes;
use atlas_ingest::step_trace::{self, StepTrace};
use atlas_plan::scenario::Machine;
use atlas_plan::simulation::replay::{Answer, Hardware, answer};
use atlas_report::simulation::replay as report;
use atlas_report::{Format, to_json, to_yaml};
use color_eyre::eyre::eyre;

use super::Args;
use crate::cli::args::Globals;
use crate::cli::failure::Failure;
use crate::cli::output;
use crate::cli::simulation_files::Folder;

/// Maximum size of a trace, bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Reads the trace, replays it as recorded and on every target, and prints the results.
pub(super) fn run(path: &Path, args: &Args, library: &Library, globals: &Globals) -> color_eyre::Result<()> {
    let label = path.display().to_string();
    let bytes = read_bytes(path, MAX_BYTES).map_err(|problem| eyre!("{label}: {problem}"))?;
    let trace = step_trace::read(&bytes).map_err(|problem| eyre!("{label}: {problem}"))?;
    let mut answers: Vec<(String, Answer)> = Vec::new();
    for name in &args.target {
        answers.push((name.clone(), on(&trace, name, library).map_err(|error| error.wrap_err(label.clone()))?));
    }
    if answers.is_empty() {
        answers.push((String::new(), answer(&trace, None).map_err(|problem| eyre!("{label}: {problem}"))?));
    }
    let document = report::document(&label, &trace, &answers);
    match args.format {
        Format::Table => output::print(&globals.charset().write(&report::render(&label, &trace, &answers)))?,
        Format::Json => output::print(&to_json(&document)?)?,
        Format::Yaml => output::print(&to_yaml(&document)?)?,
        Format::Csv => output::print(&report::csv_of(&answers))?,
    }
    if let Some(place) = &args.out {
        let mut folder = Folder::open(place, &path.file_stem().unwrap_or_default().to_string_lossy())?;
        folder.json("replay.json", &document)?;
        folder.text("exchanges.csv", &report::csv_of(&answers))?;
        folder.print_paths();
    }
    Ok(())
}

fn on(trace: &StepTrace, name: &str, library: &Library) -> color_eyre::Result<Answer> {
    let target: &Target = library.target(name).map_err(Failure::from)?;
    let id = target.accelerator.as_deref().ok_or_else(|| eyre!("{name} has no accelerator from the catalog"))?;
    let sheet: std::sync::Arc<Accelerator> = library.catalog().accelerator(id).map_err(Failure::from)?;
    let machine =
        Machine::of_target(target, &sheet).ok_or_else(|| eyre!("the datasheet of {id} lacks required values"))?;
    let from =
        trace.device.as_ref().and_then(|(name, gb)| library.catalog().find_accelerator_by_description(name, *gb));
    let from = from.map(|sheet| datasheet::accelerator(&sheet));
    let hardware = Hardware { machine: &machine, accelerators: target.accelerators(), from: from.as_ref() };
    Ok(answer(trace, Some(&hardware))?)
}
