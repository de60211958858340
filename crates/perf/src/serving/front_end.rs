//! Serial work of a Python engine per request, outside its steps.

use super::input::{HostOverlap, Load, ServingInput, Stack};
use crate::constants::Constants;

/// Time per request, s.
///
/// A front end handles requests one by one, and the engine's loop reads each of them from a socket between two steps.
/// The work thus occurs twice: once overlapping with the steps and once between them. A loop that runs ahead of the
/// accelerator hides most of its part, like its other work. If all requests are available at the start, they are
/// submitted, and responses collected, between the steps (as by offline drivers).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FrontEnd {
    /// Overlapping with the steps.
    pub overlapped_seconds: f64,
    /// Between the steps.
    pub blocking_seconds: f64,
    /// Total time until a request is admitted.
    pub overhead: f64,
}

impl FrontEnd {
    /// Maximum requests per second.
    pub fn max_request_rate(&self) -> f64 {
        if self.overlapped_seconds > 0.0 { 1.0 / self.overlapped_seconds } else { f64::INFINITY }
    }

    /// Time outside the engine's loop until a request is admitted.
    pub fn admission_delay(&self) -> f64 {
        self.overhead - self.blocking_seconds
    }

    /// The front end of a deployment under its load. Batches whose phases are timed have none.
    pub fn of(input: &ServingInput, c: &Constants) -> FrontEnd {
        if matches!(input.load, Load::Static { .. } | Load::DecodeOnly { .. } | Load::PrefillOnly { .. }) {
            return FrontEnd::default();
        }
        let overhead = c.request_overhead;
        if input.stack != Stack::Graphed {
            return FrontEnd { overhead, ..FrontEnd::default() };
        }
        let overlapped_seconds = c.front_end.min(0.5 * overhead);
        let hidden = input.host != HostOverlap::None && !matches!(input.load, Load::Burst { .. });
        FrontEnd {
            overlapped_seconds,
            blocking_seconds: if hidden { overlapped_seconds * c.host_exposed } else { overlapped_seconds },
            overhead,
        }
    }
}
