//! Throughput–interactivity frontier of a deployment: throughput per accelerator against output speed per user, for an
//! increasing number of concurrent requests.

use crate::engine::estimate;
use crate::estimate::{Estimate, Serving};
use crate::knob::{Knob, KnobError, Setting};
use crate::scenario::{Parts, Scenario};

/// Deployment under one load.
#[derive(Debug, Clone)]
pub struct Point {
    /// Concurrent requests.
    pub concurrency: f64,
    /// Estimate at this load.
    pub estimate: Estimate,
    /// Serving metrics of the estimate.
    pub serving: Serving,
    /// Whether the point is Pareto-optimal in interactivity and throughput.
    pub efficient: bool,
}

/// Estimates the deployment at one, two, four … concurrent requests per replica, until the throughput grows by less
/// than 1 % or `max_concurrency` is reached. Points that cannot run are omitted. Engines that do not model serving yield no
/// points.
///
/// # Errors
///
/// If the load cannot be set. This does not happen in practice, since the phases of a schedule keep their own load.
pub fn frontier(start: &Scenario, parts: &Parts, max_concurrency: f64) -> Result<Vec<Point>, KnobError> {
    let mut points: Vec<Point> = Vec::new();
    let mut scenario = start.clone();
    // Phases of a schedule have their own loads.
    scenario.phases.clear();
    scenario.set(Knob::RequestRate, &Setting::Number(0.0), parts)?;
    // With fewer requests than replicas, some replicas are idle: not a reasonable size for the deployment.
    let mut concurrency = f64::from(start.base.shape.dp).max(1.0);
    while concurrency <= max_concurrency {
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
