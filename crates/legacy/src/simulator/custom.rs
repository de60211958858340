//! User-defined communication patterns.
//!
//! ```yaml
//! training:
//!   communication_pattern: custom
//!   custom_pattern:
//!     - { operation: reduce_scatter, algorithm: direct }
//!     - { operation: allreduce, algorithm: tree, share: 0.125 }
//!     - { operation: allgather, algorithm: direct }
//! ```

use serde::Serialize;

use atlas_document::decode::{Bounds, Fields};
use atlas_sim::network::{Algorithm, Operation};

/// Phase of a pattern. All ranks complete it before the next one begins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phase {
    /// Collective operation.
    pub operation: Exchange,
    /// Algorithm.
    pub algorithm: Route,
    /// Bytes relative to those of the gradients.
    pub share: f64,
}

/// Collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exchange {
    /// Every rank receives the sum.
    #[serde(rename = "allreduce")]
    AllReduce,
    /// Every rank receives a part of the sum.
    ReduceScatter,
    /// Every rank receives all parts.
    #[serde(rename = "allgather")]
    AllGather,
    /// Every rank sends a part to every rank.
    #[serde(rename = "alltoall")]
    AllToAll,
    /// Every rank receives the data of the first rank.
    Broadcast,
}

/// Algorithm of a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// Along a ring.
    Ring,
    /// Along a tree.
    Tree,
    /// Between all pairs of ranks.
    Direct,
}

const OPERATIONS: [(&str, Exchange); 5] = [
    ("allreduce", Exchange::AllReduce),
    ("reduce_scatter", Exchange::ReduceScatter),
    ("allgather", Exchange::AllGather),
    ("alltoall", Exchange::AllToAll),
    ("broadcast", Exchange::Broadcast),
];

const ROUTES: [(&str, Route); 3] = [("ring", Route::Ring), ("tree", Route::Tree), ("direct", Route::Direct)];

/// Tree all-reduce, pipelined in chunks to hide the depth of the tree.
pub(super) const TREE: Algorithm = Algorithm::Tree { chunks: 16 };

/// Maximum number of phases of a pattern.
const MAX_PHASES: usize = 64;

/// Reads `custom_pattern`.
pub(super) fn decode(fields: &mut Fields<'_>) -> Vec<Phase> {
    let Some(node) = fields.node("custom_pattern") else { return Vec::new() };
    let Some(items) = node.items().filter(|items| items.len() <= MAX_PHASES) else {
        let message = format!("found {}, expected a list of at most {MAX_PHASES} phases", node.describe());
        fields.error("custom_pattern", message, None);
        return Vec::new();
    };
    let file = fields.file().clone();
    let mut out = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("training.custom_pattern[{index}]");
        let Some(mut f) = Fields::open(&file, path, item, fields.diagnostics()) else { continue };
        let operation = f.choice("operation", &OPERATIONS);
        let algorithm = f.choice("algorithm", &ROUTES).unwrap_or(Route::Ring);
        let share = f.number("share", Bounds { min: 1e-9, max: 64.0, whole: false }).unwrap_or(1.0);
        if item.get("operation").is_none() {
            f.missing("operation");
        }
        let impossible = match (operation, algorithm) {
            (Some(Exchange::AllToAll), Route::Ring | Route::Tree) => Some("only direct exchanges all to all"),
            (Some(Exchange::ReduceScatter | Exchange::AllGather), Route::Tree) => Some("a tree reduces or spreads all"),
            _ => None,
        };
        if let Some(why) = impossible {
            f.error("algorithm", why, Some("use ring or direct".to_owned()));
        }
        f.finish();
        out.extend(operation.map(|operation| Phase { operation, algorithm, share }));
    }
    out
}

impl Phase {
    /// Converts the phase to a job of the network simulation.
    pub(super) fn job(&self) -> (Operation, Algorithm, f64) {
        let operation = match self.operation {
            Exchange::AllReduce => Operation::AllReduce,
            Exchange::ReduceScatter => Operation::ReduceScatter,
            Exchange::AllGather => Operation::AllGather,
            Exchange::AllToAll => Operation::AllToAll,
            Exchange::Broadcast => Operation::Broadcast,
        };
        let algorithm = match self.algorithm {
            Route::Ring => Algorithm::Ring { channels: 1, local: 0, chunks: 1 },
            Route::Tree => TREE,
            Route::Direct => Algorithm::Direct,
        };
        (operation, algorithm, self.share)
    }
}
