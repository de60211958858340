//! Fits the constants to measurements: Levenberg-Marquardt on a robust loss of the logarithmic error, with a weak
//! pull towards the literature's values. Deterministic: no randomness, same rows in, same constants out.

use super::training_rows::Case;
use crate::engine::analytical::constants::{Constants, Field};
use crate::engine::analytical::training;
use std::collections::BTreeMap;

/// Error at which the loss turns from quadratic to linear, so that rows that state too little do not decide.
const SCALE: f64 = 0.05;
/// Weight of the pull: the loss of moving every constant by a quarter of its range.
const PULL: f64 = 0.004;

/// Natural logarithm of predicted over measured throughput.
pub fn log_error(case: &Case, c: &Constants) -> f64 {
    let e = training::estimate(&case.input, c);
    (e.tokens_per_second_per_accelerator * case.devices / case.measured).ln()
}

/// Weight of each case: a source counts by its size to the power 0.65, so that neither one big sweep nor a handful of
/// rows decides.
pub fn weights(cases: &[&Case]) -> Vec<f64> {
    let mut n: BTreeMap<&str, f64> = BTreeMap::new();
    for c in cases {
        *n.entry(c.source.as_str()).or_default() += 1.0;
    }
    let all: Vec<f64> = cases.iter().map(|c| n.get(c.source.as_str()).map_or(0.0, |n| n.powf(-0.35))).collect();
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

/// A constant on the scale that the fit walks: logarithmic where it is positive, else its share of the range.
fn coordinate(f: &Field<Constants>, v: f64) -> f64 {
    if f.low > 0.0 { v.ln() } else { (v - f.low) / (f.high - f.low) }
}

fn value(f: &Field<Constants>, x: f64) -> f64 {
    let v = if f.low > 0.0 { x.exp() } else { f.low + x * (f.high - f.low) };
    v.clamp(f.low, f.high)
}

/// What a unit of coordinate weighs in the pull: a constant's range counts the same for all.
fn stiffness(f: &Field<Constants>) -> f64 {
    let range = if f.low > 0.0 { (f.high / f.low).ln() } else { 1.0 };
    PULL / (0.25 * range).powi(2)
}

fn constants(fields: &[&Field<Constants>], base: &Constants, x: &[f64]) -> Constants {
    let mut c = *base;
    for (f, &x) in fields.iter().zip(x) {
        (f.set)(&mut c, value(f, x));
    }
    c
}

fn loss(errors: &[f64], w: &[f64], fields: &[&Field<Constants>], x: &[f64], prior: &[f64]) -> f64 {
    let data: f64 = errors.iter().zip(w).map(|(e, w)| w * (((e / SCALE).powi(2) + 1.0).sqrt() - 1.0)).sum();
    let pull: f64 = fields.iter().zip(x.iter().zip(prior)).map(|(f, (x, p))| stiffness(f) * (x - p).powi(2)).sum();
    data + pull
}

/// Solves the symmetric system in place by Gaussian elimination; rows are `[a | b]`.
fn solve(rows: &mut [Vec<f64>]) -> Vec<f64> {
    let n = rows.len();
    for i in 0..n {
        let (head, tail) = rows.split_at_mut(i + 1);
        let Some(pivot_row) = head.last() else { break };
        let pivot = pivot_row.get(i).copied().unwrap_or(1.0);
        for row in tail {
            let factor = row.get(i).copied().unwrap_or(0.0) / pivot;
            for (a, b) in row.iter_mut().zip(pivot_row).skip(i) {
                *a -= factor * b;
            }
        }
    }
    let mut x = vec![0.0; n];
    for (i, row) in rows.iter().enumerate().rev() {
        let known: f64 = row.iter().zip(&x).skip(i + 1).map(|(a, x)| a * x).sum();
        let right = row.get(n).copied().unwrap_or(0.0);
        if let Some(slot) = x.get_mut(i) {
            *slot = (right - known) / row.get(i).copied().unwrap_or(1.0);
        }
    }
    x
}

/// Constants that fit `cases` best, from `start`, in at most `rounds` steps.
pub fn fit(cases: &[&Case], start: &Constants, rounds: usize) -> Constants {
    let w = weights(cases);
    let fields: Vec<&Field<Constants>> = Constants::FIELDS.iter().filter(|f| f.fitted).collect();
    let centre = prior();
    let prior: Vec<f64> = fields.iter().map(|f| coordinate(f, (f.get)(&centre))).collect();
    let mut x: Vec<f64> = fields.iter().map(|f| coordinate(f, (f.get)(start))).collect();
    let errors_at = |x: &[f64]| -> Vec<f64> {
        let c = constants(&fields, start, x);
        cases.iter().map(|k| log_error(k, &c)).collect()
    };
    let mut errors = errors_at(&x);
    let mut at = loss(&errors, &w, &fields, &x, &prior);
    let mut damping = 1e-2;
    for _ in 0..rounds {
        let jacobian: Vec<Vec<f64>> = fields
            .iter()
            .enumerate()
            .map(|(j, f)| {
                // Step inwards from an upper bound, so that the difference is never zero for want of room.
                let h = if value(f, x.get(j).copied().unwrap_or(0.0) + 0.01) >= f.high { -0.01 } else { 0.01 };
                let mut moved = x.clone();
                if let Some(v) = moved.get_mut(j) {
                    *v += h;
                }
                errors_at(&moved).iter().zip(&errors).map(|(a, b)| (a - b) / h).collect()
            })
            .collect();
        let pulls: Vec<f64> =
            errors.iter().zip(&w).map(|(e, w)| w / (SCALE * SCALE * ((e / SCALE).powi(2) + 1.0).sqrt())).collect();
        let mut improved = false;
        for _ in 0..6 {
            let mut rows: Vec<Vec<f64>> = Vec::with_capacity(fields.len());
            for (j, (f, column)) in fields.iter().zip(&jacobian).enumerate() {
                let mut row: Vec<f64> = jacobian
                    .iter()
                    .map(|other| column.iter().zip(other).zip(&pulls).map(|((a, b), p)| a * b * p).sum())
                    .collect();
                let soft = 2.0 * stiffness(f);
                let (here, there) = (x.get(j).copied().unwrap_or(0.0), prior.get(j).copied().unwrap_or(0.0));
                let gradient: f64 = column.iter().zip(&errors).zip(&pulls).map(|((a, e), p)| a * e * p).sum();
                if let Some(d) = row.get_mut(j) {
                    *d += soft + damping * (*d + soft) + 1e-9;
                }
                row.push(-(gradient + soft * (here - there)));
                rows.push(row);
            }
            let step = solve(&mut rows);
            let next: Vec<f64> = fields
                .iter()
                .zip(x.iter().zip(&step))
                .map(|(f, (x, d))| coordinate(f, value(f, x + d.clamp(-0.5, 0.5))))
                .collect();
            let next_errors = errors_at(&next);
            let l = loss(&next_errors, &w, &fields, &next, &prior);
            if l < at {
                improved = at - l > 1e-6 * at;
                (x, errors, at) = (next, next_errors, l);
                damping = (damping * 0.3).max(1e-6);
                break;
            }
            damping *= 5.0;
        }
        if !improved {
            break;
        }
    }
    constants(&fields, start, &x)
}
