//! The document of a tour: what is said, done and expected, step by step.

use crate::tui::panels::state::Panel;
use std::sync::Arc;

use super::expect::Expect;
use atlas_document::{Origin, Position};
use atlas_plan::knob::Knob;

/// The latency bound of the optimizer where a script states none, ms: the predecessor system's default.
pub const SLA_P99_MS: f64 = 100.0;

/// A guided tour.
#[derive(Debug, Clone, PartialEq)]
pub struct Demo {
    /// Unique name.
    pub name: Arc<str>,
    /// Its title on screens and reports.
    pub title: String,
    /// What it teaches.
    pub description: Option<String>,
    /// Its place among the tours that ship: the smaller the earlier.
    pub order: f64,
    /// The heading of the tours that stand behind all others, where it is one of those.
    pub section: Option<String>,
    /// Whether it is played on the user's own target and workload. Without own files, on those below.
    pub own_files: bool,
    /// The targets its scenario is run over; the first one is on the stage when it begins.
    pub targets: Vec<Arc<str>>,
    /// The workload of its scenario.
    pub workload: Arc<str>,
    /// Highest p99 the optimizer may choose, ms.
    pub sla_p99_ms: f64,
    /// Its steps, at least one.
    pub steps: Vec<Step>,
    /// Where it was written.
    pub origin: Origin,
}

/// One step of a tour.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Its heading.
    pub title: String,
    /// The narration, white space folded.
    pub say: String,
    /// What is done, in order, before it is shown.
    pub actions: Vec<Action>,
    /// What must hold then.
    pub expects: Vec<Expect>,
    /// Where it was written.
    pub at: Position,
}

/// Something a step does to the stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Puts a target on the stage; knobs that were changed stay changed.
    SelectTarget(Arc<str>),
    /// Puts a workload on the stage; knobs that were changed stay changed.
    SelectWorkload(Arc<str>),
    /// Sets a knob. The text is parsed when it is played, since the profile says which fabrics there are.
    Set(Knob, String),
    /// Turns knobs back to the files' values.
    Reset(Reset),
    /// Shows a screen; `Help` lies over the one that is shown, every other view closes it.
    View(View),
    /// Marks targets for the comparison.
    Mark(Vec<Arc<str>>),
    /// Takes marks away.
    Unmark(Vec<Arc<str>>),
    /// Makes what is on the stage the baseline.
    SetBaseline,
    /// Makes the files' values the baseline again.
    ClearBaseline,
    /// Moves to a pane of the main screen.
    Focus(Pane),
}

/// Which knobs go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reset {
    /// All of them.
    All,
    /// These.
    Knobs(Vec<Knob>),
}

/// A screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum View {
    /// The panes.
    #[default]
    Main,
    /// Every target at its best under the same constraints.
    Race,
    /// Targets side by side, with the same knobs.
    Compare,
    /// Where time and memory go.
    Breakdown,
    /// A figure over one or two knobs.
    Sweep,
    /// The best compromises between two figures.
    Frontier,
    /// Which knob and which hardware number matter most.
    Sensitivity,
    /// The best knobs for a goal under constraints.
    Optimum,
    /// What happens when, as it was simulated.
    Timeline,
    /// What would make it better.
    Advice,
    /// Where a figure comes from.
    Explain,
    /// The schedule, phase by phase.
    Schedule,
    /// Complaints about the files.
    Problems,
    /// How the scenario differs from another tab's, or from the baseline.
    Diff,
    /// Measured rows alongside predictions.
    Measurements,
    /// A job, the history, or files.
    Panel(Panel),
    /// All keys.
    Help,
}

impl View {
    /// All of them by the names scripts use.
    pub const NAMES: [(&'static str, View); 16] = [
        ("main", View::Main),
        ("race", View::Race),
        ("compare", View::Compare),
        ("breakdown", View::Breakdown),
        ("sweep", View::Sweep),
        ("frontier", View::Frontier),
        ("sensitivity", View::Sensitivity),
        ("optimize", View::Optimum),
        ("timeline", View::Timeline),
        ("advice", View::Advice),
        ("explain", View::Explain),
        ("schedule", View::Schedule),
        ("problems", View::Problems),
        ("diff", View::Diff),
        ("measurements", View::Measurements),
        ("help", View::Help),
    ];

    /// The name of the one view that scripts, which have a single scenario, do not know.
    const DIFF: &'static str = "diff";

    /// The view of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<View> {
        let known = View::NAMES.iter().find(|(known, _)| *known == name).map(|(_, view)| *view);
        let panel = || Panel::ALL.into_iter().find(|panel| panel.name() == name).map(View::Panel);
        known.or_else(|| (name == View::DIFF).then_some(View::Diff)).or_else(panel)
    }

    /// Its name, in scripts and elsewhere.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            View::Diff => return View::DIFF,
            View::Panel(panel) => return panel.name(),
            _ => {}
        }
        View::NAMES.iter().find(|(_, view)| *view == self).map_or("main", |(name, _)| name)
    }
}

/// A pane of the main screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pane {
    /// What one can rent or own.
    #[default]
    Targets,
    /// What it is to do.
    Workloads,
    /// What can be changed.
    Knobs,
    /// What comes out.
    Results,
}

impl Pane {
    /// All of them by the names scripts use.
    pub const NAMES: [(&'static str, Pane); 4] = [
        ("targets", Pane::Targets),
        ("workloads", Pane::Workloads),
        ("knobs", Pane::Knobs),
        ("results", Pane::Results),
    ];
}
