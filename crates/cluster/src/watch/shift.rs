//! Detects changes in the level of a time series, and describes the shape of the series after a change.

use atlas_core::math;
use atlas_core::statistics::{self, DEVIATION_PER_MAD, quantile};

use super::track::Point;

/// Minimum number of points on each side of a change.
const MIN_POINTS_PER_SIDE: usize = 4;
/// Number of points on each side of a point that form its neighborhood.
const NEIGHBORHOOD_HALF_WIDTH: usize = 4;

/// A change in level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelShift {
    /// First step of the new level.
    pub since: u64,
    /// Index of the point of that step.
    pub at: usize,
    /// Median before the change, s.
    pub before: f64,
    /// Median after the change, s.
    pub after: f64,
}

impl LevelShift {
    /// Relative increase of the time.
    #[must_use]
    pub fn rise(&self) -> f64 {
        self.after / self.before - 1.0
    }
}

/// Finds the single change in level that best explains the points. Returns `None` if no change is certain.
///
/// Minimizing absolute deviations would be exact, but slow. Instead, logarithms are clipped to four robust standard
/// deviations around the median of their neighborhood, and the split with the least squares is selected. It must
/// improve on a constant by far more than chance (Schwarz 1978, with twice the usual penalty), and the level must
/// change by more than 2 %.
#[must_use]
pub fn find(points: &[Point]) -> Option<LevelShift> {
    if points.len() < 2 * MIN_POINTS_PER_SIDE {
        return None;
    }
    let values = clipped(points);
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let total: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    let (mut sum, mut best) = (0.0, None);
    for (index, value) in values.iter().enumerate() {
        // The split before this value.
        let (left, right) = (index as f64, n - index as f64);
        if index >= MIN_POINTS_PER_SIDE && values.len() - index >= MIN_POINTS_PER_SIDE {
            let (low, high) = (sum / left, (mean * n - sum) / right);
            let gain = left * right / n * (high - low) * (high - low);
            if best.is_none_or(|(known, _)| gain > known) {
                best = Some((gain, index));
            }
        }
        sum += value;
    }
    let (gain, at) = best?;
    let (before, after) = points.split_at_checked(at)?;
    let (before, after) = (super::track::median(before)?, super::track::median(after)?);
    let least_noise = n * 1e-8;
    let evidence = n * math::ln((total + least_noise) / ((total - gain).max(0.0) + least_noise));
    let certain = evidence > 6.0 * math::ln(n) && math::ln(after / before).abs() > 0.02;
    let since = points.get(at)?.step;
    certain.then_some(LevelShift { since, at, before, after })
}

/// Finds all changes in level, in order: the most certain one first, then recursively those on either side of it. The
/// medians are those of the segments between neighboring changes.
#[must_use]
pub fn all(points: &[Point]) -> Vec<LevelShift> {
    fn within(points: &[Point], from: usize, depth: u32, out: &mut Vec<usize>) {
        let Some(shift) = find(points) else { return };
        let Some((before, after)) = points.split_at_checked(shift.at) else { return };
        if depth > 0 {
            within(before, from, depth - 1, out);
        }
        out.push(from + shift.at);
        if depth > 0 {
            within(after, from + shift.at, depth - 1, out);
        }
    }
    let mut places = Vec::new();
    within(points, 0, 3, &mut places);
    let edge = |index: Option<usize>, otherwise: usize| {
        index.and_then(|index| places.get(index).copied()).unwrap_or(otherwise)
    };
    let shift = |(index, at): (usize, &usize)| {
        let before = super::track::median(points.get(edge(index.checked_sub(1), 0)..*at)?)?;
        let after = super::track::median(points.get(*at..edge(Some(index + 1), points.len()))?)?;
        Some(LevelShift { since: points.get(*at)?.step, at: *at, before, after })
    };
    places.iter().enumerate().filter_map(shift).collect()
}

/// Logarithms of the values, with outliers clipped.
fn clipped(points: &[Point]) -> Vec<f64> {
    let logs: Vec<f64> = points.iter().map(|point| math::ln(point.value.max(1e-12))).collect();
    let center = |index: usize| {
        let (from, to) =
            (index.saturating_sub(NEIGHBORHOOD_HALF_WIDTH), (index + NEIGHBORHOOD_HALF_WIDTH + 1).min(logs.len()));
        let mut window = [0.0; 2 * NEIGHBORHOOD_HALF_WIDTH + 1];
        window.iter_mut().zip(logs.get(from..to).unwrap_or_default()).for_each(|(slot, log)| *slot = *log);
        quantile(window.get_mut(..to - from).unwrap_or_default(), 0.5)
    };
    let centers: Vec<f64> = (0..logs.len()).map(center).collect();
    let mut away: Vec<f64> = logs.iter().zip(&centers).map(|(log, center)| (log - center).abs()).collect();
    let fence = (4.0 * DEVIATION_PER_MAD * quantile(&mut away, 0.5)).max(1e-3);
    logs.iter().zip(&centers).map(|(log, center)| log.clamp(center - fence, center + fence)).collect()
}

/// Shape of the points after a change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Robust estimate of the relative standard deviation between consecutive points.
    pub noise: f64,
    /// Fraction of points above 1.5 times the median.
    pub spikes: f64,
    /// Number of steps between spikes, if it is constant.
    pub period: Option<u64>,
    /// Relative increase from the first to the last third.
    pub drift: f64,
    /// Mean divided by median.
    pub mean: f64,
}

/// Computes the shape of the points.
#[must_use]
pub fn shape(points: &[Point]) -> Option<Shape> {
    let median = super::track::median(points).filter(|median| *median > 0.0)?;
    // Differences between neighbors, so that drift does not count as noise.
    let differences = points.windows(2).filter_map(|pair| match pair {
        [a, b] => Some((b.value - a.value).abs() / median),
        _ => None,
    });
    let noise = statistics::median(differences).map_or(0.0, |mad| DEVIATION_PER_MAD * mad / f64::sqrt(2.0));
    let spikes: Vec<u64> = points.iter().filter(|point| point.value > 1.5 * median).map(|point| point.step).collect();
    let mut gaps = spikes.windows(2).filter_map(|pair| pair.last()?.checked_sub(*pair.first()?));
    let first = gaps.next();
    let third = (points.len() / 3).max(1);
    let (begin, end) = (points.get(..third)?, points.get(points.len() - third..)?);
    let mean = points.iter().map(|point| point.value).sum::<f64>() / points.len() as f64;
    Some(Shape {
        noise,
        spikes: spikes.len() as f64 / points.len() as f64,
        period: first.filter(|gap| spikes.len() >= 3 && gaps.all(|other| other == *gap)),
        drift: super::track::median(end)? / super::track::median(begin)? - 1.0,
        mean: mean / median,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn points(values: impl IntoIterator<Item = f64>) -> Vec<Point> {
        let point = |(index, value): (usize, f64)| Point { step: 10 * (index as u64 + 1), value, count: 1 };
        values.into_iter().enumerate().map(point).collect()
    }

    /// Deterministic noise: the fractional parts of multiples of the golden ratio.
    fn noisy(n: usize, level: f64, noise: f64) -> impl Iterator<Item = f64> {
        (0..n).map(move |index| level * (1.0 + noise * ((index as f64 * 0.618_034).fract() - 0.5)))
    }

    #[test]
    fn level_shift_is_located_at_its_first_point() {
        let values = noisy(60, 4.0, 0.02).chain(noisy(30, 5.0, 0.02));
        let shift = find(&points(values)).unwrap();
        assert_eq!((shift.at, shift.since), (60, 610));
        assert!((shift.rise() - 0.25).abs() < 0.01);
    }

    #[test]
    fn spikes_and_noise_are_not_reported_as_level_shift() {
        let mut values: Vec<f64> = noisy(90, 4.0, 0.05).collect();
        assert_eq!(find(&points(values.clone())), None);
        for spike in [20, 40, 60, 80] {
            values[spike] = 20.0;
        }
        assert_eq!(find(&points(values.clone())), None);
        let shape = shape(&points(values)).unwrap();
        assert_eq!(shape.period, Some(200));
        assert!((shape.spikes - 4.0 / 90.0).abs() < 1e-9);
    }

    #[test]
    fn linear_drift_is_measured_as_drift_and_not_as_noise() {
        let values = (0..60).map(|index| 4.0 + 0.02 * f64::from(index));
        let shape = shape(&points(values)).unwrap();
        assert!(shape.drift > 0.15 && shape.noise < 0.01, "{shape:?}");
    }

    proptest! {
        #[test]
        fn large_level_shift_is_located_within_two_points(before in 20_usize..80, after in 8_usize..80, rise in 0.15_f64..2.0) {
            let values = noisy(before, 3.0, 0.03).chain(noisy(after, 3.0 * (1.0 + rise), 0.03));
            let shift = find(&points(values)).unwrap();
            prop_assert!(shift.at.abs_diff(before) <= 2, "{shift:?}");
        }
    }
}
