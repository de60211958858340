//! The history of all predictions, runs, sweeps, simulations and measurements with their inputs, stored in the user's
//! state directory.
//!
//! Each file contains one [`Entry`]. It is written under a temporary name, synchronized, and linked to a unique name.
//! Writers therefore do not block each other, entries never replace each other, and a killed program leaves either the
//! whole entry or none. This requires neither locks nor atomic appends, which network file systems do not guarantee,
//! nor a C library.

mod chain;
mod change;
mod entry;
mod filter;
mod store;
mod trend;

pub use chain::{CORRECTIONS, JOBS, LOGS, chain, readings_of, submission_of_job, submission_of_log};
pub use change::{Change, Difference, compare, value_text};
pub use entry::{Draft, Entry, EntryKind, Origin};
pub use filter::{Filter, moment};
pub use store::{HistoryError, Problem, Store, WrittenEntry};
pub use trend::{Group, Release, Slowdown, direction, groups, slowdowns};
