//! The modes in which a binding applies.

use super::binding::SharedKeys;
use super::mode::Mode;
use crate::demo::View;

/// The modes in which a binding applies.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    /// These modes.
    Modes(&'static [Mode]),
    /// This view.
    View(View),
    /// All views except the panes.
    AllViews,
    /// The panes and views that have these keys.
    Shared(SharedKeys),
    /// The panes, all views, and these modes.
    Screens(&'static [Mode]),
    /// All modes.
    Everywhere,
}

/// A key that works in at least this many modes is listed by topic rather than by mode.
const GENERAL: usize = 4;

impl Scope {
    /// Whether a mode belongs to it.
    pub(super) fn contains(self, mode: Mode) -> bool {
        match (self, mode) {
            (Scope::Modes(modes), _) => modes.contains(&mode),
            (Scope::View(view), _) => mode == Mode::View(view),
            (Scope::AllViews, _) => matches!(mode, Mode::View(_)),
            (Scope::Screens(more), _) => mode.is_screen() || more.contains(&mode),
            (Scope::Shared(keys), _) => mode.view().is_some_and(|view| view.spec().shared_keys.contains(&keys)),
            (Scope::Everywhere, _) => true,
        }
    }

    /// Whether the help lists its keys by topic, because they work in many modes.
    pub(super) fn is_general(self) -> bool {
        match self {
            Scope::Modes(modes) => modes.len() >= GENERAL,
            Scope::View(_) => false,
            Scope::AllViews | Scope::Shared(_) | Scope::Screens(_) | Scope::Everywhere => true,
        }
    }
}
