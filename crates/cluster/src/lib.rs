//! Cluster work around the planner: launch scripts read into a job description, logs of running jobs compared with their
//! prediction, and the history of all of it.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod array;
pub mod history;
pub mod import;
pub mod secrets;
pub mod watch;
