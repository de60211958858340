//! State of all panels, and what their work answers.

use super::fits::state as fits;
use super::history::state as history;
use super::idle::state as idle;
use super::launch::state as launch;
use super::releases::state as releases;
use super::watch::state as watch;
use crate::tui::detecting::state as detecting;
use std::sync::Arc;

/// A view of jobs or files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Panel {
    /// A running job against its prediction.
    Watch,
    /// What was predicted, submitted, run and measured.
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
    /// The job that is watched.
    pub watch: watch::State,
    /// The history.
    pub history: history::State,
    /// The launch files.
    pub launch: launch::State,
    /// The releases.
    pub releases: releases::State,
    /// Models on targets.
    pub fits: fits::State,
    /// Idle nodes of detected targets.
    pub idle: idle::State,
    /// Detection of targets.
    pub detect: detecting::State,
}

/// What the work of a panel answers.
#[derive(Debug, Clone)]
pub enum Answer {
    /// What a watch has seen.
    Watch(Arc<watch::Seen>),
    /// The entries of the history.
    History(Arc<history::Listed>),
    /// The files of a scenario.
    Launch(Arc<launch::Files>),
    /// Files were written: what to say.
    Written(String),
    /// Idle nodes.
    Idle(Arc<idle::Idle>),
    /// Models on targets.
    Fits(Arc<fits::Grid>),
    /// Targets that were detected.
    Detected(Arc<detecting::Found>),
}
