//! Fits the constants of training to measurements, by the robust least squares of `least_squares`.

use super::case::Case;
use super::least_squares::{self, Loss, Robust};
use atlas_perf::constants::Constants;
use atlas_perf::training;
use std::collections::BTreeMap;

/// Error at which the loss turns from quadratic to linear, so that rows that state too little do not decide.
const SCALE: f64 = 0.05;
/// Weight of the pull: the loss of moving every constant by a quarter of its range.
const PULL: f64 = 0.004;

/// Natural logarithm of predicted over measured throughput.
pub fn log_error(case: &Case, c: &Constants) -> f64 {
    let Some(input) = case.training() else { return 0.0 };
    let e = training::estimate(input, c);
    (e.tokens_per_second_per_accelerator * case.devices / case.measured).ln()
}

/// Whether the model has layers of linear attention.
fn hybrid(case: &Case) -> bool {
    case.training().is_some_and(|input| input.arch.linear.is_some())
}

/// Weight of each case: a source counts by its size to the power 0.65, so that neither one big sweep nor a handful of
/// rows decides. Hybrids are judged but not fitted: no constant describes the kernels of their scans.
pub fn weights(cases: &[&Case]) -> Vec<f64> {
    let mut n: BTreeMap<&str, f64> = BTreeMap::new();
    for c in cases.iter().filter(|c| !hybrid(c)) {
        *n.entry(c.source.as_str()).or_default() += 1.0;
    }
    let weight = |c: &&Case| {
        if hybrid(c) { 0.0 } else { n.get(c.source.as_str()).map_or(0.0, |n| n.powf(-0.35)) }
    };
    let all: Vec<f64> = cases.iter().map(weight).collect();
    let sum: f64 = all.iter().sum();
    all.iter().map(|w| w / sum).collect()
}

/// Where a fit starts, and towards what it is pulled: round values from the literature that the doc comments of
/// [`Constants`] name, never an earlier fit.
pub fn prior() -> Constants {
    Constants {
        gemm_ampere: 0.85,
        gemm_hopper: 0.75,
        gemm_blackwell: 0.70,
        gemm_young: 0.50,
        gemm_other: 0.60,
        gemm_k_half: 64.0,
        block_intensity: 1500.0,
        grouped_gemm: 0.80,
        cast_traffic: 2.0,
        fused_traffic: 1.0,
        dispatch_unfused: 3.0,
        tensor_exposed: 0.7,
        kernel_gap: 6.0e-6,
        ..Constants::default()
    }
}

/// Constants that fit `cases` best, from `start`, in at most `rounds` steps.
pub fn fit(cases: &[&Case], start: &Constants, rounds: usize) -> Constants {
    let how = Robust { loss: Loss::PseudoHuber, scale: SCALE, pull: PULL, gain: 1e-6, rounds };
    let errors = |c: &Constants| cases.iter().map(|case| log_error(case, c)).collect();
    least_squares::fit(Constants::FIELDS, start, &prior(), &weights(cases), &how, errors)
}
