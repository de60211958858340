//! Integration tests of reading logs and benchmark files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod benchmark_json;
mod common;
mod documents;
mod formats;
mod llamafactory;
mod misreads;
mod samples;
mod serving_logs;
