//! A mode: the state that determines which keys are bound.

use crate::demo::View;

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
    /// A view is shown that covers the panes.
    View(View),
    /// A question is being typed.
    Asking,
    /// A bound is being typed.
    Bounding,
    /// A line is being typed at the bottom of the screen.
    Prompting,
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

const PANES: [Mode; 4] = [Mode::Targets, Mode::Workloads, Mode::Knobs, Mode::Results];

/// Modes of dialogs, of typing, of the tour and of second keys.
const OTHERS: [Mode; 15] = [
    Mode::Prompting,
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

impl Mode {
    /// Returns all modes, in the order of the help.
    pub fn all() -> impl Iterator<Item = Mode> {
        let views = View::ALL.iter().filter(|view| **view != View::Main).flat_map(|view| {
            let typing = view.spec().keys.iter().flat_map(|keys| keys.modes()).copied();
            std::iter::once(Mode::View(*view)).chain(typing)
        });
        PANES.into_iter().chain(views).chain(OTHERS)
    }

    /// The view that is shown, if no dialog is above it. The overview has a mode for each pane.
    pub(super) fn view(self) -> Option<View> {
        match self {
            Mode::View(view) => Some(view),
            _ => PANES.contains(&self).then_some(View::Main),
        }
    }

    /// Whether the mode is that of a pane or a view, without a dialog above it.
    #[must_use]
    pub fn is_screen(self) -> bool {
        self.view().is_some()
    }

    /// Its heading in the help.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mode::Targets => "Targets",
            Mode::Workloads => "Workloads",
            Mode::Knobs => "Knobs",
            Mode::Results => "Results",
            Mode::Asking => "Typing a question",
            Mode::Bounding => "Typing a bound",
            Mode::Prompting => "Typing a name or a filter",
            Mode::View(view) => view.title(),
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
