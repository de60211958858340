//! Idle nodes of targets.

use crate::tui::work::query::Query;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state.
#[derive(Debug, Clone, Default)]
pub struct State {
    /// Idle nodes, by the number of the request.
    pub known: Query<u64, Arc<Idle>>,
    pub(in crate::tui) requests: u64,
}

/// Idle nodes of targets, by name, of how many.
pub type Idle = BTreeMap<String, (u32, u32)>;
