//! A point of a space with its estimate, and how it differs from the start.

use super::Problem;
use crate::engine::estimate_into;
use crate::estimate::{Estimate, Metric, digits};
use crate::knob::{Knob, Setting};
use crate::scenario::Scenario;
use crate::search::condition::fits;

/// A point of the space, answered.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Knobs that differ from the starting point's, and their values here.
    pub changes: Vec<(Knob, Setting)>,
    /// The scenario.
    pub scenario: Scenario,
    /// Its estimate, schedule and all.
    pub estimate: Estimate,
}

impl Candidate {
    /// A scenario answered, with what sets it apart from another.
    #[must_use]
    pub fn of(scenario: Scenario, from: &Scenario) -> Candidate {
        let mut estimate = Estimate::default();
        estimate_into(&scenario, &mut estimate);
        // Defaults that follow the layout are not changes of their own.
        let same = scenario.base.plan.switches == from.base.plan.switches;
        let follows = |knob: Knob| (same && knob.is_switch()) || (scenario.follows(knob) && from.follows(knob));
        let differs = |knob: &Knob| scenario.heeds(*knob) && scenario.get(*knob) != from.get(*knob) && !follows(*knob);
        let changes = Knob::all().filter(differs).map(|knob| (knob, scenario.get(knob))).collect();
        Candidate { changes, scenario, estimate }
    }

    /// Whether it meets the conditions of its problem.
    #[must_use]
    pub fn meets(&self, problem: &Problem<'_>) -> bool {
        fits(&self.estimate)
            && problem.conditions.iter().all(|condition| condition.holds(&self.estimate, &self.scenario))
    }

    /// A metric in as many digits as are known.
    #[must_use]
    pub fn shown(&self, metric: &Metric) -> String {
        digits::shown(metric, &self.scenario, &self.estimate)
    }

    /// The candidate of a point; `None` is the starting scenario.
    pub(super) fn at(problem: &Problem<'_>, point: Option<u128>) -> Candidate {
        let Some(point) = point else { return Candidate::of(problem.requested.clone(), problem.requested) };
        let mut scenario = problem.start.clone();
        for (knob, value) in problem.space.settings(point) {
            // Axes hold values that their knobs take.
            let _ = scenario.set(knob, value, problem.parts);
        }
        Candidate::settled(scenario, problem)
    }

    /// A scenario of the space, answered.
    pub(super) fn settled(scenario: Scenario, problem: &Problem<'_>) -> Candidate {
        let candidate = Candidate::of(scenario, problem.requested);
        // A reserve that recomputation did not need is not a change.
        let reserve = problem.requested.base.plan.recompute_reserve;
        if candidate.scenario.base.plan.recompute_reserve == reserve {
            return candidate;
        }
        let mut without = candidate.scenario.clone();
        for phase in std::iter::once(&mut without.base).chain(&mut without.phases) {
            phase.plan.recompute_reserve = reserve;
        }
        let without = Candidate::of(without, problem.requested);
        let same = without.estimate.total == candidate.estimate.total
            && without.estimate.detail.map(|detail| detail.memory) == candidate.estimate.detail.map(|d| d.memory);
        if same { without } else { candidate }
    }
}
