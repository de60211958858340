//! What a Python engine does for each request outside its steps, one after the other.

use super::input::{HostOverlap, Load, ServingInput, Stack};
use crate::constants::Constants;

/// Seconds that every request costs.
///
/// A front end takes requests one after the other, and the engine's loop takes each of them from it between two steps
/// (it reads its socket there): the work is there twice, once alongside the steps and
/// once in their way. A loop that runs ahead of the accelerator hides most of its part, as it hides its other work; but
/// where all requests are at hand, whoever hands them out and collects the answers does so between the steps (as
/// offline drivers do).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct FrontEnd {
    /// Alongside the steps.
    pub beside: f64,
    /// In their way.
    pub between: f64,
    /// All that passes until a request has been let in.
    pub overhead: f64,
}

impl FrontEnd {
    /// Requests per second that it takes at most.
    pub fn most(&self) -> f64 {
        if self.beside > 0.0 { 1.0 / self.beside } else { f64::INFINITY }
    }

    /// What passes outside the engine's loop until a request has been let in.
    pub fn apart(&self) -> f64 {
        self.overhead - self.between
    }

    /// The front end of a deployment under its load. A batch whose phases are timed has none.
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
