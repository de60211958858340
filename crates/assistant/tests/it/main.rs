//! The assistant: endpoint, grammar, questions.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod endpoint;
mod grammar;
mod questions;
