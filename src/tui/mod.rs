//! The terminal interface in the Elm architecture.
//!
//! * [`app`] – the state, as plain data
//! * [`message`] – events, and the effects that they request
//! * [`mod@update`] – pure function from state and event to the next state and effects
//! * [`screen`] – draws a state: panes, tabs, footer, and the current view or dialog
//! * [`views`] – one folder per view: `state`, actions in `mod`, drawing in `view`, the document in `export`; a `Spec`
//!   registers it
//! * [`dialogs`] – forms, prompts, pickers and the export, opened above a view
//! * [`input`] – from bytes to events, from keys to actions; cursors, scrolling and the mouse
//! * [`widgets`] – text, frames, plots and images; [`painter`] sends changed cells
//! * [`tables`] – filters and sort orders
//! * [`work`] – questions that are computed on threads
//! * [`session`] – what the next start restores; [`plain`] – the interface as lines of text
//! * [`runtime`] – the event loop and everything else with side effects: terminal, files, threads, clipboard
//!
//! Imports go one way: `state` files and [`work`] at the bottom, then [`app`], [`views`] and [`dialogs`],
//! [`mod@update`], and [`runtime`] on top.

pub mod app;
#[cfg(test)]
mod budgets;
pub mod dialogs;
pub mod input;
pub mod message;
pub mod painter;
pub mod plain;
pub mod runtime;
pub mod screen;
pub mod session;
pub mod tables;
#[cfg(test)]
mod testing;
mod tour;
pub mod update;
pub mod views;
pub mod widgets;
pub mod work;

use std::path::PathBuf;
use std::time::Duration;

pub use runtime::run;

use crate::demo::View;
use atlas_document::Sources;

/// How the interface is started.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Sources of the documents.
    pub sources: Sources,
    /// Name of the theme. If unset, that of the session or the one that suits the terminal.
    pub theme: Option<String>,
    /// Use only ASCII characters.
    pub ascii: bool,
    /// Handle clicks and the wheel.
    pub mouse: bool,
    /// Poll for changed files at this interval instead of using kernel events.
    pub poll: Option<Duration>,
    /// Name of the tour to start with.
    pub demo: Option<String>,
    /// Advance the tour automatically after this time.
    pub demo_auto: Option<Duration>,
    /// Name of the target to start with.
    pub target: Option<String>,
    /// Name of the workload to start with.
    pub workload: Option<String>,
    /// Directory for records.
    pub out: PathBuf,
    /// The session to open and save.
    pub keep: session::SessionMode,
    /// Files of measurements, each with settings after its name.
    pub measured: Vec<String>,
    /// Logs of a job, or the number of a job of Slurm, to watch.
    pub watch: Vec<String>,
    /// The view to start with; the overview if unset.
    pub view: Option<View>,
}
