//! What the caller knows about a file.

use super::config::Config;
use super::series::Warmup;

/// Information of the caller about a file, and options for reading.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The file, as the user named it.
    pub name: String,
    /// What counts as warm-up.
    pub warmup: Warmup,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// The user's settings.
    pub settings: Config,
}
