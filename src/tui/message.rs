//! Messages to the application, and the effects that it requests.

use std::path::PathBuf;
use std::sync::Arc;

use crossterm::event::{KeyEvent, MouseEvent};

use crate::demo::Tours;
use crate::theme::Theme;
use crate::tui::dialogs::export::state::Export;
use crate::tui::dialogs::write_back::state::WritePlan;
use crate::tui::views::measurements::state::Proposal;
use crate::tui::work::job::{Order, Product};
use crate::tui::work::query::Progress;
use atlas_config::library::Library;
use atlas_document::Diagnostics;
use atlas_evidence::calibrate::Observation;

/// An event that the application handles.
#[derive(Debug, Clone)]
pub enum Message {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// A mouse button or the wheel was used.
    Mouse(MouseEvent),
    /// The terminal now has this many columns and rows.
    Resize(u16, u16),
    /// The files were read again.
    Reloaded(Arc<Library>, Tours, Vec<Arc<Theme>>, Diagnostics),
    /// Measurements were read: the rows, and errors.
    Measured(Arc<Vec<Observation>>, Vec<String>),
    /// An effect succeeded; the text is for the user.
    Done(String),
    /// An effect failed; the text says why.
    Failed(String),
    /// A view was not exported: the reason, and whether it is only that the file exists.
    NotExported {
        /// The dialog.
        dialog: Box<Export>,
        /// Why nothing was written.
        why: String,
        /// Whether the file exists.
        exists: bool,
    },
    /// A timer expired.
    Expired(Timer),
    /// Progress of a work order, by its serial number.
    Progress(u64, Progress),
    /// The result of a work order, by its serial number.
    WorkFinished(u64, Result<Product, String>),
}

/// Purpose of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timer {
    /// Clears the status line with this serial number. An old timer must not clear a new line.
    Status(u64),
    /// Ends the highlight of entries that changed on disk, by serial number.
    Flash(u64),
    /// Starts the query of the outlook, by serial number.
    Outlook(u64),
    /// Reads a watched log again, by the number of earlier reads.
    Watch(u64),
    /// Queries idle nodes again, by the number of earlier queries.
    Idle(u64),
    /// Advances the tour automatically, from the step with this index.
    Auto(usize),
}

/// Requests of [`super::update`] to the runtime: everything with side effects.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// End the program.
    Quit,
    /// Suspend the program until `fg`.
    Suspend,
    /// Redraw every cell.
    Repaint,
    /// Read the files again.
    Reload,
    /// Write the record of the scenario on the screen.
    Save(Box<RecordToSave>),
    /// Open a file in `$VISUAL` or `$EDITOR` at a line.
    Edit {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
    },
    /// Write a shipped file into the working directory, if it does not exist there yet, and open it as [`Effect::Edit`]
    /// does.
    CopyAndEdit {
        /// Path of the shipped file, and of its copy relative to the working directory.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
    },
    /// Copy a text to the clipboard.
    Copy {
        /// The text.
        text: String,
        /// Description of the text for the status line.
        what: String,
    },
    /// Export the current view as chosen in the dialog.
    Export(Box<Export>),
    /// Write files whose changes the user has reviewed.
    WriteBack(Arc<WritePlan>),
    /// Write the profile that was proposed.
    WriteProfile(Arc<Proposal>),
    /// Send [`Message::Expired`] after a delay.
    After {
        /// Delay, ms.
        ms: u64,
        /// Purpose.
        timer: Timer,
    },
    /// Turn bracketed paste on or off.
    Paste(bool),
    /// Run long work on a thread; see [`super::work`].
    Work(Order),
    /// Cancel the order with that serial number.
    Cancel(u64),
}

/// A record to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordToSave {
    /// Directory.
    pub dir: PathBuf,
    /// Name of the file.
    pub name: String,
    /// Contents of the file.
    pub json: String,
}
