//! Scenarios and what is computed from them: estimates, explanations, search, advice and simulation studies.

#![forbid(unsafe_code)]

pub mod advice;
pub mod engine;
pub mod estimate;
pub mod explain;
pub mod knob;
pub mod post_training;
pub mod record;
pub mod scenario;
pub mod search;
pub mod simulation;
#[cfg(test)]
mod testing;
