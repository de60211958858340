//! Searching a space too large to look at everywhere: from many random starts, one or two knobs at a time, to where no
//! change of two knobs helps any more.

use rand_mt::Mt64;

use super::Gauge;
use super::tally::Tally;
use super::walk::{Search, Walker};

/// Random points that are tried for one that no rule cuts off.
const TRIES: u32 = 20_000;
/// Maximum moves of a pair of axes that are looked at: two axes of a hundred values have ten thousand.
const PAIR: usize = 4096;

/// A place's worth: broken rules and conditions, then the score. Less is better.
type Worth = (usize, f64);

fn better(a: Worth, b: Worth) -> bool {
    a.0 < b.0 || (a.0 == b.0 && a.1 < b.1)
}

/// Shares the budget among the workers; each starts where its own seed leads.
pub(super) fn search(search: &Search<'_>, workers: usize, gauge: &Gauge) -> Tally {
    let budget = search.problem.most / workers.max(1) as u64;
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
    fn spent(&mut self) -> bool {
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
        while !self.spent() && barren < 64 {
            match self.anywhere() {
                Some(worth) => {
                    self.walker.tally.starts += 1;
                    self.climb(worth);
                }
                // Where chance finds no layout that can be, trying forever would not either.
                None => barren += 1,
            }
        }
    }

    fn values(&self, axis: usize) -> usize {
        self.walker.values(axis)
    }

    /// The values of the axes that are nearest to the starting scenario, where no rule cuts them off.
    fn at_start(&mut self) -> Option<Worth> {
        for axis in 0..self.walker.digits().len() {
            let digit = self.walker.digit_of_start(axis);
            self.walker.turn(axis, digit);
        }
        self.walker.possible().then(|| self.walker.look())
    }

    /// A random place that no rule cuts off.
    fn anywhere(&mut self) -> Option<Worth> {
        for _ in 0..TRIES {
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

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.random.next_u64() % (most as u64).max(1)).unwrap_or_default()
    }

    /// To where no change of one or two axes helps.
    fn climb(&mut self, mut worth: Worth) {
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
                        if self.spent() {
                            return;
                        }
                    }
                }
            }
            if !better(worth, before) || self.spent() {
                return;
            }
        }
    }

    /// The best value of one axis.
    fn line(&mut self, axis: usize, mut worth: Worth) -> Worth {
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

    /// The best values of two axes at once: a layout's ranks can only change together.
    fn plane(&mut self, first: usize, second: usize, mut worth: Worth) -> Worth {
        let (many, more) = (self.values(first), self.values(second));
        let mut best = (self.digit(first), self.digit(second));
        for move_ in 0..(many * more).min(PAIR) {
            // Planes too large to look at are sampled.
            let at = if many * more > PAIR { self.below(many * more) } else { move_ };
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

    fn turned(&mut self, turns: &[(usize, usize)]) -> Option<Worth> {
        for (axis, digit) in turns {
            self.walker.turn(*axis, *digit);
        }
        self.walker.possible().then(|| self.walker.look())
    }
}
