//! Fits the serving constants: Levenberg-Marquardt on a robust loss of logarithmic errors with a weak pull towards the
//! literature's values. Deterministic.

use super::case::{Case, Metric};
use super::least_squares::{self, Loss, Robust};
use atlas_perf::serving;
use atlas_perf::serving_constants::ServingConstants;
use std::collections::BTreeMap;

/// Error at which the loss (Cauchy's, ln(1 + (e / SCALE)^2)) turns from quadratic to logarithmic: published rows contain
/// untuned runs and mistakes that no constant should chase.
const SCALE: f64 = 0.15;
/// Weight of the pull towards the defaults.
const PULL: f64 = 0.02;

/// What the model predicts for a case's column.
pub fn predicted(case: &Case, c: &ServingConstants) -> f64 {
    let Some(input) = case.serving() else { return case.measured };
    figure(case, &serving::estimate(input, c))
}

/// The figure that a case's column states.
pub(super) fn figure(case: &Case, e: &serving::ServingEstimate) -> f64 {
    match case.metric {
        Metric::OutputRate | Metric::TrainingRate => e.output_tokens_per_sec,
        Metric::TotalRate => e.total_tokens_per_sec,
        Metric::RequestRate => e.requests_per_sec,
        Metric::Ttft => e.ttft.mean * 1e3,
        Metric::Tpot => e.tpot.mean * 1e3,
    }
}

/// ln(predicted / measured), kept finite.
pub fn log_error(case: &Case, c: &ServingConstants) -> f64 {
    let e = (predicted(case, c) / case.measured).ln();
    if e.is_finite() { e.clamp(-5.0, 5.0) } else { 5.0 }
}

/// What an error in the optimistic direction weighs: a throughput promised and not reached, a latency promised and
/// exceeded, harms a plan more than one that is surpassed, and what a fit sees is tuned more often than what it meets.
const OPTIMISM: f64 = 1.75;
/// The same for throughput, whose tail is almost all on that side: eight of nine errors beyond 45 % are promises not kept.
const OPTIMISM_OF_RATES: f64 = 2.0;

/// What a fit makes small: the error that is judged, predicted / measured - 1, so that twice too fast counts twice what
/// twice too slow does. A prediction many times too large should not decide.
fn judged_error(case: &Case, c: &ServingConstants) -> f64 {
    let error = log_error(case, c).min(2.0).exp() - 1.0;
    let latency = matches!(case.metric, Metric::Ttft | Metric::Tpot);
    match (latency, error > 0.0) {
        (true, false) => OPTIMISM * error,
        (false, true) => OPTIMISM_OF_RATES * error,
        _ => error,
    }
}

/// Weight of a figure relative to a throughput: one file holds many repeats of the same sweep.
const fn weight_of(case: &Case) -> f64 {
    match case.metric {
        Metric::Tpot => 1.5,
        Metric::Ttft => 0.5,
        _ => 1.0,
    }
}

/// A group counts by the square root of its rows.
pub fn weights(cases: &[&Case]) -> Vec<f64> {
    let mut n: BTreeMap<&str, f64> = BTreeMap::new();
    for c in cases {
        *n.entry(c.source.as_str()).or_default() += 1.0;
    }
    let all: Vec<f64> =
        cases.iter().map(|c| n.get(c.source.as_str()).map_or(0.0, |n| weight_of(c) / n.sqrt())).collect();
    let sum: f64 = all.iter().sum();
    all.iter().map(|w| w / sum.max(1e-12)).collect()
}

/// Constants that fit `cases` best, from `start`, in at most `rounds` steps.
pub fn fit(cases: &[&Case], start: &ServingConstants, rounds: usize) -> ServingConstants {
    let how = Robust { loss: Loss::Cauchy, scale: SCALE, pull: PULL, gain: 1e-5, rounds };
    let errors = |c: &ServingConstants| cases.iter().map(|case| judged_error(case, c)).collect();
    let prior = ServingConstants::literature();
    least_squares::fit(ServingConstants::FIELDS, start, &prior, &weights(cases), &how, errors)
}
