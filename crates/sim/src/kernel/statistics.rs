//! Tallies of observations, time-weighted levels, quantiles of samples.

use super::time::Time;
use atlas_core::statistics::quantile_of_sorted;

/// Count, mean, variance and extremes of observations (Welford, Technometrics 4 (1962), which avoids cancellation).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tally {
    count: u64,
    mean: f64,
    squares: f64,
    least: f64,
    most: f64,
}

impl Tally {
    /// Adds one observation.
    #[inline]
    pub fn add(&mut self, x: f64) {
        self.count += 1;
        if self.count == 1 {
            (self.least, self.most) = (x, x);
        }
        let delta = x - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (x - self.mean);
        self.least = self.least.min(x);
        self.most = self.most.max(x);
    }

    /// Number of observations.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean; 0 without observations.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Sample variance; 0 for fewer than two observations.
    pub fn variance(&self) -> f64 {
        if self.count < 2 { 0.0 } else { self.squares / (self.count - 1) as f64 }
    }

    /// Smallest observation.
    pub fn min(&self) -> f64 {
        self.least
    }

    /// Largest observation.
    pub fn max(&self) -> f64 {
        self.most
    }
}

/// Integral of a level over time, for mean queue length, utilization or memory in use.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TimeWeighted {
    level: f64,
    most: f64,
    integral: f64,
    since: Time,
    begin: Time,
}

impl TimeWeighted {
    /// Starts at `begin` with `level`.
    pub fn new(begin: Time, level: f64) -> Self {
        TimeWeighted { level, most: level, integral: 0.0, since: begin, begin }
    }

    /// Sets the level from `now` on.
    #[inline]
    pub fn set(&mut self, now: Time, level: f64) {
        self.integral += self.level * now.since(self.since).ps() as f64;
        self.since = now;
        self.level = level;
        self.most = self.most.max(level);
    }

    /// Adds `change` to the level at `now`.
    #[inline]
    pub fn change(&mut self, now: Time, change: f64) {
        self.set(now, self.level + change);
    }

    /// Discards the history before `now`, as at the end of a warm-up, but keeps the level.
    pub fn restart(&mut self, now: Time) {
        *self = TimeWeighted::new(now, self.level);
    }

    /// Current level.
    pub fn level(&self) -> f64 {
        self.level
    }

    /// Highest level.
    pub fn max(&self) -> f64 {
        self.most
    }

    /// Integral of the level until `now`, in units of the level times seconds.
    pub fn integral(&self, now: Time) -> f64 {
        (self.integral + self.level * now.since(self.since).ps() as f64) * 1e-12
    }

    /// Mean level until `now`, or the current level if no time has passed.
    pub fn mean(&self, now: Time) -> f64 {
        let span = now.since(self.begin).seconds();
        if span > 0.0 { self.integral(now) / span } else { self.level }
    }
}

/// Mean, spread and quantiles of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quantiles {
    /// Number of observations.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Smallest observation.
    pub least: f64,
    /// Largest observation.
    pub most: f64,
}

impl Quantiles {
    /// Returns the statistics of `sample`, sorting it in place. All zeros if it is empty.
    pub fn of(sample: &mut [f64]) -> Quantiles {
        sample.sort_unstable_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (sample.first(), sample.last()) else { return Quantiles::default() };
        Quantiles {
            count: sample.len() as u64,
            mean: sample.iter().sum::<f64>() / sample.len() as f64,
            p50: quantile_of_sorted(sample, 0.50),
            p90: quantile_of_sorted(sample, 0.90),
            p95: quantile_of_sorted(sample, 0.95),
            p99: quantile_of_sorted(sample, 0.99),
            least,
            most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_weighted_by_their_duration() {
        let at = |s: f64| Time::from_seconds(s);
        let mut level = TimeWeighted::new(at(1.0), 2.0);
        level.set(at(3.0), 5.0);
        level.change(at(4.0), -4.0);
        assert_eq!(level.integral(at(6.0)), 2.0 * 2.0 + 5.0 + 2.0);
        assert_eq!(level.mean(at(6.0)), 11.0 / 5.0);
        assert_eq!(level.max(), 5.0);
        level.restart(at(6.0));
        assert_eq!(level.mean(at(8.0)), 1.0);
        assert_eq!(level.mean(at(6.0)), 1.0);
    }

    #[test]
    fn a_tally_is_exact_where_a_sum_of_squares_cancels() {
        let mut tally = Tally::default();
        for x in [4.0, 7.0, 13.0, 16.0] {
            tally.add(1e9 + x);
        }
        assert_eq!(tally.mean(), 1e9 + 10.0);
        assert_eq!(tally.variance(), 30.0);
        assert_eq!((tally.min(), tally.max(), tally.count()), (1e9 + 4.0, 1e9 + 16.0, 4));
    }

    #[test]
    fn quantiles_interpolate_as_numpy_does() {
        let mut sample = [4.0, 1.0, 3.0, 2.0];
        let q = Quantiles::of(&mut sample);
        assert_eq!(q.p50, 2.5);
        assert!((q.p90 - 3.7).abs() < 1e-12);
        assert_eq!((q.least, q.most, q.mean, q.count), (1.0, 4.0, 2.5, 4));
        assert_eq!(Quantiles::of(&mut []), Quantiles::default());
    }
}
