//! Quantiles of more observations than can be kept: a histogram with logarithmic bins.

use super::statistics::Quantiles;

/// Bits of bins per octave. With 64 bins per octave, bin edges differ by less than 1.6 %, so a quantile is off by at
/// most half of that.
const PER_OCTAVE_BITS: u32 = 6;
/// Exponents covered: 2^-40 (a picosecond, if the unit is a second) to 2^24 (half a year).
const LOWEST: i64 = -40;
const HIGHEST: i64 = 24;
const BINS: usize = ((HIGHEST - LOWEST) as usize) << PER_OCTAVE_BITS;

/// Weighted counts of positive observations.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: f64,
    least: f64,
    most: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { counts: vec![0; BINS], count: 0, sum: 0.0, least: f64::INFINITY, most: 0.0 }
    }
}

impl Histogram {
    /// Adds observation `x` with `weight`. Values that are not positive are counted in the lowest bin.
    #[inline]
    pub fn add(&mut self, x: f64, weight: u64) {
        // The exponent and the leading bits of the mantissa are the bin number, up to an offset.
        let bits = (x.max(0.0).to_bits() >> (52 - PER_OCTAVE_BITS)) as i64;
        let bin = (bits - ((1023 + LOWEST) << PER_OCTAVE_BITS)).clamp(0, BINS as i64 - 1);
        if let Some(count) = self.counts.get_mut(bin as usize) {
            *count += weight;
        }
        self.count += weight;
        self.sum += x * weight as f64;
        self.least = self.least.min(x);
        self.most = self.most.max(x);
    }

    /// Returns the quantile `q`: the middle of its bin, clamped to the observed range. Returns 0 without observations.
    pub fn quantile(&self, q: f64) -> f64 {
        let rank = (q.clamp(0.0, 1.0) * self.count as f64).ceil().max(1.0) as u64;
        let mut below = 0;
        for (bin, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                let edge = |b: i64| {
                    f64::from_bits(((b + ((1023 + LOWEST) << PER_OCTAVE_BITS)) as u64) << (52 - PER_OCTAVE_BITS))
                };
                let middle = 0.5 * (edge(bin as i64) + edge(bin as i64 + 1));
                return middle.clamp(self.least, self.most);
            }
        }
        0.0
    }

    /// Returns the exact mean and extremes, and approximate quantiles; all zeros without observations.
    pub fn quantiles(&self) -> Quantiles {
        if self.count == 0 {
            return Quantiles::default();
        }
        Quantiles {
            count: self.count,
            mean: self.sum / self.count as f64,
            p50: self.quantile(0.50),
            p90: self.quantile(0.90),
            p95: self.quantile(0.95),
            p99: self.quantile(0.99),
            least: self.least,
            most: self.most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Quantiles, Stream};

    #[test]
    fn histogram_quantiles_match_the_sample_within_one_bin() {
        let mut stream = Stream::new(5, 0, 0);
        let mut sample: Vec<f64> = (0..20_000).map(|_| 1e-3 * stream.exponential()).collect();
        let mut histogram = Histogram::default();
        sample.iter().for_each(|&x| histogram.add(x, 3));
        let (binned, exact) = (histogram.quantiles(), Quantiles::of(&mut sample));
        for (b, e) in [(binned.p50, exact.p50), (binned.p90, exact.p90), (binned.p99, exact.p99)] {
            assert!((b / e - 1.0).abs() < 0.012, "{b} {e}");
        }
        assert!((binned.mean / exact.mean - 1.0).abs() < 1e-12);
        assert_eq!((binned.least, binned.most, binned.count), (exact.least, exact.most, 3 * exact.count));
    }

    #[test]
    fn extreme_values_are_counted_without_panic() {
        let mut histogram = Histogram::default();
        assert_eq!(histogram.quantiles(), Quantiles::default());
        for x in [0.0, -1.0, f64::INFINITY, 1e300, 1e-300] {
            histogram.add(x, 1);
        }
        assert_eq!(histogram.quantiles().count, 5);
    }
}
