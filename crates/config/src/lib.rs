//! Targets, workloads and profiles: decoding, the library of files in effect, and file watching.

#![forbid(unsafe_code)]

pub mod calibration;
pub mod corrections;
pub mod cost;
pub mod efficiency;
pub mod library;
pub mod profile;
mod read_field;
pub mod target;
#[cfg(test)]
mod testing;
pub mod watch;
pub mod workload;

pub use calibration::{Calibration, Provenance};
pub use corrections::Corrections;
pub use cost::Cost;
pub use efficiency::{Efficiency, Factors};
pub use profile::Profile;
pub use target::Target;
pub use workload::{Mode, Workload};
