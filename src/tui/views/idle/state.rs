//! Idle nodes of targets.

use crate::tui::work::query::Query;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Result of the last query to Slurm.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Idle nodes, keyed by the number of the request.
    pub known: Query<u64, Arc<Idle>>,
    pub(in crate::tui) requests: u64,
}

/// Number of idle nodes and total number of nodes, by the name of the target.
pub type Idle = BTreeMap<String, (u32, u32)>;
