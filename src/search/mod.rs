//! Finding better knobs.

pub mod frontier;
pub mod hill_climb;
