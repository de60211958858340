//! The history: every prediction, run, sweep, simulation and measurement with its inputs, kept in the user's state
//! directory.
//!
//! One file holds one [`Entry`]. It is written under a temporary name, synced, and linked to a name that exists only once,
//! so that no writer waits for another, no entry replaces another, and a program that is killed leaves either the whole
//! entry or none. This needs neither locks nor appends, which network file systems do not keep atomic, and no C library.

mod chain;
mod change;
mod entry;
mod filter;
mod store;
mod trend;

pub use chain::{CORRECTIONS, JOBS, LOGS, chain, readings_of, submission_of_job, submission_of_log};
pub use change::{Change, Difference, compare};
pub use entry::{Draft, Entry, EntryKind, Origin};
pub use filter::{Filter, moment};
pub use store::{HistoryError, Problem, Store, Written};
pub use trend::{Better, Group, Release, Slowdown, better, groups, slowdowns};
