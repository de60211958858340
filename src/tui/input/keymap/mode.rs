//! A mode: the state that determines which keys are bound.

use crate::tui::panels::state::Panel;

/// A mode: the state that determines which keys are bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The list of targets has the focus.
    Targets,
    /// The list of workloads has the focus.
    Workloads,
    /// The knobs have the focus.
    Knobs,
    /// The results have the focus.
    Results,
    /// The leaderboard.
    Race,
    /// A question is being typed.
    Asking,
    /// The side-by-side comparison.
    Compare,
    /// The breakdown of time and memory.
    Breakdown,
    /// A metric over one or two knobs.
    Sweep,
    /// The Pareto frontier of two metrics.
    Frontier,
    /// The sensitivity to knobs and hardware parameters.
    Sensitivity,
    /// A goal, constraints, and the best knobs.
    Optimum,
    /// A bound is being typed.
    Bounding,
    /// The timeline of a simulation.
    Timeline,
    /// Advice.
    Advice,
    /// The equations and inputs of a metric.
    Explain,
    /// The table of phases.
    Schedule,
    /// Problems in files.
    Problems,
    /// The differences between two scenarios.
    Diff,
    /// A line is being typed at the bottom of the screen.
    Prompting,
    /// Measured rows beside predictions.
    Measurements,
    /// A job, the history, or files.
    Panel(Panel),
    /// The export dialog is open.
    Exporting,
    /// A form is being filled in.
    Filling,
    /// A value is being typed.
    Editing,
    /// A wanted value is being typed.
    OptimizerForm,
    /// A question to the assistant is being typed.
    Conversing,
    /// The detection awaits the user's confirmation.
    Detecting,
    /// The finder is open.
    Finding,
    /// The palette of commands is open.
    Commanding,
    /// A change to a file awaits confirmation.
    Confirming,
    /// The help is open.
    Helping,
    /// The list of tours is open.
    Choosing,
    /// A tour is playing.
    Touring,
    /// `v` was pressed: the next key chooses a view.
    AfterV,
    /// `t` was pressed: the next key chooses a command for tabs.
    AfterT,
}

impl Mode {
    /// All modes.
    pub const ALL: [Mode; 40] = [
        Mode::Targets,
        Mode::Workloads,
        Mode::Knobs,
        Mode::Results,
        Mode::Race,
        Mode::Asking,
        Mode::Compare,
        Mode::Breakdown,
        Mode::Sweep,
        Mode::Frontier,
        Mode::Sensitivity,
        Mode::Optimum,
        Mode::Bounding,
        Mode::Timeline,
        Mode::Advice,
        Mode::Explain,
        Mode::Schedule,
        Mode::Problems,
        Mode::Diff,
        Mode::Prompting,
        Mode::Measurements,
        Mode::Panel(Panel::Watch),
        Mode::Panel(Panel::History),
        Mode::Panel(Panel::Launch),
        Mode::Panel(Panel::Releases),
        Mode::Panel(Panel::Fits),
        Mode::Exporting,
        Mode::Filling,
        Mode::Editing,
        Mode::OptimizerForm,
        Mode::Conversing,
        Mode::Detecting,
        Mode::Finding,
        Mode::Commanding,
        Mode::Confirming,
        Mode::Helping,
        Mode::Choosing,
        Mode::Touring,
        Mode::AfterV,
        Mode::AfterT,
    ];

    /// Its heading in the help.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Targets => "Targets",
            Mode::Workloads => "Workloads",
            Mode::Knobs => "Knobs",
            Mode::Results => "Results",
            Mode::Race => "Race",
            Mode::Asking => "Typing a question",
            Mode::Compare => "Compare",
            Mode::Breakdown => "Breakdown",
            Mode::Sweep => "Sweep",
            Mode::Frontier => "Frontier",
            Mode::Sensitivity => "Sensitivity",
            Mode::Optimum => "Optimize",
            Mode::Bounding => "Typing a bound",
            Mode::Timeline => "Timeline",
            Mode::Advice => "Advice",
            Mode::Explain => "Explain",
            Mode::Schedule => "Schedule",
            Mode::Problems => "Problems",
            Mode::Diff => "Difference",
            Mode::Prompting => "Typing a name or a filter",
            Mode::Measurements => "Measurements",
            Mode::Panel(panel) => panel.title(),
            Mode::Exporting => "Export",
            Mode::Filling => "Form",
            Mode::Editing => "Typing a value",
            Mode::OptimizerForm => "Goal seek",
            Mode::Conversing => "Assistant",
            Mode::Detecting => "Detect",
            Mode::Finding => "Find",
            Mode::Commanding => "Commands",
            Mode::Confirming => "Write to the file",
            Mode::Helping => "Help",
            Mode::Choosing => "Tours",
            Mode::Touring => "Tour",
            Mode::AfterV => "Other views",
            Mode::AfterT => "Tabs",
        }
    }

    /// The first key of the sequence, if the mode handles the second one.
    #[must_use]
    pub fn first_key(self) -> Option<&'static str> {
        match self {
            Mode::AfterV => Some("v"),
            Mode::AfterT => Some("t"),
            _ => None,
        }
    }

    /// Whether keys type text in this mode, so that only keys with a modifier or a name are commands.
    #[must_use]
    pub fn types(self) -> bool {
        matches!(
            self,
            Mode::Editing
                | Mode::OptimizerForm
                | Mode::Asking
                | Mode::Conversing
                | Mode::Bounding
                | Mode::Finding
                | Mode::Commanding
                | Mode::Prompting
                | Mode::Exporting
                | Mode::Filling
        )
    }
}
