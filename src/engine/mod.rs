//! Engines: pure functions from a scenario to an estimate. No I/O, no clock, no globals, no allocation on the hot path.

pub mod analytical;
pub mod event;
pub mod semi_empirical;
