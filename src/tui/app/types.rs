//! Types of the state.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::demo::Demo;
use crate::demo::Pane;
use crate::demo::Setup;
use crate::tui::views::scenarios::state::Place;
use crate::tui::widgets::line::Line;
use atlas_plan::estimate::{Estimate, MetricId};
use atlas_plan::knob::Knob;
use atlas_plan::scenario::{Parts, Scenario};

/// The panes, in the order in which Tab moves the focus.
pub const PANES: [Pane; 4] = [Pane::Targets, Pane::Workloads, Pane::Knobs, Pane::Results];

/// A pane's title.
#[must_use]
pub fn title(pane: Pane) -> &'static str {
    match pane {
        Pane::Targets => "Targets",
        Pane::Workloads => "Workloads",
        Pane::Knobs => "Knobs",
        Pane::Results => "Results",
    }
}

/// The value being edited.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// The knob.
    pub knob: Knob,
    /// The text.
    pub line: Line,
    /// The scenario before the edit.
    pub before: Setup,
    /// Why the text is not a value.
    pub error: Option<String>,
}

/// The running tour.
#[derive(Debug, Clone)]
pub struct Tour {
    /// The script.
    pub demo: Arc<Demo>,
    /// The step shown.
    pub step: usize,
    /// The state to restore.
    pub before: Snapshot,
    /// The view to restore.
    pub place: Place,
    /// Results of the step's expectations: whether each holds, and what was compared.
    pub outcomes: Vec<(bool, String)>,
    /// Error of the step's actions.
    pub error: Option<String>,
    /// Advances automatically after this time, ms.
    pub auto_ms: Option<u64>,
}

/// The status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Its text.
    pub text: String,
    /// Errors stay until Esc; notes expire.
    pub error: bool,
    /// Serial number.
    pub serial: u64,
}

/// Entries that are highlighted after the files changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flash {
    /// Targets and workloads.
    pub entries: BTreeSet<Arc<str>>,
    /// Knobs whose value changed.
    pub knobs: BTreeSet<Knob>,
    /// Metrics whose value changed.
    pub metrics: BTreeSet<MetricId>,
}

/// A headline above the metrics of the results, which can be explained too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headline {
    /// Whether it can run.
    Verdict,
    /// The bottleneck.
    Limits,
}

/// The subject of an explanation other than the current scenario: the prediction for a measured row.
#[derive(Debug, Clone)]
pub struct MeasuredSubject {
    /// Its name.
    pub name: String,
    /// The scenario.
    pub scenario: Scenario,
    /// Target, workload, profile and catalog entries of the scenario.
    pub parts: Parts,
    /// The estimate.
    pub estimate: Estimate,
}

/// The kind of the previous change: consecutive ones of the same kind are one undo step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Steps of one knob.
    Step(Knob),
    /// Moving along a list.
    Movement(Pane),
    /// A tab was closed; undo brings it back.
    Closed,
    /// Anything else: a step of its own.
    Single,
}

/// The parts of the screen that have to be redrawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DirtyRegion {
    /// Everything.
    #[default]
    All,
    /// The body of the screen and the information line.
    View,
    /// One pane and the information line.
    Pane(Pane),
    /// The outlook.
    Outlook,
    /// Nothing.
    Nothing,
}

impl DirtyRegion {
    /// The parts that have to be redrawn after both.
    #[must_use]
    pub fn and(self, other: DirtyRegion) -> DirtyRegion {
        match (self, other) {
            (DirtyRegion::Nothing, only) | (only, DirtyRegion::Nothing) => only,
            (one, other) if one == other => one,
            _ => DirtyRegion::All,
        }
    }
}
