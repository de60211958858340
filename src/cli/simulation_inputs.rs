//! Simulation inputs from flags and files.

use super::args::KnobArgs;
use super::failure::Failure;
use super::output::write_stderr;
use super::pick;
use atlas_config::library::Library;
use atlas_core::plan::Engine;
use atlas_document::sources::read_text;
use atlas_document::{Diagnostics, Severity};
use atlas_legacy::simulator::Predecessor;
use atlas_plan::knob::Knob;
use atlas_plan::scenario::{Parts, Scenario};
use atlas_plan::simulation::Problems;
use atlas_plan::simulation::config::{Config, Pair};
use clap::ValueEnum;
use std::sync::Arc;

/// Presets of the predecessor simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Model of BERT-base size on 8 A100 (1 node)
    Small,
    /// Model of GPT-2-large size on 32 A100 (4 nodes)
    Medium,
    /// 48-layer decoder on 128 H100 (16 nodes)
    Large,
}

impl Preset {
    /// Configuration of the preset.
    #[must_use]
    pub fn config(self) -> Predecessor {
        let name = match self {
            Preset::Small => "small",
            Preset::Medium => "medium",
            Preset::Large => "large",
        };
        Predecessor::preset(name).unwrap_or_default()
    }
}

/// Reads a configuration and reports all problems with it.
pub(in crate::cli) fn read(path: &std::path::Path, library: &Library) -> color_eyre::Result<Config> {
    let file: Arc<str> = path.display().to_string().into();
    let text = read_text(path).map_err(|error| color_eyre::eyre::eyre!("{file}: {error}"))?;
    let mut diagnostics = Diagnostics::new();
    match Config::read(&file, &text, library, &mut diagnostics) {
        Some(config) => {
            for warning in diagnostics.iter().filter(|problem| problem.severity == Severity::Warning) {
                write_stderr(&warning.to_string());
            }
            Ok(config)
        }
        None => Err(Failure::from(diagnostics).into()),
    }
}

/// Resolves a target and a workload, and the changed knobs.
pub(in crate::cli) fn parts(
    library: &Library,
    pair: &Pair,
) -> color_eyre::Result<(Parts, atlas_plan::knob::Overrides)> {
    let knobs = KnobArgs { set: pair.set.clone(), ..KnobArgs::default() };
    knobs.check()?;
    let parts = pick::pick(library, &pair.target, &pair.workload)?;
    let overrides = knobs.overrides(parts.fabrics())?;
    if overrides.get(&Knob::Engine).is_some_and(|engine| engine.to_string() != Engine::Event.name()) {
        let refused = "--set engine: simulations always use the event engine; use `atlas run` for other engines";
        return Err(Failure::usage([refused]).into());
    }
    Ok((parts, overrides))
}

/// Resolves the scenario of a target and a workload, for the analytical engine.
pub(in crate::cli) fn scenario(library: &Library, pair: &Pair) -> color_eyre::Result<Scenario> {
    let (parts, overrides) = parts(library, pair)?;
    let mut scenario = Scenario::from_files(&parts);
    for (knob, setting) in &overrides {
        scenario.set(*knob, setting, &parts)?;
    }
    scenario.engine = Engine::Event;
    scenario.check(&parts)?;
    Ok(scenario)
}

/// Converts problems to a usage failure.
pub(in crate::cli) fn refused(problems: Problems) -> color_eyre::Report {
    Failure::usage(problems.0).into()
}
