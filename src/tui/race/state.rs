//! State of the race: its question, lanes and results.

use super::entry::Entry;
use crate::demo::Setup;
use crate::tui::line::Line;
use atlas_assistant::Question;
use std::sync::Arc;

/// What runs: a target, with another number of nodes where the question says so.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// The target.
    pub target: Arc<str>,
    /// Its nodes, where they are not the target's own.
    pub nodes: Option<u32>,
}

/// A request to the workers: which round, and from which lane on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Counts questions.
    pub serial: u64,
    /// The first lane that has no result yet.
    pub from: usize,
}

/// The race.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Race {
    /// The typed question; `None` for the default one.
    pub question: Option<Question>,
    /// The question being typed, and why it is invalid.
    pub typing: Option<(Line, Option<String>)>,
    /// The question before it was typed over: Esc brings it back.
    pub(in crate::tui) before: Option<Question>,
    /// The scenario whose workload and knobs all lanes begin with.
    pub(in crate::tui) base: Option<Setup>,
    /// The lanes, in the order of the files.
    pub lanes: Vec<Lane>,
    /// What came out so far, in the order of the lanes.
    pub entries: Vec<Entry>,
    /// Counts questions.
    pub(in crate::tui) serial: u64,
    /// Why there is nothing to run.
    pub trouble: Option<String>,
}

/// Results of some lanes.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Of which question, from which lane on.
    pub round: Round,
    /// The results.
    pub entries: Vec<Entry>,
}
