//! The history: the edits of a scenario as a sequence of points with their metrics. Undo and redo move along it.

use super::state::Point;

use crate::tui::app::{App, Setup, Snapshot};
use atlas_plan::estimate::METRICS;

/// Maximum number of points on either side of the current scenario.
const MAX_POINTS: usize = 60;
/// Maximum number of named points.
pub const MAX_NAMED_POINTS: usize = 64;

impl App {
    /// The points, oldest first: one for each scenario that differs from the one before. Values of unchanged points are
    /// taken from `former`.
    #[must_use]
    pub(in crate::tui) fn points_of_history(&self, former: &[Point]) -> Vec<Point> {
        points(self, former)
    }
}

fn points(app: &App, former: &[Point]) -> Vec<Point> {
    let steps = |index: usize| i32::try_from(index + 1).unwrap_or(i32::MAX);
    let past = app.past.iter().rev().take(MAX_POINTS).enumerate().map(|(at, snapshot)| (-steps(at), snapshot));
    let past: Vec<(i32, &Snapshot)> = past.collect();
    let future = app.future.iter().rev().take(MAX_POINTS).enumerate().map(|(at, snapshot)| (steps(at), snapshot));
    let mut all: Vec<(i32, &Snapshot)> = Vec::new();
    for (step, snapshot) in past.into_iter().rev().chain([(0, &app.now)]).chain(future) {
        match all.last_mut() {
            // Marks and names do not change metrics, so equal neighbors are merged; the current scenario keeps step 0.
            Some((last, known)) if known.setup == snapshot.setup => {
                if *last != 0 {
                    *last = step;
                }
            }
            _ => all.push((step, snapshot)),
        }
    }
    all.into_iter().map(|(step, snapshot)| point(app, former, step, &snapshot.setup)).collect()
}

fn point(app: &App, former: &[Point], step: i32, setup: &Setup) -> Point {
    let known = former.iter().find(|known| known.settled && known.setup == *setup);
    if let Some(known) = known.filter(|_| step != 0) {
        return Point { step, ..known.clone() };
    }
    let own;
    let answer = if step == 0 {
        &app.answer
    } else {
        own = app.answered(setup);
        &own
    };
    let values = METRICS.iter().map(|metric| answer.value(metric)).collect();
    Point { step, setup: setup.clone(), fits: answer.fits(), settled: !answer.pending, values }
}
