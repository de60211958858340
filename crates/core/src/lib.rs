//! Units, run options and small helpers that every crate of Atlas Fabric uses.

#![forbid(unsafe_code)]

pub mod cores;
pub mod escape;
pub mod network;
pub mod plan;
pub mod units;
