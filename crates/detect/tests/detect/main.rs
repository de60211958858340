//! Tests the public API with recorded outputs of every tool.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod catalog;
mod garbage;
mod kubernetes;
mod local;
mod matching;
mod render;
mod slurm;
mod system;

/// Includes a recorded output.
macro_rules! recorded {
    ($name:literal) => {
        include_str!(concat!("../data/", $name))
    };
}
use recorded;
