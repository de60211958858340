//! The entry of a form as commented YAML, and the problems that the reader of the files finds in it.

use super::yaml::{decoded, yaml};
use std::sync::Arc;

use super::{EntryKind, Form, Key, offer, profile};
use crate::tui::app::App;
use atlas_config::library::Library;
use atlas_config::{Mode, Target, Workload};
use atlas_document::Diagnostics;
use atlas_plan::scenario::Parts;

/// The fields of a new entry, filled from the selected one.
pub(super) fn begin(app: &App, kind: EntryKind) -> Vec<(Key, String)> {
    match kind {
        EntryKind::Offer => offer::begin(app),
        EntryKind::Profile => profile::begin(app),
        EntryKind::Target => {
            let of = app.answer.target.as_deref();
            let number = |get: fn(&Target) -> f64, usual: f64| of.map_or(usual, get).to_string();
            let network = of.and_then(|target| target.network.as_ref()?.gbits_per_accel);
            vec![
                (Key::Name, of.map_or_else(|| "my-cluster".to_owned(), |target| format!("my-{}", target.name))),
                (Key::Accelerator, of.and_then(|target| target.accelerator.as_deref()).unwrap_or_default().to_owned()),
                (Key::PerNode, number(|target| f64::from(target.accelerators_per_node), 8.0)),
                (Key::Nodes, number(|target| f64::from(target.num_nodes), 1.0)),
                (Key::Network, network.map_or_else(|| "400".to_owned(), |rate| rate.to_string())),
                (Key::Price, number(|target| target.cost.hourly_usd, 0.0)),
                (Key::Watts, number(|target| target.cost.energy_watts_node, 10_000.0)),
                (Key::Pue, number(|target| target.cost.pue, 1.2)),
            ]
        }
        EntryKind::Workload => {
            let (of, scenario) = (app.answer.workload.as_deref(), app.answer.scenario.as_ref());
            let mode = app.answer.mode();
            let knob = |knob| scenario.map_or_else(String::new, |scenario| scenario.get(knob).to_string());
            use atlas_plan::knob::Knob;
            let batch = if mode == Mode::Training { Knob::Global } else { Knob::Concurrency };
            vec![
                (Key::Name, of.map_or_else(|| "my-workload".to_owned(), |workload| format!("my-{}", workload.name))),
                (Key::Mode, mode.name().to_owned()),
                (Key::Model, of.and_then(|workload| workload.model.as_deref()).unwrap_or_default().to_owned()),
                (Key::Prompt, knob(Knob::Prompt)),
                (Key::Generate, knob(Knob::Generate)),
                (Key::Precision, knob(Knob::Precision)),
                (Key::Tp, knob(Knob::Tp)),
                (Key::Batch, knob(batch)),
            ]
        }
    }
}

/// The entry as YAML.
pub(super) fn text(library: &Library, form: &Form) -> String {
    let quoted = |key: Key| yaml(form.value(key));
    let plain = |key: Key| form.value(key);
    match form.kind {
        EntryKind::Offer => offer::text(form),
        EntryKind::Profile => profile::text(form),
        EntryKind::Target => {
            let sheet = library.catalog().accelerator(plain(Key::Accelerator)).ok();
            let vendor = sheet.as_ref().map_or_else(|| "unknown".to_owned(), |sheet| sheet.vendor.clone());
            let memory = sheet.as_ref().map_or(0.0, |sheet| sheet.memory.gb);
            format!(
                "# Created in the terminal interface; vendor and memory come from the catalog.\n\
                 - name: {}\n  vendor: {}\n  accelerator: {}\n  accelerators_per_node: {}\n  num_nodes: {}\n  \
                 memory_gb_per_accel: {memory}\n  network: {{ type: IB, Gbps_per_accel: {} }}\n  \
                 cost: {{ hourly_usd: {}, energy_watts_node: {}, pue: {} }} # of one node\n",
                quoted(Key::Name),
                yaml(&vendor),
                quoted(Key::Accelerator),
                plain(Key::PerNode),
                plain(Key::Nodes),
                plain(Key::Network),
                plain(Key::Price),
                plain(Key::Watts),
                plain(Key::Pue),
            )
        }
        EntryKind::Workload => {
            let training = plain(Key::Mode) == Mode::Training.name();
            let batch = if training {
                format!("batch: {{ micro: 1, global: {} }} # sequences per step", plain(Key::Batch))
            } else {
                format!("serving: {{ engine: vllm, concurrency: {} }} # requests in flight", plain(Key::Batch))
            };
            format!(
                "# Created in the terminal interface.\n\
                 - name: {}\n  mode: {}\n  model: {}\n  sequence: {{ prompt: {}, generate: {} }}\n  \
                 parallelism: {{ tp: {} }}\n  precision: {{ weights: {}, activations: bf16 }}\n  {batch}\n",
                quoted(Key::Name),
                quoted(Key::Mode),
                quoted(Key::Model),
                plain(Key::Prompt),
                plain(Key::Generate),
                plain(Key::Tp),
                quoted(Key::Precision),
            )
        }
    }
}

/// The first problem of the entry, in one line.
pub(super) fn first_problem(app: &App, form: &Form) -> Option<String> {
    let name = form.value(Key::Name);
    let library = &app.library;
    let taken = match form.kind {
        EntryKind::Offer => return offer::first_problem(&app.library, form),
        EntryKind::Profile => return profile::first_problem(&app.library, form),
        EntryKind::Target => library.target(name).is_ok(),
        EntryKind::Workload => library.workload(name).is_ok(),
    };
    if name.is_empty() || taken {
        let why = if taken { "an entry with this name already exists" } else { "type a name" };
        return Some(format!("name: {why}"));
    }
    let (mut problems, text) = (Diagnostics::new(), text(&app.library, form));
    let found = match form.kind {
        EntryKind::Offer | EntryKind::Profile => return None,
        EntryKind::Target => {
            let target = decoded(&text, Target::decode, &mut problems);
            target.zip(app.answer.workload.clone()).map(|(target, workload)| (Arc::new(target), workload))
        }
        EntryKind::Workload => {
            let workload = decoded(&text, Workload::decode, &mut problems);
            app.answer.target.clone().zip(workload).map(|(target, workload)| (target, Arc::new(workload)))
        }
    };
    let first = |problems: &Diagnostics| problems.iter().next().map(|problem| problem.message.clone());
    if problems.has_errors() {
        return first(&problems);
    }
    // The names in the entry must exist.
    let (target, workload) = found?;
    Parts::of(library, &target, &workload).err().and_then(|problems| first(&problems))
}
