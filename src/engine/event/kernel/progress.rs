//! How far a run is, and the wish to end it: shared between the run and whoever waits for it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Written by the run, read by the display; cancelled by the display, read by the run.
#[derive(Debug, Default)]
pub struct Progress {
    cancelled: AtomicBool,
    millionths: AtomicU32,
}

impl Progress {
    /// Nothing done, nobody asked to end.
    pub fn new() -> Self {
        Progress::default()
    }

    /// Asks the run to end at its next look.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the run was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Share of the run that is done, 0 to 1.
    pub fn share(&self) -> f64 {
        f64::from(self.millionths.load(Ordering::Relaxed)) * 1e-6
    }

    /// Notes the share that is done.
    pub fn set(&self, share: f64) {
        self.millionths.store((share.clamp(0.0, 1.0) * 1e6) as u32, Ordering::Relaxed);
    }
}
