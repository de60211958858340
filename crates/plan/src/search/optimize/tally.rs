//! What a worker has found so far; workers' tallies are merged at the end.

use super::{Problem, Rule};
use crate::estimate::{Better, Estimate, Verdict};
use crate::scenario::Scenario;
use crate::search::figure::score;

/// Candidates that are kept for each of the next best that is shown.
const ALIKE: usize = 24;

/// A candidate's worth, the smaller the better, and its number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    pub(super) score: f64,
    /// What decides between equals: more tokens, then less memory.
    pub(super) tokens: f64,
    pub(super) memory: f64,
    /// `None`: the starting scenario, which goes before its equals.
    pub(super) point: Option<u128>,
}

impl Ranked {
    /// Whether this goes before the other.
    fn before(&self, other: &Ranked) -> bool {
        let order = self.score.total_cmp(&other.score);
        let order = order.then(other.tokens.total_cmp(&self.tokens));
        // The start stays where nothing is faster.
        let order = order.then(self.point.is_some().cmp(&other.point.is_some()));
        order.then(self.memory.total_cmp(&other.memory)).then(self.point.cmp(&other.point)).is_lt()
    }

    /// Whether no figure tells the two apart.
    fn same(&self, other: &Ranked) -> bool {
        self.score == other.score && self.tokens == other.tokens && self.memory == other.memory
    }
}

/// A point of the front: scores in up to three figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Compromise {
    pub(super) scores: [f64; 3],
    /// As in [`Ranked`].
    pub(super) point: Option<u128>,
}

impl Compromise {
    fn dominates(&self, other: &Compromise) -> bool {
        self.scores.iter().zip(&other.scores).all(|(mine, theirs)| mine <= theirs)
    }
}

/// What was found.
#[derive(Debug, Clone)]
pub(super) struct Tally {
    /// The best, best first, no two alike in all figures.
    pub(super) top: Vec<Ranked>,
    /// Nothing here is better in all figures than another.
    pub(super) front: Vec<Compromise>,
    /// Candidates cut off by each rule.
    pub(super) cut: [u128; Rule::ALL.len()],
    /// By condition: how many it alone removed, how many it removed at all, the best that it alone removed.
    pub(super) bound: Vec<(u64, u64, Option<Ranked>)>,
    /// Candidates estimated.
    pub(super) estimated: u64,
    /// Starts of a local search.
    pub(super) starts: u64,
    keep: usize,
}

impl Tally {
    pub(super) fn new(problem: &Problem<'_>) -> Tally {
        Tally {
            top: Vec::with_capacity(problem.runners_up + 2),
            front: Vec::new(),
            cut: [0; Rule::ALL.len()],
            // The verdict is a condition of its own, in front.
            bound: vec![(0, 0, None); problem.conditions.len() + 1],
            estimated: 0,
            starts: 0,
            // Of candidates that differ in what they do not need, one is shown.
            keep: if problem.worth > 0.0 { ALIKE * problem.runners_up + 1 } else { problem.runners_up + 1 },
        }
    }

    /// Takes a candidate into account; returns its worth as a local search sees it: fewer broken conditions first.
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
        let mut broken = 0;
        let mut only = 0;
        for i in 0..self.bound.len() {
            let holds = match i.checked_sub(1).and_then(|i| problem.conditions.get(i)) {
                None => super::fits(estimate),
                Some(condition) => condition.holds(estimate, scenario),
            };
            if !holds {
                broken += 1;
                only = i;
                if let Some(bound) = self.bound.get_mut(i) {
                    bound.1 += 1;
                }
            }
        }
        if !score_of.is_finite() {
            return (broken + 1, score_of);
        }
        match broken {
            0 => {
                self.rank(ranked);
                self.trade(problem, point, scenario, estimate);
            }
            1 => {
                // With more memory it would run; a format that is not multiplied, or a layout that is refused, has no rate.
                let verdict = estimate.detail.map(|detail| detail.verdict);
                let rated = verdict.is_none_or(|verdict| matches!(verdict, Verdict::Fits | Verdict::Memory { .. }));
                if let Some((alone, _, best)) = self.bound.get_mut(only) {
                    *alone += 1;
                    if rated && best.as_ref().is_none_or(|best| ranked.before(best)) {
                        *best = Some(ranked);
                    }
                }
            }
            _ => {}
        }
        (broken, score_of)
    }

    fn rank(&mut self, ranked: Ranked) {
        if self.top.len() >= self.keep && self.top.last().is_some_and(|last| !ranked.before(last)) {
            return;
        }
        // Candidates with equal figures are represented by the first one.
        if let Some(twin) = self.top.iter_mut().find(|known| known.same(&ranked)) {
            twin.point = twin.point.min(ranked.point);
            return;
        }
        let at = self.top.iter().position(|known| ranked.before(known)).unwrap_or(self.top.len());
        self.top.insert(at, ranked);
        self.top.truncate(self.keep);
    }

    fn trade(&mut self, problem: &Problem<'_>, point: Option<u128>, scenario: &Scenario, estimate: &Estimate) {
        if problem.front.is_empty() {
            return;
        }
        let mut scores = [0.0; 3];
        for (slot, metric) in scores.iter_mut().zip(&problem.front) {
            let sign = if metric.better == Better::Neutral { 0.0 } else { 1.0 };
            *slot = sign * score(metric, estimate, scenario);
        }
        if scores.iter().all(|score| score.is_finite()) {
            self.settle(Compromise { scores, point });
        }
    }

    fn settle(&mut self, new: Compromise) {
        if let Some(at) = self.front.iter().position(|known| known.dominates(&new)) {
            // Equal candidates are represented by the first in the space, whichever worker found it.
            if let Some(known) = self.front.get_mut(at).filter(|known| known.scores == new.scores) {
                known.point = known.point.min(new.point);
            }
            // What dominates one candidate dominates its neighbors, too: it is asked first the next time.
            self.front.swap(0, at);
            return;
        }
        self.front.retain(|known| !new.dominates(known));
        self.front.push(new);
    }

    /// Adds what another worker found.
    pub(super) fn merge(&mut self, other: Tally) {
        for ranked in other.top {
            self.rank(ranked);
        }
        for compromise in other.front {
            self.settle(compromise);
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
