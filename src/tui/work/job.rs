//! Jobs for worker threads, and their results.

use crate::tui::dialogs::detecting::state as detecting;
use crate::tui::views::assistant::state as assistant;
use crate::tui::views::fits::state as fits;
use crate::tui::views::frontier::state as frontier;
use crate::tui::views::history::state as history;
use crate::tui::views::idle::state as idle;
use crate::tui::views::launch::state as launch;
use crate::tui::views::optimum::state as optimum;
use crate::tui::views::race::state as race;
use crate::tui::views::sweep::state as sweep;
use crate::tui::views::watch::state as watch;
use crate::tui::work::simulating::state as simulating;
use atlas_plan::engine::answer::event::Run;
use atlas_plan::search::Gauge;
use atlas_plan::search::sensitivity::Tornado;
use std::fmt;
use std::sync::Arc;

/// A computation for a worker thread, from plain data to plain data.
pub trait Job: fmt::Debug + Send + Sync {
    /// Runs the job. Reports progress to `gauge`, and returns soon after that is canceled.
    ///
    /// # Errors
    /// The reason why there is no answer, as a message for the user.
    fn run(&self, gauge: &Gauge) -> Result<Product, String>;
}

/// Result of a job.
#[derive(Debug, Clone)]
pub enum Product {
    /// A metric as a function of one or two knobs.
    Sweep(Arc<sweep::Curves>),
    /// Pareto frontier of two metrics.
    Frontier(Arc<frontier::FrontierCurves>),
    /// Sensitivities.
    Tornado(Arc<Tornado>),
    /// Best knobs found.
    Optimum(Arc<optimum::SearchResult>),
    /// Results of some lanes of a race.
    Race(Arc<race::Batch>),
    /// Reply of the assistant.
    Reply(assistant::Answer),
    /// A simulated scenario.
    Simulation(Arc<Run>),
    /// The scenario at increasing scale.
    Scaling(Arc<simulating::Scaling>),
    /// The state of a watched job.
    Watch(Arc<watch::WatchReading>),
    /// The entries of the history.
    History(Arc<history::Listed>),
    /// The files of a scenario.
    Launch(Arc<launch::Files>),
    /// Message after files were written.
    Written(String),
    /// Idle nodes.
    Idle(Arc<idle::Idle>),
    /// The table of models and targets.
    Fits(Arc<fits::Grid>),
    /// Targets that were detected.
    Detected(Arc<detecting::DetectedTargets>),
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
