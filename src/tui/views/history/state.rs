//! State of the view of the history.

use crate::tui::work::query::Query;
use atlas_cluster::history::Entry;
use atlas_cluster::history::Store;
use std::sync::Arc;

/// Page of the history.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Page {
    /// All entries.
    #[default]
    List,
    /// One entry, by its id.
    Entry(String),
    /// The differences between two entries, by their ids.
    Difference(String, String),
    /// The headline metric of an entry over time, by the entry's id.
    Trend(String),
}

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Storage of the history; `None` if the history is off.
    pub store: Option<Store>,
    /// Entries that were read, keyed by `opened`.
    pub listed: Query<u64, Arc<Listed>>,
    /// Page that is shown.
    pub page: Page,
    /// Id of the entry marked for comparison.
    pub marked: Option<String>,
    /// Number of times the view was opened.
    pub(in crate::tui) opened: u64,
    /// Row of the list from which a page was opened.
    pub(in crate::tui) row: usize,
}

/// Result of reading the history.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// The entries, newest first, without their bodies.
    pub entries: Vec<Entry>,
    /// Number of files that could not be read as entries.
    pub damaged: usize,
}
