//! Background work: results that take too long to compute between two keys.
//!
//! The update function never computes for long. A view [asks](Query::ask) with a question as plain data, and
//! [`mod@super::update`] turns a new question into an [`Effect::Work`]. The runtime's workers (`workers.rs`) run the
//! [`Job`] on a thread, report its [`Progress`] while it runs, and send the result as
//! [`Message::Worked`](super::message::Message::Worked).
//!
//! * **An answer belongs to its question.** Questions hold [`App::generation`], which every change of the scenario counts
//!   up, so that asking again after an edit cancels the work under way and orders new work; what comes from a cancelled
//!   order carries a serial number that is not awaited, and is dropped. Until the new answer is there the old one can be shown
//!   ([`Query::is_fresh`] tells).
//! * **Esc stops.** A question that was stopped is not asked again until it is another, or [`Query::forget`] was called.
//! * **Short work shows in the same frame.** The runtime waits some milliseconds for new work before it draws, so
//!   that a curve of some hundred points follows an edit in one frame.
//! * **No wake-ups when idle.** The runtime polls progress only while something runs.
//!
//! To plug in another engine or view: a struct that holds what is to be done and is a [`Job`]; a variant of [`Product`] for
//! what comes out; a [`Query`] in [`Queries`] with a type for its question; a line in `arrived`; and a call of
//! [`Query::ask`] in `follow`, or where the user asks for it. A job calls nothing but pure functions, and gives its gauge
//! to the engine or looks at [`Gauge::cancelled`] itself.

use std::fmt;
use std::sync::Arc;

use super::app::{App, View};
use super::message::Effect;
use super::{assistant, frontier, optimum, outlook, panels, race, simulating, sweeping, tornado};
use atlas_core::units;
use atlas_plan::engine::answer::event::Run;
use atlas_plan::search::Gauge;
use atlas_plan::search::sensitivity::Tornado;

/// A computation for a thread, from plain data to plain data.
pub trait Job: fmt::Debug + Send + Sync {
    /// Runs it. Reports progress to `gauge`, and returns soon once that is cancelled.
    ///
    /// # Errors
    /// Why there is no answer, in words for the user.
    fn run(&self, gauge: &Gauge) -> Result<Product, String>;
}

/// Results of jobs.
#[derive(Debug, Clone)]
pub enum Product {
    /// Figures over one or two knobs.
    Sweep(Arc<sweeping::Curves>),
    /// Pareto frontier between two figures.
    Frontier(Arc<frontier::Front>),
    /// What matters most.
    Tornado(Arc<Tornado>),
    /// The best knobs.
    Optimum(Arc<optimum::Found>),
    /// Results of some lanes of a race.
    Race(Arc<race::Batch>),
    /// An answer in words.
    Reply(assistant::Answer),
    /// A simulated scenario.
    Simulation(Arc<Run>),
    /// A job at growing scale.
    Scaling(Arc<simulating::Scaling>),
    /// What a panel asked for.
    Panel(panels::Answer),
}

/// A job to run.
#[derive(Debug, Clone)]
pub struct Order {
    /// Serial number.
    pub serial: u64,
    /// The work.
    pub job: Arc<dyn Job>,
}

impl PartialEq for Order {
    fn eq(&self, other: &Order) -> bool {
        self.serial == other.serial
    }
}

/// Progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Progress {
    /// Units of work done.
    pub done: u64,
    /// Total units; 0 while unknown.
    pub total: u64,
    /// Time since it began, s.
    pub seconds: f64,
}

impl Progress {
    /// The part that is done, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        if self.total == 0 { 0.0 } else { (self.done as f64 / self.total as f64).min(1.0) }
    }

    /// Units of work in a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.done as f64 / self.seconds.max(1e-3)
    }

    /// Estimated time left, s; `None` before it is known.
    #[must_use]
    pub fn left(&self) -> Option<f64> {
        let rest = self.total.checked_sub(self.done).filter(|_| self.done > 0 && self.total > 0)?;
        Some(rest as f64 / self.rate())
    }

    /// In words: `43 %, 1.2 M/s, 3 s left`. Numbers keep their width as they grow.
    #[must_use]
    pub fn describe(&self) -> String {
        if self.done == 0 {
            return "begins".to_owned();
        }
        let left = self.left().map_or_else(String::new, |left| format!(", {} left", units::duration_ms(1e3 * left)));
        format!("{:>3.0} %, {}/s{left}", 100.0 * self.share(), units::si(self.rate()))
    }
}

/// State of the last question.
#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Running { serial: u64, progress: Progress },
    Answered,
    Stopped,
    Failed(String),
}

/// A query of a view: the last question, and the last answer with its question.
#[derive(Debug, Clone)]
pub struct Query<Q, A> {
    current: Option<(Q, Stage)>,
    answer: Option<(Q, A)>,
}

impl<Q, A> Default for Query<Q, A> {
    fn default() -> Query<Q, A> {
        Query { current: None, answer: None }
    }
}

impl<Q: Clone + PartialEq, A> Query<Q, A> {
    /// Asks a question unless it was asked last. Work on another question is cancelled.
    pub fn ask(
        &mut self,
        question: Q,
        serials: &mut u64,
        effects: &mut Vec<Effect>,
        job: impl FnOnce(&Q) -> Result<Arc<dyn Job>, String>,
    ) {
        if self.current.as_ref().is_some_and(|(current, _)| *current == question) {
            return;
        }
        self.cancel(effects);
        let stage = match job(&question) {
            Ok(job) => {
                *serials += 1;
                effects.push(Effect::Work(Order { serial: *serials, job }));
                Stage::Running { serial: *serials, progress: Progress::default() }
            }
            Err(trouble) => Stage::Failed(trouble),
        };
        self.current = Some((question, stage));
    }

    fn cancel(&self, effects: &mut Vec<Effect>) {
        if let Some((_, Stage::Running { serial, .. })) = &self.current {
            effects.push(Effect::Cancel(*serial));
        }
    }

    /// Stops running work.
    pub fn stop(&mut self, effects: &mut Vec<Effect>) -> bool {
        self.cancel(effects);
        let running = self.progress().is_some();
        if let Some((_, stage)) = self.current.as_mut().filter(|_| running) {
            *stage = Stage::Stopped;
        }
        running
    }

    /// Cancels work in progress; asking the same question again starts it anew.
    pub fn forget(&mut self, effects: &mut Vec<Effect>) {
        self.cancel(effects);
        if !self.is_fresh() {
            self.current = None;
        }
    }

    /// The question asked last.
    #[must_use]
    pub fn current(&self) -> Option<&Q> {
        self.current.as_ref().map(|(question, _)| question)
    }

    /// Progress of the running work.
    #[must_use]
    pub fn progress(&self) -> Option<Progress> {
        match &self.current {
            Some((_, Stage::Running { progress, .. })) => Some(*progress),
            _ => None,
        }
    }

    /// Why the last question has no answer.
    #[must_use]
    pub fn trouble(&self) -> Option<&str> {
        match &self.current {
            Some((_, Stage::Failed(trouble))) => Some(trouble),
            Some((_, Stage::Stopped)) => Some("stopped"),
            _ => None,
        }
    }

    /// The last answer, whatever was asked since.
    #[must_use]
    pub fn answer(&self) -> Option<&A> {
        self.answer.as_ref().map(|(_, answer)| answer)
    }

    /// The question that the last answer answers.
    #[must_use]
    pub fn question(&self) -> Option<&Q> {
        self.answer.as_ref().map(|(question, _)| question)
    }

    /// Whether the last answer answers the last question.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        matches!(&self.current, Some((_, Stage::Answered)))
    }

    /// Whether this order is running for the query.
    pub(super) fn awaits(&self, order: u64) -> bool {
        matches!(&self.current, Some((_, Stage::Running { serial, .. })) if *serial == order)
    }

    pub(super) fn arrived(&mut self, serial: u64, answer: A) -> bool {
        let awaited = self.awaits(serial);
        if let Some((question, stage)) = self.current.as_mut().filter(|_| awaited) {
            self.answer = Some((question.clone(), answer));
            *stage = Stage::Answered;
        }
        awaited
    }

    pub(super) fn failed(&mut self, order: u64, trouble: &str) -> bool {
        let awaited = self.awaits(order);
        if let Some((_, stage)) = self.current.as_mut().filter(|_| awaited) {
            *stage = Stage::Failed(trouble.to_owned());
        }
        awaited
    }

    fn progressed(&mut self, order: u64, now: Progress) {
        if let Some((_, Stage::Running { serial, progress })) = &mut self.current
            && *serial == order
        {
            *progress = now;
        }
    }
}

/// All queries.
#[derive(Debug, Clone, Default)]
pub struct Queries {
    /// The last order's serial number.
    pub serial: u64,
    /// Figures over one or two knobs.
    pub sweep: Query<sweeping::Question, Arc<sweeping::Curves>>,
    /// The same beside the results.
    pub outlook: Query<sweeping::Question, Arc<sweeping::Curves>>,
    /// Pareto frontier between two figures.
    pub frontier: Query<frontier::Question, Arc<frontier::Front>>,
    /// What matters most.
    pub tornado: Query<tornado::Question, Arc<Tornado>>,
    /// The best knobs.
    pub optimum: Query<optimum::Question, Arc<optimum::Found>>,
    /// The lanes of the race.
    pub race: Query<race::Round, Arc<race::Batch>>,
    /// The assistant.
    pub assistant: Query<assistant::Question, assistant::Answer>,
    /// The scenario on the screen, simulated.
    pub simulation: Query<simulating::Question, Arc<Run>>,
    /// The same at growing scale.
    pub scaling: Query<simulating::Scale, Arc<simulating::Scaling>>,
}

/// Handles the result of an order. Results of outdated orders are dropped.
pub(super) fn arrived(app: &mut App, serial: u64, product: Result<Product, String>, effects: &mut Vec<Effect>) {
    let queries = &mut app.queries;
    match product {
        Ok(Product::Sweep(curves)) => {
            // Only the one that ordered it accepts it.
            queries.outlook.arrived(serial, Arc::clone(&curves));
            if queries.sweep.arrived(serial, curves) {
                sweeping::settle(app);
            }
        }
        Ok(Product::Frontier(front)) => {
            queries.frontier.arrived(serial, front);
        }
        Ok(Product::Tornado(tornado)) => {
            queries.tornado.arrived(serial, tornado);
        }
        Ok(Product::Optimum(found)) => {
            if queries.optimum.arrived(serial, found) {
                optimum::settle(app, effects);
            }
        }
        Ok(Product::Race(batch)) => {
            if queries.race.arrived(serial, batch) {
                race::settle(app);
            }
        }
        Ok(Product::Reply(reply)) => {
            if queries.assistant.arrived(serial, reply) {
                assistant::settle(app);
            }
        }
        Ok(Product::Simulation(run)) => {
            if queries.simulation.arrived(serial, run) {
                simulating::settle(app);
            }
        }
        Ok(Product::Scaling(scaling)) => {
            queries.scaling.arrived(serial, scaling);
        }
        Ok(Product::Panel(answer)) => panels::arrived(app, serial, answer, effects),
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
            assistant::settle(app);
            panels::failed(app, serial, &trouble);
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
    sweeping::follow(app, effects);
    frontier::follow(app, effects);
    tornado::follow(app, effects);
    optimum::follow(app, effects);
    race::follow(app, effects);
    outlook::follow(app, effects);
    assistant::follow(app, effects);
    panels::follow(app, effects);
}

/// Stops running work of the current view.
pub(super) fn stop(app: &mut App, effects: &mut Vec<Effect>) -> bool {
    let queries = &mut app.queries;
    match app.view {
        View::Sweep => queries.sweep.stop(effects),
        View::Frontier => queries.frontier.stop(effects),
        View::Sensitivity => queries.tornado.stop(effects),
        View::Optimum => queries.optimum.stop(effects),
        View::Race => queries.race.stop(effects),
        // The scenario's own simulation runs under any view. Both: `||` would leave the other running.
        _ => [queries.simulation.stop(effects), queries.scaling.stop(effects)].contains(&true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_answer_belongs_to_its_question() {
        let (mut query, mut serials) = (Query::default(), 0);
        assert_eq!(ask(&mut query, 7, &mut serials), [order(1)]);
        assert_eq!(ask(&mut query, 7, &mut serials), [], "asked already");
        assert_eq!(ask(&mut query, 8, &mut serials), [Effect::Cancel(1), order(2)]);
        assert!(!query.arrived(1, 'a'), "of a cancelled order");
        assert!(query.arrived(2, 'b') && query.is_fresh());
        assert_eq!(ask(&mut query, 8, &mut serials), [], "answered already");
        assert_eq!(ask(&mut query, 9, &mut serials), [order(3)]);
        assert_eq!((query.answer(), query.question(), query.is_fresh()), (Some(&'b'), Some(&8), false));
    }

    #[test]
    fn what_was_stopped_stays_stopped_until_something_else_is_asked() {
        let (mut query, mut serials) = (Query::default(), 0);
        let mut effects = ask(&mut query, 1, &mut serials);
        assert!(query.stop(&mut effects));
        assert!(!query.stop(&mut effects), "nothing runs");
        assert_eq!(effects, [order(1), Effect::Cancel(1)]);
        assert_eq!(ask(&mut query, 1, &mut serials), []);
        assert_eq!(query.trouble(), Some("stopped"));
        query.forget(&mut effects);
        assert_eq!(ask(&mut query, 1, &mut serials), [order(2)]);
        query.failed(2, "why");
        assert_eq!(query.trouble(), Some("why"));
    }

    #[test]
    fn progress_is_reported_of_the_order_that_runs() {
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
