//! Jobs of clusters: launch scripts read into scenarios, written from scenarios and submitted; logs of running jobs held
//! against their prediction; and the history of all of it.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod array;
pub mod documents;
pub mod history;
pub mod import;
pub mod launch;
pub mod secrets;
pub mod submit;
pub mod watch;
