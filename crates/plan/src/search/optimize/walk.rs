//! Depth-first traversal of a space, with pruning of layouts that violate a rule.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::tally::Tally;
use super::{Gauge, Problem, Rule};
use crate::engine::{Memo, estimate_into, estimate_next};
use crate::estimate::Estimate;
use crate::knob::Knob;
use crate::scenario::Scenario;
use crate::search::space::Axis;

/// Minimum number of tasks to divide a space into, such that workers finish at about the same time.
const MIN_TASKS: u128 = 1024;
/// Candidates between two progress updates.
const PROGRESS_INTERVAL: u64 = 4096;

/// Problem with its rules, grouped by the depth at which they can be checked.
pub(super) struct Search<'p> {
    pub(super) problem: &'p Problem<'p>,
    /// Rules by the depth at which all knobs that they depend on are set.
    rules: Vec<Vec<Rule>>,
}

/// Position of a worker in the space.
pub(super) struct Walker<'s> {
    search: &'s Search<'s>,
    pub(super) scenario: Scenario,
    digits: Vec<usize>,
    memo: Memo,
    estimate: Estimate,
    pub(super) tally: Tally,
}

impl<'p> Search<'p> {
    pub(super) fn of(problem: &'p Problem<'p>) -> Search<'p> {
        let axes = problem.space.axes();
        let mut rules = vec![Vec::new(); axes.len() + 1];
        for rule in Rule::ALL {
            let depth = axes.iter().rposition(|axis| rule.reads().contains(&axis.knob)).map_or(0, |last| last + 1);
            if let Some(at) = rules.get_mut(depth) {
                at.push(rule);
            }
        }
        Search { problem, rules }
    }

    pub(super) fn walker(&self) -> Walker<'_> {
        Walker {
            search: self,
            scenario: self.problem.start.clone(),
            digits: vec![0; self.problem.space.axes().len()],
            memo: Memo::default(),
            estimate: Estimate::default(),
            tally: Tally::new(self.problem),
        }
    }

    /// Number of candidates that no rule excludes.
    pub(super) fn count(&self, gauge: &Gauge) -> u128 {
        let mut walker = self.walker();
        walker.count(0, gauge)
    }

    /// Adds the starting scenario to the tally.
    pub(super) fn consider_start(&self, tally: &mut Tally) {
        if self.problem.requested.check(self.problem.parts).is_ok() {
            let mut estimate = Estimate::default();
            estimate_into(self.problem.requested, &mut estimate);
            tally.consider(self.problem, None, self.problem.requested, &estimate);
        }
    }

    /// Depth at which branches are divided into tasks.
    fn split(&self) -> usize {
        let axes = self.problem.space.axes();
        let mut tasks = 1;
        for (depth, axis) in axes.iter().enumerate() {
            if tasks >= MIN_TASKS {
                return depth;
            }
            tasks *= axis.values.len() as u128;
        }
        axes.len()
    }

    /// Examines all candidates.
    pub(super) fn everywhere(&self, workers: usize, gauge: &Gauge) -> Tally {
        let split = self.split();
        let size = self.problem.space.size() / self.problem.space.size_below(split).max(1);
        let tasks = usize::try_from(size).unwrap_or(usize::MAX);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut walker = self.walker();
            loop {
                let task = next.fetch_add(1, Relaxed);
                if task >= tasks || gauge.canceled() {
                    return walker.tally;
                }
                walker.branch(task, split, gauge);
            }
        };
        let mut tally = Tally::new(self.problem);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
            tally.merge(work());
            for found in threads.into_iter().filter_map(|thread| thread.join().ok()) {
                tally.merge(found);
            }
        });
        tally
    }
}

impl Walker<'_> {
    /// Sets an axis to one of its values.
    pub(super) fn turn(&mut self, depth: usize, digit: usize) {
        let Some(Axis { knob, values }) = self.search.problem.space.axes().get(depth) else { return };
        if let (Some(value), Some(slot)) = (values.get(digit), self.digits.get_mut(depth)) {
            *slot = digit;
            // Cannot fail: axes contain only valid values.
            let _ = self.scenario.set(*knob, value, self.search.problem.parts);
        }
    }

    /// First violated rule among those that are checked at this depth.
    pub(super) fn broken(&self, depth: usize) -> Option<Rule> {
        let problem = self.search.problem;
        let turned = |knob: Knob| {
            let axes = problem.space.axes().iter().zip(&self.digits).take(depth);
            axes.into_iter().any(|(axis, digit)| axis.knob == knob && *digit > 0)
        };
        let rules = self.search.rules.get(depth)?;
        rules.iter().find(|rule| !rule.holds(&self.scenario, problem.idle, &turned)).copied()
    }

    /// Number of the current point.
    fn point(&self) -> u128 {
        let axes = self.search.problem.space.axes();
        axes.iter().zip(&self.digits).fold(0, |point, (axis, digit)| point * axis.values.len() as u128 + *digit as u128)
    }

    fn cut(&mut self, rule: Rule, depth: usize) {
        let size = self.search.problem.space.size_below(depth);
        let at = Rule::ALL.iter().position(|known| *known == rule).unwrap_or_default();
        if let Some(cut) = self.tally.cut.get_mut(at) {
            *cut = cut.saturating_add(size);
        }
    }

    /// Examines all candidates of a task's branch.
    fn branch(&mut self, task: usize, split: usize, gauge: &Gauge) {
        let mut rest = task;
        for depth in (0..split).rev() {
            let values = self.search.problem.space.axes().get(depth).map_or(1, |axis| axis.values.len());
            self.turn(depth, rest % values);
            rest /= values;
        }
        for depth in 0..=split {
            if let Some(rule) = self.broken(depth) {
                return self.cut(rule, split);
            }
        }
        self.below(split, gauge);
    }

    /// Examines all candidates with the current values of the axes before `depth`, whose rules are already checked.
    fn below(&mut self, depth: usize, gauge: &Gauge) {
        let Some(values) = self.search.problem.space.axes().get(depth).map(|axis| axis.values.len()) else {
            self.look();
            if self.tally.estimated.is_multiple_of(PROGRESS_INTERVAL) {
                gauge.advance(PROGRESS_INTERVAL);
            }
            return;
        };
        for digit in 0..values {
            if gauge.canceled() {
                return;
            }
            self.turn(depth, digit);
            match self.broken(depth + 1) {
                Some(rule) => self.cut(rule, depth + 1),
                None => self.below(depth + 1, gauge),
            }
        }
    }

    /// Estimates the current candidate.
    pub(super) fn look(&mut self) -> (usize, f64) {
        let point = self.point();
        let problem = self.search.problem;
        if self.scenario.check(problem.parts).is_err() {
            return (usize::MAX, f64::INFINITY);
        }
        estimate_next(&self.scenario, &mut self.memo, &mut self.estimate);
        self.tally.estimated += 1;
        self.tally.consider(problem, Some(point), &self.scenario, &self.estimate)
    }

    fn count(&mut self, depth: usize, gauge: &Gauge) -> u128 {
        if gauge.canceled() || self.broken(depth).is_some() {
            return 0;
        }
        let space = &self.search.problem.space;
        // All rules are checked: the remaining points are all admissible.
        if self.search.rules.iter().skip(depth + 1).all(Vec::is_empty) {
            return space.size_below(depth);
        }
        let values = space.axes().get(depth).map_or(0, |axis| axis.values.len());
        let mut count: u128 = 0;
        for digit in 0..values {
            self.turn(depth, digit);
            count = count.saturating_add(self.count(depth + 1, gauge));
        }
        count
    }

    /// Whether no rule excludes the current point.
    pub(super) fn possible(&self) -> bool {
        (0..=self.digits.len()).all(|depth| self.broken(depth).is_none())
    }

    /// Index of the starting scenario's value on an axis; 0 if it is not on the axis.
    pub(super) fn digit_of_start(&self, axis: usize) -> usize {
        let problem = self.search.problem;
        let axis = problem.space.axes().get(axis);
        axis.and_then(|axis| axis.values.iter().position(|value| *value == problem.requested.get(axis.knob)))
            .unwrap_or(0)
    }

    /// Number of values on an axis.
    pub(super) fn values(&self, axis: usize) -> usize {
        self.search.problem.space.axes().get(axis).map_or(1, |axis| axis.values.len())
    }

    /// Indices of the current point on all axes.
    pub(super) fn digits(&self) -> &[usize] {
        &self.digits
    }
}
