//! Cluster work around the planner: launch scripts read into scenarios, written from scenarios, and submitted.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod documents;
pub mod import;
pub mod launch;
pub mod submit;
