//! Quantiles of samples and of the normal and Student's distributions.

use crate::math;

/// Standard deviation of a normal distribution over its median absolute deviation.
pub const DEVIATION_PER_MAD: f64 = 1.4826;

/// Quantile by linear interpolation between order statistics (Hyndman and Fan 1996, type 7; the default of NumPy and R).
/// Reorders `values`. NaN if it is empty.
#[must_use]
#[inline]
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    let Some((below, share)) = position(values.len(), q) else { return f64::NAN };
    let (_, low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let low = *low;
    let high = if share > 0.0 { above.iter().copied().reduce(f64::min).unwrap_or(low) } else { low };
    low + share * (high - low)
}

/// Like [`quantile`], for values in ascending order.
#[must_use]
pub fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let at = |(below, share): (usize, f64)| {
        let low = *sorted.get(below)?;
        let high = sorted.get(below + 1).copied().filter(|_| share > 0.0).unwrap_or(low);
        Some(low + share * (high - low))
    };
    position(sorted.len(), q).and_then(at).unwrap_or(f64::NAN)
}

/// Index of the order statistic at or below the quantile `q` of `count` values, and the share of the next one.
#[inline]
fn position(count: usize, q: f64) -> Option<(usize, f64)> {
    let at = q.clamp(0.0, 1.0) * count.checked_sub(1)? as f64;
    Some((at.floor() as usize, at - at.floor()))
}

/// Median; `None` without values.
#[must_use]
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    (!values.is_empty()).then(|| quantile(&mut values, 0.5))
}

/// Quantile of Student's t distribution at `p` > 0.5, with `freedom` degrees of freedom (Hill, *Algorithm 396*, CACM 13
/// (1970); exact for one and two degrees of freedom, otherwise accurate to about six digits). Infinite for fewer than one
/// degree of freedom.
#[must_use]
pub fn student_quantile(p: f64, freedom: f64) -> f64 {
    let n = freedom;
    // Two-tailed probability.
    let both = (2.0 * (1.0 - p)).clamp(1e-300, 1.0);
    if n < 1.0 {
        return f64::INFINITY;
    }
    if n < 1.5 {
        let angle = both * std::f64::consts::FRAC_PI_2;
        return math::cos(angle) / math::sin(angle);
    }
    if n < 2.5 {
        return (2.0 / (both * (2.0 - both)) - 2.0).max(0.0).sqrt();
    }
    let a = 1.0 / (n - 0.5);
    let b = (48.0 / a) / a;
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * std::f64::consts::FRAC_PI_2).sqrt() * n;
    let mut y = math::powf(d * both, 2.0 / n);
    if y > 0.05 + a {
        let x = normal_quantile(0.5 * both);
        y = x * x;
        if n < 5.0 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = math::exp_m1(a * y * y);
    } else {
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y - 1.0)
            * (n + 1.0)
            / (n + 2.0)
            + 1.0 / y;
    }
    (n * y).sqrt()
}

/// Quantile of the standard normal distribution at `p` (Wichura, *Algorithm AS 241*, Applied Statistics 37 (1988),
/// PPND16: about 16 digits).
#[expect(clippy::excessive_precision, reason = "as published")]
#[must_use]
#[inline]
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
    let r = (-math::ln(tail)).sqrt();
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

/// Ratio of two polynomials. The constant term of the denominator is 1 and not part of `lower`.
#[inline]
fn ratio(x: f64, upper: [f64; 8], lower: [f64; 7]) -> f64 {
    let horner = |c: &[f64]| c.iter().rev().fold(0.0, |sum, &k| sum * x + k);
    horner(&upper) / (1.0 + x * horner(&lower))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_as_numpy_does() {
        let mut values = [4.0, 1.0, 3.0, 2.0];
        for (q, expected) in [(0.0, 1.0), (0.5, 2.5), (0.9, 3.7), (1.0, 4.0)] {
            assert!((quantile(&mut values, q) - expected).abs() < 1e-12, "{q}");
            assert_eq!(quantile_of_sorted(&[1.0, 2.0, 3.0, 4.0], q), quantile(&mut values, q));
        }
        assert!(quantile(&mut [], 0.5).is_nan() && quantile_of_sorted(&[], 0.5).is_nan());
        assert_eq!((median([3.0, 1.0]), median([])), (Some(2.0), None));
    }

    #[test]
    fn student_quantiles_match_published_tables() {
        let table = [
            (1.0, 12.706),
            (2.0, 4.3027),
            (3.0, 3.1824),
            (5.0, 2.5706),
            (10.0, 2.2281),
            (30.0, 2.0423),
            (120.0, 1.9799),
        ];
        for (freedom, t) in table {
            assert!((student_quantile(0.975, freedom) / t - 1.0).abs() < 1e-4, "{freedom}");
        }
        assert!((student_quantile(0.995, 9.0) - 3.2498).abs() < 2e-3);
        assert!((student_quantile(0.975, 1e6) - 1.95996).abs() < 1e-4);
        assert_eq!(student_quantile(0.975, 0.0), f64::INFINITY);
    }

    #[test]
    fn the_normal_quantile_has_its_published_values() {
        // Check values published with AS 241.
        assert!((normal_quantile(0.25) + 0.674_489_750_196_081_7).abs() < 1e-14);
        assert!((normal_quantile(0.001) + 3.090_232_306_167_813).abs() < 1e-14);
        assert!((normal_quantile(1e-20) + 9.262_340_089_798_408).abs() < 1e-13);
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
    }
}
