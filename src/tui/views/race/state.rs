//! State of the race: its question, lanes and results.

use super::entry::Entry;
use crate::demo::Setup;
use crate::tui::widgets::line::Line;
use atlas_assistant::Question;
use std::sync::Arc;

/// A target to search, optionally with another number of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// The target.
    pub target: Arc<str>,
    /// Number of nodes, if it differs from the target's own.
    pub nodes: Option<u32>,
}

/// A request to the workers: the round, and the first lane to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Number of the round.
    pub serial: u64,
    /// Index of the first lane without a result.
    pub from: usize,
}

/// The race.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Race {
    /// The typed question; `None` for the default one.
    pub question: Option<Question>,
    /// The question being typed, and why it is invalid, if it is.
    pub typing: Option<(Line, Option<String>)>,
    /// The question before typing; Esc restores it.
    pub(in crate::tui) before: Option<Question>,
    /// The setup whose workload and knobs all lanes start from.
    pub(in crate::tui) base: Option<Setup>,
    /// The lanes, in the order of the files.
    pub lanes: Vec<Lane>,
    /// Results so far, in the order of the lanes.
    pub entries: Vec<Entry>,
    /// Number of the current round.
    pub(in crate::tui) serial: u64,
    /// Why there are no lanes.
    pub problem: Option<String>,
}

/// Results of some lanes.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The round, and the first lane of the results.
    pub round: Round,
    /// The results.
    pub entries: Vec<Entry>,
}
