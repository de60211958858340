//! Bindings, and those of a view.

use super::Action;
use super::mode::Mode;

/// Keys with the same action.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// The keys, as the help writes them: `j`, `Ctrl-R`, `Shift-Tab`, `→`; `vd` is `d` after `v`.
    pub keys: &'static [&'static str],
    /// Their action.
    pub action: Action,
    /// One line for the help.
    pub help: &'static str,
    /// Short text for the footer, if it is shown there.
    pub hint: Option<&'static str>,
}

/// Returns a binding: its keys, action, help and hint.
pub const fn bind(
    keys: &'static [&'static str],
    action: Action,
    help: &'static str,
    hint: Option<&'static str>,
) -> Binding {
    Binding { keys, action, help, hint }
}

/// Keys of a view.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// Keys of the view itself.
    Own(&'static [Binding]),
    /// Keys of modes that belong to the view: panes, or typing a text.
    In(&'static [Mode], &'static [Binding]),
}

impl Keys {
    /// Returns the modes of the view in which the keys apply, other than that of the view itself.
    pub(super) fn modes(self) -> &'static [Mode] {
        match self {
            Keys::Own(_) => &[],
            Keys::In(modes, _) => modes,
        }
    }
}

/// Keys of lists whose help is the same everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedKeys {
    /// `/` filters the rows, and `f` finds a target, workload or knob.
    Filter,
    /// `/` finds a target, workload or knob.
    Find,
    /// `o` sorts by the next column.
    Sort,
}

/// Where the footer shows the keys of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before Esc.
    BeforeEsc,
    /// After Esc.
    AfterEsc,
}
