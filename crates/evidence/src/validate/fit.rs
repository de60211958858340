//! Fits the constants of hardware, training and serving together, by robust least squares of logarithmic errors.

use super::case::{Case, Input, Metric};
use super::least_squares::{self, Loss, Settings, WeightedRow};
use super::unit::unit_name;
use atlas_core::math;
use atlas_perf::constants::Constants;
use atlas_perf::serving::ServingEstimate;
use atlas_perf::{serving, training};
use std::collections::BTreeMap;

/// Training: error at which the loss turns from quadratic to linear, so that rows with too little information do not
/// dominate.
const TRAINING: Loss = Loss::PseudoHuber { scale: 0.05 };
/// Serving: error at which the loss turns from quadratic to logarithmic. Published rows include untuned runs that no
/// constant should follow.
const SERVING: Loss = Loss::Cauchy { scale: 0.15 };
/// Regularization toward literature values: the loss of moving a constant by a quarter of its range.
const REGULARIZATION: f64 = 0.01;
/// Factor on errors of latencies that are too optimistic. A throughput that is not reached, or a latency that is
/// exceeded, is worse for a plan than one that is surpassed. In addition, published runs are tuned more often than
/// those of users.
const OPTIMISM_OF_LATENCIES: f64 = 1.25;
/// Factor on errors of throughput that are too optimistic.
const OPTIMISM_OF_RATES: f64 = 2.0;
/// A source (for latencies, a model) has a total weight of its number of rows to this power, so that neither a large
/// sweep nor a handful of rows dominates.
const SOURCE_POWER: f64 = 0.5;

/// Value of the case's metric in an estimate.
fn figure(case: &Case, e: &ServingEstimate) -> f64 {
    match case.metric {
        Metric::OutputRate | Metric::TrainingRate => e.output_tokens_per_sec,
        Metric::TotalRate => e.total_tokens_per_sec,
        Metric::RequestRate => e.requests_per_sec,
        Metric::Ttft => e.ttft.mean * 1e3,
        Metric::Tpot => e.tpot.mean * 1e3,
    }
}

/// Prediction of the closed form for a case, in the unit of its measurement.
#[must_use]
pub fn predicted(case: &Case, c: &Constants) -> f64 {
    predicted_from(case, &case.input, c)
}

/// Like [`predicted`], for another input.
fn predicted_from(case: &Case, input: &Input, c: &Constants) -> f64 {
    match input {
        Input::Training(input) => training::estimate(input, c).tokens_per_second_per_accelerator * case.devices,
        Input::Serving(input) => figure(case, &serving::estimate(input, c)),
    }
}

/// ln(predicted / measured), limited to finite values.
#[must_use]
pub fn log_error(case: &Case, c: &Constants) -> f64 {
    log_ratio(predicted(case, c), case.measured)
}

/// Like [`log_error`], but with the newest release, as for a user who does not specify one.
#[must_use]
pub fn log_error_without_release(case: &Case, c: &Constants) -> f64 {
    log_ratio(predicted_from(case, &case.without_release, c), case.measured)
}

fn log_ratio(predicted: f64, measured: f64) -> f64 {
    let error = math::ln(predicted / measured);
    if error.is_finite() { error.clamp(-5.0, 5.0) } else { 5.0 }
}

/// Error that the fit minimizes. For serving this is predicted / measured - 1, so that a prediction twice as fast has
/// twice the error of one twice as slow.
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

/// Whether a case is evaluated but not fitted: no constant describes the scans of hybrid models in training.
fn judged_only(case: &Case) -> bool {
    case.training().is_some_and(|input| input.arch.linear.is_some())
}

/// Weight of a metric relative to a throughput: one file contains many repetitions of the same sweep.
const fn weight_of(case: &Case) -> f64 {
    match case.metric {
        Metric::Tpot => 1.5,
        Metric::Ttft => 0.5,
        _ => 1.0,
    }
}

/// Weights of all cases. Training has twice the total weight of serving: its rows contain more information, so it
/// determines the hardware constants.
fn weighted_cases(cases: &[&Case]) -> Vec<WeightedRow> {
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
        WeightedRow { weight: share * weight(case) / sum.max(1e-12), loss, group: usize::from(training(case)) }
    };
    cases.iter().map(weighed).collect()
}

/// Returns the constants that best fit the cases. Every fit starts from literature values, so that folds are
/// independent.
#[must_use]
pub fn fit(cases: &[&Case]) -> Constants {
    let prior = Constants::literature();
    let settings = Settings { pull: REGULARIZATION, gain: 1e-4, rounds: 30 };
    let error = |row: usize, c: &Constants| cases.get(row).map_or(0.0, |case| judged_error(case, c));
    least_squares::fit(Constants::FIELDS, &prior, &weighted_cases(cases), &settings, error)
}
