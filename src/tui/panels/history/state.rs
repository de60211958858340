//! State of the history: its entries, and which are shown.

use crate::tui::work::query::Query;
use atlas_cluster::history::Entry;
use atlas_cluster::history::Store;
use std::sync::Arc;

/// What the view shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Page {
    /// All entries.
    #[default]
    List,
    /// One entry, by its id.
    Entry(String),
    /// What differs between two.
    Difference(String, String),
    /// The figure that an entry is known by, over time.
    Trend(String),
}

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Where the history is; `None` if nothing is kept.
    pub store: Option<Store>,
    /// What was read, by how often the view was opened.
    pub listed: Query<u64, Arc<Listed>>,
    /// What is shown.
    pub page: Page,
    /// The entry that others are compared with, by its id.
    pub marked: Option<String>,
    /// How often the view was opened.
    pub(in crate::tui) opened: u64,
    /// The row of the list that a page was opened from.
    pub(in crate::tui) row: usize,
}

/// What was read.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    /// The entries, newest first, without their bodies.
    pub entries: Vec<Entry>,
    /// Files that are no entries.
    pub damaged: usize,
}
