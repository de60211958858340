//! Cached simulations, and the queries for them.

use atlas_core::count::Count;
use atlas_plan::engine::answer::event::Run;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::Knob;
use atlas_plan::knob::Setting;
use atlas_plan::scenario::Parts;
use atlas_plan::scenario::Scenario;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of cached simulations. Their memory is limited by `MAX_CACHED_BYTES`; the latest is always kept.
pub(in crate::tui) const MAX_CACHED: usize = 24;

pub(in crate::tui) const MAX_CACHED_BYTES: usize = 64 << 20;

/// Cached simulations without prices, the latest last.
#[derive(Debug, Clone, Default)]
pub struct SimulationCache(pub(super) VecDeque<(Arc<Scenario>, Arc<Run>)>);

impl SimulationCache {
    /// The cached simulation of a scenario.
    #[must_use]
    pub fn of(&self, scenario: &Scenario) -> Option<&Arc<Run>> {
        self.0.iter().find(|(known, _)| **known == *scenario).map(|(_, run)| run)
    }

    pub(in crate::tui) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, run)| run.bytes()).sum()
    }

    pub(in crate::tui) fn keep(&mut self, scenario: Arc<Scenario>, run: Arc<Run>) {
        if self.of(&scenario).is_none() {
            self.0.push_back((scenario, run));
        }
        while self.0.len() > 1 && (self.0.len() > MAX_CACHED || self.bytes() > MAX_CACHED_BYTES) {
            self.0.pop_front();
        }
    }
}

/// The query: everything that the result depends on.
pub type Question = Arc<Scenario>;

/// Weak scaling: nodes are added at constant work per accelerator.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// The metric: tokens per second per accelerator.
    pub metric: &'static Metric,
    /// Number of nodes, and the metric by simulation and by the analytical engine. Sizes that cannot run are left out.
    pub points: Vec<(f64, f64, f64)>,
    /// Number of nodes of the scenario itself.
    pub here: f64,
}

/// The query of a scaling chart: the scenario and its parts.
#[derive(Debug, Clone)]
pub struct Scale {
    pub(in crate::tui) scenario: Arc<Scenario>,
    pub(in crate::tui) parts: Arc<Parts>,
}

impl PartialEq for Scale {
    fn eq(&self, other: &Scale) -> bool {
        self.scenario == other.scenario
    }
}

impl Scale {
    /// The scenario on this many nodes, with replicas and batch scaled; `None` if these would not be whole numbers or a
    /// knob rejects its value.
    pub(in crate::tui) fn at(&self, nodes: f64) -> Option<Scenario> {
        let mut scenario = (*self.scenario).clone();
        let grown = nodes / scenario.num_nodes.max(Count::ONE);
        let (dp, global) = (scenario.base.shape.dp * grown, scenario.global(&scenario.base) * grown);
        if dp < 1.0 || dp.fract() != 0.0 || global.fract() != 0.0 {
            return None;
        }
        let mut set = |knob, value| scenario.set(knob, &Setting::Number(value), &self.parts).ok();
        set(Knob::NumNodes, nodes)?;
        set(Knob::Dp, dp)?;
        set(Knob::Global, global)?;
        Some(scenario)
    }
}
