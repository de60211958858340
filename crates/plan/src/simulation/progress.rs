//! Progress and cancellation of several runs.

use atlas_core::cores::parallel_map;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use atlas_sim::kernel::Progress;

/// Progress of several runs; shared between the runs and callers that monitor or cancel them.
#[derive(Debug, Default)]
pub struct RunsProgress {
    canceled: AtomicBool,
    /// Number of announced runs, and number of completed runs.
    total: AtomicU32,
    done: AtomicU32,
    /// Progress of the active runs.
    running: Mutex<Vec<std::sync::Arc<Progress>>>,
}

impl RunsProgress {
    /// Creates the progress of `total` runs.
    #[must_use]
    pub fn of(total: u32) -> RunsProgress {
        RunsProgress { total: AtomicU32::new(total), ..RunsProgress::default() }
    }

    /// Completed share of all runs.
    #[must_use]
    pub fn share(&self) -> f64 {
        let total = f64::from(self.total.load(Relaxed).max(1));
        let under_way: f64 = self.running.lock().map_or(0.0, |running| running.iter().map(|p| p.share()).sum());
        ((f64::from(self.done.load(Relaxed)) + under_way) / total).min(1.0)
    }

    /// Cancels all runs. They stop when they next check their progress.
    pub fn cancel(&self) {
        self.canceled.store(true, Relaxed);
        if let Ok(running) = self.running.lock() {
            running.iter().for_each(|progress| progress.cancel());
        }
    }

    /// Whether the runs were canceled.
    #[must_use]
    pub fn canceled(&self) -> bool {
        self.canceled.load(Relaxed)
    }

    /// Performs one run with its own progress.
    pub fn run<T>(&self, work: impl FnOnce(&Progress) -> T) -> T {
        let progress = std::sync::Arc::new(Progress::new());
        if let Ok(mut running) = self.running.lock() {
            running.push(std::sync::Arc::clone(&progress));
        }
        // Canceled before the progress was in the list.
        if self.canceled() {
            progress.cancel();
        }
        let answer = work(&progress);
        if let Ok(mut running) = self.running.lock() {
            running.retain(|other| !std::sync::Arc::ptr_eq(other, &progress));
        }
        self.done.fetch_add(1, Relaxed);
        answer
    }

    /// Performs `count` runs, as many at a time as there are cores, and returns their results in order. After
    /// cancellation no further run is started, but the first one always is.
    pub fn each<T: Send>(&self, count: u32, work: impl Fn(u32, &Progress) -> T + Sync) -> Vec<T> {
        let numbers: Vec<u32> = (0..count).collect();
        let stopped = |at| at > 0 && self.canceled();
        parallel_map(&numbers, stopped, |number| self.run(|progress| work(*number, progress)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_the_share_ends_at_one() {
        let gauge = RunsProgress::of(20);
        let answers = gauge.each(20, |number, _| number * number);
        assert_eq!(answers, (0..20).map(|n| n * n).collect::<Vec<_>>());
        assert!((gauge.share() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn after_cancellation_only_the_first_item_runs_with_canceled_progress() {
        let gauge = RunsProgress::of(5);
        gauge.cancel();
        assert_eq!(gauge.each(5, |_, progress| progress.canceled()), [true]);
    }
}
