//! Communication patterns that a configuration describes itself.
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

/// One phase: all ranks finish it before the next begins.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Phase {
    /// What is exchanged.
    pub operation: Exchange,
    /// Along which links.
    pub algorithm: Route,
    /// Share of the gradients' bytes that it is about.
    pub share: f64,
}

/// What is exchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exchange {
    /// Everyone gets the sum.
    #[serde(rename = "allreduce")]
    AllReduce,
    /// Everyone gets a part of the sum.
    ReduceScatter,
    /// Everyone gets all parts.
    #[serde(rename = "allgather")]
    AllGather,
    /// Everyone sends a part to everyone.
    #[serde(rename = "alltoall")]
    AllToAll,
    /// Everyone gets what the first has.
    Broadcast,
}

/// Along which links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// Round a ring.
    Ring,
    /// Up and down a tree.
    Tree,
    /// Between every two.
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

/// All-reduce up and down a tree, in the pieces that hide its depth.
pub(super) const TREE: Algorithm = Algorithm::Tree { chunks: 16 };

/// Maximum phases of a pattern.
const MOST: usize = 64;

/// Reads `custom_pattern`.
pub(super) fn decode(fields: &mut Fields<'_>) -> Vec<Phase> {
    let Some(node) = fields.node("custom_pattern") else { return Vec::new() };
    let Some(items) = node.items().filter(|items| items.len() <= MOST) else {
        let message = format!("found {}, expected a list of at most {MOST} phases", node.describe());
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
    /// The phase as a job of the network.
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
