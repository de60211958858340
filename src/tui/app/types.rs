//! What the state of the application is made of.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Pane, Setup};
use crate::demo::Demo;
use crate::tui::line::Line;
use crate::tui::scenarios::{self, TabId};
use atlas_plan::estimate::Estimate;
use atlas_plan::knob::{Knob, Setting};
use atlas_plan::scenario::{Parts, Scenario};

/// What undo brings back.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Snapshot {
    /// The scenario.
    pub setup: Setup,
    /// Targets marked for the comparison.
    pub marks: BTreeSet<Arc<str>>,
    /// What deltas are against; the files' values of the same target and workload where unset.
    pub baseline: Option<Setup>,
    /// Which tab was pinned, where the change that followed was of that.
    pub pinned: Option<Option<TabId>>,
    /// How the tab was called, where the change that followed was of that.
    pub name: Option<Option<Arc<str>>>,
}

impl Snapshot {
    /// Bytes that it takes, about: what grows with it. Texts are shared with others and count all the same.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let setup = |setup: &Setup| setup.overrides.len() * 2 * size_of::<(Knob, Setting)>() + setup.target.len();
        let marks: usize = self.marks.iter().map(|mark| mark.len() + 2 * size_of::<Arc<str>>()).sum();
        size_of::<Snapshot>() + marks + setup(&self.setup) + self.baseline.as_ref().map_or(0, setup)
    }
}

/// The panes in the order Tab goes.
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

/// A value being typed.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// Of which knob.
    pub knob: Knob,
    /// What is typed.
    pub line: Line,
    /// What the scenario was before.
    pub before: Setup,
    /// Why what is typed is no value.
    pub error: Option<String>,
}

/// A tour being played.
#[derive(Debug, Clone)]
pub struct Tour {
    /// The script.
    pub demo: Arc<Demo>,
    /// The step shown.
    pub step: usize,
    /// What was before, to be put back.
    pub before: Snapshot,
    /// Where one was before.
    pub place: scenarios::Place,
    /// How the step's expectations came out: held or not, and what was compared.
    pub outcomes: Vec<(bool, String)>,
    /// What went wrong with the step's actions.
    pub error: Option<String>,
    /// Goes on by itself after so many ms.
    pub auto_ms: Option<u64>,
}

/// The line of status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// What it says.
    pub text: String,
    /// Errors stay until Esc; notes go by themselves.
    pub error: bool,
    /// Serial number.
    pub serial: u64,
}

/// What stands out for a moment after the files were read anew.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flash {
    /// Targets and workloads.
    pub entries: BTreeSet<Arc<str>>,
    /// Knobs whose value is another.
    pub knobs: BTreeSet<Knob>,
    /// Metrics, by name, whose figure is another.
    pub metrics: BTreeSet<&'static str>,
}

/// What stands above the figures of the results, and can be explained as they can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headline {
    /// Whether it can run.
    Verdict,
    /// What bounds it.
    Limits,
}

/// What an explanation is of, where that is not the scenario on the screen: what was predicted for a measured row.
#[derive(Debug, Clone)]
pub struct Subject {
    /// What it is, in words.
    pub name: String,
    /// The scenario.
    pub scenario: Scenario,
    /// Where its numbers come from.
    pub parts: Parts,
    /// What the engine says of it.
    pub estimate: Estimate,
}

/// What kind of change went before: equal ones in a row are one step of undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Steps of one knob.
    Step(Knob),
    /// Moving along a list.
    Walk(Pane),
    /// A tab was closed; undo brings it back.
    Closed,
    /// Anything else: a step of its own.
    Single,
}
