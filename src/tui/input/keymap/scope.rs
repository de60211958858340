//! The modes in which a binding applies.

use super::mode::Mode;
use crate::demo::View;

/// The modes in which a binding applies.
#[derive(Debug, Clone, Copy)]
pub enum Scope {
    /// These modes.
    Modes(&'static [Mode]),
    /// These views.
    Views(&'static [View]),
    /// All views except the panes.
    AllViews,
    /// The panes, all views, and these modes.
    Screens(&'static [Mode]),
    /// All modes.
    Everywhere,
}

/// A key that works in at least this many modes is listed by topic rather than by mode.
const GENERAL: usize = 4;

impl Scope {
    /// Whether a mode belongs to it.
    #[must_use]
    pub fn contains(self, mode: Mode) -> bool {
        match (self, mode) {
            (Scope::Modes(modes), _) => modes.contains(&mode),
            (Scope::Views(views), Mode::View(view)) => views.contains(&view),
            (Scope::AllViews, _) => matches!(mode, Mode::View(_)),
            (Scope::Screens(more), _) => mode.is_screen() || more.contains(&mode),
            (Scope::Everywhere, _) => true,
            (Scope::Views(_), _) => false,
        }
    }

    /// Whether the help lists its keys by topic, because they work in many modes.
    #[must_use]
    pub fn is_general(self) -> bool {
        match self {
            Scope::Modes(modes) => modes.len() >= GENERAL,
            Scope::Views(views) => views.len() >= GENERAL,
            Scope::AllViews | Scope::Screens(_) | Scope::Everywhere => true,
        }
    }
}
