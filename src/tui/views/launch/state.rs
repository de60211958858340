//! State of the view of launch files.

use crate::tui::work::query::Query;
use atlas_cluster::launch::File;
use atlas_cluster::launch::Wrap;
use std::sync::Arc;

/// Wrappings of a command, in the order of the keys.
pub(in crate::tui) const WRAPS: [(Wrap, &str); 3] =
    [(Wrap::Plain, "script"), (Wrap::Slurm, "Slurm batch script"), (Wrap::Kubernetes, "Kubernetes manifests")];

/// The state of the view.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// The files, keyed by the generation of the scenario and the wrapping.
    pub files: Query<(u64, usize), Arc<Files>>,
    /// Result of writing the files, keyed by the number of the request.
    pub written: Query<u64, ()>,
    /// Index of the wrapping in [`WRAPS`].
    pub(in crate::tui) wrap: usize,
    pub(in crate::tui) writes: u64,
}

/// The files of a scenario, or why they cannot be written.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Name of the tool that is launched.
    pub tool: String,
    /// The files. The first one is the one to start.
    pub files: Vec<File>,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// Settings that the tool cannot express. If there are any, `files` is empty.
    pub refused: Vec<String>,
}

impl State {
    /// Returns the name of the wrapping.
    #[must_use]
    pub fn wrap_name(&self) -> &'static str {
        WRAPS.get(self.wrap).map_or("script", |(_, name)| name)
    }
}
