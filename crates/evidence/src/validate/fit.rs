//! Fits the constants of hardware, training and serving together, by robust least squares on logarithmic errors.

use super::case::{Case, Input, Metric};
use super::least_squares::{self, Loss, Settings, Weighed};
use super::unit::unit_name;
use atlas_core::math;
use atlas_perf::constants::Constants;
use atlas_perf::serving::ServingEstimate;
use atlas_perf::{serving, training};
use std::collections::BTreeMap;

/// Training: error at which the loss turns from quadratic to linear, so that rows that state too little do not decide.
const TRAINING: Loss = Loss::PseudoHuber { scale: 0.05 };
/// Serving: error at which the loss turns from quadratic to logarithmic; published rows contain untuned runs that no
/// constant should follow.
const SERVING: Loss = Loss::Cauchy { scale: 0.15 };
/// Pull towards the literature: the loss of moving every constant by a quarter of its range.
const PULL: f64 = 0.01;
/// A promised throughput that is not reached, or a latency that is exceeded, harms a plan more than one that is
/// surpassed, and what a fit sees is tuned more often than what it meets.
const OPTIMISM_OF_LATENCIES: f64 = 1.25;
/// The same for throughput.
const OPTIMISM_OF_RATES: f64 = 2.0;
/// Power of a source's rows that it counts with (for latencies, of a model's), so that neither one big sweep nor a handful of rows decides.
const SOURCE_POWER: f64 = 0.5;

/// The figure that a case's column states.
fn figure(case: &Case, e: &ServingEstimate) -> f64 {
    match case.metric {
        Metric::OutputRate | Metric::TrainingRate => e.output_tokens_per_sec,
        Metric::TotalRate => e.total_tokens_per_sec,
        Metric::RequestRate => e.requests_per_sec,
        Metric::Ttft => e.ttft.mean * 1e3,
        Metric::Tpot => e.tpot.mean * 1e3,
    }
}

/// What the closed form predicts for a case, in the unit of its measurement.
#[must_use]
pub fn predicted(case: &Case, c: &Constants) -> f64 {
    predicted_from(case, &case.input, c)
}

/// The same for another input.
fn predicted_from(case: &Case, input: &Input, c: &Constants) -> f64 {
    match input {
        Input::Training(input) => training::estimate(input, c).tokens_per_second_per_accelerator * case.devices,
        Input::Serving(input) => figure(case, &serving::estimate(input, c)),
    }
}

/// ln(predicted / measured), kept finite.
#[must_use]
pub fn log_error(case: &Case, c: &Constants) -> f64 {
    log_ratio(predicted(case, c), case.measured)
}

/// The same under the newest release, as for a user who states none.
#[must_use]
pub fn log_error_without_release(case: &Case, c: &Constants) -> f64 {
    log_ratio(predicted_from(case, &case.without_release, c), case.measured)
}

fn log_ratio(predicted: f64, measured: f64) -> f64 {
    let error = math::ln(predicted / measured);
    if error.is_finite() { error.clamp(-5.0, 5.0) } else { 5.0 }
}

/// What a fit makes small. For serving this is predicted / measured - 1, so that twice too fast counts twice what twice
/// too slow does.
fn judged_error(case: &Case, c: &Constants) -> f64 {
    let log = log_error(case, c);
    if case.metric == Metric::TrainingRate {
        return log;
    }
    let error = math::exp(log.min(2.0)) - 1.0;
    match (case.metric.is_latency(), error > 0.0) {
        (true, false) => OPTIMISM_OF_LATENCIES * error,
        (false, true) => OPTIMISM_OF_RATES * error,
        _ => error,
    }
}

/// Whether a case is judged only: no constant describes the scans of hybrid models in training.
fn judged_only(case: &Case) -> bool {
    case.training().is_some_and(|input| input.arch.linear.is_some())
}

/// Weight of a figure relative to a throughput: one file holds many repeats of the same sweep.
const fn weight_of(case: &Case) -> f64 {
    match case.metric {
        Metric::Tpot => 1.5,
        Metric::Ttft => 0.5,
        _ => 1.0,
    }
}

/// How much every case counts. Training counts twice in all what serving does: its rows state more, so that it decides on hardware.
fn weighed(cases: &[&Case]) -> Vec<Weighed> {
    let training = |case: &Case| case.metric == Metric::TrainingRate;
    let mut rows: BTreeMap<(bool, &str), f64> = BTreeMap::new();
    for case in cases.iter().filter(|case| !judged_only(case)) {
        *rows.entry((training(case), unit_name(case))).or_default() += 1.0;
    }
    let weight = |case: &Case| {
        let n = rows.get(&(training(case), unit_name(case))).copied();
        n.filter(|_| !judged_only(case)).map_or(0.0, |n| weight_of(case) * math::powf(n, SOURCE_POWER - 1.0))
    };
    let total = |of: bool| cases.iter().filter(|case| training(case) == of).map(|case| weight(case)).sum::<f64>();
    let totals = (total(true), total(false));
    let weighed = |case: &&Case| {
        let (share, sum, loss) = if training(case) { (2.0, totals.0, TRAINING) } else { (1.0, totals.1, SERVING) };
        Weighed { weight: share * weight(case) / sum.max(1e-12), loss, group: usize::from(training(case)) }
    };
    cases.iter().map(weighed).collect()
}

/// The constants that fit the cases best. Every fit starts from values of the literature, so that folds are independent.
#[must_use]
pub fn fit(cases: &[&Case]) -> Constants {
    let prior = Constants::literature();
    let settings = Settings { pull: PULL, gain: 1e-4, rounds: 30 };
    let error = |row: usize, c: &Constants| cases.get(row).map_or(0.0, |case| judged_error(case, c));
    least_squares::fit(Constants::FIELDS, &prior, &weighed(cases), &settings, error)
}
