//! Finding better knobs.

pub mod hill_climb;
