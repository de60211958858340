//! The throughput-interactivity frontier: throughput per accelerator against tokens per second per user, over
//! concurrency.

use super::{Load, ServingEstimate, ServingInput, estimate};
use crate::constants::Constants;
use atlas_core::math;

/// Estimates at concurrencies 1, 2, 4 ... up to `max_concurrency`. Stops at the highest throughput per accelerator:
/// points beyond it only have longer waits and are not on the frontier.
pub fn frontier<'a>(
    input: &'a ServingInput,
    c: &'a Constants,
    max_concurrency: f64,
) -> impl Iterator<Item = (f64, ServingEstimate)> + 'a {
    let points = math::log2(max_concurrency.max(1.0)).floor() as u32;
    let mut best = 0.0;
    (0..=points.min(24))
        .map(move |i| {
            let concurrency = f64::from(1u32 << i);
            let load = Load::Closed { concurrency, requests: f64::INFINITY };
            (concurrency, estimate(&ServingInput { load, ..*input }, c))
        })
        .take_while(move |(_, e)| {
            let grows = e.output_tokens_per_sec_per_accelerator > best;
            best = e.output_tokens_per_sec_per_accelerator;
            grows
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_rises_and_interactivity_falls_along_the_frontier() {
        let (input, c) = (ServingInput::default(), Constants::default());
        let mut last: Option<ServingEstimate> = None;
        let mut n = 0;
        for (_, e) in frontier(&input, &c, 4096.0) {
            if let Some(l) = last {
                assert!(e.output_tokens_per_sec_per_accelerator > l.output_tokens_per_sec_per_accelerator);
                assert!(e.tokens_per_sec_per_user <= 1.001 * l.tokens_per_sec_per_user);
            }
            last = Some(e);
            n += 1;
        }
        assert!(n > 3, "{n}");
    }
}
