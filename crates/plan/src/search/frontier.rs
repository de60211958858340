//! The throughput–interactivity frontier of a deployment: what an accelerator yields against what one user sees, as
//! more requests are served side by side.

use crate::engine::estimate;
use crate::estimate::{Estimate, Serving};
use crate::knob::{Knob, KnobError, Setting};
use crate::scenario::{Parts, Scenario};

/// The deployment under one load.
#[derive(Debug, Clone)]
pub struct Point {
    /// Requests in flight.
    pub concurrency: f64,
    /// Its answer.
    pub estimate: Estimate,
    /// Figures of serving.
    pub serving: Serving,
    /// Whether no other point gives a user at least as much and an accelerator more.
    pub efficient: bool,
}

/// Estimates at one, two, four … requests in flight on each replica, until the throughput no longer grows by a hundredth or `most` is
/// reached. Points that cannot run are left out; engines that do not know the model have no points.
///
/// # Errors
/// A knob that refuses the load. This does not happen in practice, since the phases of a schedule keep their own load.
pub fn frontier(start: &Scenario, parts: &Parts, most: f64) -> Result<Vec<Point>, KnobError> {
    let mut points: Vec<Point> = Vec::new();
    let mut scenario = start.clone();
    // A schedule's phases have loads of their own.
    scenario.phases.clear();
    scenario.set(Knob::RequestRate, &Setting::Number(0.0), parts)?;
    // Fewer requests than replicas leave replicas idle: no deployment would be sized so.
    let mut concurrency = f64::from(start.base.shape.dp).max(1.0);
    while concurrency <= most {
        scenario.set(Knob::Concurrency, &Setting::Number(concurrency), parts)?;
        let answer = estimate(&scenario);
        let Some(detail) = answer.detail else { break };
        let Some(serving) = detail.serving else { break };
        let before = points.last().map_or(0.0, |point| point.estimate.total.tokens_per_sec);
        if detail.verdict.fits() {
            let grown = answer.total.tokens_per_sec > 1.01 * before;
            points.push(Point { concurrency, estimate: answer, serving, efficient: false });
            if !grown {
                break;
            }
        }
        concurrency *= 2.0;
    }
    mark_efficient(&mut points);
    Ok(points)
}

fn mark_efficient(points: &mut [Point]) {
    let place = |point: &Point| (point.serving.tokens_per_sec_per_user, point.estimate.total.tokens_per_sec);
    let places: Vec<(f64, f64)> = points.iter().map(place).collect();
    for (point, (user, all)) in points.iter_mut().zip(&places) {
        let beaten = |other: &(f64, f64)| other.0 >= *user && other.1 >= *all && (other.0 > *user || other.1 > *all);
        point.efficient = !places.iter().any(beaten);
    }
}
