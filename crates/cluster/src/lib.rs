//! Cluster jobs: importing launch scripts as scenarios, writing and submitting launch files for scenarios, comparing
//! logs of running jobs with predictions, and the history of all of these.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod array;
pub mod detection;
pub mod documents;
mod flags;
pub mod history;
pub mod import;
pub mod launch;
pub mod secrets;
pub mod submit;
pub mod watch;
