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
    pub beside: f64,
    /// Between the steps.
    pub between: f64,
    /// Total time until a request is admitted.
    pub overhead: f64,
}

impl FrontEnd {
    /// Maximum requests per second.
    pub fn most(&self) -> f64 {
        if self.beside > 0.0 { 1.0 / self.beside } else { f64::INFINITY }
    }

    /// Time outside the engine's loop until a request is admitted.
    pub fn apart(&self) -> f64 {
        self.overhead - self.between
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
        let beside = c.front_end.min(0.5 * overhead);
        let hidden = input.host != HostOverlap::None && !matches!(input.load, Load::Burst { .. });
        FrontEnd { beside, between: if hidden { beside * c.host_exposed } else { beside }, overhead }
    }
}
