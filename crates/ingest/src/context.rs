//! Context in which a file is read.

use super::config::Config;
use super::series::Warmup;

/// What the caller states about a file, and options for reading it.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Name of the file, as the user gave it.
    pub name: String,
    /// Which steps are excluded as warm-up.
    pub warmup: Warmup,
    /// Random seed of the bootstrap.
    pub seed: u64,
    /// Settings given by the user.
    pub settings: Config,
}
