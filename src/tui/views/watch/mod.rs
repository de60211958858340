//! The watch: follows the log of a running job and compares it with its prediction. Without a submission, the job
//! is compared with the current scenario.

pub mod state;

pub mod view;

use state::Live;
pub use state::{Change, State, WatchReading};

use std::sync::{Arc, Mutex};
use std::time::Instant;

use atlas_cluster::watch::{Event, Prediction};
use atlas_plan::search::Gauge;

use super::{Spec, Tab};
use crate::tui::app::{App, View};
use crate::tui::input::keymap::{Action, Keys, bind};
use crate::tui::message::{Effect, Timer};
use crate::tui::work::job::{Job, Product};

/// Milliseconds between two reads of the log.
const READ_INTERVAL_MS: u64 = 1000;
/// Number of bytes read from a file between checks for cancellation. Reading them takes milliseconds.
const MAX_READ_BYTES: u64 = 1 << 20;
/// Number of events shown; the latest are kept.
const EVENTS: usize = 6;

/// The view.
pub(super) static SPEC: Spec = Spec {
    title: "Watch",
    tab: Tab { place: 17, name: "Watch", short: "Watch" },
    synonyms: "watch job log live eta",
    opening: Some(bind(&["vj"], Action::Show(View::Watch), "watch a running job against its prediction", Some("job"))),
    keys: &[Keys::Own(&[bind(&["Enter"], Action::Accept, "reread the log", Some("reread"))])],
    shared_keys: &[],
    is_empty: |app| app.watch.logs.is_empty(),
    lines_of: super::one_line,
    is_text: |_| true,
    draw: view::draw,
    info: view::info,
    // Reads the log immediately.
    opened: |app, _| app.watch.look += 1,
    follow,
    works: |app, action| action != Action::Accept || !app.watch.logs.is_empty(),
    accept: restart,
    ..Spec::DEFAULT
};

#[derive(Debug)]
struct ReadJob(Arc<Live>);

impl Job for ReadJob {
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
                let (read, said) = feed.poll(MAX_READ_BYTES, |seen| state.observe(source, at, seen));
                more |= read >= MAX_READ_BYTES;
                reading.events.extend(said.iter().map(|event| Change::of(event, &reading.state)));
            }
            if !more || gauge.canceled() {
                break;
            }
        }
        let changes = reading.state.tick(at);
        reading.events.extend(
            changes.iter().filter(|event| **event != Event::Comparable).map(|event| Change::of(event, &reading.state)),
        );
        let surplus = reading.events.len().saturating_sub(EVENTS);
        reading.events.drain(..surplus);
        let (files, state, events) = (reading.files.clone(), reading.state.clone(), reading.events.clone());
        Ok(Product::Watch(Arc::new(WatchReading { files, state, events })))
    }
}

/// Starts to watch these logs, or this job.
pub fn of(app: &mut App, logs: Vec<String>) {
    app.watch = State { logs, look: app.watch.look + 1, ..State::default() };
}

/// Restarts the watch.
fn restart(app: &mut App, effects: &mut Vec<Effect>) {
    app.watch.seen.forget(effects);
    app.watch.live = None;
    app.watch.look += 1;
}

fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let generation = app.generation;
    if app.watch.logs.is_empty() {
        return;
    }
    // Another scenario has another prediction.
    if app.watch.live.as_ref().is_none_or(|(of, _)| *of != generation) {
        let live = Live {
            names: app.watch.logs.clone(),
            prediction: predicted(app),
            began: Instant::now(),
            reading: Mutex::new(None),
        };
        app.watch.live = Some((generation, Arc::new(live)));
    }
    let state = &mut app.watch;
    let Some((_, live)) = &state.live else { return };
    let job = Arc::new(ReadJob(Arc::clone(live)));
    state.seen.ask((generation, state.look), &mut app.queries.serial, effects, |_| Ok(job));
}

/// Returns the prediction of the current scenario.
fn predicted(app: &App) -> Option<Prediction> {
    let setup = &app.now.setup;
    let parts = atlas_plan::scenario::Parts::find(&app.library, &setup.target, &setup.workload).ok()?;
    let (scenario, estimate) = (app.answer.scenario.as_ref()?, app.answer.outcome.as_ref().ok()?);
    Prediction::of_estimate(&parts, scenario, estimate, None).ok()
}

/// Stores the result, and schedules the next read of the log.
pub(in crate::tui) fn arrived(app: &mut App, serial: u64, seen: Arc<WatchReading>, effects: &mut Vec<Effect>) {
    if app.watch.seen.store_answer(serial, seen) {
        effects.push(Effect::After { ms: READ_INTERVAL_MS, timer: Timer::Watch(app.watch.look) });
    }
}

/// Handles the timer: makes the next read due if the view is shown.
pub fn read_due(app: &mut App, look: u64) {
    let state = &mut app.watch;
    if state.look == look && app.view == View::Watch {
        state.look += 1;
    }
}
