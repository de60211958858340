//! Overlays: help, finder, palette, dialogs.

use std::sync::Arc;

use crate::tui::dialogs::export::state::Export;
use crate::tui::dialogs::form::state::Form;
use crate::tui::dialogs::goal::state::GoalSeek;
use crate::tui::dialogs::palette::state::Command;
use crate::tui::dialogs::write_back::state::WritePlan;
use crate::tui::widgets::line::Line;
use atlas_plan::estimate::Metric;
use atlas_plan::knob::Knob;

/// An overlay.
#[derive(Debug, Clone, PartialEq)]
pub enum Overlay {
    /// All keys.
    Help {
        /// First row shown.
        scroll: usize,
    },
    /// Fuzzy search.
    Finder(Finder),
    /// Fuzzy search among commands.
    Palette(Palette),
    /// Goal seek: a wanted value, and the changes that reach it.
    Goal(GoalSeek),
    /// A new entry.
    Form(Form),
    /// The export dialog.
    Export(Export),
    /// The assistant: questions in words, and their answers.
    Assistant,
    /// The dialog before accelerators are detected.
    Detect,
    /// The list of tours.
    Demos {
        /// The row under the cursor.
        cursor: usize,
    },
    /// A change to files, shown before it is written.
    WriteBack {
        /// What would change.
        plan: Arc<WritePlan>,
        /// First row shown.
        scroll: usize,
    },
}

/// Something the finder can go to.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// A target.
    Target(Arc<str>),
    /// A workload.
    Workload(Arc<str>),
    /// A knob.
    Knob(Knob),
    /// A metric of the results.
    Metric(&'static Metric),
}

/// The palette: the typed text, and the matching commands, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Palette {
    /// The text.
    pub line: Line,
    /// The matches.
    pub matches: Vec<Command>,
    /// The row under the cursor.
    pub cursor: usize,
    /// Why the text is neither a command nor a question.
    pub trouble: Option<String>,
}

/// The finder: the typed text, and its matches, best first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Finder {
    /// The text.
    pub line: Line,
    /// The matches.
    pub matches: Vec<Place>,
    /// The row under the cursor.
    pub cursor: usize,
}

/// Matches of the last search, and the current one.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchMatches {
    pub(in crate::tui) matches: Vec<Place>,
    pub(in crate::tui) at: usize,
}
