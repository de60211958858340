//! What is drawn from a stream: positive quantities by mean and coefficient of variation.

use super::random::Stream;

/// A distribution of a non-negative quantity. Parameters out of range are brought into it: a negative mean is 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant(f64),
    /// Every value between two equally likely.
    Uniform {
        /// The least value.
        low: f64,
        /// The largest value.
        high: f64,
    },
    /// Exponential: coefficient of variation 1.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Gamma, whose coefficient of variation is free: below 1 smoother than Poisson, above 1 burstier.
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
    /// Known by its mean and its largest value alone: every value equally likely as far from the mean as the largest is,
    /// and from twice the mean on Beta(1, largest / mean - 1), which is that at twice the mean and becomes exponential the
    /// larger the largest is.
    Upto {
        /// Mean.
        mean: f64,
        /// The largest value.
        most: f64,
    },
}

impl Distribution {
    /// The mean.
    pub fn mean(&self) -> f64 {
        match *self {
            Distribution::Constant(mean)
            | Distribution::Exponential { mean }
            | Distribution::Gamma { mean, .. }
            | Distribution::LogNormal { mean, .. }
            | Distribution::Upto { mean, .. } => positive(mean),
            Distribution::Uniform { low, high } => 0.5 * (positive(low) + positive(high)),
        }
    }

    /// Standard deviation over mean; 0 if the mean is.
    pub fn cv(&self) -> f64 {
        match *self {
            Distribution::Constant(_) => 0.0,
            Distribution::Exponential { .. } => 1.0,
            Distribution::Gamma { cv, .. } | Distribution::LogNormal { cv, .. } => positive(cv),
            Distribution::Uniform { low, high } => {
                let (low, high) = (positive(low), positive(high));
                if low + high > 0.0 { (high - low).abs() / 3f64.sqrt() / (low + high) } else { 0.0 }
            }
            Distribution::Upto { mean, most } => match spread(mean, most) {
                spread if spread <= 2.0 => (spread - 1.0) / 3f64.sqrt(),
                spread => ((spread - 1.0) / (spread + 1.0)).sqrt(),
            },
        }
    }

    /// One value.
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
            Distribution::LogNormal { mean, cv } => {
                let cv = positive(cv);
                let variance = (cv * cv).ln_1p();
                positive(mean) * (variance.sqrt() * stream.normal() - 0.5 * variance).exp()
            }
            Distribution::Upto { mean, most } => match spread(mean, most) {
                spread if spread <= 2.0 => positive(mean) * (1.0 + (spread - 1.0) * (2.0 * stream.uniform() - 1.0)),
                spread => positive(mean) * spread * (1.0 - stream.uniform().powf(1.0 / (spread - 1.0))),
            },
        }
    }
}

/// The largest value over the mean.
fn spread(mean: f64, most: f64) -> f64 {
    let mean = positive(mean);
    if mean > 0.0 { (positive(most) / mean).max(1.0) } else { 1.0 }
}

fn positive(x: f64) -> f64 {
    if x.is_finite() { x.max(0.0) } else { 0.0 }
}

/// Marsaglia and Tsang, *A simple method for generating gamma variables*, ACM TOMS 26 (2000); shapes below 1 by their
/// note in section 6.
fn gamma(mean: f64, cv: f64, stream: &mut Stream) -> f64 {
    if cv <= 1e-9 {
        return mean;
    }
    let shape = 1.0 / (cv * cv);
    let boost = if shape < 1.0 { stream.uniform().powf(1.0 / shape) } else { 1.0 };
    let d = shape + if shape < 1.0 { 1.0 } else { 0.0 } - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = stream.normal();
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        if stream.uniform().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return mean / shape * d * v * boost;
        }
    }
}

/// The standard normal's quantile at `p` (Wichura, *Algorithm AS 241*, Applied Statistics 37 (1988), PPND16: about 16
/// digits).
#[expect(clippy::excessive_precision, reason = "as published")]
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180625 - q * q;
        return q * ratio(
            r,
            [
                3.387_132_872_796_366_608,
                133.141_667_891_784_377_45,
                1_971.590_950_306_551_442_7,
                13_731.693_765_509_461_125,
                45_921.953_931_549_871_457,
                67_265.770_927_008_700_853,
                33_430.575_583_588_128_105,
                2_509.080_928_730_122_672_7,
            ],
            [
                42.313_330_701_600_911_252,
                687.187_007_492_057_908_30,
                5_394.196_021_424_751_107_7,
                21_213.794_301_586_595_867,
                39_307.895_800_092_710_610,
                28_729.085_735_721_942_674,
                5_226.495_278_852_854_561_0,
            ],
        );
    }
    let tail = if q < 0.0 { p } else { 1.0 - p };
    let r = (-tail.ln()).sqrt();
    let value = if r <= 5.0 {
        ratio(
            r - 1.6,
            [
                1.423_437_110_749_683_577_34,
                4.630_337_846_156_545_295_90,
                5.769_497_221_460_691_405_50,
                3.647_848_324_763_204_605_04,
                1.270_458_252_452_368_382_58,
                0.241_780_725_177_450_611_770,
                0.022_723_844_989_269_184_583_3,
                7.745_450_142_783_414_076_40e-4,
            ],
            [
                2.053_191_626_637_758_821_87,
                1.676_384_830_183_803_849_40,
                0.689_767_334_985_100_004_550,
                0.148_103_976_427_480_074_590,
                0.015_198_666_563_616_457_196_6,
                5.475_938_084_995_344_946_00e-4,
                1.050_750_071_644_416_843_24e-9,
            ],
        )
    } else {
        ratio(
            r - 5.0,
            [
                6.657_904_643_501_103_777_20,
                5.463_784_911_164_114_369_90,
                1.784_826_539_917_291_335_80,
                0.296_560_571_828_504_891_230,
                0.026_532_189_526_576_123_093_0,
                0.001_242_660_947_388_078_438_60,
                2.711_555_568_743_487_578_15e-5,
                2.010_334_399_292_288_132_65e-7,
            ],
            [
                0.599_832_206_555_887_937_690,
                0.136_929_880_922_735_805_310,
                0.014_875_361_290_850_614_852_5,
                7.868_691_311_456_132_591_00e-4,
                1.846_318_317_510_054_681_80e-5,
                1.421_511_758_316_445_888_70e-7,
                2.044_263_103_389_939_785_64e-15,
            ],
        )
    };
    if q < 0.0 { -value } else { value }
}

/// Two polynomials' ratio; the lower one begins with 1.
fn ratio(x: f64, upper: [f64; 8], lower: [f64; 7]) -> f64 {
    let horner = |c: &[f64]| c.iter().rev().fold(0.0, |sum, &k| sum * x + k);
    horner(&upper) / (1.0 + x * horner(&lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_quantile_has_its_published_values() {
        // AS 241's own check values.
        assert!((normal_quantile(0.25) + 0.674_489_750_196_081_7).abs() < 1e-14);
        assert!((normal_quantile(0.001) + 3.090_232_306_167_813).abs() < 1e-14);
        assert!((normal_quantile(1e-20) + 9.262_340_089_798_408).abs() < 1e-13);
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
    }

    #[test]
    fn draws_have_the_mean_and_variation_that_were_asked() {
        let all = [
            Distribution::Constant(3.0),
            Distribution::Uniform { low: 1.0, high: 4.0 },
            Distribution::Exponential { mean: 2.0 },
            Distribution::Gamma { mean: 2.0, cv: 0.5 },
            Distribution::Gamma { mean: 2.0, cv: 2.0 },
            Distribution::LogNormal { mean: 5.0, cv: 0.8 },
            Distribution::Upto { mean: 2.0, most: 2.5 },
            Distribution::Upto { mean: 2.0, most: 4.0 },
            Distribution::Upto { mean: 2.0, most: 6.0 },
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
            // Five standard errors of the mean; the second moment of heavy tails wanders more.
            let error = 5.0 * law.mean() * law.cv() / f64::from(n).sqrt();
            assert!((mean - law.mean()).abs() <= error + 1e-9, "{law:?}: {mean}");
            assert!((cv - law.cv()).abs() <= 0.03 * law.cv() + 1e-6, "{law:?}: {cv}");
        }
    }

    #[test]
    fn parameters_that_make_no_sense_draw_zero() {
        let mut stream = Stream::new(1, 0, 0);
        for law in [Distribution::Constant(f64::NAN), Distribution::Gamma { mean: -1.0, cv: 1.0 }] {
            assert_eq!(law.draw(&mut stream), 0.0);
        }
    }
}
