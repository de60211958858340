//! How far long work has come, and how to stop it: shared by who works, who watches and who cancels.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Progress and a stop button. Share it by reference, or in an [`std::sync::Arc`].
#[derive(Debug, Default)]
pub struct Gauge {
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl Gauge {
    /// Units of work done, and of all work; the latter 0 while it is not known.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.total.load(Relaxed))
    }

    /// Asks the work to stop soon. It still answers, with what it has.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Whether the work was asked to stop.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Announces work, beside what was announced before.
    pub(super) fn expect(&self, more: u64) {
        self.total.fetch_add(more, Relaxed);
    }

    /// Reports work done.
    pub(super) fn advance(&self, by: u64) {
        self.done.fetch_add(by, Relaxed);
    }
}

/// Threads that a search runs on: what the machine has.
pub(super) fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).clamp(1, 64)
}
