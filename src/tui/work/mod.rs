//! Background work: computations that take too long to run between two key presses.
//!
//! The update function must not compute for long. A view [asks](Query::ask) a question, which is plain data, and
//! [`mod@super::update`] turns a new question into an [`Effect::Work`]. The runtime's workers (`workers.rs`) run the
//! [`Job`] on a thread, report its [`Progress`] while it runs, and send the result as
//! [`Message::WorkFinished`](super::message::Message::WorkFinished).
//!
//! * **An answer belongs to its question.** Questions contain [`App::generation`], which every change of the scenario
//!   increments, so that asking again after an edit cancels the running work and orders new work. Results of a
//!   canceled order have a serial number that is not awaited, and are dropped. Until the new answer arrives, the old
//!   one can be shown; [`Query::is_fresh`] distinguishes them.
//! * **Esc stops.** A stopped question is not asked again until it changes or [`Query::forget`] is called.
//! * **Short work shows in the same frame.** The runtime waits a few milliseconds for new work before it draws, so that
//!   a curve of a few hundred points follows an edit in one frame.
//! * **No wake-ups when idle.** The runtime polls progress only while something runs.
//!
//! To add another engine or view: a struct with the inputs that implements [`Job`]; a variant of [`Product`] for the
//! result; a [`Query`] in [`Queries`] with a type for its question; a line in `handle_result`; and a call of
//! [`Query::ask`] in the `follow` of the view, or where the user requests it. A job calls only pure functions, and passes its gauge to the engine or
//! checks `Gauge::canceled` itself.

mod ask;
pub mod job;
pub mod queries;
pub mod query;
pub mod simulating;

pub use job::{Job, Order, Product};
pub use queries::Queries;
pub use query::{Progress, Query};

use std::sync::Arc;

use super::message::Effect;
use crate::demo::View;
use crate::tui::app::App;
use crate::tui::dialogs::detecting;
use crate::tui::update::status::{fail, note};
use crate::tui::views::{assistant, fits, idle, optimum, outlook, race, sweep, watch};

/// Handles the result of an order. Results of outdated orders are dropped.
pub(super) fn handle_result(app: &mut App, serial: u64, product: Result<Product, String>, effects: &mut Vec<Effect>) {
    let queries = &mut app.queries;
    match product {
        Ok(Product::Sweep(curves)) => {
            // Only the query that ordered it accepts it.
            queries.outlook.store_answer(serial, Arc::clone(&curves));
            if queries.sweep.store_answer(serial, curves) {
                sweep::clamp_cursor(app);
            }
        }
        Ok(Product::Frontier(front)) => {
            queries.frontier.store_answer(serial, front);
        }
        Ok(Product::Tornado(tornado)) => {
            queries.tornado.store_answer(serial, tornado);
        }
        Ok(Product::Optimum(found)) => {
            if queries.optimum.store_answer(serial, found) {
                optimum::report_answer(app, effects);
            }
        }
        Ok(Product::Race(batch)) => {
            if queries.race.store_answer(serial, batch) {
                race::add_results(app);
            }
        }
        Ok(Product::Reply(reply)) => {
            if queries.assistant.store_answer(serial, reply) {
                assistant::add_arrived_answer(app);
            }
        }
        Ok(Product::Simulation(run)) => {
            if queries.simulation.store_answer(serial, run) {
                simulating::cache_simulation(app);
            }
        }
        Ok(Product::Scaling(scaling)) => {
            queries.scaling.store_answer(serial, scaling);
        }
        Ok(Product::Watch(seen)) => watch::arrived(app, serial, seen, effects),
        Ok(Product::History(listed)) => {
            app.history.listed.store_answer(serial, listed);
        }
        Ok(Product::Launch(files)) => {
            app.launch.files.store_answer(serial, files);
        }
        Ok(Product::Written(text)) => {
            if app.launch.written.store_answer(serial, ()) {
                note(app, text, effects);
            }
        }
        Ok(Product::Idle(idle)) => idle::arrived(app, serial, idle, effects),
        Ok(Product::Fits(grid)) => fits::store_grid(app, serial, grid),
        Ok(Product::Detected(found)) => detecting::handle_result(app, serial, found, effects),
        Err(trouble) => {
            queries.sweep.failed(serial, &trouble);
            queries.outlook.failed(serial, &trouble);
            queries.frontier.failed(serial, &trouble);
            queries.tornado.failed(serial, &trouble);
            queries.optimum.failed(serial, &trouble);
            queries.race.failed(serial, &trouble);
            queries.simulation.failed(serial, &trouble);
            queries.scaling.failed(serial, &trouble);
            queries.assistant.failed(serial, &trouble);
            assistant::add_arrived_answer(app);
            detecting::failed(app, serial, &trouble);
            app.watch.seen.failed(serial, &trouble);
            app.history.listed.failed(serial, &trouble);
            app.launch.files.failed(serial, &trouble);
            app.idle.known.failed(serial, &trouble);
            app.fits.table.failed(serial, &trouble);
            if app.launch.written.failed(serial, &trouble) {
                fail(app, trouble);
            }
        }
    }
}

/// Handles progress of an order.
pub(super) fn progressed(app: &mut App, serial: u64, progress: Progress) {
    let queries = &mut app.queries;
    queries.sweep.progressed(serial, progress);
    queries.frontier.progressed(serial, progress);
    queries.tornado.progressed(serial, progress);
    queries.optimum.progressed(serial, progress);
    queries.race.progressed(serial, progress);
    queries.simulation.progressed(serial, progress);
    queries.scaling.progressed(serial, progress);
    queries.assistant.progressed(serial, progress);
    assistant::streamed(app);
}

/// Starts the queries of the current view and drops those of others.
pub(super) fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    simulating::follow(app, effects);
    for view in View::ALL {
        let spec = view.spec();
        let follow = if *view == app.view { spec.follow } else { spec.hidden };
        follow(app, effects);
    }
    outlook::follow(app, effects);
    assistant::follow(app, effects);
    idle::follow(app, effects);
}

/// Stops running work of the current view. Returns whether any was running.
pub(super) fn stop(app: &mut App, effects: &mut Vec<Effect>) -> bool {
    (app.view.spec().stop)(app, effects)
}

#[cfg(test)]
mod tests {
    use super::*;
    use atlas_plan::search::Gauge;

    #[derive(Debug)]
    struct Nothing;

    impl Job for Nothing {
        fn run(&self, _: &Gauge) -> Result<Product, String> {
            Err("nothing".to_owned())
        }
    }

    fn ask(query: &mut Query<u32, char>, question: u32, serials: &mut u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        query.ask(question, serials, &mut effects, |_| Ok(Arc::new(Nothing)));
        effects
    }

    fn order(serial: u64) -> Effect {
        Effect::Work(Order { serial, job: Arc::new(Nothing) })
    }

    #[test]
    fn query_accepts_only_the_answer_to_its_latest_order() {
        let (mut query, mut serials) = (Query::default(), 0);
        assert_eq!(ask(&mut query, 7, &mut serials), [order(1)]);
        assert_eq!(ask(&mut query, 7, &mut serials), [], "asked already");
        assert_eq!(ask(&mut query, 8, &mut serials), [Effect::Cancel(1), order(2)]);
        assert!(!query.store_answer(1, 'a'), "of a canceled order");
        assert!(query.store_answer(2, 'b') && query.is_fresh());
        assert_eq!(ask(&mut query, 8, &mut serials), [], "answered already");
        assert_eq!(ask(&mut query, 9, &mut serials), [order(3)]);
        assert_eq!((query.answer(), query.question(), query.is_fresh()), (Some(&'b'), Some(&8), false));
    }

    #[test]
    fn stopped_query_does_not_restart_until_it_is_forgotten() {
        let (mut query, mut serials) = (Query::default(), 0);
        let mut effects = ask(&mut query, 1, &mut serials);
        assert!(query.stop(&mut effects));
        assert!(!query.stop(&mut effects), "nothing runs");
        assert_eq!(effects, [order(1), Effect::Cancel(1)]);
        assert_eq!(ask(&mut query, 1, &mut serials), []);
        assert_eq!(query.problem(), Some("stopped"));
        query.forget(&mut effects);
        assert_eq!(ask(&mut query, 1, &mut serials), [order(2)]);
        query.failed(2, "why");
        assert_eq!(query.problem(), Some("why"));
    }

    #[test]
    fn query_reports_progress_only_of_the_running_order() {
        let (mut query, mut serials): (Query<u32, char>, u64) = (Query::default(), 0);
        ask(&mut query, 1, &mut serials);
        let half = Progress { done: 500, total: 1000, seconds: 2.0 };
        query.progressed(7, half);
        assert_eq!(query.progress(), Some(Progress::default()));
        query.progressed(1, half);
        assert_eq!(query.progress(), Some(half));
        assert_eq!((half.share(), half.rate(), half.left()), (0.5, 250.0, Some(2.0)));
        assert!(half.describe().starts_with(" 50 %, "), "{}", half.describe());
        assert_eq!(Progress::default().left(), None);
    }
}
