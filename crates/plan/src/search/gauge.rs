//! How far a search is, and how to stop it.

pub use atlas_sim::kernel::Progress as Gauge;

/// Threads that a search runs on: what the machine has.
pub(super) fn workers() -> usize {
    atlas_core::cores::available().clamp(1, 64)
}
