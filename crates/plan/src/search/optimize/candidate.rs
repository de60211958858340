//! Point of a space with its estimate and its differences from the starting point.

use super::Problem;
use crate::engine::estimate_into;
use crate::estimate::{Estimate, Metric, digits};
use crate::knob::{Knob, Setting};
use crate::scenario::Scenario;
use crate::search::condition::fits;

/// Estimated point of a space.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Knobs that differ from the starting point, and their values.
    pub changes: Vec<(Knob, Setting)>,
    /// The scenario.
    pub scenario: Scenario,
    /// Estimate, including the schedule.
    pub estimate: Estimate,
}

impl Candidate {
    /// Estimates a scenario and determines its differences from `from`.
    #[must_use]
    pub fn of(scenario: Scenario, from: &Scenario) -> Candidate {
        let mut estimate = Estimate::default();
        estimate_into(&scenario, &mut estimate);
        // Defaults that follow from the layout do not count as changes.
        let same = scenario.base.plan.switches == from.base.plan.switches;
        let follows = |knob: Knob| (same && knob.is_switch()) || (scenario.follows(knob) && from.follows(knob));
        let differs = |knob: &Knob| {
            let same = scenario.get(*knob) == from.get(*knob);
            scenario.uses(*knob) && !follows(*knob) && (!same || scenario.ranks_would_change(*knob, from))
        };
        let changes = Knob::all().filter(differs).map(|knob| (knob, scenario.get(knob))).collect();
        Candidate { changes, scenario, estimate }
    }

    /// Whether the candidate meets the constraints of the problem.
    #[must_use]
    pub fn meets(&self, problem: &Problem<'_>) -> bool {
        fits(&self.estimate)
            && problem.conditions.iter().all(|condition| condition.holds(&self.estimate, &self.scenario))
    }

    /// Value of a metric.
    #[must_use]
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        metric.value(&self.estimate, &self.scenario)
    }

    /// Formats a metric with the digits that its interval justifies.
    #[must_use]
    pub fn shown(&self, metric: &Metric) -> String {
        digits::shown(metric, &self.scenario, &self.estimate)
    }

    /// Candidate of a point; `None` is the starting scenario.
    pub(super) fn at(problem: &Problem<'_>, point: Option<u128>) -> Candidate {
        let Some(point) = point else { return Candidate::of(problem.requested.clone(), problem.requested) };
        let mut scenario = problem.start.clone();
        for (knob, value) in problem.space.settings(point) {
            // Cannot fail: axes contain only valid values.
            let _ = scenario.set(knob, value, problem.parts);
        }
        Candidate::settled(scenario, problem)
    }

    /// Estimates a scenario of the space.
    pub(super) fn settled(scenario: Scenario, problem: &Problem<'_>) -> Candidate {
        let candidate = Candidate::of(scenario, problem.requested);
        // A reserve that did not affect recomputation does not count as a change.
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use crate::testing;

    #[test]
    fn whether_energy_is_included_is_no_change_if_the_price_basis_determines_it() {
        let (parts, start) = testing::scenario("h100-sxm-8", "llama3.1-70b-serve", &[]);
        let mut owned = start.clone();
        let basis = (Knob::PriceBasis, Setting::Choice("owned".into()));
        owned.set(basis.0, &basis.1, &parts).unwrap();
        assert_ne!(owned.get(Knob::EnergyIncluded), start.get(Knob::EnergyIncluded));
        assert_eq!(Candidate::of(owned, &start).changes, [basis]);
    }
}
