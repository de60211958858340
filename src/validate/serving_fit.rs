//! Fits the serving constants: Levenberg-Marquardt on a robust loss of logarithmic errors with a weak pull towards the
//! literature's values. Deterministic.

use super::serving_rows::{Case, Metric};
use crate::engine::analytical::constants::Field;
use crate::engine::analytical::serving;
use crate::engine::analytical::serving_constants::ServingConstants;
use std::collections::BTreeMap;

/// Error at which the loss (Cauchy's, ln(1 + (e / SCALE)^2)) turns from quadratic to logarithmic: published rows contain
/// untuned runs and mistakes that no constant should chase.
const SCALE: f64 = 0.15;
/// Weight of the pull towards the defaults.
const PULL: f64 = 0.02;

/// What the model predicts for a case's column.
pub fn predicted(case: &Case, c: &ServingConstants) -> f64 {
    let e = serving::estimate(&case.input, c);
    match case.metric {
        Metric::OutputRate => e.output_tokens_per_sec,
        Metric::TotalRate => e.total_tokens_per_sec,
        Metric::RequestRate => e.requests_per_sec,
        Metric::Ttft => e.ttft.mean,
        Metric::Tpot => e.tpot.mean,
    }
}

/// ln(predicted / measured), kept finite.
pub fn log_error(case: &Case, c: &ServingConstants) -> f64 {
    let e = (predicted(case, c) / case.measured).ln();
    if e.is_finite() { e.clamp(-5.0, 5.0) } else { 5.0 }
}

/// A group counts by the square root of its rows.
pub fn weights(cases: &[&Case]) -> Vec<f64> {
    let mut n: BTreeMap<&str, f64> = BTreeMap::new();
    for c in cases {
        *n.entry(c.source.as_str()).or_default() += 1.0;
    }
    let all: Vec<f64> = cases.iter().map(|c| n.get(c.source.as_str()).map_or(0.0, |n| c.weight / n.sqrt())).collect();
    let sum: f64 = all.iter().sum();
    all.iter().map(|w| w / sum.max(1e-12)).collect()
}

type F = &'static Field<ServingConstants>;

fn coordinate(f: F, v: f64) -> f64 {
    if f.low > 0.0 { v.ln() } else { (v - f.low) / (f.high - f.low) }
}

fn value(f: F, x: f64) -> f64 {
    (if f.low > 0.0 { x.exp() } else { f.low + x * (f.high - f.low) }).clamp(f.low, f.high)
}

fn stiffness(f: F) -> f64 {
    let range = if f.low > 0.0 { (f.high / f.low).ln() } else { 1.0 };
    PULL / (0.25 * range).powi(2)
}

fn constants(fields: &[F], base: &ServingConstants, x: &[f64]) -> ServingConstants {
    let mut c = *base;
    for (f, &x) in fields.iter().zip(x) {
        (f.set)(&mut c, value(f, x));
    }
    c
}

/// Solves a symmetric system given as rows `[a | b]`.
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
        if let Some(slot) = x.get_mut(i) {
            *slot = (row.get(n).copied().unwrap_or(0.0) - known) / row.get(i).copied().unwrap_or(1.0);
        }
    }
    x
}

/// Constants that fit `cases` best from `start`; `only` selects the constants that may move.
pub fn fit(cases: &[&Case], start: &ServingConstants, rounds: usize, only: &dyn Fn(&str) -> bool) -> ServingConstants {
    let w = weights(cases);
    let fields: Vec<F> = ServingConstants::FIELDS.iter().filter(|f| f.fitted && only(f.name)).collect();
    let defaults = ServingConstants::literature();
    let prior: Vec<f64> = fields.iter().map(|f| coordinate(f, (f.get)(&defaults))).collect();
    let mut x: Vec<f64> = fields.iter().map(|f| coordinate(f, (f.get)(start))).collect();
    let errors_at = |x: &[f64]| -> Vec<f64> {
        let c = constants(&fields, start, x);
        cases.iter().map(|k| log_error(k, &c)).collect()
    };
    let loss = |e: &[f64], x: &[f64]| -> f64 {
        let data: f64 = e.iter().zip(&w).map(|(e, w)| w * ((e / SCALE).powi(2) + 1.0).ln()).sum();
        data + fields.iter().zip(x.iter().zip(&prior)).map(|(f, (x, p))| stiffness(f) * (x - p).powi(2)).sum::<f64>()
    };
    let mut errors = errors_at(&x);
    let mut at = loss(&errors, &x);
    let mut damping = 1e-2;
    for _ in 0..rounds {
        let jacobian: Vec<Vec<f64>> = fields
            .iter()
            .enumerate()
            .map(|(j, f)| {
                let h = if value(f, x.get(j).copied().unwrap_or(0.0) + 0.01) >= f.high { -0.01 } else { 0.01 };
                let mut moved = x.clone();
                if let Some(v) = moved.get_mut(j) {
                    *v += h;
                }
                errors_at(&moved).iter().zip(&errors).map(|(a, b)| (a - b) / h).collect()
            })
            .collect();
        let pulls: Vec<f64> =
            errors.iter().zip(&w).map(|(e, w)| 2.0 * w / (SCALE * SCALE * ((e / SCALE).powi(2) + 1.0))).collect();
        let before = at;
        for _ in 0..6 {
            let mut rows: Vec<Vec<f64>> = Vec::with_capacity(fields.len());
            for (j, (f, column)) in fields.iter().zip(&jacobian).enumerate() {
                let mut row: Vec<f64> = jacobian
                    .iter()
                    .map(|o| column.iter().zip(o).zip(&pulls).map(|((a, b), p)| a * b * p).sum())
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
            let l = loss(&next_errors, &next);
            if l < at {
                (x, errors, at) = (next, next_errors, l);
                damping = (damping * 0.3).max(1e-6);
                break;
            }
            damping *= 5.0;
        }
        if before - at < 1e-5 * before {
            break;
        }
    }
    constants(&fields, start, &x)
}
