//! State of all panels, and results of their jobs.

use super::fits::state as fits;
use super::history::state as history;
use super::idle::state as idle;
use super::launch::state as launch;
use super::releases::state as releases;
use super::watch::state as watch;
use crate::tui::dialogs::detecting::state as detecting;
use std::sync::Arc;

/// A panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Panel {
    /// A running job against its prediction.
    Watch,
    /// The history of predictions, submissions, runs and measurements.
    History,
    /// The files that launch the scenario.
    Launch,
    /// The releases of the scenario's software.
    Releases,
    /// Which models run on which targets.
    Fits,
}

/// The state of all panels.
#[derive(Debug, Clone, Default)]
pub struct Panels {
    /// The watched job.
    pub watch: watch::State,
    /// The history.
    pub history: history::State,
    /// The launch files.
    pub launch: launch::State,
    /// The releases.
    pub releases: releases::State,
    /// The table of models and targets.
    pub fits: fits::State,
    /// Idle nodes of detected targets.
    pub idle: idle::State,
    /// Detection of targets.
    pub detect: detecting::State,
}

/// Result of a panel's job.
#[derive(Debug, Clone)]
pub enum Answer {
    /// The state of a watched job.
    Watch(Arc<watch::WatchReading>),
    /// The entries of the history.
    History(Arc<history::Listed>),
    /// The files of a scenario.
    Launch(Arc<launch::Files>),
    /// Message after files were written.
    Written(String),
    /// Idle nodes.
    Idle(Arc<idle::Idle>),
    /// The table of models and targets.
    Fits(Arc<fits::Grid>),
    /// Targets that were detected.
    Detected(Arc<detecting::DetectedTargets>),
}
