//! Reverts the changes of a candidate that it does not need: moves each knob to its value at the start, or as close to
//! it as the minimum gain allows.

use super::candidate::Candidate;
use super::{Problem, Rule};
use crate::estimate::Metric;
use crate::knob::{Knob, Setting};
use crate::search::metric::score;
use atlas_core::sort;

/// Default minimum relative gain of a change in the objective.
pub const DEFAULT_MIN_GAIN: f64 = 0.005;

/// Knob changed by a candidate: the values from that of the start to that of the candidate. `at` is the index of the
/// current one.
struct Change {
    knob: Knob,
    values: Vec<Setting>,
    at: usize,
}

/// Candidate of a point with only the changes that it needs. Reverting the others worsens each of the metrics `figures`
/// by at most [`Problem::min_gain`].
pub(super) fn minimal_changes(problem: &Problem<'_>, point: Option<u128>, figures: &[&'static Metric]) -> Candidate {
    let unchanged = Candidate::at(problem, point);
    let Some(point) = point.filter(|_| problem.min_gain > 0.0) else { return unchanged };
    let score_of = |metric, candidate: &Candidate| score(metric, &candidate.estimate, &candidate.scenario);
    let limits: Vec<(&'static Metric, f64)> = figures
        .iter()
        .map(|metric| (*metric, score_of(metric, &unchanged)))
        .map(|(metric, best)| (metric, best + problem.min_gain * best.abs()))
        .collect();
    let near = |candidate: &Candidate| limits.iter().all(|(metric, limit)| score_of(metric, candidate) <= *limit);
    let start = Candidate::at(problem, None);
    if problem.requested.check(problem.parts).is_ok() && start.meets(problem) && near(&start) {
        return start;
    }
    let mut changes: Vec<Change> = problem.space.settings(point).map(|(knob, to)| change(problem, knob, to)).collect();
    let acceptable =
        |changes: &[Change]| candidate(problem, changes).filter(|found| found.meets(problem) && near(found));
    let Some(mut best) = acceptable(&changes) else { return unchanged };
    loop {
        let before: usize = changes.iter().map(|change| change.at).sum();
        // Axes with little effect or cost are last in a space and are reverted first; layouts are first.
        for i in (0..changes.len()).rev() {
            let at = changes.get(i).map_or(0, |change| change.at);
            for nearer in 0..at {
                put(&mut changes, i, nearer);
                if let Some(found) = acceptable(&changes) {
                    best = found;
                    break;
                }
                put(&mut changes, i, at);
            }
        }
        // Ranks of a layout can often only be reverted together.
        for first in 0..changes.len() {
            for second in first + 1..changes.len() {
                let at = [first, second].map(|i| changes.get(i).map_or(0, |change| change.at));
                if at.contains(&0) {
                    continue;
                }
                put(&mut changes, first, 0);
                put(&mut changes, second, 0);
                if let Some(found) = acceptable(&changes) {
                    best = found;
                } else {
                    put(&mut changes, first, at[0]);
                    put(&mut changes, second, at[1]);
                }
            }
        }
        if changes.iter().map(|change| change.at).sum::<usize>() == before {
            return best;
        }
    }
}

fn put(changes: &mut [Change], i: usize, at: usize) {
    if let Some(change) = changes.get_mut(i) {
        change.at = at;
    }
}

/// Values of a knob from the start to `to`: intermediate numbers of the axis, nearest to the start first.
fn change(problem: &Problem<'_>, knob: Knob, to: &Setting) -> Change {
    let from = problem.requested.get(knob);
    let mut values = vec![from.clone()];
    if let (Setting::Number(from), Setting::Number(to)) = (&from, to) {
        let axis = problem.space.axes().iter().find(|axis| axis.knob == knob);
        let between = |value: &&Setting| match value {
            Setting::Number(value) => (value > from) == (to > from) && (value - from).abs() < (to - from).abs(),
            _ => false,
        };
        values.extend(axis.into_iter().flat_map(|axis| &axis.values).filter(between).cloned());
        let distance = |value: &Setting| match value {
            Setting::Number(value) => (value - from).abs(),
            _ => 0.0,
        };
        sort::by(&mut values, |a, b| distance(a).total_cmp(&distance(b)));
        values.dedup();
    }
    if from != *to {
        values.push(to.clone());
    }
    Change { knob, at: values.len() - 1, values }
}

/// Candidate with these values; `None` if it is invalid or the rules of the space exclude it.
fn candidate(problem: &Problem<'_>, changes: &[Change]) -> Option<Candidate> {
    let mut scenario = problem.start.clone();
    // Knobs with the value of the start are not set, so that derived defaults are still derived.
    for change in changes.iter().filter(|change| change.at > 0) {
        scenario.set(change.knob, change.values.get(change.at)?, problem.parts).ok()?;
    }
    scenario.check(problem.parts).ok()?;
    // Searched nodes are not increased again: none may idle.
    let searched_nodes = |knob| knob == Knob::NumNodes && problem.space.turns(knob);
    let possible = Rule::ALL.iter().all(|rule| rule.holds(&scenario, problem.idle, &searched_nodes));
    possible.then(|| Candidate::settled(scenario, problem))
}
