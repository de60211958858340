//! Counter-based random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, *Parallel random numbers: as easy as
//! 1, 2, 3*, SC'11).
//!
//! A number is a function of (seed, purpose, entity, index). No state is shared, so the arrivals of request 17 are the
//! same whatever the system under study does with request 16. Two systems simulated with the same seed are therefore
//! compared on common random numbers.

use atlas_core::math;

const MULTIPLIERS: (u32, u32) = (0xD251_1F53, 0xCD9E_8D57);
const WEYL: (u32, u32) = (0x9E37_79B9, 0xBB67_AE85);

/// An independent sequence of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    key: (u32, u32),
    entity: u32,
    purpose: u32,
    index: u64,
    spare: Option<u64>,
}

impl Stream {
    /// Creates the stream of one `entity` (a request, a rank) for one `purpose` (arrivals, lengths) under `seed`.
    pub const fn new(seed: u64, purpose: u32, entity: u32) -> Stream {
        Stream { key: (seed as u32, (seed >> 32) as u32), entity, purpose, index: 0, spare: None }
    }

    /// Returns this stream positioned at its `index`-th pair of numbers.
    #[must_use]
    pub const fn at(self, index: u64) -> Stream {
        Stream { index, spare: None, ..self }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        if let Some(bits) = self.spare.take() {
            return bits;
        }
        let counter = [self.index as u32, (self.index >> 32) as u32, self.entity, self.purpose];
        let [a, b, c, d] = philox(counter, self.key);
        self.index += 1;
        self.spare = Some(u64::from(c) | u64::from(d) << 32);
        u64::from(a) | u64::from(b) << 32
    }

    /// Uniform in the open interval from 0 to 1: one of 2^52 values, each the midpoint of its subinterval.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    /// Uniform integer below `n`; 0 if `n` is 0. The bias is less than n / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Exponential with mean 1, by inversion.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -math::ln(self.uniform())
    }

    /// Standard normal, by inversion.
    pub fn normal(&mut self) -> f64 {
        atlas_core::statistics::normal_quantile(self.uniform())
    }
}

/// Ten rounds.
#[inline]
fn philox(counter: [u32; 4], key: (u32, u32)) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let (mut k, mut l) = key;
    for _ in 0..10 {
        let x = u64::from(MULTIPLIERS.0) * u64::from(a);
        let y = u64::from(MULTIPLIERS.1) * u64::from(c);
        (a, b, c, d) = ((y >> 32) as u32 ^ b ^ k, y as u32, (x >> 32) as u32 ^ d ^ l, x as u32);
        k = k.wrapping_add(WEYL.0);
        l = l.wrapping_add(WEYL.1);
    }
    [a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers published by the authors with Random123.
    #[test]
    fn philox_matches_the_published_test_vectors() {
        assert_eq!(philox([0; 4], (0, 0)), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox([u32::MAX; 4], (u32::MAX, u32::MAX)), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], (0xa409_3822, 0x299f_31d0)),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn streams_differ_by_seed_and_both_indices() {
        let first = Stream::new(1, 2, 3).bits();
        for other in [Stream::new(2, 2, 3), Stream::new(1, 3, 3), Stream::new(1, 2, 4), Stream::new(1 << 32, 2, 3)] {
            assert_ne!(first, other.clone().bits());
        }
        assert_eq!(first, Stream::new(1, 2, 3).bits());
    }

    #[test]
    fn uniform_draws_have_uniform_moments_and_range() {
        let mut stream = Stream::new(7, 0, 0);
        let n = 100_000;
        let (mut sum, mut squares, mut least, mut most) = (0.0, 0.0, 1.0f64, 0.0f64);
        for _ in 0..n {
            let u = stream.uniform();
            sum += u;
            squares += u * u;
            least = least.min(u);
            most = most.max(u);
        }
        let mean = sum / f64::from(n);
        // Five standard errors.
        assert!((mean - 0.5).abs() < 5.0 * (1.0 / 12.0f64 / f64::from(n)).sqrt());
        assert!((squares / f64::from(n) - 1.0 / 3.0).abs() < 0.005);
        assert!(least > 0.0 && most < 1.0);
        assert!((0..1000).all(|_| stream.below(3) < 3));
        assert_eq!(stream.below(0), 0);
    }
}
