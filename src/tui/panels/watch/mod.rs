//! A running job against its prediction, as its log grows. Without a submission, the job is compared with the scenario on
//! the screen.

pub mod view;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use atlas_cluster::watch::{Event, Prediction, WatchState, job};
use atlas_detect::runner::System;
use atlas_plan::search::Gauge;

use super::{Answer, Panel, Spec};
use crate::cli::watch::{feed::Feed, plan};
use crate::tui::app::{App, View};
use crate::tui::message::{Effect, Timer};
use crate::tui::work::{Job, Product, Query};

/// Milliseconds between two looks at the log.
const LOOK_MS: u64 = 1000;
/// Bytes read of a file in one look.
const BYTES_PER_LOOK: u64 = 32 << 20;
/// Time that Slurm may take to name the log of a job.
const PATIENCE: Duration = Duration::from_secs(10);
/// Events that are shown, the latest.
const EVENTS: usize = 6;

/// The panel.
pub(super) static SPEC: Spec = Spec {
    name: "watch",
    title: "Watch",
    rows: view::rows,
    draw: view::draw,
    info: view::info,
    opened,
    follow,
    accept: again,
    ..Spec::DEFAULT
};

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Logs of one job, or the number of a job of Slurm.
    pub logs: Vec<String>,
    /// What was seen, by scenario and look.
    pub seen: Query<(u64, u64), Arc<Seen>>,
    look: u64,
    live: Option<(u64, Arc<Live>)>,
}

/// What was seen of a job.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Everything that is known of the run.
    pub state: WatchState,
    /// The last changes, in words.
    pub events: Vec<String>,
}

/// The files that are followed, shared with the worker that reads them.
struct Live {
    names: Vec<String>,
    prediction: Option<Prediction>,
    began: Instant,
    reading: Mutex<Option<Reading>>,
}

struct Reading {
    files: Vec<PathBuf>,
    feeds: Vec<Feed>,
    state: WatchState,
    events: Vec<String>,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("names", &self.names).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Look(Arc<Live>);

impl Job for Look {
    fn run(&self, gauge: &Gauge) -> Result<Product, String> {
        let live = &self.0;
        let mut guard = live.reading.lock().map_err(|_| "the log could not be read".to_owned())?;
        if guard.is_none() {
            *guard = Some(live.begin()?);
        }
        let Some(reading) = guard.as_mut() else { return Err("the log was not opened".to_owned()) };
        let at = live.began.elapsed().as_secs_f64();
        loop {
            let mut more = false;
            for (source, feed) in reading.feeds.iter_mut().enumerate() {
                let state = &mut reading.state;
                let (read, said) = feed.poll(BYTES_PER_LOOK, |seen| state.observe(source, at, seen));
                more |= read >= BYTES_PER_LOOK;
                reading.events.extend(said.iter().map(|event| event.text(&reading.state)));
            }
            if !more || gauge.cancelled() {
                break;
            }
        }
        let changes = reading.state.tick(at);
        reading
            .events
            .extend(changes.iter().filter(|event| **event != Event::Compared).map(|event| event.text(&reading.state)));
        let surplus = reading.events.len().saturating_sub(EVENTS);
        reading.events.drain(..surplus);
        let (files, state, events) = (reading.files.clone(), reading.state.clone(), reading.events.clone());
        Ok(Product::Panel(Answer::Watch(Arc::new(Seen { files, state, events }))))
    }
}

impl Live {
    /// Finds the files. A log that does not exist yet is waited for.
    fn begin(&self) -> Result<Reading, String> {
        let files = match self.names.as_slice() {
            [one] if job::is_id(one) && !std::path::Path::new(one).exists() => {
                job::query(&System, one, PATIENCE).map_err(|error| error.to_string())?.logs
            }
            names => names.iter().map(PathBuf::from).collect(),
        };
        if files.is_empty() {
            return Err("Slurm reports no output file of this job; give its log".to_owned());
        }
        let feeds = files.iter().map(|path| Feed::of(path)).collect();
        let names = files.iter().map(|path| path.display().to_string());
        let state = WatchState::new(self.prediction.clone(), names);
        Ok(Reading { files, feeds, state, events: Vec::new() })
    }
}

/// Watches these logs, or this job, from now on.
pub fn of(app: &mut App, logs: Vec<String>) {
    app.panels.watch = State { logs, look: app.panels.watch.look + 1, ..State::default() };
}

/// Begins anew.
pub(super) fn again(app: &mut App, effects: &mut Vec<Effect>) {
    app.panels.watch.seen.forget(effects);
    app.panels.watch.live = None;
    app.panels.watch.look += 1;
}

pub(super) fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let generation = app.generation;
    if app.panels.watch.logs.is_empty() {
        return;
    }
    // Another scenario is another prediction.
    if app.panels.watch.live.as_ref().is_none_or(|(of, _)| *of != generation) {
        let live = Live {
            names: app.panels.watch.logs.clone(),
            prediction: predicted(app),
            began: Instant::now(),
            reading: Mutex::new(None),
        };
        app.panels.watch.live = Some((generation, Arc::new(live)));
    }
    let state = &mut app.panels.watch;
    let Some((_, live)) = &state.live else { return };
    let job = Arc::new(Look(Arc::clone(live)));
    state.seen.ask((generation, state.look), &mut app.queries.serial, effects, |_| Ok(job));
}

/// The prediction of the scenario on the screen.
fn predicted(app: &App) -> Option<Prediction> {
    let setup = &app.now.setup;
    let parts = atlas_plan::scenario::Parts::find(&app.library, &setup.target, &setup.workload).ok()?;
    let (scenario, estimate) = (app.answer.scenario.as_ref()?, app.answer.outcome.as_ref().ok()?);
    plan::prediction(&parts, scenario, estimate, None).ok()
}

/// Takes what was seen, and looks again after a while.
pub(super) fn arrived(app: &mut App, serial: u64, seen: Arc<Seen>, effects: &mut Vec<Effect>) {
    if app.panels.watch.seen.arrived(serial, seen) {
        effects.push(Effect::After { ms: LOOK_MS, timer: Timer::Watch(app.panels.watch.look) });
    }
}

/// The time between two looks is over.
pub fn due(app: &mut App, look: u64) {
    let state = &mut app.panels.watch;
    if state.look == look && app.view == View::Panel(Panel::Watch) {
        state.look += 1;
    }
}

/// Looks at once where the view is opened again.
pub(super) fn opened(app: &mut App) {
    app.panels.watch.look += 1;
}
