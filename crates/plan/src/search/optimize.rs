//! The best point of a space under conditions: every point is looked at where that can be done, and the answer says so.
//! The starting scenario is always a candidate, so that the answer is never worse than a start that meets the
//! conditions.
//!
//! Layouts that cannot be (see [`Rule`]) are cut off as whole branches before anything is estimated; what is left costs
//! about a microsecond a candidate. Where even that is too much, many local searches start at random places, and the answer says how far
//! it looked.

mod answer;
mod candidate;
mod local;
mod needed;
mod tally;
mod usual;
mod walk;

use std::time::Instant;

use super::condition::{Condition, fits};
use super::gauge::{Gauge, workers};
use super::hill_climb::hill_climb;
use super::rule::Rule;
use super::space::Space;
use crate::estimate::{Metric, MetricId};
use crate::scenario::{Parts, Scenario};

pub use crate::estimate::detail::HEADROOM;
pub use answer::{Bound, Looked, Optimum, Proof};
pub use candidate::Candidate;
pub use needed::WORTH;
pub use usual::{TPOT_MS, TTFT_MS, freed, usual, usual_conditions};

/// Candidates that are estimated at most: some twenty seconds' work on two cores.
pub const MOST: u64 = 20_000_000;

/// What is sought.
#[derive(Debug, Clone)]
pub struct Problem<'p> {
    /// The starting scenario: a candidate whatever the space holds.
    pub requested: &'p Scenario,
    /// The scenario whose knobs are changed; see [`freed`].
    pub start: &'p Scenario,
    /// What it is made of.
    pub parts: &'p Parts,
    /// What is changed.
    pub space: Space,
    /// The figure to improve, in the direction that is better for it.
    pub objective: &'static Metric,
    /// What must hold, besides that the scenario can run.
    pub conditions: Vec<Condition>,
    /// Those of the conditions that the user did not state: see [`usual_conditions`].
    pub usual: Vec<Condition>,
    /// Whether accelerators may idle; else tp × pp × cp × dp is all of them.
    pub idle: bool,
    /// Two or three figures whose best compromises are wanted; `None` if empty.
    pub front: Vec<&'static Metric>,
    /// How many of the next best are wanted.
    pub runners_up: usize,
    /// Candidates that are estimated at most; more are searched locally.
    pub most: u64,
    /// Share of the objective that the changes of a candidate must gain, or they are left out of it; 0 keeps them all.
    pub worth: f64,
}

impl<'p> Problem<'p> {
    /// The usual search for that figure, without conditions: the usual knobs, two figures traded off, five runners-up.
    #[must_use]
    pub fn of(start: &'p Scenario, parts: &'p Parts, objective: &'static Metric) -> Problem<'p> {
        let idle = objective.id == MetricId::Accelerators;
        Problem {
            requested: start,
            start,
            parts,
            space: usual(start, objective),
            objective,
            conditions: Vec::new(),
            usual: Vec::new(),
            idle,
            front: usual::front(start, objective),
            runners_up: 5,
            most: MOST,
            worth: WORTH,
        }
    }

    /// The search for the starting scenario. Layouts may leave accelerators idle where it does.
    #[must_use]
    pub fn from(self, requested: &'p Scenario) -> Problem<'p> {
        let devices = requested.accelerators() * requested.machine.map_or(1.0, |machine| machine.dies);
        let idle = self.idle || requested.working_devices() < devices;
        Problem { requested, idle, ..self }
    }

    /// With the usual conditions on figures that no condition bounds yet, but for those in `without`.
    #[must_use]
    pub fn usually(mut self, without: &[MetricId]) -> Problem<'p> {
        let all = usual_conditions(self.requested, self.objective, &self.conditions);
        let wanted = |condition: &Condition| match condition {
            Condition::Figure(metric, ..) => !without.contains(&metric.id),
            _ => true,
        };
        self.usual = all.into_iter().filter(wanted).collect();
        self.conditions.extend(self.usual.iter().cloned());
        self
    }
}

/// Looks for the best point. `gauge` tells how far it is, and stops it. Where no candidate meets the usual conditions,
/// those on latency are dropped, then all of them, and the answer says so.
#[must_use]
pub fn optimize(problem: &Problem<'_>, gauge: &Gauge) -> Optimum {
    let began = Instant::now();
    let mut requested = problem.clone();
    let mut found = search(&requested, gauge, began);
    for goes in [usual::is_latency as fn(&Condition) -> bool, |_| true] {
        let (dropped, kept): (Vec<Condition>, Vec<Condition>) = requested.usual.iter().cloned().partition(goes);
        if found.best.is_some() || gauge.cancelled() || dropped.is_empty() {
            continue;
        }
        requested.conditions.retain(|condition| !dropped.contains(condition));
        requested.usual = kept;
        found = search(&requested, gauge, began);
    }
    found.dropped = problem.usual.iter().filter(|condition| !requested.usual.contains(condition)).cloned().collect();
    found
}

fn search(problem: &Problem<'_>, gauge: &Gauge, began: Instant) -> Optimum {
    let start = usual::reserving(problem);
    let problem = &Problem { start: &start, ..problem.clone() };
    let search = walk::Search::of(problem);
    let admissible = search.count(gauge);
    let exhaustive = admissible <= u128::from(problem.most);
    #[expect(clippy::cast_possible_truncation, reason = "smaller than a u64")]
    gauge.expect(admissible.min(u128::from(problem.most)) as u64);
    let mut tally =
        if exhaustive { search.everywhere(workers(), gauge) } else { local::search(&search, workers(), gauge) };
    search.consider_start(&mut tally);
    let proof = match (gauge.cancelled(), exhaustive) {
        (true, _) => Proof::Cancelled,
        (false, true) => Proof::Exhaustive,
        (false, false) => Proof::Local { starts: tally.starts },
    };
    answer::described(
        problem,
        tally,
        Looked { space: problem.space.size(), worth: problem.worth, admissible, estimated: 0, proof, seconds: 0.0 },
        began,
    )
}
