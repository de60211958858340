//! Decoded script of a tour: narration, actions and expectations of each step.

use std::sync::Arc;

use super::expect::Expect;
use super::views::View;
use atlas_document::{Origin, Position};
use atlas_plan::knob::Knob;

/// Default upper bound on p99 latency for the optimizer, in ms. This is the default of the predecessor system.
pub const SLA_P99_MS: f64 = 100.0;

/// A guided tour.
#[derive(Debug, Clone, PartialEq)]
pub struct Demo {
    /// Unique name.
    pub name: Arc<str>,
    /// Title on the screen and in reports.
    pub title: String,
    /// Description of the tour.
    pub description: Option<String>,
    /// Sort key among the shipped tours, in ascending order.
    pub order: f64,
    /// Heading under which the tour is listed. Tours with a section come after all others.
    pub section: Option<String>,
    /// Whether the tour uses the user's own target and workload. `targets` and `workload` are used if there are none.
    pub own_files: bool,
    /// Targets that the scenario is run on. The first one is selected when the tour starts.
    pub targets: Vec<Arc<str>>,
    /// The workload of its scenario.
    pub workload: Arc<str>,
    /// Upper bound on p99 latency for the optimizer, in ms.
    pub sla_p99_ms: f64,
    /// Its steps, at least one.
    pub steps: Vec<Step>,
    /// File and position of the script.
    pub origin: Origin,
}

/// One step of a tour.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// Heading of the step.
    pub title: String,
    /// Narration, with white space folded.
    pub say: String,
    /// Actions, applied in order before the step is shown.
    pub actions: Vec<Action>,
    /// Conditions that must hold after the actions.
    pub expects: Vec<Expect>,
    /// Position in the script.
    pub at: Position,
}

/// Action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Selects a target. Changed knobs stay changed.
    SelectTarget(Arc<str>),
    /// Selects a workload. Changed knobs stay changed.
    SelectWorkload(Arc<str>),
    /// Sets a knob. The text is parsed when the action is applied, because the valid fabrics depend on the profile.
    Set(Knob, String),
    /// Resets knobs to the values from the files.
    Reset(Reset),
    /// Shows a view.
    View(View),
    /// Opens the list of keys over the main screen, until the next view is shown.
    Help,
    /// Marks targets for the comparison.
    Mark(Vec<Arc<str>>),
    /// Unmarks targets.
    Unmark(Vec<Arc<str>>),
    /// Makes the current scenario the baseline.
    SetBaseline,
    /// Resets the baseline to the values from the files.
    ClearBaseline,
    /// Focuses a pane of the main screen.
    Focus(Pane),
}

impl Action {
    /// The words for what a step can show: the views, and the help.
    #[must_use]
    pub fn screens() -> Vec<(&'static str, Action)> {
        let views = View::ALL.iter().filter(|view| view.is_in_tours()).map(|view| (view.name(), Action::View(*view)));
        views.chain([("help", Action::Help)]).collect()
    }
}

/// Knobs to reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reset {
    /// All knobs.
    All,
    /// The listed knobs.
    Knobs(Vec<Knob>),
}

/// A pane of the main screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Pane {
    /// Targets.
    #[default]
    Targets,
    /// Workloads.
    Workloads,
    /// Knobs.
    Knobs,
    /// Metrics of the estimate.
    Results,
}

impl Pane {
    /// All panes by their names in scripts.
    pub const NAMES: [(&'static str, Pane); 4] = [
        ("targets", Pane::Targets),
        ("workloads", Pane::Workloads),
        ("knobs", Pane::Knobs),
        ("results", Pane::Results),
    ];
}
