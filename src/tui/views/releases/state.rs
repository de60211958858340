//! State of the view of releases.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The releases, with the generation of the scenario.
    pub(in crate::tui) listed: Option<(u64, Listed)>,
    /// Oldest releases of the unfolded groups, as values of the knob.
    pub(in crate::tui) unfolded: BTreeSet<Arc<str>>,
}

/// The releases of a software family.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listed {
    /// Name of the family as its authors write it.
    pub family: String,
    /// The releases, newest first.
    pub rows: Vec<Row>,
    /// Index of the current release.
    pub current: Option<usize>,
}

impl Listed {
    /// Returns the groups of consecutive releases with equal traits and figures, newest first.
    pub(in crate::tui) fn groups(&self) -> impl Iterator<Item = Range<usize>> {
        let same = |newer: &Row, older: &Row| {
            newer.brought.is_empty() && newer.values == older.values && newer.refused == older.refused
        };
        let mut end = 0;
        self.rows.chunk_by(same).map(move |group| {
            let start = end;
            end += group.len();
            start..end
        })
    }
}

/// A line of the table: a release, or a group of releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Indices of the releases.
    pub releases: Range<usize>,
    /// Whether the group that begins here is unfolded; `None` for other releases.
    pub unfolded: Option<bool>,
}

/// A release.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Value of the knob: `vllm@0.11.0`.
    pub spec: Arc<str>,
    /// Version number.
    pub release: String,
    /// Release date, if known.
    pub date: String,
    /// Values of the metrics returned by `metrics`, in that order.
    pub values: Vec<Option<f64>>,
    /// Short reason why it cannot run the scenario.
    pub refused: Option<String>,
    /// Traits that it changed compared with the release before.
    pub brought: Vec<Difference>,
    /// Traits in which it differs from the current release.
    pub differs: Vec<Difference>,
}

/// A trait that differs between two releases.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Name of the trait in files.
    pub name: &'static str,
    /// Its value in the release compared with.
    pub before: String,
    /// Its value in this release.
    pub after: String,
    /// Source of the value in this release.
    pub source: String,
}
