//! Results of a worker so far. The tallies of all workers are merged at the end.

use super::{Problem, Rule};
use crate::estimate::{Direction, Estimate, Verdict};
use crate::scenario::Scenario;
use crate::search::metric::score;

/// Candidates to keep per runner-up that is shown.
const CANDIDATES_PER_RUNNER_UP: usize = 24;

/// Score of a candidate (smaller is better), and its point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    pub(super) score: f64,
    /// Tie-breakers: more tokens per second, then less memory.
    pub(super) tokens: f64,
    pub(super) memory: f64,
    /// `None`: the starting scenario, which precedes its equals.
    pub(super) point: Option<u128>,
}

impl Ranked {
    /// Whether `self` ranks before `other`.
    fn before(&self, other: &Ranked) -> bool {
        let order = self.score.total_cmp(&other.score);
        let order = order.then(other.tokens.total_cmp(&self.tokens));
        // Prefer the starting scenario if nothing is faster.
        let order = order.then(self.point.is_some().cmp(&other.point.is_some()));
        order.then(self.memory.total_cmp(&other.memory)).then(self.point.cmp(&other.point)).is_lt()
    }

    /// Whether all metrics are equal.
    fn same(&self, other: &Ranked) -> bool {
        self.score == other.score && self.tokens == other.tokens && self.memory == other.memory
    }
}

/// Point of the Pareto front: scores in up to three metrics.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParetoPoint {
    pub(super) scores: [f64; 3],
    /// See [`Ranked::point`].
    pub(super) point: Option<u128>,
}

impl ParetoPoint {
    fn dominates(&self, other: &ParetoPoint) -> bool {
        self.scores.iter().zip(&other.scores).all(|(mine, theirs)| mine <= theirs)
    }
}

/// Results of a worker.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    /// Best candidates, best first; no two have equal metrics.
    pub(super) top: Vec<Ranked>,
    /// Pareto front.
    pub(super) front: Vec<ParetoPoint>,
    /// Number of candidates excluded by each rule.
    pub(super) cut: [u128; Rule::ALL.len()],
    /// By constraint: number of candidates that it alone excluded, number that it excluded at all, and the best that it
    /// alone excluded.
    pub(super) bound: Vec<(u64, u64, Option<Ranked>)>,
    /// Number of estimated candidates.
    pub(super) estimated: u64,
    /// Number of starting points of a local search.
    pub(super) starts: u64,
    keep: usize,
}

impl Tally {
    pub(super) fn new(problem: &Problem<'_>) -> Tally {
        Tally {
            top: Vec::with_capacity(problem.runners_up + 2),
            front: Vec::new(),
            cut: [0; Rule::ALL.len()],
            // The first entry is for the verdict.
            bound: vec![(0, 0, None); problem.conditions.len() + 1],
            estimated: 0,
            starts: 0,
            // Candidates that differ only in unneeded changes are shown once, so more must be kept.
            keep: if problem.min_gain > 0.0 {
                CANDIDATES_PER_RUNNER_UP * problem.runners_up + 1
            } else {
                problem.runners_up + 1
            },
        }
    }

    /// Adds a candidate. Returns its penalty for a local search: the number of violated constraints, then the score.
    pub(super) fn consider(
        &mut self,
        problem: &Problem<'_>,
        point: Option<u128>,
        scenario: &Scenario,
        estimate: &Estimate,
    ) -> (usize, f64) {
        let score_of = score(problem.objective, estimate, scenario);
        let ranked = Ranked {
            score: score_of,
            tokens: estimate.total.tokens_per_sec,
            memory: estimate.total.peak_mem_gb,
            point,
        };
        let mut violated = 0;
        let mut last_violated = 0;
        for i in 0..self.bound.len() {
            let holds = match i.checked_sub(1).and_then(|i| problem.conditions.get(i)) {
                None => super::fits(estimate),
                Some(condition) => condition.holds(estimate, scenario),
            };
            if !holds {
                violated += 1;
                last_violated = i;
                if let Some(bound) = self.bound.get_mut(i) {
                    bound.1 += 1;
                }
            }
        }
        if !score_of.is_finite() {
            return (violated + 1, score_of);
        }
        match violated {
            0 => {
                self.rank(ranked);
                self.add_to_front(problem, point, scenario, estimate);
            }
            1 => {
                // Without enough memory the rate is hypothetical but meaningful; with an unsupported format or layout
                // it is not.
                let verdict = estimate.detail.map(|detail| detail.verdict);
                let rated = verdict.is_none_or(|verdict| matches!(verdict, Verdict::Fits | Verdict::Memory { .. }));
                if let Some((alone, _, best)) = self.bound.get_mut(last_violated) {
                    *alone += 1;
                    if rated && best.as_ref().is_none_or(|best| ranked.before(best)) {
                        *best = Some(ranked);
                    }
                }
            }
            _ => {}
        }
        (violated, score_of)
    }

    fn rank(&mut self, ranked: Ranked) {
        if self.top.len() >= self.keep && self.top.last().is_some_and(|last| !ranked.before(last)) {
            return;
        }
        // Candidates with equal metrics are represented by the first one.
        if let Some(twin) = self.top.iter_mut().find(|known| known.same(&ranked)) {
            twin.point = twin.point.min(ranked.point);
            return;
        }
        let at = self.top.iter().position(|known| ranked.before(known)).unwrap_or(self.top.len());
        self.top.insert(at, ranked);
        self.top.truncate(self.keep);
    }

    fn add_to_front(&mut self, problem: &Problem<'_>, point: Option<u128>, scenario: &Scenario, estimate: &Estimate) {
        if problem.front.is_empty() {
            return;
        }
        let mut scores = [0.0; 3];
        for (slot, metric) in scores.iter_mut().zip(&problem.front) {
            let sign = if metric.better == Direction::Neutral { 0.0 } else { 1.0 };
            *slot = sign * score(metric, estimate, scenario);
        }
        if scores.iter().all(|score| score.is_finite()) {
            self.insert_in_front(ParetoPoint { scores, point });
        }
    }

    fn insert_in_front(&mut self, new: ParetoPoint) {
        if let Some(at) = self.front.iter().position(|known| known.dominates(&new)) {
            // Equal candidates are represented by the first in the space, regardless of which worker found it.
            if let Some(known) = self.front.get_mut(at).filter(|known| known.scores == new.scores) {
                known.point = known.point.min(new.point);
            }
            // A candidate that dominates this one probably dominates its neighbors too: compare with it first next
            // time.
            self.front.swap(0, at);
            return;
        }
        self.front.retain(|known| !new.dominates(known));
        self.front.push(new);
    }

    /// Merges the results of another worker.
    pub(super) fn merge(&mut self, other: Tally) {
        for ranked in other.top {
            self.rank(ranked);
        }
        for pareto in other.front {
            self.insert_in_front(pareto);
        }
        for (mine, theirs) in self.cut.iter_mut().zip(other.cut) {
            *mine += theirs;
        }
        for (mine, theirs) in self.bound.iter_mut().zip(other.bound) {
            mine.0 += theirs.0;
            mine.1 += theirs.1;
            let better = theirs.2.filter(|theirs| mine.2.as_ref().is_none_or(|mine| theirs.before(mine)));
            mine.2 = better.or(mine.2);
        }
        self.estimated += other.estimated;
        self.starts += other.starts;
    }
}
