//! Options of detection.

use std::path::PathBuf;
use std::time::Duration;

use crate::runner::DEFAULT_TIMEOUT;

/// What to detect, and the timeout of each command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Whether to detect the accelerators and NICs of this machine.
    pub local: bool,
    /// Whether to detect Slurm partitions.
    pub slurm: bool,
    /// Whether to detect Kubernetes nodes.
    pub kubernetes: bool,
    /// Mount point of sysfs.
    pub sysfs: PathBuf,
    /// Mount point of procfs.
    pub procfs: PathBuf,
    /// Timeout of one command.
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
