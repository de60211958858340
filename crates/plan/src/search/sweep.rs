//! Estimates every point of a space for every target and workload, in order, on all cores, in constant memory.
//!
//! Points are numbered: contender by contender, and in the order of the space within one. Workers take turns in
//! estimating blocks of points, and blocks are delivered in order, so a sweep can stop after any block and be resumed
//! from its number.

use std::io;
use std::sync::mpsc::sync_channel;

use super::condition::Condition;
use super::gauge::{Gauge, workers};
use super::space::{Axis, Space};
use crate::engine::answer::event::estimate_until;
use crate::engine::{Memo, estimate_next};
use crate::estimate::{Estimate, Metric};
use crate::knob::Knob;
use crate::scenario::{Parts, Scenario};

/// Points per block: a few milliseconds of work, so that cancellation and progress are prompt.
pub const BLOCK: u64 = 4096;
/// Points per block if they are simulated, which takes up to seconds per point.
const SIMULATED_BLOCK: u64 = 16;
/// Blocks that a worker may compute ahead.
const MAX_BLOCKS_AHEAD: usize = 4;

/// Definition of a sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// Targets and workloads, with their scenarios before any axis is applied.
    pub contenders: Vec<(Parts, Scenario)>,
    /// The axes.
    pub space: Space,
    /// Constraints that a point must meet to be reported.
    pub conditions: Vec<Condition>,
}

/// An estimated point, passed to the caller that reports it.
#[derive(Debug)]
pub struct Row<'r> {
    /// Index of the contender.
    pub contender: usize,
    /// Index of the value on each axis.
    pub digits: &'r [usize],
    /// Scenario of the point.
    pub scenario: &'r Scenario,
    /// Estimate of the point.
    pub estimate: &'r Estimate,
}

/// Results of a block of points.
#[derive(Debug)]
pub struct Block<T> {
    /// Number of the point after the last one of the block: where to resume.
    pub next: u64,
    /// Result of the caller's `fill` for the points of the block.
    pub described: T,
}

impl Sweep {
    /// Number of points of all contenders; `None` if it exceeds `u64`.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        u64::try_from(self.space.size().checked_mul(self.contenders.len() as u128)?).ok()
    }

    /// Points per block.
    fn block(&self) -> u64 {
        let simulates = |(_, scenario): &(Parts, Scenario)| scenario.engine.simulates();
        let turns_engine = self.space.axes().iter().any(|axis| axis.knob == Knob::Engine);
        if turns_engine || self.contenders.iter().any(simulates) { SIMULATED_BLOCK } else { BLOCK }
    }

    /// Estimates the points of a range. `fill` adds a point to a block; `take` receives the blocks in order, and ends
    /// the sweep if it returns an error. Returns the number of the first point that was not taken, which is the end of
    /// the range unless `gauge` was canceled.
    ///
    /// # Errors
    ///
    /// Errors of `take`, or if a worker panicked.
    pub fn run<T: Default + Send>(
        &self,
        points: std::ops::Range<u64>,
        gauge: &Gauge,
        fill: impl Fn(&mut T, &Row<'_>) + Sync,
        mut take: impl FnMut(Block<T>) -> io::Result<()>,
    ) -> io::Result<u64> {
        let all = self.size().ok_or_else(|| io::Error::other("too many points"))?;
        let (from, size) = (points.start, points.end.min(all));
        gauge.add_expected(size);
        gauge.advance(from.min(size));
        let (workers, size_of_block) = (workers(), self.block());
        std::thread::scope(|scope| {
            let mut blocks = Vec::with_capacity(workers);
            for worker in 0..workers as u64 {
                let (sender, receiver) = sync_channel(MAX_BLOCKS_AHEAD);
                blocks.push(receiver);
                let (fill, step) = (&fill, size_of_block * workers as u64);
                scope.spawn(move || {
                    let mut walker = Walker::new(self);
                    let mut first = from.saturating_add(worker * size_of_block);
                    while first < size && !gauge.canceled() {
                        let next = size.min(first.saturating_add(size_of_block));
                        let mut described = T::default();
                        let whole = walker.block(first, next, gauge, |row| fill(&mut described, row));
                        // Incomplete blocks are discarded. The receiver is gone if the sweep ended early.
                        if !whole || sender.send(Block { next, described }).is_err() {
                            return;
                        }
                        first = first.saturating_add(step);
                    }
                });
            }
            let mut taken = from;
            // The first worker without a block in its turn has finished or was canceled.
            for receiver in blocks.iter().cycle() {
                let Ok(block) = receiver.recv() else { break };
                gauge.advance(block.next - taken);
                taken = block.next;
                take(block)?;
            }
            if taken < size && !gauge.canceled() {
                return Err(io::Error::other("internal error: a worker stopped; the sweep is incomplete"));
            }
            Ok(taken)
        })
    }
}

/// State of a worker: the scenario whose knobs it sets, and the index on each axis.
struct Walker<'s> {
    sweep: &'s Sweep,
    contender: usize,
    scenario: Option<Scenario>,
    digits: Vec<usize>,
    /// Axes with a value that is invalid for the contender, such as a fabric that its profile is not calibrated for.
    refused: Vec<bool>,
    memo: Memo,
    estimate: Estimate,
}

impl<'s> Walker<'s> {
    fn new(sweep: &'s Sweep) -> Walker<'s> {
        let axes = sweep.space.axes().len();
        Walker {
            sweep,
            contender: usize::MAX,
            scenario: None,
            digits: vec![0; axes],
            refused: vec![false; axes],
            memo: Memo::default(),
            estimate: Estimate::default(),
        }
    }

    /// Estimates the points of a block. Returns whether it is complete: simulations end if the gauge is canceled.
    fn block(&mut self, first: u64, next: u64, gauge: &Gauge, mut fill: impl FnMut(&Row<'_>)) -> bool {
        self.seek(first);
        for point in first..next {
            if point > first {
                self.advance();
            }
            let (Some(scenario), Some((parts, _))) = (&self.scenario, self.sweep.contenders.get(self.contender)) else {
                return true;
            };
            // With a changed engine or fabric, inputs may be missing in the files: skip the point.
            if self.refused.contains(&true) || scenario.check(parts).is_err() {
                continue;
            }
            if !scenario.engine.simulates() {
                estimate_next(scenario, &mut self.memo, &mut self.estimate);
            } else if !estimate_until(scenario, &gauge.part(), &mut self.estimate) {
                return false;
            }
            if self.sweep.conditions.iter().all(|condition| condition.holds(&self.estimate, scenario)) {
                let (contender, digits) = (self.contender, self.digits.as_slice());
                fill(&Row { contender, digits, scenario, estimate: &self.estimate });
            }
        }
        true
    }

    /// Moves to the point with number `point`.
    fn seek(&mut self, point: u64) {
        let size = u64::try_from(self.sweep.space.size()).unwrap_or(u64::MAX).max(1);
        self.enter(usize::try_from(point / size).unwrap_or(usize::MAX));
        let mut rest = point % size;
        for (axis, digit) in self.sweep.space.axes().iter().zip(&mut self.digits).rev() {
            let values = axis.values.len().max(1) as u64;
            *digit = usize::try_from(rest % values).unwrap_or_default();
            rest /= values;
        }
        for axis in 0..self.digits.len() {
            self.turn(axis);
        }
    }

    /// Switches to the scenario of a contender.
    fn enter(&mut self, contender: usize) {
        if self.contender != contender {
            self.contender = contender;
            self.scenario = self.sweep.contenders.get(contender).map(|(_, scenario)| scenario.clone());
        }
    }

    /// Moves to the next point and sets only the knobs that change.
    fn advance(&mut self) {
        for axis in (0..self.digits.len()).rev() {
            let values = self.sweep.space.axes().get(axis).map_or(1, |axis| axis.values.len());
            let Some(digit) = self.digits.get_mut(axis) else { return };
            *digit += 1;
            let carried = *digit >= values;
            if carried {
                *digit = 0;
            }
            self.turn(axis);
            if !carried {
                return;
            }
        }
        // All axes wrapped around: continue with the next contender.
        self.enter(self.contender.saturating_add(1));
        for axis in 0..self.digits.len() {
            self.turn(axis);
        }
    }

    fn turn(&mut self, axis: usize) {
        let (Some(Axis { knob, values }), Some(digit)) = (self.sweep.space.axes().get(axis), self.digits.get(axis))
        else {
            return;
        };
        let parts = self.sweep.contenders.get(self.contender);
        if let (Some(value), Some(scenario), Some((parts, _))) = (values.get(*digit), &mut self.scenario, parts)
            && let Some(refused) = self.refused.get_mut(axis)
        {
            *refused = scenario.set(*knob, value, parts).is_err();
        }
    }
}

/// Data of a curve or heat map of one contender: a metric at every point of the axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// One cell per point, in order; the last axis varies fastest.
    pub cells: Vec<Cell>,
    /// Index of the point of the contender's own scenario, if its values are on the axes.
    pub here: Option<usize>,
}

/// A point of a [`Grid`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// Value of the metric; `None` if it is not known or not finite.
    pub value: Option<f64>,
    /// Whether the scenario can run and meets the constraints.
    pub feasible: bool,
}

impl Cell {
    /// Value of the metric, if the scenario can run and meets the constraints.
    #[must_use]
    pub fn feasible_value(&self) -> Option<f64> {
        self.value.filter(|_| self.feasible)
    }
}

impl Sweep {
    /// Computes a metric at every point, as one grid per contender. Points that violate a constraint are included and
    /// marked as infeasible. If `gauge` is canceled, the remaining cells are empty.
    ///
    /// # Errors
    ///
    /// If there are too many points, or a worker panicked.
    pub fn grids(&self, metric: &'static Metric, gauge: &Gauge) -> io::Result<Vec<Grid>> {
        let size = usize::try_from(self.space.size()).map_err(io::Error::other)?;
        let empty = Cell { value: None, feasible: false };
        let grid = |(_, scenario): &(Parts, Scenario)| Grid { cells: vec![empty; size], here: self.place(scenario) };
        let mut grids: Vec<Grid> = self.contenders.iter().map(grid).collect();
        let every = Sweep { conditions: Vec::new(), ..self.clone() };
        let fill = |described: &mut Vec<(usize, usize, Cell)>, row: &Row<'_>| {
            let met = |condition: &Condition| condition.holds(row.estimate, row.scenario);
            let feasible = super::condition::fits(row.estimate) && self.conditions.iter().all(met);
            let axes = self.space.axes().iter().zip(row.digits);
            let point = axes.fold(0, |point, (axis, digit)| point * axis.values.len() + digit);
            let value = metric.value(row.estimate, row.scenario).filter(|value| value.is_finite());
            described.push((row.contender, point, Cell { value, feasible }));
        };
        every.run(0..u64::MAX, gauge, fill, |block: Block<Vec<_>>| {
            for (contender, point, cell) in block.described {
                if let Some(slot) = grids.get_mut(contender).and_then(|grid| grid.cells.get_mut(point)) {
                    *slot = cell;
                }
            }
            Ok(())
        })?;
        Ok(grids)
    }

    /// Index of the point of a scenario, if its values are on the axes.
    fn place(&self, scenario: &Scenario) -> Option<usize> {
        self.space.axes().iter().try_fold(0, |at, axis| {
            let now = scenario.get(axis.knob);
            Some(at * axis.values.len() + axis.values.iter().position(|value| *value == now)?)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use std::sync::Arc;

    use super::*;
    use crate::engine::estimate;
    use crate::knob::{Knob, Setting};
    use crate::testing;

    fn sweep() -> Sweep {
        let contenders = ["NVIDIA_H100_8x_NVLink", "GROQ_LPU_NODE"].map(|target| {
            let (parts, scenario) = testing::scenario(target, "gpt5_1t_inference", &[]);
            (parts, scenario)
        });
        let many = (1..=1500).map(f64::from);
        let axes = vec![Axis::of(Knob::Tp, [1.0, 2.0, 4.0]), Axis::of(Knob::Microbatch, many)];
        Sweep { contenders: contenders.into(), space: Space::of(axes).unwrap(), conditions: Vec::new() }
    }

    fn rows(sweep: &Sweep, from: u64) -> Vec<(usize, Vec<usize>, f64)> {
        let mut all = Vec::new();
        let fill = |described: &mut Vec<_>, row: &Row<'_>| {
            described.push((row.contender, row.digits.to_vec(), row.estimate.total.tokens_per_sec));
        };
        let next = sweep.run(from..u64::MAX, &Gauge::default(), fill, |block: Block<Vec<_>>| {
            all.extend(block.described);
            Ok(())
        });
        assert_eq!(next.unwrap(), sweep.size().unwrap());
        all
    }

    #[test]
    fn sweep_visits_points_in_order_and_matches_single_estimates() {
        let sweep = sweep();
        let all = rows(&sweep, 0);
        assert_eq!(all.len(), 9000);
        for (number, (contender, digits, tokens)) in all.iter().enumerate() {
            assert_eq!((*contender, digits[0], digits[1]), (number / 4500, number / 1500 % 3, number % 1500));
            if number % 97 == 0 {
                let (parts, start) = &sweep.contenders[*contender];
                let mut scenario = start.clone();
                for (knob, value) in sweep.space.settings(number as u128 % 4500) {
                    scenario.set(knob, value, parts).unwrap();
                }
                assert_eq!(estimate(&scenario).total.tokens_per_sec.to_bits(), tokens.to_bits());
            }
        }
    }

    #[test]
    fn training_sweep_matches_single_estimates_for_any_axis_order() {
        let (parts, scenario) = testing::scenario("h100-sxm-128", "llama3.1-70b-train", &[]);
        let axes = [
            Axis::of(Knob::Tp, [1.0, 4.0, 8.0]),
            Axis::of(Knob::Pue, [1.1, 1.2]),
            Axis::of(Knob::Dp, [2.0, 4.0]),
            Axis::of(Knob::Microbatch, [1.0, 2.0, 3.0]),
            Axis::of(Knob::Global, (1..=40).map(f64::from)),
        ];
        // Each axis is the fastest-varying one once.
        for first in 0..axes.len() {
            let mut axes = axes.to_vec();
            axes.rotate_left(first);
            let space = Space::of(axes).unwrap();
            let sweep = Sweep { contenders: vec![(parts.clone(), scenario.clone())], space, conditions: Vec::new() };
            let fill = |described: &mut Vec<String>, row: &Row<'_>| described.push(format!("{:?}", row.estimate));
            let mut all = Vec::new();
            let take = |block: Block<Vec<String>>| {
                all.extend(block.described);
                Ok(())
            };
            sweep.run(0..u64::MAX, &Gauge::default(), fill, take).unwrap();
            assert_eq!(all.len(), 1440);
            for (number, described) in all.iter().enumerate().step_by(7) {
                let mut alone = scenario.clone();
                for (knob, value) in sweep.space.settings(number as u128) {
                    alone.set(knob, value, &parts).unwrap();
                }
                assert_eq!(&format!("{:?}", estimate(&alone)), described);
            }
        }
    }

    #[test]
    fn resumed_sweep_yields_the_remaining_rows_of_a_full_sweep() {
        let sweep = sweep();
        let all = rows(&sweep, 0);
        for from in [1, 4096, 4499, 4500, 8999] {
            assert_eq!(rows(&sweep, from), all[from as usize..]);
        }
    }

    #[test]
    fn canceled_sweep_returns_the_next_point_number() {
        let sweep = sweep();
        let gauge = Gauge::default();
        let mut rows = 0;
        let next = sweep.run(
            0..u64::MAX,
            &gauge,
            |count: &mut u64, _| *count += 1,
            |block| {
                rows += block.described;
                gauge.cancel();
                Ok(())
            },
        );
        // Blocks in flight are still taken; there is no gap before the returned number.
        assert_eq!(next.unwrap(), rows);
    }

    #[test]
    fn grid_marks_the_cell_of_the_current_scenario() {
        let mut sweep = sweep();
        sweep.contenders.truncate(1);
        let scenario = sweep.contenders[0].1.clone();
        let (micro, tp) = (scenario.microbatch, scenario.base.shape.tp);
        let axes = vec![
            Axis::of(Knob::Microbatch, [f64::from(micro), 2.0 * micro, 4.0 * micro]),
            Axis::of(Knob::Tp, [tp + 1.0, f64::from(tp)]),
        ];
        sweep.space = Space::of(axes).unwrap();
        let metric = super::super::metric::named("throughput").unwrap();
        let grid = sweep.grids(metric, &Gauge::default()).unwrap().remove(0);
        assert_eq!(grid.cells.len(), 6);
        let here = grid.here.unwrap();
        assert_eq!(here, 1);
        let unscheduled = estimate(&scenario).total.tokens_per_sec;
        assert_eq!(grid.cells[here].value.map(f64::to_bits), Some(unscheduled.to_bits()));
    }

    #[test]
    fn refused_grid_cell_is_infeasible_and_the_grid_keeps_its_size() {
        let mut sweep = sweep();
        let (h100, groq) = (sweep.contenders[0].clone(), sweep.contenders[1].clone());
        let names = |parts: &Parts| parts.fabrics().iter().map(|(name, _)| Arc::clone(name)).collect::<Vec<_>>();
        let (own, other) = (names(&h100.0), names(&groq.0));
        let foreign = own.iter().position(|name| !other.contains(name)).unwrap();
        let axis = Axis { knob: Knob::Fabric, values: own.iter().cloned().map(Setting::Choice).collect() };
        sweep.space = Space::of(vec![axis]).unwrap();
        let grids = sweep.grids(super::super::metric::named("throughput").unwrap(), &Gauge::default()).unwrap();
        assert!(grids[0].cells.iter().all(|cell| cell.feasible_value() > Some(0.0)));
        assert!(!grids[1].cells[foreign].feasible && grids[1].cells[foreign].value.is_none());
        assert_eq!(grids[1].cells.len(), own.len());
    }
}
