//! The simulation kernel: clock, event queue, random streams, statistics over time, replications.
//!
//! A model is a state machine: an enum of events and a `match` that handles one at a time ([`Model`]). No code runs
//! between events, nothing is computed before its event, and two runs with the same seed are bit-identical.
//!
//! * [`time`] – integer picoseconds
//! * [`queue`] – pending events; ties in the order in which they were scheduled
//! * [`random`] – counter-based streams, so that compared systems see the same arrivals
//! * [`distribution`] – distributions to draw from
//! * [`statistics`] – tallies, integrals over time, quantiles
//! * [`histogram`], [`strip`] – bounded-memory variants for long runs: quantiles from bins, levels in cells
//! * [`replication`] – confidence intervals, also of paired differences
//! * [`progress`] – progress reports and cancellation

pub mod distribution;
pub mod histogram;
pub mod progress;
pub mod queue;
pub mod random;
pub mod replication;
pub mod statistics;
pub mod strip;
pub mod time;

pub use distribution::Distribution;
pub use histogram::Histogram;
pub use progress::Progress;
pub use queue::{EventQueue, Handle};
pub use random::Stream;
pub use replication::Interval;
pub use statistics::{Quantiles, Tally, TimeWeighted};
pub use strip::LevelTimeline;
pub use time::Time;

/// Number of events between two checks for cancellation.
const CANCELLATION_INTERVAL: u32 = 1024;

/// A simulated process, as a state machine over its own events.
pub trait Model {
    /// Type of the events.
    type Event: Copy;

    /// Handles one event at the queue's current time and schedules the events that follow from it.
    fn handle(&mut self, event: Self::Event, queue: &mut EventQueue<Self::Event>);

    /// Share of the run that is done, for progress display only.
    fn share_done(&self) -> f64 {
        0.0
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// No events were left.
    Empty,
    /// The next event was beyond the horizon.
    Horizon,
    /// The run was canceled.
    Canceled,
    /// The maximum number of events was reached with events left.
    Exhausted,
}

/// Default maximum number of events of a run: one or two minutes of computation, and far more than any run needs that
/// ends by itself.
pub const MAX_EVENTS: u64 = 500_000_000;

/// Runs `model` until no events are left, the next event is after `until`, `progress` is canceled, or [`MAX_EVENTS`]
/// events have been handled.
pub fn run<M: Model>(model: &mut M, queue: &mut EventQueue<M::Event>, until: Time, progress: &Progress) -> StopReason {
    run_within(model, queue, until, MAX_EVENTS, progress)
}

/// Like [`run`], with a given maximum number of events (rounded up to a multiple of `CANCELLATION_INTERVAL`). It ends
/// models that make no progress.
pub fn run_within<M: Model>(
    model: &mut M,
    queue: &mut EventQueue<M::Event>,
    until: Time,
    most_events: u64,
    progress: &Progress,
) -> StopReason {
    let mut left = CANCELLATION_INTERVAL;
    loop {
        let Some(event) = queue.next_until(until) else {
            return if queue.is_empty() { StopReason::Empty } else { StopReason::Horizon };
        };
        model.handle(event, queue);
        left -= 1;
        if left == 0 {
            left = CANCELLATION_INTERVAL;
            if progress.canceled() {
                return StopReason::Canceled;
            }
            if queue.handled() >= most_events {
                return StopReason::Exhausted;
            }
            progress.set(model.share_done());
        }
    }
}
