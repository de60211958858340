//! State of the search for the best knobs.

use crate::demo::Setup;
use crate::tui::widgets::line::Line;
use atlas_plan::estimate::{Metric, MetricId};
use atlas_plan::search::Condition;
use atlas_plan::search::optimize::Candidate;
use atlas_plan::search::optimize::Optimum;
use std::collections::BTreeMap;

/// The form.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OptimizerForm {
    /// Index of the objective among those that apply.
    pub objective: usize,
    /// Bounds set by the user, by metric; `None` if the user removed the default. Other metrics have their defaults.
    pub bounds: BTreeMap<MetricId, Option<Condition>>,
    /// Whether accelerators may stay idle.
    pub idle: bool,
    /// A bound being typed, and why it is invalid.
    pub typing: Option<(Line, Option<String>)>,
}

/// The query of the view.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Generation of the scenario.
    pub generation: u64,
    /// The objective.
    pub objective: &'static Metric,
    /// Constraints besides the defaults.
    pub conditions: Vec<Condition>,
    /// Metrics whose default bound was removed.
    pub without: Vec<MetricId>,
    /// Whether accelerators may stay idle.
    pub idle: bool,
}

/// The result of a search.
#[derive(Debug, Clone)]
pub struct SearchResult {
    /// The answer of the search.
    pub optimum: Optimum,
    /// The best candidate and its runners-up, each with its setup.
    pub candidates: Vec<(Setup, Candidate)>,
    /// Warnings about side effects of the best candidate.
    pub warnings: Vec<String>,
    /// The default bounds that were kept or dropped, in words.
    pub defaults: String,
    /// The setup at which the search started.
    pub of: Setup,
}
