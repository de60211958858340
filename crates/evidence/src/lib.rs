//! Measured rows: validation of the engines against published figures, and calibration from the user's own runs.

#![forbid(unsafe_code)]

pub mod calibrate;
pub mod runs;
pub mod support;
pub mod validate;
