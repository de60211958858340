//! State of the launch files.

use crate::tui::work::query::Query;
use atlas_cluster::launch::File;
use atlas_cluster::launch::Wrap;
use std::sync::Arc;

/// What a command can be wrapped in, in the order of the keys.
pub(in crate::tui) const WRAPS: [(Wrap, &str); 3] =
    [(Wrap::Plain, "script"), (Wrap::Slurm, "Slurm batch script"), (Wrap::Kubernetes, "Kubernetes manifests")];

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The files, by scenario and wrapping.
    pub files: Query<(u64, usize), Arc<Files>>,
    /// Files that were written, by how often that was asked for.
    pub written: Query<u64, ()>,
    /// What the command is wrapped in.
    pub(in crate::tui) wrap: usize,
    pub(in crate::tui) writes: u64,
}

/// The files of a scenario, or why they cannot be written.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The tool that they are for.
    pub tool: String,
    /// Files, the one that is started first.
    pub files: Vec<File>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Settings that the tool cannot express; then there are no files.
    pub refused: Vec<String>,
}

impl State {
    /// The name of the wrapping.
    #[must_use]
    pub fn wrap_name(&self) -> &'static str {
        WRAPS.get(self.wrap).map_or("script", |(_, name)| name)
    }
}
