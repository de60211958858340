//! Confidence intervals of simulated means: independent replications, paired differences.

use super::statistics::Tally;
use atlas_core::statistics::student_quantile;

/// A mean and the half width of its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interval {
    /// Mean of the replications.
    pub mean: f64,
    /// Half the width of the interval; infinite for fewer than two replications.
    pub half_width: f64,
}

impl Interval {
    /// Returns the interval that covers the true mean with probability `level` (Student's t). The observations must be
    /// independent and approximately normal.
    pub fn of(tally: &Tally, level: f64) -> Interval {
        let n = tally.count();
        if n < 2 {
            return Interval { mean: tally.mean(), half_width: f64::INFINITY };
        }
        let t = student_quantile(0.5 + 0.5 * level.clamp(0.0, 1.0 - 1e-12), (n - 1) as f64);
        Interval { mean: tally.mean(), half_width: t * (tally.variance() / n as f64).sqrt() }
    }

    /// Whether `x` lies inside the interval.
    pub fn covers(&self, x: f64) -> bool {
        (x - self.mean).abs() <= self.half_width
    }
}

/// Calls `one` once per replication, with seeds `seed`, `seed + 1` and so on, and returns the confidence interval at
/// `level` of each of its `N` results.
pub fn replicate<const N: usize>(
    seed: u64,
    replications: u32,
    level: f64,
    mut one: impl FnMut(u64) -> [f64; N],
) -> [Interval; N] {
    let mut tallies = [Tally::default(); N];
    for number in 0..replications {
        let figures = one(seed.wrapping_add(u64::from(number)));
        for (tally, figure) in tallies.iter_mut().zip(figures) {
            tally.add(figure);
        }
    }
    tallies.map(|tally| Interval::of(&tally, level))
}

/// Returns the confidence interval of `other - one`, each evaluated under the same seeds. With common random numbers it
/// is far narrower than the intervals of the two systems themselves (Law, *Simulation Modeling and Analysis*, section
/// 11.2).
pub fn compare(
    seed: u64,
    replications: u32,
    level: f64,
    mut one: impl FnMut(u64) -> f64,
    mut other: impl FnMut(u64) -> f64,
) -> Interval {
    let [difference] = replicate(seed, replications, level, |seed| [other(seed) - one(seed)]);
    difference
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Stream;

    #[test]
    fn intervals_cover_the_true_mean_at_their_level() {
        let rounds = 2000;
        let covered = (0..rounds)
            .filter(|&round| {
                let mut stream = Stream::new(3, 0, round);
                let [mean] = replicate(0, 8, 0.9, |_| [5.0 + stream.normal()]);
                mean.covers(5.0)
            })
            .count();
        // Binomial: 90 % of 2000, with a standard error of 0.67 %.
        let share = covered as f64 / f64::from(rounds);
        assert!((share - 0.9).abs() < 0.03, "{share}");
    }

    #[test]
    fn common_random_numbers_narrow_a_comparison() {
        let one = |seed: u64| (0..100).map(|i| Stream::new(seed, 0, i).exponential()).sum::<f64>();
        let shared = compare(1, 10, 0.95, one, |seed| 1.1 * one(seed));
        let own = compare(1, 10, 0.95, one, |seed| 1.1 * one(seed + 1000));
        assert!(shared.half_width < 0.3 * own.half_width, "{shared:?} {own:?}");
        assert!(shared.mean > 0.0 && !shared.covers(0.0));
    }

    #[test]
    fn one_replication_gives_an_infinite_width() {
        let [only] = replicate(0, 1, 0.95, |_| [4.0]);
        assert_eq!((only.mean, only.half_width), (4.0, f64::INFINITY));
    }
}
