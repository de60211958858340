//! The terminal interface in the Elm architecture: [`app`] is the state, [`message`] the events, [`mod@update`] a pure
//! function from state and event to the next state, and [`view`] draws a state. Only [`runtime`] and the modules below
//! it have side effects: [`terminal`] sets up and restores the terminal, [`wait`] waits for events, [`painter`] sends
//! changed cells. Long computations run on threads; see [`work`].

pub mod answer;
pub mod app;
mod applying;
mod asking;
pub mod assistant;
#[cfg(test)]
mod budgets;
pub mod clipboard;
pub mod comparison;
pub use crate::tui::painter::color;
mod copying;
mod cursor;
pub mod detecting;
pub mod draw;
mod edit_knob;
mod effects;
pub mod export;
mod finder;
pub mod form;
pub mod frontier;
pub mod goal;
pub mod graphics;
pub mod history;
pub mod input;
pub mod keymap;
pub mod layout;
pub mod line;
mod loading;
pub mod measured;
mod measuring;
pub mod message;
mod mouse;
mod movement;
pub mod optimum;
pub mod outlook;
mod overlay;
pub mod painter;
pub mod palette;
pub mod panels;
pub mod plain;
pub mod prompt;
pub mod race;
mod reload;
mod reloading;
pub mod runtime;
pub mod scenarios;
mod scrolling;
pub mod session;
mod showing;
pub mod simulating;
pub mod stale;
pub mod status;
pub mod sweeping;
pub mod tables;
pub mod terminal;
#[cfg(test)]
mod testing;
pub mod theme;
pub mod timeline;
pub mod tornado;
mod tour;
pub mod update;
pub mod view;
pub mod wait;
pub mod work;
mod workers;
pub mod write_back;

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
    pub keep: session::Keep,
    /// Files of measurements, each with settings after its name.
    pub measured: Vec<String>,
    /// Logs of a job, or the number of a job of Slurm, to watch.
    pub watch: Vec<String>,
    /// The view to start with; the overview if unset.
    pub view: Option<View>,
}
