//! Idle nodes of the targets that `atlas detect` found on this cluster.

pub mod state;

pub use state::{Idle, State};

use std::sync::Arc;
use std::time::Duration;

use atlas_core::sort;
use atlas_detect::model::{Machine, Origin};
use atlas_detect::runner::System;
use atlas_detect::{Options, detect, idle};
use atlas_plan::search::Gauge;

use crate::tui::app::App;
use crate::tui::message::{Effect, Timer};
use crate::tui::work::job::{Job, Product};

/// Milliseconds between two queries to Slurm.
const QUERY_INTERVAL_MS: u64 = 30_000;
/// Timeout of a Slurm command.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct QueryJob;

impl Job for QueryJob {
    fn run(&self, _: &Gauge) -> Result<Product, String> {
        let options =
            Options { local: false, slurm: true, kubernetes: false, timeout: QUERY_TIMEOUT, ..Options::default() };
        let found = detect(&System, &options, &[]);
        let load = idle::query(&System, QUERY_TIMEOUT).map_err(|error| error.to_string())?;
        let nodes = |machine: &Machine| {
            let nodes = load.nodes(machine)?;
            Some((machine.name.clone(), (nodes.idle?, nodes.total?)))
        };
        let of_slurm = found.machines.iter().filter(|machine| matches!(machine.origin, Origin::Slurm { .. }));
        Ok(Product::Idle(Arc::new(sort::collect_unsorted(of_slurm.filter_map(nodes)))))
    }
}

/// Prefix of the descriptions of detected partitions.
const DETECTED: &str = "Slurm partition ";

/// Queries Slurm once a detected target has been selected. Without one, no command is run.
pub(in crate::tui) fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let description = app.answer.target.as_ref().and_then(|target| target.description.as_deref());
    let detected = description.is_some_and(|text| text.starts_with(DETECTED));
    if !detected && app.idle.known.current().is_none() {
        return;
    }
    let request = app.idle.requests;
    app.idle.known.ask(request, &mut app.queries.serial, effects, |_| Ok(Arc::new(QueryJob)));
}

pub(in crate::tui) fn arrived(app: &mut App, serial: u64, idle: Arc<Idle>, effects: &mut Vec<Effect>) {
    if app.idle.known.store_answer(serial, idle) {
        effects.push(Effect::After { ms: QUERY_INTERVAL_MS, timer: Timer::Idle(app.idle.requests) });
    }
}

/// Handles the timer: makes the next query due.
pub fn query_due(app: &mut App, request: u64) {
    if app.idle.requests == request {
        app.idle.requests += 1;
    }
}

/// Formats the idle nodes of a target: `2/4 idle`.
#[must_use]
pub fn of(state: &State, target: &str) -> Option<String> {
    let (idle, total) = state.known.answer()?.get(target)?;
    Some(format!("{idle}/{total} idle"))
}
