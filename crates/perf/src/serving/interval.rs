//! 90 % prediction intervals: factors on a figure between which a measurement lies in nine cases of ten.
//!
//! Split conformal (Lei et al., JASA 113, 2018) on the residuals of sources, and of models for latency, that the fit did
//! not see; a group counts by the square root of its rows. `atlas validate --fit` prints the table. Few models stand behind
//! separate pools, so their TPOT takes the wider of both.

use super::input::{Load, ServingInput, Stack};
use crate::accelerator::Generation;

/// Factors on a predicted figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factors {
    /// Lower factor.
    pub low: f64,
    /// Upper factor.
    pub high: f64,
}

impl Factors {
    const fn new(low: f64, high: f64) -> Factors {
        Factors { low, high }
    }

    /// The interval of a figure.
    pub fn of(self, figure: f64) -> (f64, f64) {
        (self.low * figure, self.high * figure)
    }
}

/// Wider than every measured regime: where little or nothing like it was measured.
const UNMEASURED: Factors = Factors::new(0.20, 3.50);

/// Whether at least thirty published rows stand behind a family of accelerators under this kind of runtime.
fn measured(input: &ServingInput) -> bool {
    use Generation::{Cdna2, Cdna3, Cdna4, Gaudi, Trainium};
    let g = input.accelerator.generation;
    g.is_nvidia() || (input.stack != Stack::Local && matches!(g, Cdna2 | Cdna3 | Cdna4 | Gaudi | Trainium))
}

/// Factors on throughput.
pub fn throughput(input: &ServingInput) -> Factors {
    if !measured(input) {
        return UNMEASURED;
    }
    match input.load {
        Load::Closed { .. } => Factors::new(0.27, 2.16),
        Load::DecodeOnly { .. } => Factors::new(0.63, 3.08),
        Load::Burst { .. } => Factors::new(0.31, 1.79),
        Load::Open { .. } => Factors::new(0.51, 2.50),
        Load::Static { batch } | Load::PrefillOnly { batch } if batch > 1.0 => Factors::new(0.39, 1.79),
        Load::Static { .. } | Load::PrefillOnly { .. } => Factors::new(0.51, 1.90),
    }
}

/// Factors on TPOT.
pub fn tpot(input: &ServingInput) -> Factors {
    if measured(input) { Factors::new(0.55, 1.33) } else { Factors::new(1.0 / UNMEASURED.high, 1.0 / UNMEASURED.low) }
}

/// Factors on TTFT: wide above, since overloaded and cold servers are among the measured.
pub fn ttft(input: &ServingInput) -> Factors {
    match (measured(input), input.pools.is_some()) {
        (true, false) => Factors::new(0.42, 3.29),
        _ => Factors::new(0.26, 12.60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_point_lies_inside_and_the_unmeasured_is_wider() {
        let known = ServingInput::default();
        let mut unknown = known;
        unknown.accelerator.generation = Generation::Other;
        for f in [throughput, tpot, ttft] {
            let (k, u) = (f(&known), f(&unknown));
            assert!(k.low < 1.0 && k.high > 1.0);
            assert!(u.low <= k.low && u.high >= k.high);
        }
    }
}
