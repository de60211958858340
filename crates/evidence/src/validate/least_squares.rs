//! Constants fitted to measurements: Levenberg–Marquardt on a robust loss of logarithmic errors, with a weak pull towards
//! where they started. Deterministic: no randomness, same rows in, same constants out.

use atlas_perf::constants::Field;

/// Where a robust loss stops growing quadratically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    /// `sqrt(1 + (e/s)²) − 1`: linear for large errors (pseudo-Huber).
    PseudoHuber,
    /// `ln(1 + (e/s)²)`: logarithmic for large errors (Cauchy).
    Cauchy,
}

/// How a fit weighs errors and when it ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Robust {
    /// The shape of the loss.
    pub(super) loss: Loss,
    /// Error at which it turns from quadratic to its tail.
    pub(super) scale: f64,
    /// Loss of moving every constant by a quarter of its range.
    pub(super) pull: f64,
    /// Smallest relative gain of a round that asks for another.
    pub(super) gain: f64,
    /// Most rounds.
    pub(super) rounds: usize,
}

impl Robust {
    fn loss_of(&self, error: f64) -> f64 {
        let square = (error / self.scale).powi(2) + 1.0;
        match self.loss {
            Loss::PseudoHuber => square.sqrt() - 1.0,
            Loss::Cauchy => square.ln(),
        }
    }

    /// The loss's derivative over the error: what an error weighs in the normal equations.
    fn weight_of(&self, error: f64) -> f64 {
        let square = (error / self.scale).powi(2) + 1.0;
        match self.loss {
            Loss::PseudoHuber => 1.0 / (self.scale * self.scale * square.sqrt()),
            Loss::Cauchy => 2.0 / (self.scale * self.scale * square),
        }
    }

    /// What a unit of coordinate weighs in the pull: a constant's range counts the same for all.
    fn stiffness<T>(&self, f: &Field<T>) -> f64 {
        let range = if f.low > 0.0 { (f.high / f.low).ln() } else { 1.0 };
        self.pull / (0.25 * range).powi(2)
    }
}

/// A constant on the scale that the fit walks: logarithmic where it is positive, else its share of the range.
fn coordinate<T>(f: &Field<T>, v: f64) -> f64 {
    if f.low > 0.0 { v.ln() } else { (v - f.low) / (f.high - f.low) }
}

fn value<T>(f: &Field<T>, x: f64) -> f64 {
    let v = if f.low > 0.0 { x.exp() } else { f.low + x * (f.high - f.low) };
    v.clamp(f.low, f.high)
}

fn constants<T: Copy>(fields: &[&Field<T>], base: &T, x: &[f64]) -> T {
    let mut c = *base;
    for (f, &x) in fields.iter().zip(x) {
        (f.set)(&mut c, value(f, x));
    }
    c
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

/// The constants that make `errors` smallest, from `start`; only those marked as fitted move. `prior` is where the pull
/// leads, `weights` are the rows'.
pub(super) fn fit<T: Copy>(
    all: &[Field<T>],
    start: &T,
    prior: &T,
    weights: &[f64],
    how: &Robust,
    errors: impl Fn(&T) -> Vec<f64>,
) -> T {
    let fields: Vec<&Field<T>> = all.iter().filter(|f| f.fitted).collect();
    let prior: Vec<f64> = fields.iter().map(|f| coordinate(f, (f.get)(prior))).collect();
    let mut x: Vec<f64> = fields.iter().map(|f| coordinate(f, (f.get)(start))).collect();
    let errors_at = |x: &[f64]| errors(&constants(&fields, start, x));
    let loss = |errors: &[f64], x: &[f64]| -> f64 {
        let data: f64 = errors.iter().zip(weights).map(|(e, w)| w * how.loss_of(*e)).sum();
        let pull = fields.iter().zip(x.iter().zip(&prior)).map(|(f, (x, p))| how.stiffness(f) * (x - p).powi(2));
        data + pull.sum::<f64>()
    };
    let mut now = errors_at(&x);
    let mut at = loss(&now, &x);
    let mut damping = 1e-2;
    for _ in 0..how.rounds {
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
                errors_at(&moved).iter().zip(&now).map(|(a, b)| (a - b) / h).collect()
            })
            .collect();
        let pulls: Vec<f64> = now.iter().zip(weights).map(|(e, w)| w * how.weight_of(*e)).collect();
        let before = at;
        for _ in 0..6 {
            let mut rows: Vec<Vec<f64>> = Vec::with_capacity(fields.len());
            for (j, (f, column)) in fields.iter().zip(&jacobian).enumerate() {
                let mut row: Vec<f64> = jacobian
                    .iter()
                    .map(|other| column.iter().zip(other).zip(&pulls).map(|((a, b), p)| a * b * p).sum())
                    .collect();
                let soft = 2.0 * how.stiffness(f);
                let (here, there) = (x.get(j).copied().unwrap_or(0.0), prior.get(j).copied().unwrap_or(0.0));
                let gradient: f64 = column.iter().zip(&now).zip(&pulls).map(|((a, e), p)| a * e * p).sum();
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
            let there = loss(&next_errors, &next);
            if there < at {
                (x, now, at) = (next, next_errors, there);
                damping = (damping * 0.3).max(1e-6);
                break;
            }
            damping *= 5.0;
        }
        if before - at <= how.gain * before {
            break;
        }
    }
    constants(&fields, start, &x)
}
