//! Parallel map with dynamic scheduling. Items differ in cost, and expensive ones are clustered.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::sort;

/// Maximum number of threads; 0 means no limit.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Limits the number of threads, for when a scheduler grants fewer cores than the machine reports.
pub fn limit(cores: usize) {
    LIMIT.store(cores, Relaxed);
}

/// Number of cores that this process may use, at least one.
#[must_use]
pub fn available() -> usize {
    let shown = std::thread::available_parallelism().map_or(1, usize::from);
    match LIMIT.load(Relaxed) {
        0 => shown,
        limit => shown.min(limit),
    }
}

/// Maps `items` with `work` in parallel and returns the results in order. A thread stops at the first item for whose
/// index `stopped` returns true.
pub fn parallel_map<I: Sync, T: Send>(
    items: &[I],
    stopped: impl Fn(usize) -> bool + Sync,
    work: impl Fn(&I) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut own = Vec::new();
        while let Some((at, item)) = Some(next.fetch_add(1, Relaxed)).and_then(|at| Some((at, items.get(at)?)))
            && !stopped(at)
        {
            own.push((at, work(item)));
        }
        own
    };
    let workers = available().min(items.len());
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(worker)).collect();
        let mut all = worker();
        for other in others {
            all.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        all
    });
    sort::by_key(&mut done, |(at, _)| *at);
    done.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_their_items() {
        let items: Vec<u32> = (0..100).collect();
        assert_eq!(parallel_map(&items, |_| false, |n| n * n), (0..100).map(|n| n * n).collect::<Vec<_>>());
        assert!(parallel_map(&items, |_| true, |n| n * n).is_empty());
        assert!(parallel_map(&[] as &[u32], |_| false, |n| n * n).is_empty());
    }
}
