//! Units, run options, the table of fields and small helpers shared by all crates of Atlas Fabric.

#![forbid(unsafe_code)]

pub mod bounds;
pub mod cores;
pub mod count;
pub mod escape;
pub mod field;
pub mod math;
pub mod mode;
pub mod network;
pub mod plan;
pub mod plan_spec;
pub mod sort;
pub mod statistics;
pub mod time_unit;
pub mod units;
