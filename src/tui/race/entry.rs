//! What came out for a target, and how two of them rank.

use std::sync::Arc;

use crate::demo::Setup;
use atlas_evidence::support::Support;
use atlas_plan::estimate::{Estimate, Metric};
use atlas_plan::scenario::Scenario;
use atlas_plan::search::Condition;
use atlas_plan::search::condition::Relation;
use atlas_plan::search::figure;

/// A layout that a search chose.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    /// What leads there.
    pub setup: Setup,
    /// The scenario.
    pub scenario: Scenario,
    /// Its estimate.
    pub estimate: Estimate,
    /// The measured rows behind the figure that ranks, where rows can bear on it.
    pub evidence: Option<Support>,
}

impl Pick {
    /// A metric's value.
    #[must_use]
    pub fn value(&self, metric: &Metric) -> f64 {
        (metric.get)(&self.estimate, &self.scenario)
    }

    /// The ends between which nine measurements of ten lie, where that is known.
    #[must_use]
    pub fn interval(&self, metric: &Metric) -> Option<(f64, f64)> {
        metric.interval(&self.estimate, &self.scenario)
    }
}

/// What came out for a target.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The best that meets all constraints.
    Best(Box<Pick>),
    /// Nothing meets them: what comes nearest, and the constraint that it misses.
    Miss(Box<Pick>, Condition),
    /// There is nothing to rank, and why.
    Refused(String),
}

/// A target's result.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The target, with its nodes where the question set them.
    pub name: Arc<str>,
    /// What came out.
    pub outcome: Outcome,
}

impl Entry {
    /// Those that meet the constraints come first, then near misses, then the rest.
    #[must_use]
    pub fn class(&self) -> u8 {
        match self.outcome {
            Outcome::Best(_) => 0,
            Outcome::Miss(..) => 1,
            Outcome::Refused(_) => 2,
        }
    }

    /// A number that is the smaller the better within its class.
    #[must_use]
    pub fn rank(&self, objective: &Metric) -> f64 {
        match &self.outcome {
            Outcome::Best(pick) => figure::score(objective, &pick.estimate, &pick.scenario),
            Outcome::Miss(pick, condition) => missed_by(pick, condition),
            Outcome::Refused(_) => 0.0,
        }
    }

    /// The layout, where there is one.
    #[must_use]
    pub fn pick(&self) -> Option<&Pick> {
        match &self.outcome {
            Outcome::Best(pick) | Outcome::Miss(pick, _) => Some(pick),
            Outcome::Refused(_) => None,
        }
    }

    /// What leads to the layout.
    #[must_use]
    pub fn setup(&self) -> Option<&Setup> {
        self.pick().map(|pick| &pick.setup)
    }
}

/// By how much a layout misses a constraint, as a share of the bound.
#[must_use]
pub(super) fn missed_by(pick: &Pick, condition: &Condition) -> f64 {
    match condition {
        Condition::Figure(metric, _, bound) => (pick.value(metric) - bound).abs() / bound.abs().max(1e-12),
        Condition::Fits | Condition::Knob(..) => f64::INFINITY,
    }
}

/// By how much a layout keeps a constraint, as a share of the bound; negative where it does not.
#[must_use]
pub(super) fn margin(pick: &Pick, condition: &Condition) -> Option<f64> {
    let Condition::Figure(metric, relation, bound) = condition else { return None };
    let value = pick.value(metric);
    let room = match relation {
        Relation::AtMost | Relation::Below => bound - value,
        Relation::AtLeast | Relation::Above => value - bound,
        Relation::Equal | Relation::Different => return None,
    };
    Some(room / bound.abs().max(1e-12))
}

/// Whether the intervals of two layouts overlap: which of them is better is not known.
#[must_use]
pub(super) fn tied(a: &Pick, b: &Pick, metric: &Metric) -> bool {
    match (a.interval(metric), b.interval(metric)) {
        (Some((a_low, a_high)), Some((b_low, b_high))) => a_low <= b_high && b_low <= a_high,
        _ => a.value(metric) == b.value(metric),
    }
}
