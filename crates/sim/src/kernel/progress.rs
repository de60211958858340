//! Progress of long work, and its cancellation. Shared by reference, or in an [`std::sync::Arc`], between the worker and the
//! thread that shows progress or cancels.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Written by the work, read by the display; cancelled by the display, read by the work.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    /// Shared with the parts of the work.
    cancelled: Arc<AtomicBool>,
    /// Where the run under way begins and ends, in [`WHOLE`]s, where it is one of several.
    begins: AtomicU64,
    ends: AtomicU64,
}

/// Units of work that is described by shares.
const WHOLE: f64 = 1e6;

impl Progress {
    /// Nothing done, and not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Progress::default()
    }

    /// The progress of a part of the work: it counts separately, and cancelling the whole cancels it.
    #[must_use]
    pub fn part(&self) -> Progress {
        Progress { cancelled: Arc::clone(&self.cancelled), ..Progress::default() }
    }

    /// Units of work done, and of all work; the latter 0 while it is not known.
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

    /// Asks the work to stop soon. It still returns the results so far.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Whether the work was asked to stop.
    #[must_use]
    pub fn cancelled(&self) -> bool {
        self.cancelled.load(Relaxed)
    }

    /// Announces work that is counted, alongside what was announced before.
    pub fn expect(&self, more: u64) {
        self.total.fetch_add(more, Relaxed);
    }

    /// Reports counted work done.
    pub fn advance(&self, by: u64) {
        self.done.fetch_add(by, Relaxed);
    }

    /// Lets what [`Progress::set`] notes from here on count as the part of the whole from one share to another: one run of
    /// several.
    pub fn stage(&self, from: f64, to: f64) {
        self.begins.store((from.clamp(0.0, 1.0) * WHOLE) as u64, Relaxed);
        self.ends.store((to.clamp(0.0, 1.0) * WHOLE) as u64, Relaxed);
        self.set(0.0);
    }

    /// Notes the share that is done of work that is not counted; of the run under way, where it is one of several.
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
    fn a_run_of_several_reports_its_share_of_the_progress() {
        let progress = Progress::new();
        assert_eq!(progress.share(), 0.0);
        progress.set(0.5);
        assert_eq!(progress.share(), 0.5);
        progress.stage(0.5, 0.75);
        assert_eq!(progress.share(), 0.5);
        progress.set(1.0);
        assert_eq!(progress.share(), 0.75);
        assert!(!progress.cancelled());
        progress.cancel();
        assert!(progress.cancelled());
    }

    #[test]
    fn counted_work_has_a_size() {
        let progress = Progress::new();
        progress.expect(8);
        progress.advance(2);
        assert_eq!((progress.progress(), progress.share()), ((2, 8), 0.25));
    }

    #[test]
    fn cancelling_the_whole_cancels_parts_which_count_separately() {
        let whole = Progress::new();
        whole.expect(10);
        let part = whole.part();
        part.set(1.0);
        assert_eq!((whole.progress(), part.share()), ((0, 10), 1.0));
        whole.cancel();
        assert!(part.cancelled());
    }
}
