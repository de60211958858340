//! Local search in a space that is too large for an exhaustive search: from many random starting points, changes one or
//! two knobs at a time until no change of two knobs is an improvement.

use rand_mt::Mt64;

use super::Gauge;
use super::tally::Tally;
use super::walk::{Search, Walker};

/// Random points to try to find one that no rule excludes.
const MAX_RANDOM_POINTS: u32 = 20_000;
/// Maximum moves to examine per pair of axes: two axes with a hundred values have ten thousand.
const MAX_MOVES_PER_PAIR: usize = 4096;

/// Worth of a point: number of violated rules and constraints, then the score. Smaller is better.
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
            let mut worker = Worker { walker: search.walker(), random: Mt64::new(seed), budget, described: 0, gauge };
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
    budget: u64,
    described: u64,
    gauge: &'s Gauge,
}

impl Worker<'_> {
    fn budget_exhausted(&mut self) -> bool {
        let estimated = self.walker.tally.estimated;
        self.gauge.advance(estimated - self.described);
        self.described = estimated;
        estimated >= self.budget || self.gauge.cancelled()
    }

    fn run(&mut self) {
        let mut barren = 0;
        if let Some(worth) = self.at_start() {
            self.walker.tally.starts += 1;
            self.climb(worth);
        }
        while !self.budget_exhausted() && barren < 64 {
            match self.at_random_point() {
                Some(worth) => {
                    self.walker.tally.starts += 1;
                    self.climb(worth);
                }
                // If random points never satisfy the rules, further attempts are futile.
                None => barren += 1,
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
                let digit = self.below(self.values(axis));
                self.walker.turn(axis, digit);
            }
            if self.walker.possible() {
                return Some(self.walker.look());
            }
        }
        None
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.next_u64() % (bound as u64).max(1)).unwrap_or_default()
    }

    /// Improves the point until no change of one or two axes helps.
    fn climb(&mut self, mut worth: Penalty) {
        let axes = self.walker.digits().len();
        loop {
            let before = worth;
            for axis in 0..axes {
                worth = self.line(axis, worth);
            }
            if !better(worth, before) {
                for first in 0..axes {
                    for second in first + 1..axes {
                        worth = self.plane(first, second, worth);
                        if self.budget_exhausted() {
                            return;
                        }
                    }
                }
            }
            if !better(worth, before) || self.budget_exhausted() {
                return;
            }
        }
    }

    /// Moves to the best value of one axis.
    fn line(&mut self, axis: usize, mut worth: Penalty) -> Penalty {
        let mut best = self.digit(axis);
        for digit in 0..self.values(axis) {
            if let Some(new) = self.turned(&[(axis, digit)])
                && better(new, worth)
            {
                (worth, best) = (new, digit);
            }
        }
        self.walker.turn(axis, best);
        worth
    }

    /// Moves to the best values of two axes: ranks of a layout can often only be changed together.
    fn plane(&mut self, first: usize, second: usize, mut worth: Penalty) -> Penalty {
        let (many, more) = (self.values(first), self.values(second));
        let mut best = (self.digit(first), self.digit(second));
        for move_ in 0..(many * more).min(MAX_MOVES_PER_PAIR) {
            // Sample planes that are too large.
            let at = if many * more > MAX_MOVES_PER_PAIR { self.below(many * more) } else { move_ };
            let (a, b) = (at / more, at % more);
            if let Some(new) = self.turned(&[(first, a), (second, b)])
                && better(new, worth)
            {
                (worth, best) = (new, (a, b));
            }
        }
        self.walker.turn(first, best.0);
        self.walker.turn(second, best.1);
        worth
    }

    fn digit(&self, axis: usize) -> usize {
        self.walker.digits().get(axis).copied().unwrap_or_default()
    }

    fn turned(&mut self, turns: &[(usize, usize)]) -> Option<Penalty> {
        for (axis, digit) in turns {
            self.walker.turn(*axis, *digit);
        }
        self.walker.possible().then(|| self.walker.look())
    }
}
