//! Local search in a space that is too large for an exhaustive search: from many random starting points, changes one or
//! two knobs at a time until no change of two knobs is an improvement.

use rand_mt::Mt64;

use super::Gauge;
use super::tally::Tally;
use super::walk::{Search, Walker};

/// Random points to try to find one that no rule excludes.
const MAX_RANDOM_POINTS: u32 = 20_000;
/// Number of failures to find such a point after which the search ends.
const MAX_FAILURES: u32 = 64;
/// Maximum moves to examine per pair of axes: two axes with a hundred values have ten thousand.
const MAX_MOVES_PER_PAIR: usize = 4096;

/// Penalty of a point: number of violated constraints, then the score. Smaller is better.
type Penalty = (usize, f64);

fn better(a: Penalty, b: Penalty) -> bool {
    a.0 < b.0 || (a.0 == b.0 && a.1 < b.1)
}

/// Divides the budget among the workers, each with its own random seed.
pub(super) fn search(search: &Search<'_>, workers: usize, gauge: &Gauge) -> Tally {
    let budget = search.problem.max_candidates / workers.max(1) as u64;
    let mut tally = Tally::new(search.problem);
    std::thread::scope(|scope| {
        let work = |seed: u64| {
            let mut worker = Worker { walker: search.walker(), random: Mt64::new(seed), budget, reported: 0, gauge };
            worker.run();
            worker.walker.tally
        };
        let threads: Vec<_> = (1..workers as u64).map(|seed| scope.spawn(move || work(seed))).collect();
        tally.merge(work(0));
        for found in threads.into_iter().filter_map(|thread| thread.join().ok()) {
            tally.merge(found);
        }
    });
    tally
}

struct Worker<'s> {
    walker: Walker<'s>,
    random: Mt64,
    /// Maximum number of estimates.
    budget: u64,
    /// Number of estimates reported to the gauge.
    reported: u64,
    gauge: &'s Gauge,
}

impl Worker<'_> {
    fn budget_exhausted(&mut self) -> bool {
        let estimated = self.walker.tally.estimated;
        self.gauge.advance(estimated - self.reported);
        self.reported = estimated;
        estimated >= self.budget || self.gauge.canceled()
    }

    fn run(&mut self) {
        if let Some(penalty) = self.at_start() {
            self.walker.tally.starts += 1;
            self.climb(penalty);
        }
        let mut failures = 0;
        while !self.budget_exhausted() && failures < MAX_FAILURES {
            match self.at_random_point() {
                Some(penalty) => {
                    self.walker.tally.starts += 1;
                    self.climb(penalty);
                }
                None => failures += 1,
            }
        }
    }

    fn values(&self, axis: usize) -> usize {
        self.walker.values(axis)
    }

    /// Moves to the values nearest to the starting scenario, if no rule excludes them.
    fn at_start(&mut self) -> Option<Penalty> {
        for axis in 0..self.walker.digits().len() {
            let digit = self.walker.digit_of_start(axis);
            self.walker.turn(axis, digit);
        }
        self.walker.possible().then(|| self.walker.look())
    }

    /// Moves to a random point that no rule excludes.
    fn at_random_point(&mut self) -> Option<Penalty> {
        for _ in 0..MAX_RANDOM_POINTS {
            for axis in 0..self.walker.digits().len() {
                let digit = self.random_below(self.values(axis));
                self.walker.turn(axis, digit);
            }
            if self.walker.possible() {
                return Some(self.walker.look());
            }
        }
        None
    }

    fn random_below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.next_u64() % (bound as u64).max(1)).unwrap_or_default()
    }

    /// Improves the point until no change of one or two axes helps.
    fn climb(&mut self, mut penalty: Penalty) {
        let axes = self.walker.digits().len();
        loop {
            let before = penalty;
            for axis in 0..axes {
                penalty = self.improve_axis(axis, penalty);
            }
            if !better(penalty, before) {
                for first in 0..axes {
                    for second in first + 1..axes {
                        penalty = self.improve_pair(first, second, penalty);
                        if self.budget_exhausted() {
                            return;
                        }
                    }
                }
            }
            if !better(penalty, before) || self.budget_exhausted() {
                return;
            }
        }
    }

    /// Moves to the best value of one axis.
    fn improve_axis(&mut self, axis: usize, mut penalty: Penalty) -> Penalty {
        let mut best = self.digit(axis);
        for digit in 0..self.values(axis) {
            if let Some(new) = self.penalty_at(&[(axis, digit)])
                && better(new, penalty)
            {
                (penalty, best) = (new, digit);
            }
        }
        self.walker.turn(axis, best);
        penalty
    }

    /// Moves to the best values of two axes: ranks of a layout can often only be changed together.
    fn improve_pair(&mut self, first: usize, second: usize, mut penalty: Penalty) -> Penalty {
        let columns = self.values(second);
        let pairs = self.values(first) * columns;
        let mut best = (self.digit(first), self.digit(second));
        for trial in 0..pairs.min(MAX_MOVES_PER_PAIR) {
            // If there are too many pairs, a random sample is tried.
            let pair = if pairs > MAX_MOVES_PER_PAIR { self.random_below(pairs) } else { trial };
            let (a, b) = (pair / columns, pair % columns);
            if let Some(new) = self.penalty_at(&[(first, a), (second, b)])
                && better(new, penalty)
            {
                (penalty, best) = (new, (a, b));
            }
        }
        self.walker.turn(first, best.0);
        self.walker.turn(second, best.1);
        penalty
    }

    fn digit(&self, axis: usize) -> usize {
        self.walker.digits().get(axis).copied().unwrap_or_default()
    }

    /// Sets axes to these values; returns the penalty unless a rule excludes the point.
    fn penalty_at(&mut self, digits: &[(usize, usize)]) -> Option<Penalty> {
        for (axis, digit) in digits {
            self.walker.turn(*axis, *digit);
        }
        self.walker.possible().then(|| self.walker.look())
    }
}
