//! Progress and cancellation of long computations. A [`Progress`] is shared, by reference or in an [`std::sync::Arc`],
//! between the worker and the thread that shows progress or cancels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Progress counters, written by the worker and read by the display, and a cancellation flag, set by the display and
/// read by the worker.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    /// Shared with the progress of each [`Progress::part`].
    canceled: Arc<AtomicBool>,
    /// Start and end of the current run in units of [`WHOLE`], if it is one of several.
    begins: AtomicU64,
    ends: AtomicU64,
}

/// Total units of work when progress is reported as a share.
const WHOLE: f64 = 1e6;

impl Progress {
    /// Creates a progress with nothing done and not canceled.
    #[must_use]
    pub fn new() -> Self {
        Progress::default()
    }

    /// Creates the progress of a part of the work. It counts separately, but canceling either also cancels the other.
    #[must_use]
    pub fn part(&self) -> Progress {
        Progress { canceled: Arc::clone(&self.canceled), ..Progress::default() }
    }

    /// Units of work done, and total units of work (0 while unknown).
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.total.load(Relaxed))
    }

    /// Share of the work that is done, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        match self.progress() {
            (_, 0) => 0.0,
            (done, total) => (done as f64 / total as f64).min(1.0),
        }
    }

    /// Requests that the work stop soon. It still returns its results so far.
    pub fn cancel(&self) {
        self.canceled.store(true, Relaxed);
    }

    /// Whether cancellation was requested.
    #[must_use]
    pub fn canceled(&self) -> bool {
        self.canceled.load(Relaxed)
    }

    /// Adds `more` units to the total.
    pub fn add_expected(&self, more: u64) {
        self.total.fetch_add(more, Relaxed);
    }

    /// Adds `by` units to the work done.
    pub fn advance(&self, by: u64) {
        self.done.fetch_add(by, Relaxed);
    }

    /// Maps the shares that later calls of [`Progress::set`] report to the range `from` to `to` of the whole, for one
    /// run of several.
    pub fn stage(&self, from: f64, to: f64) {
        self.begins.store((from.clamp(0.0, 1.0) * WHOLE) as u64, Relaxed);
        self.ends.store((to.clamp(0.0, 1.0) * WHOLE) as u64, Relaxed);
        self.set(0.0);
    }

    /// Sets the share of the work that is done, for work without counted units. Within a [`Progress::stage`], it is the
    /// share of that stage.
    pub fn set(&self, share: f64) {
        let (begins, ends) = (self.begins.load(Relaxed), self.ends.load(Relaxed));
        let ends = if ends == 0 { WHOLE as u64 } else { ends };
        let done = begins as f64 + share.clamp(0.0, 1.0) * ends.saturating_sub(begins) as f64;
        self.total.store(WHOLE as u64, Relaxed);
        self.done.store(done as u64, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staged_progress_maps_to_its_part_of_the_share() {
        let progress = Progress::new();
        assert_eq!(progress.share(), 0.0);
        progress.set(0.5);
        assert_eq!(progress.share(), 0.5);
        progress.stage(0.5, 0.75);
        assert_eq!(progress.share(), 0.5);
        progress.set(1.0);
        assert_eq!(progress.share(), 0.75);
        assert!(!progress.canceled());
        progress.cancel();
        assert!(progress.canceled());
    }

    #[test]
    fn counted_progress_reports_done_total_and_share() {
        let progress = Progress::new();
        progress.add_expected(8);
        progress.advance(2);
        assert_eq!((progress.progress(), progress.share()), ((2, 8), 0.25));
    }

    #[test]
    fn cancelling_progress_cancels_its_separately_counted_parts() {
        let whole = Progress::new();
        whole.add_expected(10);
        let part = whole.part();
        part.set(1.0);
        assert_eq!((whole.progress(), part.share()), ((0, 10), 1.0));
        whole.cancel();
        assert!(part.canceled());
    }
}
