//! Queries of all views.

use super::query::Query;
use crate::tui::views::assistant::state as assistant;
use crate::tui::views::frontier::state as frontier;
use crate::tui::views::optimum::state as optimum;
use crate::tui::views::race::state as race;
use crate::tui::views::sweep::state as sweep;
use crate::tui::views::tornado::state as tornado;
use crate::tui::work::simulating::state as simulating;
use atlas_plan::engine::answer::event::Run;
use atlas_plan::search::sensitivity::Tornado;
use std::sync::Arc;

/// All queries.
#[derive(Debug, Clone, Default)]
pub struct Queries {
    /// Serial number of the last order.
    pub serial: u64,
    /// A metric as a function of one or two knobs.
    pub sweep: Query<sweep::Question, Arc<sweep::Curves>>,
    /// The sweep shown next to the results.
    pub outlook: Query<sweep::Question, Arc<sweep::Curves>>,
    /// Pareto frontier of two metrics.
    pub frontier: Query<frontier::Question, Arc<frontier::FrontierCurves>>,
    /// Sensitivities.
    pub tornado: Query<tornado::Question, Arc<Tornado>>,
    /// Best knobs found.
    pub optimum: Query<optimum::Question, Arc<optimum::SearchResult>>,
    /// The lanes of the race.
    pub race: Query<race::Round, Arc<race::Batch>>,
    /// The assistant.
    pub assistant: Query<assistant::Question, assistant::Answer>,
    /// Simulation of the current scenario.
    pub simulation: Query<simulating::Question, Arc<Run>>,
    /// Simulation of the current scenario at increasing scale.
    pub scaling: Query<simulating::Scale, Arc<simulating::Scaling>>,
}
