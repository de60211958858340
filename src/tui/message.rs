//! Everything that can happen to the application.

use std::path::PathBuf;
use std::sync::Arc;

use crossterm::event::{KeyEvent, MouseEvent};

use super::theme::Theme;
use crate::demo::Tours;
use crate::tui::export::state::Export;
use crate::tui::measured::state::Proposal;
use crate::tui::work::job::Order;
use crate::tui::work::job::Product;
use crate::tui::work::query::Progress;
use crate::tui::write_back::state::WritePlan;
use atlas_config::library::Library;
use atlas_document::Diagnostics;
use atlas_evidence::calibrate::Observation;

/// Something happened.
#[derive(Debug, Clone)]
pub enum Message {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// A click or the wheel.
    Mouse(MouseEvent),
    /// The terminal has this many columns and rows now.
    Resize(u16, u16),
    /// The files were read again.
    Reloaded(Arc<Library>, Tours, Vec<Arc<Theme>>, Diagnostics),
    /// Measurements were read: rows, and what could not be read.
    Measured(Arc<Vec<Observation>>, Vec<String>),
    /// An effect succeeded; the text is for the user.
    Done(String),
    /// An effect failed; the text says why.
    Failed(String),
    /// A view was not exported: the reason, and whether it is only that the file exists.
    NotExported(Box<Export>, String, bool),
    /// A timer expired.
    Expired(Timer),
    /// Progress of an order, by its serial number.
    Progress(u64, Progress),
    /// The result of an order, by its serial number.
    Worked(u64, Result<Product, String>),
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Timer {
    /// The line of status, by its serial number: an old timer must not clear a new line.
    Status(u64),
    /// The highlight of entries that changed on disk.
    Flash(u64),
    /// The outlook is asked, by its serial number.
    Outlook(u64),
    /// A watched log is looked at again, by how often that was done.
    Watch(u64),
    /// Idle nodes are asked for again, by how often that was done.
    Idle(u64),
    /// The tour continues by itself, from the step with this index.
    Auto(usize),
}

/// Requests of [`super::update`] to the runtime: everything with side effects.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Leave.
    Quit,
    /// Give the shell its terminal until `fg`.
    Suspend,
    /// Paint every cell again.
    Repaint,
    /// Read the files again.
    Reload,
    /// Write the record of the scenario on the screen.
    Save(Box<Saving>),
    /// Open a file in `$VISUAL` or `$EDITOR` at a line.
    Edit {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
    },
    /// Write a shipped file into the working directory, if it does not exist there yet, and open it as [`Effect::Edit`] does.
    Adopt {
        /// Its path, the same here as among the shipped files.
        path: PathBuf,
        /// The line, from 1.
        line: u32,
    },
    /// Put a text on the clipboard; the words say what it is.
    Copy {
        /// The text.
        text: String,
        /// What it is.
        what: String,
    },
    /// Write the view on the screen as the dialog says.
    Export(Box<Export>),
    /// Write files that were looked at.
    WriteBack(Arc<WritePlan>),
    /// Write the profile that was proposed.
    WriteProfile(Arc<Proposal>),
    /// Send a message after a while.
    After {
        /// How long, ms.
        ms: u64,
        /// What for.
        timer: Timer,
    },
    /// Bracketed paste is wanted, or no longer.
    Paste(bool),
    /// Run long work on a thread; see [`super::work`].
    Work(Order),
    /// Cancel the order with that serial number.
    Cancel(u64),
}

/// A record to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Saving {
    /// Under which directory.
    pub dir: PathBuf,
    /// Name of the file.
    pub name: String,
    /// Its text.
    pub json: String,
}
