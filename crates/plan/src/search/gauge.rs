//! Progress, cancellation and number of threads of a search.

pub use atlas_sim::kernel::Progress as Gauge;

/// Number of threads of a search: the available cores, at most 64.
pub(super) fn workers() -> usize {
    atlas_core::cores::available().clamp(1, 64)
}
