//! Distributions of positive quantities, mostly given by mean and coefficient of variation.

use super::random::Stream;
use atlas_core::math;

/// Distribution of a non-negative quantity. Negative or non-finite parameters count as 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Constant value.
    Constant(f64),
    /// Uniform distribution.
    Uniform {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// Exponential: coefficient of variation 1.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Gamma with a given coefficient of variation: arrivals are smoother than Poisson below 1, and burstier above 1.
    Gamma {
        /// Mean.
        mean: f64,
        /// Standard deviation over mean.
        cv: f64,
    },
    /// Log-normal: the shape of prompt and output lengths in published traces.
    LogNormal {
        /// Mean (of the value, not of its logarithm).
        mean: f64,
        /// Standard deviation over mean.
        cv: f64,
    },
    /// Log-normal, where larger values are replaced by a largest one; see [`Distribution::clipped_log_normal`].
    ClippedLogNormal {
        /// Mean of the clipped values.
        mean: f64,
        /// Standard deviation over mean, without the limit.
        cv: f64,
        /// Largest value.
        most: f64,
        /// Mean without the limit.
        unlimited_mean: f64,
    },
    /// Distribution given only by its mean and largest value. Up to a largest value of twice the mean it is uniform,
    /// symmetric about the mean. Beyond, it is Beta(1, largest / mean - 1), scaled to the largest value: this equals
    /// the uniform distribution at twice the mean, and approaches the exponential distribution as the largest value
    /// grows.
    Bounded {
        /// Mean.
        mean: f64,
        /// Largest value.
        most: f64,
    },
}

impl Distribution {
    /// Log-normal distribution with a largest value, which replaces larger ones. The mean is that of the clipped values;
    /// `cv` is that without the limit. Constant if the limit is not above the mean.
    #[must_use]
    pub fn clipped_log_normal(mean: f64, cv: f64, most: f64) -> Distribution {
        let (mean, cv, most) = (positive(mean), positive(cv), positive(most));
        if cv <= 0.0 || mean >= most {
            return Distribution::Constant(mean);
        }
        // The mean of the clipped values grows with the logarithm of the mean without the limit, from below `mean` up to
        // `most`.
        let (mut low, mut high) = (0.0, 700.0);
        for _ in 0..64 {
            let middle = 0.5 * (low + high);
            let [reached, _] = clipped_moments(mean * math::exp(middle), cv, most);
            if reached < mean { low = middle } else { high = middle }
        }
        Distribution::ClippedLogNormal { mean, cv, most, unlimited_mean: mean * math::exp(high) }
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        match *self {
            Distribution::Constant(mean)
            | Distribution::Exponential { mean }
            | Distribution::Gamma { mean, .. }
            | Distribution::LogNormal { mean, .. }
            | Distribution::ClippedLogNormal { mean, .. }
            | Distribution::Bounded { mean, .. } => positive(mean),
            Distribution::Uniform { low, high } => 0.5 * (positive(low) + positive(high)),
        }
    }

    /// Standard deviation over mean; 0 if the mean is 0.
    pub fn cv(&self) -> f64 {
        match *self {
            Distribution::Constant(_) => 0.0,
            Distribution::Exponential { .. } => 1.0,
            Distribution::Gamma { cv, .. } | Distribution::LogNormal { cv, .. } => positive(cv),
            Distribution::ClippedLogNormal { mean, cv, most, unlimited_mean } => {
                let [_, squares] = clipped_moments(positive(unlimited_mean), positive(cv), positive(most));
                if mean > 0.0 { (squares / (mean * mean) - 1.0).max(0.0).sqrt() } else { 0.0 }
            }
            Distribution::Uniform { low, high } => {
                let (low, high) = (positive(low), positive(high));
                if low + high > 0.0 { (high - low).abs() / 3f64.sqrt() / (low + high) } else { 0.0 }
            }
            Distribution::Bounded { mean, most } => match max_to_mean(mean, most) {
                spread if spread <= 2.0 => (spread - 1.0) / 3f64.sqrt(),
                spread => ((spread - 1.0) / (spread + 1.0)).sqrt(),
            },
        }
    }

    /// Draws one value.
    #[inline]
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match *self {
            Distribution::Constant(value) => positive(value),
            Distribution::Uniform { low, high } => {
                let (low, high) = (positive(low), positive(high));
                low + (high - low) * stream.uniform()
            }
            Distribution::Exponential { mean } => positive(mean) * stream.exponential(),
            Distribution::Gamma { mean, cv } => gamma(positive(mean), positive(cv), stream),
            Distribution::LogNormal { mean, cv } => log_normal(positive(mean), positive(cv), stream),
            Distribution::ClippedLogNormal { cv, most, unlimited_mean, .. } => {
                log_normal(positive(unlimited_mean), positive(cv), stream).min(positive(most))
            }
            Distribution::Bounded { mean, most } => match max_to_mean(mean, most) {
                spread if spread <= 2.0 => positive(mean) * (1.0 + (spread - 1.0) * (2.0 * stream.uniform() - 1.0)),
                spread => positive(mean) * spread * (1.0 - math::powf(stream.uniform(), 1.0 / (spread - 1.0))),
            },
        }
    }
}

fn log_normal(mean: f64, cv: f64, stream: &mut Stream) -> f64 {
    let variance = math::ln_1p(cv * cv);
    mean * math::exp(variance.sqrt() * stream.normal() - 0.5 * variance)
}

/// Means of the values and of their squares of a log-normal distribution with mean `mean` and coefficient of variation
/// `cv`, whose values above `most` are replaced by `most`.
fn clipped_moments(mean: f64, cv: f64, most: f64) -> [f64; 2] {
    let variance = math::ln_1p(cv * cv);
    let deviation = variance.sqrt();
    // Deviations of the limit from the median, on a logarithmic scale.
    let limit = (math::ln(most / mean) + 0.5 * variance) / deviation;
    let below = |deviations: f64| 0.5 * math::erfc(-deviations * std::f64::consts::FRAC_1_SQRT_2);
    let above = below(-limit);
    [
        mean * below(limit - deviation) + most * above,
        mean * mean * (1.0 + cv * cv) * below(limit - 2.0 * deviation) + most * most * above,
    ]
}

/// Ratio of the largest value to the mean.
fn max_to_mean(mean: f64, most: f64) -> f64 {
    let mean = positive(mean);
    if mean > 0.0 { (positive(most) / mean).max(1.0) } else { 1.0 }
}

fn positive(x: f64) -> f64 {
    if x.is_finite() { x.max(0.0) } else { 0.0 }
}

/// Marsaglia and Tsang, *A simple method for generating gamma variables*, ACM TOMS 26 (2000). Shapes below 1 follow the
/// note in their section 6.
fn gamma(mean: f64, cv: f64, stream: &mut Stream) -> f64 {
    if cv <= 1e-9 {
        return mean;
    }
    let shape = 1.0 / (cv * cv);
    let boost = if shape < 1.0 { math::powf(stream.uniform(), 1.0 / shape) } else { 1.0 };
    let d = shape + if shape < 1.0 { 1.0 } else { 0.0 } - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = stream.normal();
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        if math::ln(stream.uniform()) < 0.5 * x * x + d - d * v + d * math::ln(v) {
            return mean / shape * d * v * boost;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_requested_mean_and_variation() {
        let all = [
            Distribution::Constant(3.0),
            Distribution::Uniform { low: 1.0, high: 4.0 },
            Distribution::Exponential { mean: 2.0 },
            Distribution::Gamma { mean: 2.0, cv: 0.5 },
            Distribution::Gamma { mean: 2.0, cv: 2.0 },
            Distribution::LogNormal { mean: 5.0, cv: 0.8 },
            Distribution::clipped_log_normal(5.0, 1.0, 6.0),
            Distribution::clipped_log_normal(5.0, 0.5, 50.0),
            Distribution::Bounded { mean: 2.0, most: 2.5 },
            Distribution::Bounded { mean: 2.0, most: 4.0 },
            Distribution::Bounded { mean: 2.0, most: 6.0 },
        ];
        for (number, law) in all.into_iter().enumerate() {
            let mut stream = Stream::new(11, number as u32, 0);
            let n = 200_000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..n {
                let x = law.draw(&mut stream);
                assert!(x >= 0.0);
                sum += x;
                squares += x * x;
            }
            let mean = sum / f64::from(n);
            let cv = (squares / f64::from(n) - mean * mean).max(0.0).sqrt() / mean;
            // Five standard errors of the mean; the second moment of heavy tails varies more.
            let error = 5.0 * law.mean() * law.cv() / f64::from(n).sqrt();
            assert!((mean - law.mean()).abs() <= error + 1e-9, "{law:?}: {mean}");
            assert!((cv - law.cv()).abs() <= 0.03 * law.cv() + 1e-6, "{law:?}: {cv}");
        }
    }

    #[test]
    fn clipped_lengths_keep_their_mean_and_do_not_exceed_the_limit() {
        for (mean, cv, most) in [(1024.0, 1.0, 1200.0), (1024.0, 2.0, 1025.0), (10.0, 0.1, 11.0), (10.0, 1.0, 1e6)] {
            let law = Distribution::clipped_log_normal(mean, cv, most);
            let unlimited = match law {
                Distribution::ClippedLogNormal { unlimited_mean, .. } => unlimited_mean,
                _ => f64::NAN,
            };
            assert!((clipped_moments(unlimited, cv, most)[0] / mean - 1.0).abs() < 1e-9, "{law:?}");
            let mut stream = Stream::new(3, 0, 0);
            assert!((0..10_000).all(|_| law.draw(&mut stream) <= most), "{law:?}");
        }
        for most in [500.0, 1024.0] {
            assert_eq!(Distribution::clipped_log_normal(1024.0, 1.0, most), Distribution::Constant(1024.0));
        }
    }

    #[test]
    fn invalid_parameters_draw_zero() {
        let mut stream = Stream::new(1, 0, 0);
        for law in [Distribution::Constant(f64::NAN), Distribution::Gamma { mean: -1.0, cv: 1.0 }] {
            assert_eq!(law.draw(&mut stream), 0.0);
        }
    }
}
