//! What a search answers.

use std::time::Instant;

use super::candidate::Candidate;
use super::needed::needed;
use super::tally::{Ranked, Tally};
use super::usual::{BOUND_THE_FIRST, BOUND_THE_OTHERS};
use super::{Problem, Rule, hill_climb};
use crate::estimate::{Metric, MetricId};
use crate::search::Condition;
use crate::search::figure::score;
use atlas_core::sort;

/// What a rule or a condition did.
#[derive(Debug, Clone)]
pub struct Bound {
    /// In words.
    pub what: String,
    /// Candidates that it removed.
    pub removed: u128,
    /// Candidates that only it removed; `None` for rules of layouts, which are no matter of choice.
    pub alone: Option<u64>,
    /// The best there would be without it, where that is better than the best there is.
    pub without: Option<Candidate>,
}

/// Why the answer can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Every candidate was looked at: nothing in the space is better.
    Exhaustive,
    /// The space was too large: no change of two knobs improves on what was found from that many starts.
    Local {
        /// Starts.
        starts: u64,
    },
    /// The search was stopped: this is the best so far.
    Cancelled,
}

/// How far was looked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Looked {
    /// Points of the space.
    pub space: u128,
    /// As [`Problem::worth`]: changes that gain less were left out of the answer.
    pub worth: f64,
    /// Of which layouts that can be.
    pub admissible: u128,
    /// Of which were estimated.
    pub estimated: u64,
    /// What that proves.
    pub proof: Proof,
    /// Time it took, s.
    pub seconds: f64,
}

/// The answer of a search.
#[derive(Debug, Clone)]
pub struct Optimum {
    /// The best; `None` if no candidate meets all conditions.
    pub best: Option<Candidate>,
    /// The next best, no two alike in all figures.
    pub runners_up: Vec<Candidate>,
    /// The best compromises between the figures of [`Problem::front`], by the first of them.
    pub front: Vec<Candidate>,
    /// What each rule and condition did; those that did nothing included.
    pub bounds: Vec<Bound>,
    /// The starting point.
    pub start: Candidate,
    /// Usual conditions that no candidate meets and that were dropped for it.
    pub dropped: Vec<Condition>,
    /// The predecessor system's best single change, judged by the same estimate.
    pub hill_climb: Candidate,
    /// How far was looked.
    pub looked: Looked,
}

impl Optimum {
    /// Why a candidate cannot be the answer: its verdict, or the conditions in effect that it breaks. Empty if it can.
    #[must_use]
    pub fn objections(&self, problem: &Problem<'_>, candidate: &Candidate) -> Vec<String> {
        if let Some(detail) = candidate.estimate.detail.as_ref().filter(|detail| !detail.verdict.fits()) {
            return vec![detail.verdict.describe()];
        }
        let force = problem.conditions.iter().filter(|condition| !self.dropped.contains(condition));
        let broken = force.filter(|condition| !condition.holds(&candidate.estimate, &candidate.scenario));
        broken
            .map(|condition| match condition {
                Condition::Figure(metric, ..) => {
                    let value = (metric.get)(&candidate.estimate, &candidate.scenario);
                    format!("{condition} is violated: {}", metric.show(value))
                }
                _ => format!("{condition} is violated"),
            })
            .collect()
    }
}

/// A latency, the longest that the loosest interactive service of MLPerf Inference v5.0 allows its 99th percentile, ms
/// (Llama 3.1 405B: 6 s to the first token; Llama 2 70B: 200 ms a token), and the figures a bound on which bounds it.
const PATIENCE: [(&Metric, f64, &[MetricId]); 2] =
    [(MetricId::TtftMs.metric(), 6000.0, &BOUND_THE_FIRST), (MetricId::TpotMs.metric(), 200.0, &BOUND_THE_OTHERS)];

impl Optimum {
    /// What the best bought that no condition is about: latencies that no user waits for, where nothing bounds them.
    #[must_use]
    pub fn warnings(&self, problem: &Problem<'_>) -> Vec<String> {
        let Some(best) = &self.best else { return Vec::new() };
        let mut warnings = Vec::new();
        for (metric, patience, bounding) in PATIENCE {
            let bounds = |metric: &Metric| bounding.contains(&metric.id);
            let mut force = problem.conditions.iter().filter(|condition| !self.dropped.contains(condition));
            let bounded = force.any(|condition| match condition {
                Condition::Figure(metric, ..) => bounds(metric),
                _ => false,
            });
            if bounded || bounds(problem.objective) || !metric.applies_to(&best.scenario) {
                continue;
            }
            let value = (metric.get)(&best.estimate, &best.scenario);
            if value > patience {
                warnings.push(format!(
                    "{} is now {} because no constraint bounds it; the loosest limit in MLPerf Inference is {}",
                    metric.label,
                    metric.show(value),
                    metric.show(patience)
                ));
            }
        }
        warnings
    }
}

/// The next best, in order: none that equals another once changes are left out that neither needs, none above the best.
fn distinct(
    problem: &Problem<'_>,
    best: Option<&Candidate>,
    ranked: impl Iterator<Item = Candidate>,
) -> Vec<Candidate> {
    let by = |candidate: &Candidate| score(problem.objective, &candidate.estimate, &candidate.scenario);
    let mut kept: Vec<Candidate> = Vec::new();
    for candidate in ranked {
        if kept.len() >= problem.runners_up {
            break;
        }
        let known = best.into_iter().chain(&kept).any(|known| known.changes == candidate.changes);
        if !known && best.is_none_or(|best| by(best) <= by(&candidate)) {
            kept.push(candidate);
        }
    }
    sort::by(&mut kept, |a, b| by(a).total_cmp(&by(b)));
    kept
}

/// The best compromises, none of which is as another or no better in any figure.
fn compromises(problem: &Problem<'_>, tally: &Tally) -> Vec<Candidate> {
    let scores = |candidate: &Candidate| -> Vec<f64> {
        problem.front.iter().map(|metric| score(metric, &candidate.estimate, &candidate.scenario)).collect()
    };
    let mut kept: Vec<(Vec<f64>, Candidate)> = Vec::new();
    for compromise in &tally.front {
        let candidate = needed(problem, compromise.point, &problem.front);
        let own = scores(&candidate);
        let beaten = |by: &[f64], one: &[f64]| by.iter().zip(one).all(|(by, one)| by <= one);
        if problem.worth > 0.0 && kept.iter().any(|(known, _)| beaten(known, &own)) {
            continue;
        }
        kept.retain(|(known, _)| problem.worth <= 0.0 || !beaten(&own, known));
        kept.push((own, candidate));
    }
    kept.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Puts the tally into words and candidates.
pub(super) fn described(problem: &Problem<'_>, tally: Tally, looked: Looked, began: Instant) -> Optimum {
    let mut ranked = tally.top.iter().map(|ranked| needed(problem, ranked.point, &[problem.objective]));
    let best = ranked.next();
    let runners_up = distinct(problem, best.as_ref(), ranked);
    let best_score = tally.top.first().map_or(f64::INFINITY, |best| best.score);
    let mut front = compromises(problem, &tally);
    if let Some(first) = problem.front.first() {
        let by = |candidate: &Candidate| score(first, &candidate.estimate, &candidate.scenario);
        sort::by(&mut front, |a, b| by(a).total_cmp(&by(b)));
    }
    let rules = Rule::ALL.iter().zip(tally.cut).map(|(rule, removed)| Bound {
        what: rule.describe().to_owned(),
        removed,
        alone: None,
        without: None,
    });
    let words = std::iter::once(Condition::Fits).chain(problem.conditions.iter().cloned());
    let margin = if best_score.is_finite() { problem.worth * best_score.abs() } else { 0.0 };
    let better = |ranked: &Ranked| ranked.score < best_score - margin;
    let conditions = words.zip(&tally.bound).map(|(condition, (alone, removed, without))| {
        let others = problem.conditions.iter().filter(|one| **one != condition).cloned().collect();
        // What does not run is shown as it is.
        let worth = if condition == Condition::Fits { 0.0 } else { problem.worth };
        let free = Problem { conditions: others, worth, ..problem.clone() };
        Bound {
            what: condition.to_string(),
            removed: u128::from(*removed),
            alone: Some(*alone),
            without: without.filter(better).map(|ranked| needed(&free, ranked.point, &[problem.objective])),
        }
    });
    let bounds = rules.chain(conditions).collect();
    // The predecessor method ignores schedules and knows one bound, on p99, which binds inference only.
    let sla = problem.conditions.iter().find_map(|condition| match condition {
        Condition::Figure(metric, _, bound) if metric.id == MetricId::P99Ms => Some(*bound),
        _ => None,
    });
    let climbed = hill_climb(problem.requested, problem.parts, sla.unwrap_or(f64::INFINITY));
    Optimum {
        best,
        runners_up,
        front,
        bounds,
        start: Candidate::of(problem.requested.clone(), problem.requested),
        dropped: Vec::new(),
        hill_climb: Candidate::of(climbed.scenario, problem.requested),
        looked: Looked { estimated: tally.estimated, seconds: began.elapsed().as_secs_f64(), ..looked },
    }
}
