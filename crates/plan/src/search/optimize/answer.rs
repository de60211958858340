//! Result of a search.

use std::time::Instant;

use super::candidate::Candidate;
use super::needed::minimal_changes;
use super::tally::{Ranked, Tally};
use super::usual::{LIMITING_TPOT, LIMITING_TTFT};
use super::{Problem, Rule, hill_climb};
use crate::estimate::{Metric, MetricId, Verdict};
use crate::search::Condition;
use crate::search::metric::score;
use atlas_core::sort;

/// Effect of a rule or constraint.
#[derive(Debug, Clone)]
pub struct Bound {
    /// Description.
    pub what: String,
    /// Number of candidates that it excluded.
    pub removed: u128,
    /// Number of candidates that it alone excluded; `None` for rules of layouts, which the user cannot relax.
    pub alone: Option<u64>,
    /// Best candidate without it, if better than the result.
    pub without: Option<Candidate>,
}

/// Extent of the evidence for the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// All candidates were examined: no point of the space is better.
    Exhaustive,
    /// The space was too large: starting from `starts` points, no change of two knobs improves the result.
    Local {
        /// Number of starting points.
        starts: u64,
    },
    /// The search was canceled: the result is the best so far.
    Canceled,
}

/// Extent of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SearchExtent {
    /// Number of points of the space.
    pub space: u128,
    /// See [`Problem::min_gain`]: changes that gain less were reverted.
    pub min_gain: f64,
    /// Number of points with a valid layout.
    pub admissible: u128,
    /// Number of estimated points.
    pub estimated: u64,
    /// Extent of the evidence.
    pub proof: Proof,
    /// Duration of the search, s.
    pub seconds: f64,
}

/// Result of a search.
#[derive(Debug, Clone)]
pub struct Optimum {
    /// Best candidate; `None` if none meets all constraints.
    pub best: Option<Candidate>,
    /// Next best candidates, which differ in their metrics.
    pub runners_up: Vec<Candidate>,
    /// Verdict on all candidates, if it was certain that none can run; nothing was searched then.
    pub common_verdict: Option<Verdict>,
    /// Pareto front of the metrics of [`Problem::front`], ordered by the first.
    pub front: Vec<Candidate>,
    /// Effect of each rule and constraint, including those without effect.
    pub bounds: Vec<Bound>,
    /// Starting point.
    pub start: Candidate,
    /// Default constraints that were dropped because no candidate meets them.
    pub dropped: Vec<Condition>,
    /// Best single change according to the predecessor system's method, with its estimate by this engine.
    pub hill_climb: Candidate,
    /// Extent of the search.
    pub extent: SearchExtent,
}

impl Optimum {
    /// Reasons why a candidate is not a valid result: its verdict, or the violated constraints in effect. Empty if it
    /// is valid.
    #[must_use]
    pub fn objections(&self, problem: &Problem<'_>, candidate: &Candidate) -> Vec<String> {
        if let Some(detail) = candidate.estimate.detail.as_ref().filter(|detail| !detail.verdict.fits()) {
            return vec![detail.verdict.describe()];
        }
        let in_effect = problem.conditions.iter().filter(|condition| !self.dropped.contains(condition));
        in_effect
            .filter(|condition| !condition.holds(&candidate.estimate, &candidate.scenario))
            .map(|condition| match condition {
                Condition::Metric(metric, ..) => {
                    let value = candidate.value(metric).map_or_else(|| "–".to_owned(), |value| metric.show(value));
                    format!("{condition} is violated: {value}")
                }
                _ => format!("{condition} is violated"),
            })
            .collect()
    }
}

/// Latency metrics, the loosest p99 limit of the interactive services in MLPerf Inference v5.0, ms (Llama 3.1 405B: 6 s
/// TTFT; Llama 2 70B: 200 ms TPOT), and the metrics whose constraints also limit the latency.
const LATENCY_WARNING_LIMITS: [(&Metric, f64, &[MetricId]); 2] =
    [(MetricId::TtftMs.metric(), 6000.0, &LIMITING_TTFT), (MetricId::TpotMs.metric(), 200.0, &LIMITING_TPOT)];

impl Optimum {
    /// Warns of very long latencies of the best candidate that no constraint limits, and of the shared calibration.
    #[must_use]
    pub fn warnings(&self, problem: &Problem<'_>) -> Vec<String> {
        let Some(best) = &self.best else { return Vec::new() };
        let mut warnings = Vec::new();
        if best.scenario.corrections.is_some() {
            warnings.push(
                "all candidates have the calibration of the starting point, so that configurations without measurements \
                 have no advantage; the estimate of the best one in `atlas run` may differ"
                    .to_owned(),
            );
        }
        for (metric, limit, limiting) in LATENCY_WARNING_LIMITS {
            let limits = |metric: &Metric| limiting.contains(&metric.id);
            let mut in_effect = problem.conditions.iter().filter(|condition| !self.dropped.contains(condition));
            let limited = in_effect.any(|condition| match condition {
                Condition::Metric(metric, ..) => limits(metric),
                _ => false,
            });
            if limited || limits(problem.objective) || !metric.applies_to(&best.scenario) {
                continue;
            }
            if let Some(value) = best.value(metric).filter(|value| *value > limit) {
                warnings.push(format!(
                    "{} is now {} because no constraint bounds it; the loosest limit in MLPerf Inference is {}",
                    metric.label,
                    metric.show(value),
                    metric.show(limit)
                ));
            }
        }
        warnings
    }
}

/// Next best candidates, in order, after reverting changes that they do not need: without duplicates, and none better
/// than the best.
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

/// Pareto front, without duplicates and dominated candidates.
fn pareto_front(problem: &Problem<'_>, tally: &Tally) -> Vec<Candidate> {
    let scores = |candidate: &Candidate| -> Vec<f64> {
        problem.front.iter().map(|metric| score(metric, &candidate.estimate, &candidate.scenario)).collect()
    };
    let dominates = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| a <= b);
    let mut kept: Vec<(Vec<f64>, Candidate)> = Vec::new();
    for pareto in &tally.front {
        let candidate = minimal_changes(problem, pareto.point, &problem.front);
        let scores = scores(&candidate);
        if problem.min_gain > 0.0 && kept.iter().any(|(known, _)| dominates(known, &scores)) {
            continue;
        }
        kept.retain(|(known, _)| problem.min_gain <= 0.0 || !dominates(&scores, known));
        kept.push((scores, candidate));
    }
    kept.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Result without a search, since no candidate can run.
pub(super) fn not_searched(problem: &Problem<'_>, verdict: Verdict, began: Instant) -> Optimum {
    let extent = SearchExtent {
        space: problem.space.size(),
        min_gain: problem.min_gain,
        admissible: 0,
        estimated: 0,
        proof: Proof::Exhaustive,
        seconds: 0.0,
    };
    Optimum { common_verdict: Some(verdict), ..optimum_of(problem, Tally::new(problem), extent, began) }
}

impl Optimum {
    /// Why there is no best candidate, in one sentence.
    #[must_use]
    pub fn why_none(&self) -> String {
        let Some(verdict) = self.common_verdict else { return "no candidate meets all constraints".to_owned() };
        let remedy = match verdict {
            Verdict::Format { instead, .. } | Verdict::SoftwareFormat { instead, .. } if !instead.is_empty() => {
                format!("; search with precision={instead}, which it supports, or see `atlas advise`")
            }
            _ => "; search with another precision, see `atlas advise`".to_owned(),
        };
        let verdict = verdict.describe();
        let reason = verdict.split_once("; ").map_or(verdict.as_str(), |(reason, _)| reason);
        format!("no candidate can run: {reason}{remedy}")
    }
}

/// Converts the tally to the result.
pub(super) fn optimum_of(problem: &Problem<'_>, tally: Tally, extent: SearchExtent, began: Instant) -> Optimum {
    let mut ranked = tally.top.iter().map(|ranked| minimal_changes(problem, ranked.point, &[problem.objective]));
    let best = ranked.next();
    let runners_up = distinct(problem, best.as_ref(), ranked);
    let best_score = tally.top.first().map_or(f64::INFINITY, |best| best.score);
    let mut front = pareto_front(problem, &tally);
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
    let constraints = std::iter::once(Condition::Fits).chain(problem.conditions.iter().cloned());
    let margin = if best_score.is_finite() { problem.min_gain * best_score.abs() } else { 0.0 };
    let better = |ranked: &Ranked| ranked.score < best_score - margin;
    let conditions = constraints.zip(&tally.bound).map(|(condition, (alone, removed, without))| {
        let conditions = problem.conditions.iter().filter(|other| **other != condition).cloned().collect();
        // Without the `fits` constraint, do not revert changes: the candidate cannot run.
        let min_gain = if condition == Condition::Fits { 0.0 } else { problem.min_gain };
        let relaxed = Problem { conditions, min_gain, ..problem.clone() };
        Bound {
            what: condition.to_string(),
            removed: u128::from(*removed),
            alone: Some(*alone),
            without: without.filter(better).map(|ranked| minimal_changes(&relaxed, ranked.point, &[problem.objective])),
        }
    });
    let bounds = rules.chain(conditions).collect();
    // The predecessor's method ignores schedules and supports one constraint, on p99, in inference only.
    let sla = problem.conditions.iter().find_map(|condition| match condition {
        Condition::Metric(metric, _, bound) if metric.id == MetricId::P99Ms => Some(*bound),
        _ => None,
    });
    let climbed = hill_climb(problem.requested, problem.parts, sla.unwrap_or(f64::INFINITY));
    Optimum {
        best,
        runners_up,
        common_verdict: None,
        front,
        bounds,
        start: Candidate::of(problem.requested.clone(), problem.requested),
        dropped: Vec::new(),
        hill_climb: Candidate::of(climbed.scenario, problem.requested),
        extent: SearchExtent { estimated: tally.estimated, seconds: began.elapsed().as_secs_f64(), ..extent },
    }
}
