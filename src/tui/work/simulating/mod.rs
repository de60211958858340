//! Simulations: a scenario whose engine simulates gets its analytical estimate immediately, marked as pending, and the
//! simulation when a worker has finished. Results are cached, so that returning to a scenario needs no new simulation.

pub mod state;

#[cfg(test)]
use state::{MAX_CACHED, MAX_CACHED_BYTES};
pub use state::{Question, Scale, Scaling, SimulationCache};

use std::sync::Arc;

use crate::demo::Setup;
use crate::tui::app::{Answer, App, View};
use crate::tui::message::Effect;
use crate::tui::views::timeline::{self, Picture};
use crate::tui::work::job::{Job, Product};
use atlas_config::Mode;
use atlas_core::plan::Engine;
use atlas_plan::engine::answer::event;
use atlas_plan::engine::answer::event::Run;
use atlas_plan::engine::{analytical_scenario, estimate};
use atlas_plan::estimate::MetricId;
use atlas_plan::scenario::Scenario;
use atlas_plan::search::Gauge;
use atlas_plan::search::condition::fits;

/// Sizes of a scaling chart, each twice the one before.
const SIZES: u32 = 7;

/// One simulation.
#[derive(Debug)]
struct Work(Arc<Scenario>);

impl Job for Work {
    fn run(&self, gauge: &Gauge) -> Result<Product, String> {
        let run = event::run(&self.0, gauge).ok_or("stopped")?;
        Ok(Product::Simulation(Arc::new(run)))
    }
}

impl Job for Scale {
    fn run(&self, gauge: &Gauge) -> Result<Product, String> {
        let metric = MetricId::TokensPerSecPerAccel.metric();
        let here = self.scenario.num_nodes;
        // From the smallest size that the layout allows to four times the current one.
        let sizes = (0..SIZES).map(|step| 4.0 * here / 2f64.powi(step as i32)).filter(|nodes| *nodes >= 1.0);
        let mut sizes: Vec<f64> = sizes.filter(|nodes| nodes.fract() == 0.0).collect();
        sizes.reverse();
        gauge.add_expected(sizes.len() as u64);
        let mut points = Vec::new();
        for nodes in sizes {
            if gauge.canceled() {
                return Err("stopped".to_owned());
            }
            if let Some(scenario) = self.at(nodes) {
                let twin = analytical_scenario(&scenario);
                let (found, expected) = (estimate(&scenario), estimate(&twin));
                if fits(&found) && found.detail.is_some_and(|detail| detail.simulated.is_some()) {
                    let values = metric.value(&found, &scenario).zip(metric.value(&expected, &twin));
                    points.extend(values.map(|(found, expected)| (nodes, found, expected)));
                }
            }
            gauge.advance(1);
        }
        Ok(Product::Scaling(Arc::new(Scaling { metric, points, here: f64::from(here) })))
    }
}

impl App {
    /// Evaluates a setup, with its simulation if cached.
    pub(in crate::tui) fn answered(&self, setup: &Setup) -> Answer {
        let mut answer = Answer::of(&self.library, setup);
        self.replace(&mut answer);
        answer
    }

    /// Replaces a pending analytical estimate with the cached simulation, if there is one.
    pub(in crate::tui) fn replace(&self, answer: &mut Answer) {
        let Some(scenario) = answer.scenario.as_ref().filter(|_| answer.pending) else { return };
        if let Some(run) = self.simulations.of(&event::unpriced(scenario.clone())) {
            let estimate = run.estimate_of(scenario);
            answer.simulated(estimate);
        }
    }

    /// The current scenario as it would be simulated, whatever its engine and prices.
    #[must_use]
    pub fn simulated_scenario(&self) -> Option<Scenario> {
        let (scenario, parts) = (self.answer.scenario.as_ref()?, self.answer.parts.as_ref()?);
        let mut scenario = scenario.clone();
        scenario.engine = Engine::Event;
        scenario.check(parts).is_ok().then(|| event::unpriced(scenario))
    }

    /// The cached simulation of the current scenario.
    #[must_use]
    pub fn current_run(&self) -> Option<&Arc<Run>> {
        self.simulations.of(&self.simulated_scenario()?)
    }
}

/// Starts the simulation that an answer waits for or the timeline shows, and the computation of the scaling chart if it
/// is shown.
pub(in crate::tui) fn follow(app: &mut App, effects: &mut Vec<Effect>) {
    let wanted = (app.answer.pending || app.view == View::Timeline).then(|| app.simulated_scenario()).flatten();
    let unknown = wanted.clone().filter(|scenario| app.simulations.of(scenario).is_none());
    let queries = &mut app.queries;
    match unknown {
        Some(scenario) => queries.simulation.ask(Arc::new(scenario), &mut queries.serial, effects, |scenario| {
            Ok(Arc::new(Work(Arc::clone(scenario))) as Arc<dyn Job>)
        }),
        None => queries.simulation.forget(effects),
    }
    if app.view == View::Timeline {
        timeline::show_current_run(app);
    }
    let charted = app.view == View::Timeline && timeline::picture(app) == Picture::Scaling;
    let scaled = wanted.filter(|scenario| charted && scenario.mode() == Mode::Training);
    match (scaled, &app.answer.parts) {
        (Some(scenario), Some(parts)) => {
            let question = Scale { scenario: Arc::new(scenario), parts: Arc::new(parts.clone()) };
            app.queries.scaling.ask(question, &mut app.queries.serial, effects, |question| {
                Ok(Arc::new(question.clone()) as Arc<dyn Job>)
            });
        }
        _ => app.queries.scaling.forget(effects),
    }
}

/// Caches a simulation and applies it.
pub(in crate::tui) fn cache_simulation(app: &mut App) {
    let query = &app.queries.simulation;
    let (Some(scenario), Some(run)) = (query.question().cloned(), query.answer().cloned()) else { return };
    app.simulations.keep(scenario, run);
    let mut answer = std::mem::replace(&mut app.answer, Answer::empty());
    app.replace(&mut answer);
    app.answer = answer;
    let mut baseline = std::mem::replace(&mut app.baseline, Answer::empty());
    app.replace(&mut baseline);
    app.baseline = baseline;
    app.recompute_columns();
    timeline::show_current_run(app);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use atlas_plan::estimate::Estimate;
    use atlas_sim::serving::RequestRecord;

    fn run(records: usize) -> Arc<Run> {
        let serving = atlas_sim::serving::Output {
            records: Vec::with_capacity(records),
            ..atlas_sim::serving::Output::default()
        };
        Arc::new(Run { estimate: Estimate::default(), training: None, serving: Some(serving) })
    }

    #[test]
    fn simulation_cache_is_bounded_and_always_keeps_the_latest() {
        let hands = crate::tui::testing::TestApp::new();
        let scenario = hands.app.simulated_scenario().unwrap();
        let numbered = |n: u32| Arc::new(Scenario { seed: i128::from(n), ..scenario.clone() });
        let large = MAX_CACHED_BYTES / 4 / size_of::<RequestRecord>();
        let mut known = SimulationCache::default();
        for n in 0..100 {
            known.keep(numbered(n), run(large));
            assert!(known.bytes() <= MAX_CACHED_BYTES + MAX_CACHED_BYTES / 4);
            assert!(known.of(&numbered(n)).is_some());
        }
        assert!(known.0.len() >= 3, "as many as there is room for");
        known.keep(numbered(100), run(8 * large));
        assert_eq!(known.0.len(), 1);
        (0..100).for_each(|n| known.keep(numbered(n + 200), run(1)));
        assert_eq!(known.0.len(), MAX_CACHED);
    }
}
