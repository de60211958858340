//! Mean and percentiles of a latency.

/// 95th percentile of a normal distribution, in standard deviations from its mean.
pub(super) const NORMAL_P95: f64 = 1.645;
/// 99th percentile of a normal distribution, in standard deviations from its mean.
pub(super) const NORMAL_P99: f64 = 2.326;
/// Median, 95th and 99th percentile of an exponential distribution relative to its mean, ln(1 / (1 - q)).
const EXPONENTIAL: [f64; 3] = [0.693, 2.996, 4.605];

/// Mean and percentiles of a latency.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

impl Spread {
    /// Seconds of the sum of a constant, a part distributed uniformly from 0 to twice its mean `even` (a burst served in order), and
    /// an exponential part with mean `random` (random arrivals).
    pub fn of(fixed: f64, even: f64, random: f64) -> Spread {
        let at = |q: f64, exponential: f64| fixed + 2.0 * q * even + exponential * random;
        let [p50, p95, p99] = EXPONENTIAL;
        Spread { mean: fixed + even + random, p50: at(0.5, p50), p95: at(0.95, p95), p99: at(0.99, p99) }
    }

    /// Applies `change` to each value.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Spread {
        self.zip(self, |own, _| change(own))
    }

    /// Applies `join` to each value and its counterpart in `other`.
    #[must_use]
    pub fn zip(self, other: Spread, join: impl Fn(f64, f64) -> f64) -> Spread {
        Spread {
            mean: join(self.mean, other.mean),
            p50: join(self.p50, other.p50),
            p95: join(self.p95, other.p95),
            p99: join(self.p99, other.p99),
        }
    }
}
