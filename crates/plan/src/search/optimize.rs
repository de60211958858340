//! Finds the best point of a space under constraints. If possible, all points are examined, and the result states
//! whether they were. The starting scenario is always a candidate, so the result is never worse than a start that meets
//! the constraints.
//!
//! Impossible layouts (see [`Rule`]) are pruned as whole branches before anything is estimated; the other candidates
//! take about a microsecond each. If there are too many of them, many local searches start from random points, and the
//! result states the extent of the search.

mod answer;
mod candidate;
mod local;
mod needed;
mod tally;
#[cfg(test)]
mod tests;
mod usual;
mod walk;

use std::time::Instant;

use super::condition::{Condition, fits};
use super::gauge::{Gauge, workers};
use super::hill_climb::hill_climb;
use super::rule::Rule;
use super::space::Space;
use crate::engine::answer::corrected::shared_by_candidates;
use crate::engine::estimate_unscheduled_into;
use crate::estimate::{Estimate, Metric, MetricId, Verdict};
use crate::knob::Knob;
use crate::scenario::{Parts, Scenario};

pub use crate::estimate::detail::HEADROOM;
pub use answer::{Bound, Optimum, Proof, SearchExtent};
pub use candidate::Candidate;
pub use needed::DEFAULT_MIN_GAIN;
pub use usual::{TPOT_MS, TTFT_MS, default_conditions, default_space, freed};

/// Maximum number of candidates to estimate: about twenty seconds of work on two cores.
pub const MAX_CANDIDATES: u64 = 20_000_000;

/// Optimization problem.
#[derive(Debug, Clone)]
pub struct Problem<'p> {
    /// Starting scenario: a candidate even if it is not in the space.
    pub requested: &'p Scenario,
    /// Scenario whose knobs are varied; see [`freed`].
    pub start: &'p Scenario,
    /// Parts of the scenario.
    pub parts: &'p Parts,
    /// Knobs to vary, with their values.
    pub space: Space,
    /// Metric to improve.
    pub objective: &'static Metric,
    /// Constraints, in addition to the requirement that the scenario can run.
    pub conditions: Vec<Condition>,
    /// Those of `conditions` that are defaults rather than stated by the user; see [`default_conditions`].
    pub default_conditions: Vec<Condition>,
    /// Whether accelerators may idle; otherwise tp × pp × cp × dp must equal their number.
    pub idle: bool,
    /// Two or three metrics whose Pareto front is requested; none if empty.
    pub front: Vec<&'static Metric>,
    /// Number of runners-up to return.
    pub runners_up: usize,
    /// Maximum number of candidates to estimate; larger spaces are searched locally.
    pub max_candidates: u64,
    /// Minimum relative gain in the objective of the changes of a candidate. Changes that gain less are reverted; 0
    /// keeps all.
    pub min_gain: f64,
}

impl<'p> Problem<'p> {
    /// Default search for an objective, without constraints: default knobs, a front of two metrics, five runners-up.
    #[must_use]
    pub fn of(start: &'p Scenario, parts: &'p Parts, objective: &'static Metric) -> Problem<'p> {
        let idle = objective.id == MetricId::Accelerators;
        Problem {
            requested: start,
            start,
            parts,
            space: default_space(start, objective),
            objective,
            conditions: Vec::new(),
            default_conditions: Vec::new(),
            idle,
            front: usual::front(start, objective),
            runners_up: 5,
            max_candidates: MAX_CANDIDATES,
            min_gain: DEFAULT_MIN_GAIN,
        }
    }

    /// Sets the starting scenario. If it leaves accelerators idle, candidates may do so too.
    #[must_use]
    pub fn from(self, requested: &'p Scenario) -> Problem<'p> {
        let devices = requested.devices();
        let idle = self.idle || requested.working_devices() < devices;
        Problem { requested, idle, ..self }
    }

    /// Adds the default constraints on metrics that have none yet, except those on the metrics `without`.
    #[must_use]
    pub fn with_default_conditions(mut self, without: &[MetricId]) -> Problem<'p> {
        let all = default_conditions(self.requested, self.objective, &self.conditions);
        let wanted = |condition: &Condition| match condition {
            Condition::Metric(metric, ..) => !without.contains(&metric.id),
            _ => true,
        };
        self.default_conditions = all.into_iter().filter(wanted).collect();
        self.conditions.extend(self.default_conditions.iter().cloned());
        self
    }
}

/// Knobs that determine whether a scenario can run in its formats.
const FORMAT_KNOBS: [Knob; 8] = [
    Knob::Precision,
    Knob::Compute,
    Knob::ExpertPrecision,
    Knob::WeightBits,
    Knob::KvPrecision,
    Knob::GradientFormat,
    Knob::Software,
    Knob::Engine,
];

/// Verdict on all candidates that is certain without a search: the start has a format that does not exist on the
/// accelerator or in the software, and the search does not vary formats or software.
fn common_verdict(problem: &Problem<'_>) -> Option<Verdict> {
    if FORMAT_KNOBS.iter().any(|knob| problem.space.turns(*knob)) {
        return None;
    }
    let mut estimate = Estimate::default();
    estimate_unscheduled_into(problem.start, &mut estimate);
    let verdict = estimate.detail?.verdict;
    matches!(verdict, Verdict::Format { .. } | Verdict::SoftwareFormat { .. }).then_some(verdict)
}

/// Searches for the best point. `gauge` reports the progress and cancels the search. If no candidate meets the default
/// constraints, those on latency are dropped, then all of them; the result lists what was dropped. If it is certain that
/// no candidate can run, nothing is searched; see [`Optimum::common_verdict`].
#[must_use]
pub fn optimize(problem: &Problem<'_>, gauge: &Gauge) -> Optimum {
    let began = Instant::now();
    let shared = shared_by_candidates(problem.requested);
    let corrected = |scenario: &Scenario| Scenario { corrections: shared.clone(), ..scenario.clone() };
    let (start, original) = (corrected(problem.start), corrected(problem.requested));
    let mut requested = Problem { start: &start, requested: &original, ..problem.clone() };
    if let Some(verdict) = common_verdict(&requested) {
        return answer::not_searched(&requested, verdict, began);
    }
    let mut found = search(&requested, gauge, began);
    for goes in [usual::is_latency as fn(&Condition) -> bool, |_| true] {
        let (dropped, kept): (Vec<Condition>, Vec<Condition>) =
            requested.default_conditions.iter().cloned().partition(goes);
        if found.best.is_some() || gauge.canceled() || dropped.is_empty() {
            continue;
        }
        requested.conditions.retain(|condition| !dropped.contains(condition));
        requested.default_conditions = kept;
        found = search(&requested, gauge, began);
    }
    found.dropped = problem
        .default_conditions
        .iter()
        .filter(|condition| !requested.default_conditions.contains(condition))
        .cloned()
        .collect();
    found
}

fn search(problem: &Problem<'_>, gauge: &Gauge, began: Instant) -> Optimum {
    let start = usual::reserving(problem);
    let problem = &Problem { start: &start, ..problem.clone() };
    let search = walk::Search::of(problem);
    let admissible = search.count(gauge);
    let exhaustive = admissible <= u128::from(problem.max_candidates);
    #[expect(clippy::cast_possible_truncation, reason = "smaller than a u64")]
    gauge.add_expected(admissible.min(u128::from(problem.max_candidates)) as u64);
    let mut tally =
        if exhaustive { search.everywhere(workers(), gauge) } else { local::search(&search, workers(), gauge) };
    search.consider_start(&mut tally);
    let proof = match (gauge.canceled(), exhaustive) {
        (true, _) => Proof::Canceled,
        (false, true) => Proof::Exhaustive,
        (false, false) => Proof::Local { starts: tally.starts },
    };
    answer::optimum_of(
        problem,
        tally,
        SearchExtent {
            space: problem.space.size(),
            min_gain: problem.min_gain,
            admissible,
            estimated: 0,
            proof,
            seconds: 0.0,
        },
        began,
    )
}
