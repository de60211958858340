//! Fits constants to measurements: Levenberg–Marquardt on a robust loss of logarithmic errors, with a weak
//! regularization toward the initial values. Deterministic: the same rows give the same constants.

use atlas_core::math;
use atlas_perf::constants::Field;

/// A loss that grows more slowly than a square for large errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Loss {
    /// `sqrt(1 + (e/s)²) − 1`: linear for large errors (pseudo-Huber).
    PseudoHuber {
        /// Error at which the loss turns from quadratic to linear.
        scale: f64,
    },
    /// `ln(1 + (e/s)²)`: logarithmic for large errors (Cauchy).
    Cauchy {
        /// Error at which the loss turns from quadratic to logarithmic.
        scale: f64,
    },
}

impl Loss {
    fn of(self, error: f64) -> f64 {
        match self {
            Loss::PseudoHuber { scale } => ((error / scale).powi(2) + 1.0).sqrt() - 1.0,
            Loss::Cauchy { scale } => math::ln((error / scale).powi(2) + 1.0),
        }
    }

    /// Derivative of the loss over the error: the weight of an error in the normal equations.
    fn weight(self, error: f64) -> f64 {
        match self {
            Loss::PseudoHuber { scale } => 1.0 / (scale * scale * ((error / scale).powi(2) + 1.0).sqrt()),
            Loss::Cauchy { scale } => 2.0 / (scale * scale * ((error / scale).powi(2) + 1.0)),
        }
    }
}

/// Weight and loss of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightedRow {
    /// Weight of the row.
    pub(super) weight: f64,
    /// Loss of the row.
    pub(super) loss: Loss,
    /// Group of the row. Rows of one group depend on the same constants.
    pub(super) group: usize,
}

/// Regularization and termination of a fit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    /// Loss of moving a constant by a quarter of its range.
    pub(super) pull: f64,
    /// Minimum relative improvement in a round for another round to follow.
    pub(super) gain: f64,
    /// Maximum number of rounds.
    pub(super) rounds: usize,
}

impl Settings {
    /// Weight of a unit of the coordinate in the regularization, such that the range of every constant counts the same.
    fn regularization_weight<T>(&self, f: &Field<T>) -> f64 {
        let range = if f.low > 0.0 { math::ln(f.high / f.low) } else { 1.0 };
        self.pull / (0.25 * range).powi(2)
    }
}

/// Converts a constant to the scale of the fit: its logarithm if it is positive, otherwise its position in the range.
fn coordinate<T>(f: &Field<T>, v: f64) -> f64 {
    if f.low > 0.0 { math::ln(v) } else { (v - f.low) / (f.high - f.low) }
}

fn value<T>(f: &Field<T>, x: f64) -> f64 {
    let v = if f.low > 0.0 { math::exp(x) } else { f.low + x * (f.high - f.low) };
    v.clamp(f.low, f.high)
}

fn constants<T: Copy>(fields: &[&Field<T>], base: &T, x: &[f64]) -> T {
    let mut c = *base;
    for (f, &x) in fields.iter().zip(x) {
        (f.set)(&mut c, value(f, x));
    }
    c
}

/// Solves the symmetric system in place by Gaussian elimination. Rows are `[a | b]`.
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

/// Returns the constants with the smallest errors. The fit starts from `prior`, toward which it is also regularized,
/// and changes only fields marked as fitted. `error` returns the error of a row.
pub(super) fn fit<T: Copy>(
    all: &[Field<T>],
    prior: &T,
    rows: &[WeightedRow],
    settings: &Settings,
    error: impl Fn(usize, &T) -> f64,
) -> T {
    let fields: Vec<&Field<T>> = all.iter().filter(|f| f.fitted).collect();
    let prior_x: Vec<f64> = fields.iter().map(|f| coordinate(f, (f.get)(prior))).collect();
    let mut x = prior_x.clone();
    let errors_at = |x: &[f64], groups: &[bool], known: &[f64]| -> Vec<f64> {
        let c = constants(&fields, prior, x);
        let row_error = |(row, weighted): (usize, &WeightedRow)| match groups.get(weighted.group) {
            _ if weighted.weight <= 0.0 => 0.0,
            Some(false) => known.get(row).copied().unwrap_or(0.0),
            _ => error(row, &c),
        };
        rows.iter().enumerate().map(row_error).collect()
    };
    // Groups of rows that each constant affects; all groups until the first derivatives are known.
    let groups = rows.iter().map(|row| row.group + 1).max().unwrap_or(0);
    let mut affected = vec![vec![true; groups]; fields.len()];
    let loss = |errors: &[f64], x: &[f64]| -> f64 {
        let data: f64 = errors.iter().zip(rows).map(|(e, row)| row.weight * row.loss.of(*e)).sum();
        let prior = fields
            .iter()
            .zip(x.iter().zip(&prior_x))
            .map(|(f, (x, p))| settings.regularization_weight(f) * (x - p).powi(2));
        data + prior.sum::<f64>()
    };
    let all_groups = vec![true; groups];
    let mut errors = errors_at(&x, &all_groups, &[]);
    let mut current_loss = loss(&errors, &x);
    let mut damping = 1e-2;
    for round in 0..settings.rounds {
        let jacobian: Vec<Vec<f64>> = fields
            .iter()
            .enumerate()
            .map(|(j, f)| {
                // Step inwards from an upper bound, so that clamping does not make the difference zero.
                let h = if value(f, x.get(j).copied().unwrap_or(0.0) + 0.01) >= f.high { -0.01 } else { 0.01 };
                let mut moved = x.clone();
                if let Some(v) = moved.get_mut(j) {
                    *v += h;
                }
                let groups = affected.get(j).unwrap_or(&all_groups);
                errors_at(&moved, groups, &errors).iter().zip(&errors).map(|(a, b)| (a - b) / h).collect()
            })
            .collect();
        if round == 0 {
            for (groups, column) in affected.iter_mut().zip(&jacobian) {
                for (group, affects) in groups.iter_mut().enumerate() {
                    *affects = rows.iter().zip(column).any(|(row, d)| row.group == group && *d != 0.0);
                }
            }
        }
        let weights: Vec<f64> = errors.iter().zip(rows).map(|(e, row)| row.weight * row.loss.weight(*e)).collect();
        let previous_loss = current_loss;
        for _ in 0..6 {
            let mut equations: Vec<Vec<f64>> = Vec::with_capacity(fields.len());
            for (j, (f, column)) in fields.iter().zip(&jacobian).enumerate() {
                let mut row: Vec<f64> = jacobian
                    .iter()
                    .map(|other| column.iter().zip(other).zip(&weights).map(|((a, b), w)| a * b * w).sum())
                    .collect();
                let stiffness = 2.0 * settings.regularization_weight(f);
                let (own, prior) = (x.get(j).copied().unwrap_or(0.0), prior_x.get(j).copied().unwrap_or(0.0));
                let gradient: f64 = column.iter().zip(&errors).zip(&weights).map(|((a, e), w)| a * e * w).sum();
                if let Some(d) = row.get_mut(j) {
                    *d += stiffness + damping * (*d + stiffness) + 1e-9;
                }
                row.push(-(gradient + stiffness * (own - prior)));
                equations.push(row);
            }
            let step = solve(&mut equations);
            let next: Vec<f64> = fields
                .iter()
                .zip(x.iter().zip(&step))
                .map(|(f, (x, d))| coordinate(f, value(f, x + d.clamp(-0.5, 0.5))))
                .collect();
            let next_errors = errors_at(&next, &all_groups, &[]);
            let next_loss = loss(&next_errors, &next);
            if next_loss < current_loss {
                (x, errors, current_loss) = (next, next_errors, next_loss);
                damping = (damping * 0.3).max(1e-6);
                break;
            }
            damping *= 5.0;
        }
        if previous_loss - current_loss <= settings.gain * previous_loss {
            break;
        }
    }
    constants(&fields, prior, &x)
}
