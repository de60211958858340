//! State of the export dialog.

use crate::tui::widgets::line::Line;
use atlas_report::document::DocumentFormat;
use std::path::PathBuf;

/// The dialog.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// Formats that this view can be exported to.
    pub kinds: Vec<DocumentFormat>,
    /// Index of the chosen format.
    pub chosen: usize,
    /// The name of the file.
    pub line: Line,
    /// Why the file cannot be written.
    pub error: Option<String>,
    /// Whether the file exists and the user has been warned, so that Enter replaces it.
    pub overwrite: bool,
}

impl Export {
    /// The format chosen.
    #[must_use]
    pub fn kind(&self) -> DocumentFormat {
        self.kinds.get(self.chosen).copied().unwrap_or_default()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(self.line.text().trim())
    }
}
