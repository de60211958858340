//! Series of measured values in constant memory. Sums and extremes are exact; quantiles are of all values up to
//! [`MAX_VALUES`], and of a seeded sample beyond. Supports removal of warm-up, outlier counts, and bootstrap intervals.

use atlas_core::statistics::{DEVIATION_PER_MAD, median, quantile};
use serde_json::{Value, json};

/// Maximum number of values kept. Statistics of series up to this length are exact.
pub const MAX_VALUES: usize = 1 << 16;
/// Number of values at the start that may be warm-up. They are always kept.
const MAX_WARMUP_VALUES: usize = 64;
/// Number of bootstrap resamples.
const RESAMPLES: usize = 1000;
/// Maximum number of values drawn per resample. Longer series are drawn in blocks.
const MAX_RESAMPLE_VALUES: usize = 2048;

/// Which values are excluded as warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Warmup {
    /// The first step of a run that is logged from its start, or more steps if the tool needs them (JAX: two).
    #[default]
    First,
    /// All steps until the step time is steady: up to the first of three consecutive values within 5 % (or three scaled
    /// median absolute deviations) of the median of the second half.
    ChangePoint,
    /// A fixed number of steps of every run, wherever its log starts.
    Steps(usize),
}

/// Statistics of a series, without warm-up unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stats {
    /// Number of values, including warm-up.
    pub n: usize,
    /// First value, including warm-up.
    pub first: f64,
    /// The last value.
    pub last: f64,
    /// Number of values removed as warm-up.
    pub warmup_dropped: usize,
    /// Mean of all values, including warm-up.
    pub mean_all: f64,
    /// Mean without warm-up.
    pub mean: f64,
    /// Median without warm-up.
    pub median: f64,
    /// Minimum without warm-up.
    pub min: f64,
    /// Maximum without warm-up.
    pub max: f64,
    /// Sample standard deviation without warm-up.
    pub std: f64,
    /// 95th percentile without warm-up.
    pub p95: f64,
    /// 95 % bootstrap confidence interval of the mean.
    pub mean_interval: [f64; 2],
    /// 95 % bootstrap confidence interval of the median.
    pub median_interval: [f64; 2],
    /// 95 % bootstrap confidence interval of the 95th percentile.
    pub p95_interval: [f64; 2],
    /// Number of values more than five scaled median absolute deviations (and 1 %) from the median. They are included
    /// in the statistics.
    pub outliers: usize,
    /// Whether quantiles are computed from a sample of the values.
    pub sampled: bool,
}

impl Stats {
    /// Converts the statistics to JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut out = json!({
            "n": self.n, "first": self.first, "last": self.last, "warmup_dropped": self.warmup_dropped,
            "mean_no_warmup": self.mean, "median_no_warmup": self.median, "min_no_warmup": self.min,
            "max_no_warmup": self.max, "std_no_warmup": self.std, "p95_no_warmup": self.p95, "mean_all": self.mean_all,
            "mean_interval": self.mean_interval, "median_interval": self.median_interval,
            "p95_interval": self.p95_interval, "outliers": self.outliers,
        });
        if let (true, Some(map)) = (self.sampled, out.as_object_mut()) {
            map.insert("quantiles_from_sample_of".to_owned(), MAX_VALUES.into());
        }
        out
    }
}

/// A series that values are appended to.
#[derive(Debug, Clone, Default)]
pub struct Series {
    n: usize,
    last: f64,
    /// Sums over the values after the head, relative to the first of those (`origin`) for numerical accuracy.
    origin: f64,
    sum: f64,
    squares: f64,
    least: f64,
    most: f64,
    kept: Vec<f64>,
    /// State of the sampling: index of the next value to keep, number of times that blocks were merged, random state.
    next: usize,
    doublings: u32,
    state: u64,
}

impl Series {
    /// Appends a value. Non-finite values are ignored.
    pub fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        if self.n >= MAX_WARMUP_VALUES {
            if self.n == MAX_WARMUP_VALUES {
                (self.origin, self.least, self.most) = (value, value, value);
            }
            self.sum += value - self.origin;
            self.squares += (value - self.origin) * (value - self.origin);
            self.least = self.least.min(value);
            self.most = self.most.max(value);
        }
        if self.n == self.next {
            self.sample(value);
        }
        self.n += 1;
        self.last = value;
    }

    /// Keeps a value, and draws the index of the next one to keep: one in every block of `stride` values. If the buffer
    /// is full, neighboring blocks are merged and one of their two values is kept at random. The sample is thus in
    /// order, evenly spread over the series, and not biased by periodic values.
    fn sample(&mut self, value: f64) {
        if self.kept.len() == MAX_VALUES {
            let mut to = MAX_WARMUP_VALUES;
            for from in (MAX_WARMUP_VALUES..MAX_VALUES).step_by(2) {
                let pick = from + (splitmix(&mut self.state) & 1) as usize;
                let value = self.kept.get(pick).copied();
                if let (Some(value), Some(slot)) = (value, self.kept.get_mut(to)) {
                    *slot = value;
                }
                to += 1;
            }
            self.kept.truncate(to);
            self.doublings += 1;
        }
        self.kept.push(value);
        let stride = 1_usize << self.doublings.min(62);
        let block = self.kept.len().saturating_sub(MAX_WARMUP_VALUES).saturating_mul(stride);
        self.next = if self.doublings == 0 {
            self.n + 1
        } else {
            MAX_WARMUP_VALUES.saturating_add(block).saturating_add(splitmix(&mut self.state) as usize & (stride - 1))
        };
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether the series is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The first value.
    #[must_use]
    pub fn first(&self) -> Option<f64> {
        self.kept.first().copied()
    }

    /// The last value.
    #[must_use]
    pub fn last(&self) -> Option<f64> {
        (self.n > 0).then_some(self.last)
    }

    /// Returns the kept values in order: all values if there are at most [`MAX_VALUES`].
    #[must_use]
    pub fn kept(&self) -> &[f64] {
        &self.kept
    }

    /// Maximum of all values.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        let head = self.kept.iter().take(MAX_WARMUP_VALUES).copied().reduce(f64::max)?;
        Some(if self.n > MAX_WARMUP_VALUES { head.max(self.most) } else { head })
    }

    /// Minimum of all values.
    #[must_use]
    pub fn min(&self) -> Option<f64> {
        let head = self.kept.iter().take(MAX_WARMUP_VALUES).copied().reduce(f64::min)?;
        Some(if self.n > MAX_WARMUP_VALUES { head.min(self.least) } else { head })
    }

    /// Mean of all values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        self.moments(0).map(|(mean, _)| mean)
    }

    /// The median of the kept values.
    #[must_use]
    pub fn median(&self) -> Option<f64> {
        median(self.kept.iter().copied())
    }

    /// Mean and sample standard deviation without the first `drop` values. `drop` must not exceed
    /// [`MAX_WARMUP_VALUES`].
    fn moments(&self, drop: usize) -> Option<(f64, f64)> {
        let head = self.kept.get(drop..self.n.min(MAX_WARMUP_VALUES)).unwrap_or_default();
        let count = (self.n - drop.min(self.n)) as f64;
        if count == 0.0 {
            return None;
        }
        let behind = self.n.saturating_sub(MAX_WARMUP_VALUES) as f64;
        let mean = (head.iter().sum::<f64>() + self.sum + behind * self.origin) / count;
        let around_head: f64 = head.iter().map(|value| (value - mean) * (value - mean)).sum();
        let shift = mean - self.origin;
        let around = self.squares - 2.0 * shift * self.sum + behind * shift * shift;
        let variance = (around_head + around.max(0.0)) / (count - 1.0).max(1.0);
        Some((mean, variance.sqrt()))
    }

    /// Number of values at the start that are warm-up. `includes_start` is whether the series includes the start of the
    /// run, `tool_warmup_steps` the number of warm-up steps of the tool.
    #[must_use]
    pub fn warmup(&self, rule: Warmup, starts: bool, tool_warmup_steps: usize) -> usize {
        let dropped = match rule {
            Warmup::First if starts => tool_warmup_steps,
            Warmup::First => 0,
            Warmup::Steps(n) => n.min(MAX_WARMUP_VALUES),
            Warmup::ChangePoint => self.change_point(),
        };
        dropped.min(self.n.saturating_sub(1))
    }

    /// Number of values before the series is steady: before the first of three consecutive values within 5 %, or three
    /// scaled median absolute deviations, of the median of the second half. Returns 0 if there is no such point within
    /// the first 64 values and the first half, or if the series has fewer than six values.
    #[must_use]
    pub fn change_point(&self) -> usize {
        let Some(second_half) = self.kept.get(self.kept.len() / 2..).filter(|_| self.n >= 6) else { return 0 };
        let mut values = second_half.to_vec();
        let median = quantile(&mut values, 0.5);
        let mut deviations: Vec<f64> = values.iter().map(|value| (value - median).abs()).collect();
        let tolerance = (3.0 * DEVIATION_PER_MAD * quantile(&mut deviations, 0.5)).max(0.05 * median.abs());
        let settled = |window: &[f64]| window.iter().all(|value| (value - median).abs() <= tolerance);
        self.kept.windows(3).take(MAX_WARMUP_VALUES.min(self.n / 2)).position(settled).unwrap_or(0)
    }

    /// Returns up to `most` outliers after the first `drop` values, with their positions counted from 1. Empty if not
    /// all values were kept.
    #[must_use]
    pub fn outliers(&self, drop: usize, most: usize) -> Vec<(usize, f64)> {
        let Some(values) = self.kept.get(drop..).filter(|values| self.n == self.kept.len() && !values.is_empty())
        else {
            return Vec::new();
        };
        let (median, far) = outlier_limits(values);
        let places = values.iter().enumerate().filter(|(_, value)| (**value - median).abs() > far);
        places.take(most).map(|(index, value)| (drop + index + 1, *value)).collect()
    }

    /// Statistics without the first `drop` values; `None` if no values are left.
    #[must_use]
    pub fn stats(&self, drop: usize, seed: u64) -> Option<Stats> {
        let (mean, std) = self.moments(drop)?;
        let mut values = self.kept.get(drop..)?.to_vec();
        if values.is_empty() {
            return None;
        }
        let head = self.kept.get(drop..self.n.min(MAX_WARMUP_VALUES)).unwrap_or_default();
        let extreme = |pick: fn(f64, f64) -> f64, behind: f64| {
            let head = head.iter().copied().reduce(pick);
            match head {
                Some(value) if self.n > MAX_WARMUP_VALUES => pick(value, behind),
                Some(value) => value,
                None => behind,
            }
        };
        let in_order = values.clone();
        let (median, p95) = (quantile(&mut values, 0.5), quantile(&mut values, 0.95));
        let (median_of_all, far) = outlier_limits(&in_order);
        let [mean_interval, median_interval, p95_interval] = bootstrap(&in_order, seed);
        Some(Stats {
            n: self.n,
            first: self.first()?,
            last: self.last,
            warmup_dropped: drop,
            mean_all: self.mean()?,
            mean,
            median,
            min: extreme(f64::min, self.least),
            max: extreme(f64::max, self.most),
            std,
            p95,
            mean_interval,
            median_interval,
            p95_interval,
            outliers: in_order.iter().filter(|value| (**value - median_of_all).abs() > far).count(),
            sampled: self.n > self.kept.len(),
        })
    }
}

/// Returns the median, and the distance from it beyond which a value is an outlier: five median absolute deviations,
/// scaled to standard deviations of a normal distribution, and at least 1 % of the median.
fn outlier_limits(values: &[f64]) -> (f64, f64) {
    let mut values = values.to_vec();
    let median = quantile(&mut values, 0.5);
    for value in &mut values {
        *value = (*value - median).abs();
    }
    (median, (5.0 * DEVIATION_PER_MAD * quantile(&mut values, 0.5)).max(0.01 * median.abs()))
}

/// The splitmix64 generator (Steele, Lea and Flood 2014).
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 95 % confidence intervals of mean, median and 95th percentile by the percentile bootstrap (Efron 1979). For the mean
/// of a series longer than [`MAX_RESAMPLE_VALUES`], the means of up to [`MAX_RESAMPLE_VALUES`] blocks of neighboring
/// values are resampled, so that correlations shorter than a block are included. For the quantiles of such a series,
/// the rank of the order statistic is drawn from its normal approximation, which is asymptotically equivalent to
/// resampling all values.
fn bootstrap(values: &[f64], seed: u64) -> [[f64; 2]; 3] {
    let mut state = seed;
    let n = values.len();
    let drawn: Vec<f64> = if n <= MAX_RESAMPLE_VALUES {
        values.to_vec()
    } else {
        let width = n.div_ceil(MAX_RESAMPLE_VALUES);
        values.chunks(width).map(|chunk| chunk.iter().sum::<f64>() / chunk.len() as f64).collect()
    };
    let (mut means, mut medians, mut tails) = (Vec::new(), Vec::new(), Vec::new());
    let mut sample = drawn.clone();
    for _ in 0..RESAMPLES {
        for slot in &mut sample {
            let pick = (splitmix(&mut state) % drawn.len().max(1) as u64) as usize;
            *slot = drawn.get(pick).copied().unwrap_or(*slot);
        }
        means.push(sample.iter().sum::<f64>() / sample.len().max(1) as f64);
        if n <= MAX_RESAMPLE_VALUES {
            medians.push(quantile(&mut sample, 0.5));
            tails.push(quantile(&mut sample, 0.95));
        }
    }
    let interval = |samples: &mut Vec<f64>| [quantile(samples, 0.025), quantile(samples, 0.975)];
    if n <= MAX_RESAMPLE_VALUES {
        return [interval(&mut means), interval(&mut medians), interval(&mut tails)];
    }
    let mut sorted = values.to_vec();
    let mut of_order = |q: f64| {
        let half = 1.959_964 * (q * (1.0 - q) / n as f64).sqrt();
        [quantile(&mut sorted, (q - half).max(0.0)), quantile(&mut sorted, (q + half).min(1.0))]
    };
    [interval(&mut means), of_order(0.5), of_order(0.95)]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use proptest::prelude::*;

    fn series(values: &[f64]) -> Series {
        let mut series = Series::default();
        values.iter().for_each(|value| series.push(*value));
        series
    }

    #[test]
    fn long_series_have_exact_means_and_close_quantiles() {
        let values: Vec<f64> = (0..150_000_u64).map(|i| 2.0 + ((i * 7919) % 1000) as f64 / 1000.0).collect();
        let stats = series(&values).stats(1, 1).unwrap();
        let expected = values.iter().skip(1).sum::<f64>() / (values.len() - 1) as f64;
        assert!((stats.mean - expected).abs() < 1e-9);
        assert_eq!((stats.min, stats.max), (2.0, 2.999));
        assert!((stats.median - 2.5).abs() < 0.01 && stats.sampled);
        assert!(stats.mean_interval[0] < expected && expected < stats.mean_interval[1]);
    }

    #[test]
    fn sample_is_uniform_ordered_and_unbiased_by_periodic_values() {
        for rhythm in [2_u32, 8, 10] {
            let values: Vec<f64> =
                (0..1_000_000_u32).map(|i| f64::from(i) + if i % rhythm == 0 { 0.5 } else { 0.0 }).collect();
            let series = series(&values);
            let kept = series.kept();
            assert!(kept.len() > MAX_VALUES / 3 && kept.len() <= MAX_VALUES && kept.is_sorted(), "{}", kept.len());
            let marked = kept.iter().filter(|value| value.fract() > 0.0).count() as f64 / kept.len() as f64;
            assert!((marked - 1.0 / f64::from(rhythm)).abs() < 0.01, "{rhythm}: {marked}");
            assert!((series.median().unwrap() - 500_000.0).abs() < 1000.0);
        }
    }

    #[test]
    fn warmup_change_point_is_where_the_step_time_settles() {
        let mut values = vec![20.0, 9.0, 4.0, 2.5];
        values.extend((0..50).map(|i| 2.0 + 0.001 * f64::from(i % 5)));
        let series = series(&values);
        assert_eq!(series.warmup(Warmup::ChangePoint, true, 1), 4);
        assert_eq!(series.warmup(Warmup::First, true, 1), 1);
        assert_eq!(series.warmup(Warmup::First, false, 1), 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn statistics_agree_with_their_definitions(values in prop::collection::vec(0.01_f64..1e4, 2..200), drop in 0_usize..2) {
            let stats = series(&values).stats(drop, 7).unwrap();
            let rest = &values[drop..];
            let mean = rest.iter().sum::<f64>() / rest.len() as f64;
            let mut sorted = rest.to_vec();
            sorted.sort_by(f64::total_cmp);
            let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
            prop_assert!((stats.mean - mean).abs() <= 1e-9 * mean);
            prop_assert!((stats.median - (low + high) / 2.0).abs() <= 1e-9 * stats.median);
            prop_assert_eq!((stats.min, stats.max), (sorted[0], sorted[sorted.len() - 1]));
            prop_assert!(stats.mean_interval[0] <= stats.mean_interval[1]);
            prop_assert!(stats.min <= stats.p95 && stats.p95 <= stats.max);
        }
    }
}
