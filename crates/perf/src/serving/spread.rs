//! Mean and percentiles of a latency.

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
        let at = |q: f64, ln: f64| fixed + 2.0 * q * even + ln * random;
        Spread { mean: fixed + even + random, p50: at(0.5, 0.693), p95: at(0.95, 2.996), p99: at(0.99, 4.605) }
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
