//! Robust estimates with intervals: location, regression on one to three variables with non-negative coefficients,
//! quantile ratios. Deterministic: the same data give the same results.

use atlas_core::math;
use atlas_core::statistics::{DEVIATION_PER_MAD, median, quantile, student_quantile};

/// A value with its 95 % interval, if there is one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Bounds of the 95 % interval; `None` if it cannot be determined.
    pub interval: Option<[f64; 2]>,
    /// Number of measurements behind it.
    pub n: usize,
    /// Share of the variance explained, if it was fitted.
    pub r2: Option<f64>,
}

impl Estimate {
    /// Multiplies the estimate by `by`.
    #[must_use]
    pub fn scaled(self, by: f64) -> Estimate {
        let interval = self.interval.map(|[low, high]| [(low * by).min(high * by), (low * by).max(high * by)]);
        Estimate { value: self.value * by, interval, ..self }
    }

    /// Adds `by` to the estimate.
    #[must_use]
    pub fn plus(self, by: f64) -> Estimate {
        Estimate { value: self.value + by, interval: self.interval.map(|[low, high]| [low + by, high + by]), ..self }
    }

    /// Returns the exponential of an estimate on a logarithmic scale.
    #[must_use]
    pub fn exp(self) -> Estimate {
        Estimate {
            value: math::exp(self.value),
            interval: self.interval.map(|[low, high]| [math::exp(low), math::exp(high)]),
            ..self
        }
    }

    /// Clamps the estimate and its interval to the lower bound `low`.
    #[must_use]
    pub fn at_least(self, low: f64) -> Estimate {
        let interval = self.interval.map(|[a, b]| [a.max(low), b.max(low)]);
        Estimate { value: self.value.max(low), interval, ..self }
    }

    /// Widens the interval by independent errors, given as half widths in the unit of the value.
    #[must_use]
    pub fn widened(self, halves: &[f64]) -> Estimate {
        let interval = self.interval.map(|[low, high]| {
            let more: f64 = halves.iter().map(|half| half * half).sum();
            let grown = |half: f64| (half * half + more).sqrt();
            [self.value - grown(self.value - low), self.value + grown(high - self.value)]
        });
        Estimate { interval, ..self }
    }

    /// Half of the interval's width over the value.
    #[must_use]
    pub fn relative_width(&self) -> Option<f64> {
        let [low, high] = self.interval?;
        (self.value != 0.0).then(|| (high - low) / 2.0 / self.value.abs())
    }
}

/// Multiple of the standard deviation at which Huber's function becomes linear: 95 % efficient for normal errors.
const HUBER: f64 = 1.345;
/// Maximum number of reweighting rounds; it converges in fewer.
const ROUNDS: usize = 40;

/// Center of `values` by Huber's estimator, with its interval. `None` without values; a single value has no interval.
#[must_use]
pub fn location(values: &[f64]) -> Option<Estimate> {
    let rows: Vec<Vec<f64>> = values.iter().map(|_| Vec::new()).collect();
    let fit = regress(&rows, values, &[true], false)?;
    let mut center = fit.estimate(0)?;
    center.r2 = None;
    Some(center)
}

/// Like [`location`], on the logarithms of positive values: the center of factors.
#[must_use]
pub fn factor(values: &[f64]) -> Option<Estimate> {
    let logs: Vec<f64> = values.iter().filter(|value| **value > 0.0).map(|value| math::ln(*value)).collect();
    location(&logs).map(Estimate::exp)
}

/// Result of a regression: an intercept and slopes.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Intercept, then slopes; 0 for excluded coefficients and those held at the bound 0.
    pub beta: Vec<f64>,
    /// Coefficients without the bound at 0.
    free: Vec<f64>,
    /// Robust covariance of the free coefficients.
    covariance: Vec<Vec<f64>>,
    /// Remaining degrees of freedom.
    pub df: usize,
    /// Share of the variance explained.
    pub r2: Option<f64>,
    /// Number of observations.
    pub n: usize,
}

impl Fit {
    /// Returns one coefficient with its interval.
    #[must_use]
    pub fn estimate(&self, index: usize) -> Option<Estimate> {
        let value = *self.beta.get(index)?;
        let free = *self.free.get(index)?;
        let sd = self.covariance.get(index)?.get(index)?.max(0.0).sqrt();
        let half = student_quantile(0.975, self.df as f64) * sd;
        let interval = (self.df > 0 && half.is_finite()).then(|| {
            let (low, high) = (free - half, free + half);
            // For a coefficient held at its bound, the interval extends to the values it could have had.
            if value == free { [low, high] } else { [low.max(0.0).min(value), high.max(value)] }
        });
        Some(Estimate { value, interval, n: self.n, r2: self.r2 })
    }

    /// Returns a function of the coefficients with its interval by the delta method. The gradient is computed
    /// numerically.
    #[must_use]
    pub fn derived(&self, function: impl Fn(&[f64]) -> f64) -> Option<Estimate> {
        let value = function(&self.beta);
        let gradient: Vec<f64> = (0..self.beta.len())
            .map(|index| {
                let at = |by: f64| {
                    let mut beta = self.beta.clone();
                    if let Some(slot) = beta.get_mut(index) {
                        *slot += by;
                    }
                    function(&beta)
                };
                let h = 1e-6 * self.beta.get(index).map_or(1.0, |b| b.abs().max(1e-6));
                (at(h) - at(-h)) / (2.0 * h)
            })
            .collect();
        let variance: f64 = self
            .covariance
            .iter()
            .zip(&gradient)
            .map(|(row, g)| row.iter().zip(&gradient).map(|(c, other)| c * g * other).sum::<f64>())
            .sum();
        let half = student_quantile(0.975, self.df as f64) * variance.max(0.0).sqrt();
        let interval = (self.df > 0 && half.is_finite()).then_some([value - half, value + half]);
        value.is_finite().then_some(Estimate { value, interval, n: self.n, r2: self.r2 })
    }
}

/// Regresses `ys` on an intercept and the columns of `xs` by Huber's M-estimator. `wanted` selects the coefficients
/// (the first is the intercept). With `nonnegative`, no coefficient is below 0 (the best of all active sets). Returns
/// `None` if the data do not determine the coefficients.
#[must_use]
pub fn regress(xs: &[Vec<f64>], ys: &[f64], wanted: &[bool], nonnegative: bool) -> Option<Fit> {
    weighted(xs, ys, &vec![1.0; ys.len()], wanted, nonnegative)
}

/// Like [`regress`], for observations with errors of different size. `scales` holds the weight of each row: the inverse
/// of its error.
#[must_use]
pub fn weighted(xs: &[Vec<f64>], ys: &[f64], scales: &[f64], wanted: &[bool], nonnegative: bool) -> Option<Fit> {
    let scaled: Vec<f64> = ys.iter().zip(scales).map(|(y, scale)| y * scale).collect();
    let ys = scaled.as_slice();
    let design: Vec<Vec<f64>> = xs
        .iter()
        .zip(scales)
        .map(|(row, scale)| {
            let all = std::iter::once(1.0).chain(row.iter().copied());
            all.zip(wanted).filter(|(_, wanted)| **wanted).map(|(x, _)| x * scale).collect()
        })
        .collect();
    let k = wanted.iter().filter(|wanted| **wanted).count();
    let finite = design.iter().flatten().chain(ys).all(|value| value.is_finite());
    if k == 0 || ys.len() < k || !finite {
        return None;
    }
    let all: Vec<usize> = (0..k).collect();
    let (free, weights, scale) = robust(&design, ys, &all)?;
    let chosen =
        if nonnegative && free.iter().any(|beta| *beta < 0.0) { active_set(&design, ys, k)? } else { free.clone() };
    let covariance = covariance(&design, ys, &free, &weights, scale)?;
    let place = |values: &[f64]| {
        let mut rest = values.iter().copied();
        wanted.iter().map(|wanted| if *wanted { rest.next().unwrap_or(0.0) } else { 0.0 }).collect::<Vec<f64>>()
    };
    let spread = |rows: Vec<f64>| place(&rows);
    let full_covariance: Vec<Vec<f64>> = {
        let mut rows = covariance.into_iter();
        let zero = vec![0.0; wanted.len()];
        wanted
            .iter()
            .map(|wanted| if *wanted { rows.next().map_or_else(|| zero.clone(), spread) } else { zero.clone() })
            .collect()
    };
    let fitted = |row: &Vec<f64>| row.iter().zip(&chosen).map(|(x, b)| x * b).sum::<f64>();
    let mean = ys.iter().sum::<f64>() / ys.len() as f64;
    let total: f64 = ys.iter().map(|y| (y - mean).powi(2)).sum();
    let left: f64 = design.iter().zip(ys).map(|(row, y)| (y - fitted(row)).powi(2)).sum();
    Some(Fit {
        beta: place(&chosen),
        free: place(&free),
        covariance: full_covariance,
        df: ys.len() - k,
        r2: (total > 0.0).then(|| 1.0 - left / total),
        n: ys.len(),
    })
}

/// Huber's estimate with the columns `active`: coefficients, weights, scale.
fn robust(design: &[Vec<f64>], ys: &[f64], active: &[usize]) -> Option<(Vec<f64>, Vec<f64>, f64)> {
    let rows: Vec<Vec<f64>> =
        design.iter().map(|row| active.iter().filter_map(|index| row.get(*index).copied()).collect()).collect();
    let mut weights = vec![1.0; ys.len()];
    let mut beta = solve(&rows, ys, &weights)?;
    let mut scale = 0.0;
    let freedom = ys.len().saturating_sub(active.len());
    for _ in 0..ROUNDS {
        let residuals: Vec<f64> =
            rows.iter().zip(ys).map(|(row, y)| y - row.iter().zip(&beta).map(|(x, b)| x * b).sum::<f64>()).collect();
        let absolute = median(residuals.iter().map(|r| r.abs()))?;
        // Fitting coefficients reduces residuals, so their scale is corrected by the degrees of freedom.
        scale = DEVIATION_PER_MAD * absolute * (ys.len() as f64 / freedom.max(1) as f64).sqrt();
        if freedom == 0 || scale <= 1e-12 * ys.iter().map(|y| y.abs()).fold(1e-300, f64::max) {
            break;
        }
        weights = residuals.iter().map(|r| (HUBER * scale / r.abs().max(1e-300)).min(1.0)).collect();
        let next = solve(&rows, ys, &weights)?;
        let moved = next.iter().zip(&beta).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        beta = next;
        if moved <= 1e-10 * beta.iter().map(|b| b.abs()).fold(1e-300, f64::max) {
            break;
        }
    }
    Some((beta, weights, scale))
}

/// Returns the best fit without negative coefficients. There are few columns, so all subsets of them are tried.
fn active_set(design: &[Vec<f64>], ys: &[f64], k: usize) -> Option<Vec<f64>> {
    let mut best: Option<(f64, Vec<f64>)> = None;
    for set in 0..1_usize << k {
        let active: Vec<usize> = (0..k).filter(|index| set & (1 << index) != 0).collect();
        let mut beta = vec![0.0; k];
        if !active.is_empty() {
            let Some((found, ..)) = robust(design, ys, &active) else { continue };
            if found.iter().any(|b| *b < 0.0) {
                continue;
            }
            for (index, value) in active.iter().zip(found) {
                if let Some(slot) = beta.get_mut(*index) {
                    *slot = value;
                }
            }
        }
        let loss: f64 = design
            .iter()
            .zip(ys)
            .map(|(row, y)| (y - row.iter().zip(&beta).map(|(x, b)| x * b).sum::<f64>()).abs())
            .sum();
        if best.as_ref().is_none_or(|(least, _)| loss < *least) {
            best = Some((loss, beta));
        }
    }
    best.map(|(_, beta)| beta)
}

/// Matrix of the weighted normal equations.
fn normal(rows: &[Vec<f64>], weights: &[f64]) -> Vec<Vec<f64>> {
    let k = rows.first().map_or(0, Vec::len);
    (0..k)
        .map(|i| {
            (0..k)
                .map(|j| {
                    let term = |(row, w): (&Vec<f64>, &f64)| {
                        w * row.get(i).copied().unwrap_or(0.0) * row.get(j).copied().unwrap_or(0.0)
                    };
                    rows.iter().zip(weights).map(term).sum()
                })
                .collect()
        })
        .collect()
}

fn solve(rows: &[Vec<f64>], ys: &[f64], weights: &[f64]) -> Option<Vec<f64>> {
    let inverse = inverse(normal(rows, weights))?;
    let k = inverse.len();
    let right: Vec<f64> = (0..k)
        .map(|i| rows.iter().zip(ys).zip(weights).map(|((row, y), w)| w * y * row.get(i).copied().unwrap_or(0.0)).sum())
        .collect();
    Some(inverse.iter().map(|row| row.iter().zip(&right).map(|(a, b)| a * b).sum()).collect())
}

/// Covariance of Huber's estimate (Huber 1981, section 7.6, with his correction for few observations).
fn covariance(design: &[Vec<f64>], ys: &[f64], beta: &[f64], weights: &[f64], scale: f64) -> Option<Vec<Vec<f64>>> {
    let (n, k) = (ys.len() as f64, beta.len() as f64);
    let residuals: Vec<f64> =
        design.iter().zip(ys).map(|(row, y)| y - row.iter().zip(beta).map(|(x, b)| x * b).sum::<f64>()).collect();
    let pulled: f64 = residuals.iter().zip(weights).map(|(r, w)| (r * w).powi(2)).sum();
    let inside = residuals.iter().filter(|r| scale <= 0.0 || r.abs() <= HUBER * scale).count() as f64;
    let share = (inside / n).max(0.05);
    let correction = 1.0 + k / n * (1.0 - share) / share;
    let variance = correction.powi(2) * pulled / (n - k).max(1.0) / (share * share);
    let inverse = inverse(normal(design, &vec![1.0; ys.len()]))?;
    Some(inverse.into_iter().map(|row| row.into_iter().map(|value| value * variance).collect()).collect())
}

/// Inverse of a small symmetric matrix by Gauss-Jordan elimination with pivoting; `None` if it is singular.
#[must_use]
pub fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    for (i, row) in matrix.iter_mut().enumerate() {
        row.extend((0..n).map(|j| f64::from(u8::from(i == j))));
    }
    // Singular relative to the precision of the numbers.
    let size: Vec<f64> = (0..n).map(|i| matrix.get(i).and_then(|row| row.get(i)).map_or(0.0, |d| d.abs())).collect();
    for i in 0..n {
        let key = |row: &[f64]| row.get(i).map_or(0.0, |value| value.abs());
        let best = (i..n).max_by(|a, b| {
            let of = |at: &usize| matrix.get(*at).map_or(0.0, |row| key(row));
            of(a).total_cmp(&of(b))
        })?;
        matrix.swap(i, best);
        let pivot = matrix.get(i)?.get(i).copied()?;
        if pivot.abs() <= 1e-10 * size.get(i).copied().unwrap_or(0.0) || pivot == 0.0 {
            return None;
        }
        let scaled: Vec<f64> = matrix.get(i)?.iter().map(|value| value / pivot).collect();
        for (j, row) in matrix.iter_mut().enumerate() {
            if j == i {
                row.clone_from(&scaled);
                continue;
            }
            let factor = row.get(i).copied().unwrap_or(0.0);
            for (value, other) in row.iter_mut().zip(&scaled) {
                *value -= factor * other;
            }
        }
    }
    Some(matrix.into_iter().map(|row| row.into_iter().skip(n).collect()).collect())
}

/// Number of bootstrap resamples.
const RESAMPLES: usize = 999;

/// Returns a statistic of a sample with its 95 % interval by the percentile bootstrap (Efron 1979). The seed is fixed,
/// so that the same file gives the same interval.
#[must_use]
pub fn bootstrap(values: &[f64], statistic: impl Fn(&mut Vec<f64>) -> f64) -> Option<Estimate> {
    if values.is_empty() {
        return None;
    }
    let value = statistic(&mut values.to_vec());
    let mut state = 1337_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % values.len()
    };
    let mut found: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut sample: Vec<f64> = values.iter().filter_map(|_| values.get(draw()).copied()).collect();
            statistic(&mut sample)
        })
        .filter(|found| found.is_finite())
        .collect();
    let interval =
        (values.len() > 1 && !found.is_empty()).then(|| [quantile(&mut found, 0.025), quantile(&mut found, 0.975)]);
    value.is_finite().then_some(Estimate { value, interval, n: values.len(), r2: None })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn regression_tolerates_an_outlier_and_keeps_slopes_non_negative() {
        let xs: Vec<Vec<f64>> = (0..10).map(|i| vec![f64::from(i)]).collect();
        let mut ys: Vec<f64> = (0..10).map(|i| 1.0 + 2.0 * f64::from(i) + 0.01 * f64::from(i % 3)).collect();
        ys[4] = 100.0;
        let fit = regress(&xs, &ys, &[true, true], false).unwrap();
        assert!((fit.beta[1] - 2.0).abs() < 0.25, "{:?}", fit.beta);
        let falling: Vec<f64> = (0..10).map(|i| 5.0 - 0.1 * f64::from(i)).collect();
        let fit = regress(&xs, &falling, &[true, true], true).unwrap();
        assert!(fit.beta[1] == 0.0 && fit.beta[0] > 4.0, "{:?}", fit.beta);
        let interval = fit.estimate(1).unwrap().interval.unwrap();
        assert!(interval[0] <= 0.0 && interval[1] >= 0.0);
    }

    #[test]
    fn undetermined_parameters_are_not_estimated() {
        assert!(regress(&[vec![1.0], vec![1.0]], &[1.0, 2.0], &[true, true], true).is_none());
        assert!(location(&[]).is_none());
        assert!(location(&[f64::NAN, 1.0]).is_none());
        let one = location(&[3.0]).unwrap();
        assert!(one.value == 3.0 && one.interval.is_none());
    }

    #[test]
    fn location_intervals_have_the_nominal_coverage() {
        let mut state = 7_u64;
        let mut uniform = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        for n in [4, 8, 30] {
            let covered = (0..1000)
                .filter(|_| {
                    // Normal by the Box-Muller transform.
                    let values: Vec<f64> = (0..n)
                        .map(|_| {
                            let (u, v) = (uniform().max(1e-12), uniform());
                            (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
                        })
                        .collect();
                    let [low, high] = location(&values).unwrap().interval.unwrap();
                    low <= 0.0 && 0.0 <= high
                })
                .count();
            assert!((925..=985).contains(&covered), "{n}: {covered} of 1000");
        }
    }
}
