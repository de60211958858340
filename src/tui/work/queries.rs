//! The questions of all views.

use super::query::Query;
use crate::tui::assistant::state as assistant;
use crate::tui::frontier::state as frontier;
use crate::tui::optimum::state as optimum;
use crate::tui::race::state as race;
use crate::tui::simulating::state as simulating;
use crate::tui::sweeping::state as sweeping;
use crate::tui::tornado::state as tornado;
use atlas_plan::engine::answer::event::Run;
use atlas_plan::search::sensitivity::Tornado;
use std::sync::Arc;

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
