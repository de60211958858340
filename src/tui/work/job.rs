//! Jobs for threads, and what comes out.

use crate::tui::assistant::state as assistant;
use crate::tui::frontier::state as frontier;
use crate::tui::optimum::state as optimum;
use crate::tui::panels::state as panels;
use crate::tui::race::state as race;
use crate::tui::simulating::state as simulating;
use crate::tui::sweeping::state as sweeping;
use atlas_plan::engine::answer::event::Run;
use atlas_plan::search::Gauge;
use atlas_plan::search::sensitivity::Tornado;
use std::fmt;
use std::sync::Arc;

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
