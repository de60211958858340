//! A mode: where the bindings of keys differ.

use crate::tui::panels::state::Panel;

/// A mode: where the bindings of keys differ.
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
    /// Where time and memory go.
    Breakdown,
    /// A figure over one or two knobs.
    Sweep,
    /// Pareto frontier between two figures.
    Frontier,
    /// What matters most.
    Sensitivity,
    /// A goal, constraints, and the best knobs.
    Optimum,
    /// A bound is being typed.
    Bounding,
    /// What happens when.
    Timeline,
    /// Advice.
    Advice,
    /// Where a figure comes from.
    Explain,
    /// The table of phases.
    Schedule,
    /// Problems in files.
    Problems,
    /// How two scenarios differ.
    Diff,
    /// A line is being typed at the foot of the screen.
    Prompting,
    /// Measured rows beside predictions.
    Measurements,
    /// A job, the history, or files.
    Panel(Panel),
    /// The view is on its way to a file.
    Exporting,
    /// Filling a form in.
    Filling,
    /// A value is being typed.
    Editing,
    /// A wanted value is being typed.
    Seeking,
    /// A question in words is being typed.
    Conversing,
    /// Detection waits for the user to agree.
    Detecting,
    /// The finder is open.
    Finding,
    /// The palette of commands is open.
    Commanding,
    /// A change to a file is shown before it is made.
    Confirming,
    /// The help is open.
    Helping,
    /// The list of tours is open.
    Choosing,
    /// A tour is playing.
    Touring,
    /// `v` was pressed: the next key chooses a view.
    AfterV,
    /// `t` was pressed: the next key does something with tabs.
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
        Mode::Seeking,
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
            Mode::Seeking => "Goal seek",
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

    /// The key that was pressed before, if the mode is that of a second key.
    #[must_use]
    pub fn first_key(self) -> Option<&'static str> {
        match self {
            Mode::AfterV => Some("v"),
            Mode::AfterT => Some("t"),
            _ => None,
        }
    }

    /// Whether keys type text here, so that only those with a modifier or a name are commands.
    #[must_use]
    pub fn types(self) -> bool {
        matches!(
            self,
            Mode::Editing
                | Mode::Seeking
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
