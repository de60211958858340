//! What is detected.

use std::path::PathBuf;
use std::time::Duration;

use crate::runner::DEFAULT_TIMEOUT;

/// What to look at, and how long one command may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// This machine's accelerators and NICs.
    pub local: bool,
    /// Slurm partitions.
    pub slurm: bool,
    /// Kubernetes nodes.
    pub kubernetes: bool,
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// Where procfs is mounted.
    pub procfs: PathBuf,
    /// Time for one command.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            local: true,
            slurm: true,
            kubernetes: true,
            sysfs: PathBuf::from("/sys"),
            procfs: PathBuf::from("/proc"),
            timeout: DEFAULT_TIMEOUT,
        }
    }
}
