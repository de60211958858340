//! Result of a target, and the ranking of results.

use std::sync::Arc;

use crate::demo::Setup;
use atlas_evidence::support::Support;
use atlas_plan::estimate::{Estimate, Metric};
use atlas_plan::scenario::Scenario;
use atlas_plan::search::Condition;
use atlas_plan::search::condition::Relation;
use atlas_plan::search::metric;

/// A layout that a search chose.
#[derive(Debug, Clone, PartialEq)]
pub struct ChosenLayout {
    /// Setup that leads to the layout.
    pub setup: Setup,
    /// The scenario.
    pub scenario: Scenario,
    /// Its estimate.
    pub estimate: Estimate,
    /// Measured rows that support the ranking metric, if there can be any.
    pub evidence: Option<Support>,
}

impl ChosenLayout {
    /// Returns the value of a metric.
    #[must_use]
    pub fn value(&self, metric: &Metric) -> Option<f64> {
        metric.value(&self.estimate, &self.scenario)
    }

    /// Returns the interval that contains nine of ten measurements, if known.
    #[must_use]
    pub fn interval(&self, metric: &Metric) -> Option<(f64, f64)> {
        metric.interval(&self.estimate, &self.scenario)
    }
}

/// Result of the search on a target.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// Best layout that meets all constraints.
    Best(Box<ChosenLayout>),
    /// No layout meets the constraints: the layout that comes closest, and the constraint that it violates.
    Violates(Box<ChosenLayout>, Condition),
    /// No layout can be ranked, and why.
    Refused(String),
}

/// Target with its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Name of the target, with the number of nodes if the question sets it.
    pub name: Arc<str>,
    /// Result of the search.
    pub outcome: Outcome,
}

impl Entry {
    /// Returns the primary sort key: first entries that meet the constraints, then near misses, then the rest.
    #[must_use]
    pub fn class(&self) -> u8 {
        match self.outcome {
            Outcome::Best(_) => 0,
            Outcome::Violates(..) => 1,
            Outcome::Refused(_) => 2,
        }
    }

    /// Returns the sort key within a class; smaller is better.
    #[must_use]
    pub fn rank(&self, objective: &Metric) -> f64 {
        match &self.outcome {
            Outcome::Best(pick) => metric::score(objective, &pick.estimate, &pick.scenario),
            Outcome::Violates(pick, condition) => relative_violation(pick, condition),
            Outcome::Refused(_) => 0.0,
        }
    }

    /// Returns the layout, if there is one.
    #[must_use]
    pub fn pick(&self) -> Option<&ChosenLayout> {
        match &self.outcome {
            Outcome::Best(pick) | Outcome::Violates(pick, _) => Some(pick),
            Outcome::Refused(_) => None,
        }
    }

    /// Returns the setup of the layout, if there is one.
    #[must_use]
    pub fn setup(&self) -> Option<&Setup> {
        self.pick().map(|pick| &pick.setup)
    }
}

/// Returns by how much a layout misses the bound of a constraint, relative to the bound.
#[must_use]
pub(super) fn relative_violation(pick: &ChosenLayout, condition: &Condition) -> f64 {
    match condition {
        Condition::Metric(metric, _, bound) => {
            pick.value(metric).map_or(f64::INFINITY, |value| (value - bound).abs() / bound.abs().max(1e-12))
        }
        Condition::Fits | Condition::Knob(..) => f64::INFINITY,
    }
}

/// Returns the distance of a layout from the bound of a constraint, relative to the bound. Negative if the bound is
/// violated.
#[must_use]
pub(super) fn margin(pick: &ChosenLayout, condition: &Condition) -> Option<f64> {
    let Condition::Metric(metric, relation, bound) = condition else { return None };
    let value = pick.value(metric)?;
    let room = match relation {
        Relation::AtMost | Relation::Below => bound - value,
        Relation::AtLeast | Relation::Above => value - bound,
        Relation::Equal | Relation::Different => return None,
    };
    Some(room / bound.abs().max(1e-12))
}

/// Whether the intervals of two layouts overlap, so that it is uncertain which one is better.
#[must_use]
pub(super) fn tied(a: &ChosenLayout, b: &ChosenLayout, metric: &Metric) -> bool {
    match (a.interval(metric), b.interval(metric)) {
        (Some((a_low, a_high)), Some((b_low, b_high))) => a_low <= b_high && b_low <= a_high,
        _ => a.value(metric) == b.value(metric),
    }
}

/// Number of rows, including the first, whose interval overlaps that of the first.
#[must_use]
pub(super) fn tied_rows(rows: &[&Entry], metric: &Metric) -> usize {
    let best = |entry: &&Entry| match &entry.outcome {
        Outcome::Best(pick) => Some(pick.as_ref().clone()),
        _ => None,
    };
    let Some(first) = rows.first().and_then(best) else { return 0 };
    rows.iter().take_while(|entry| best(entry).is_some_and(|pick| tied(&first, &pick, metric))).count()
}
