//! When a scheduler admits requests, in decode steps.

use super::input::{Admission, ServingInput};

/// Maximum number of steps for which a scheduler holds prompts back until every attention group has one, since all
/// groups wait for one that computes a prompt (`attention_dp_config`: `timeout_iters`, 50 by default).
pub const BALANCE_STEPS: u32 = 50;

/// Number of decode steps for which the first of several prompts is held back until every attention group has one, at
/// `arrivals` requests per step.
pub(super) fn balancing_steps(input: &ServingInput, arrivals: f64) -> f64 {
    let groups = f64::from(input.layout.attention_dp);
    if input.admission != Admission::Batched || groups <= 1.0 {
        return 0.0;
    }
    ((groups - 1.0) / arrivals.max(1e-9)).min(f64::from(BALANCE_STEPS))
}

/// Number of decode steps whose arrivals are admitted together, at `arrivals` requests per step, if one decodes for
/// `life` steps.
pub(super) fn admission_interval(input: &ServingInput, arrivals: f64, life: f64) -> f64 {
    let gathered = input.gathering.map_or(1.0, |gathering| gathering.interval(life));
    let polled = if input.admission == Admission::Polled { f64::from(input.recv_interval) } else { 1.0 };
    gathered.max(polled).max(balancing_steps(input, arrivals))
}
