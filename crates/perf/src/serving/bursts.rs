//! Requests that start together: at the start of a run, and when several sequences end together.

use super::input::{Load, ServingInput};
use crate::constants::Constants;
use crate::constants::documented::{FITTED_FIRST_TURN, TURNS_IN_STEP};

/// Share of the requests that arrive in a burst: at the start of a run, and when several sequences end together.
pub fn burst_share(input: &ServingInput, c: &Constants) -> f64 {
    (first_turn(input) + later_burst_share(input, c)).min(1.0)
}

/// Whether the requests of a closed loop start and end together until the run ends: equal ones, for a few turns.
#[must_use]
pub fn stays_in_step(input: &ServingInput) -> bool {
    let equal = input.longest_output() <= 1.0;
    matches!(input.load, Load::Closed { concurrency, requests } if equal && requests < TURNS_IN_STEP * concurrency)
}

/// Share of the first turn in a run, in which all requests arrive together.
fn first_turn(input: &ServingInput) -> f64 {
    match input.load {
        Load::Closed { concurrency, requests } => concurrency / requests,
        // All requests of a backlog wait at the start, but only those that fit in the deployment's batch run first.
        Load::Burst { requests } if requests.is_finite() => FITTED_FIRST_TURN,
        _ => 0.0,
    }
}

/// Share of the requests that arrive in a burst after the first turn of a run. Requests that started together end
/// together, and so do those that replace them, until their different outputs have spread them over the cycle: after a
/// number of turns. If prefill runs in separate steps, all decoding sequences stall together, which takes longer. A load
/// without an end has no bursts.
pub fn later_burst_share(input: &ServingInput, c: &Constants) -> f64 {
    if stays_in_step(input) {
        return 1.0 - first_turn(input);
    }
    let share = if input.chunked_prefill || input.pools.is_some() { c.burst_share } else { c.burst_share_separate };
    ((share / FITTED_FIRST_TURN - 1.0).max(0.0) * first_turn(input)).min(1.0)
}
