//! 90 % prediction intervals from the errors on groups that the fit has not seen.
//!
//! The next measurement comes from a new source, so the source is the unit of sampling, not the row (hierarchical
//! conformal prediction: Dunn, Wasserman and Ramdas, JASA 2022). Residuals come from fits without the source
//! (jackknife+: Barber et al., Annals of Statistics 49, 2021). The weight of a source is the square root of its number
//! of rows. This is a compromise between equal weights of sources, with which a handful of rows dominates, and equal
//! weights of rows, with which a single sweep dominates.

use atlas_core::math;
use std::collections::{BTreeMap, BTreeSet};

use super::case::Case;
use super::unit::unit_name;
use atlas_core::sort;
use atlas_perf::interval::Factors;

/// Minimum number of sources for an interval of a regime. With fewer, the interval comes from all regimes of the
/// metric.
const MIN_REGIME_SOURCES: usize = 5;

/// Error on a row that the fit has not seen.
#[derive(Debug, Clone, Copy)]
pub struct Residual<'a> {
    /// Regime of the row.
    pub regime: &'static str,
    /// The metric. Regimes with few sources use the residuals of others with the same metric.
    pub figure: &'static str,
    /// Source or model that was left out.
    pub unit: &'a str,
    /// ln(predicted / measured).
    pub error: f64,
}

impl<'a> Residual<'a> {
    /// Creates the residual of a case.
    #[must_use]
    pub fn of(case: &'a Case, error: f64) -> Residual<'a> {
        let figure = if case.metric.is_latency() || case.training().is_some() { case.metric.name() } else { "serving" };
        Residual { regime: case.regime, figure, unit: unit_name(case), error }
    }
}

/// Returns the factors on a prediction between which the measured value lies in nine of ten cases, from the residuals
/// of all units except `without`.
#[must_use]
pub fn factors(residuals: &[Residual<'_>], regime: &str, figure: &str, without: Option<&str>) -> Factors {
    let others = || residuals.iter().filter(|r| r.figure == figure && without != Some(r.unit));
    let own: BTreeSet<&str> = others().filter(|r| r.regime == regime).map(|r| r.unit).collect();
    let some: Vec<&Residual<'_>> = others().filter(|r| own.len() < MIN_REGIME_SOURCES || r.regime == regime).collect();
    let mut rows: BTreeMap<&str, f64> = BTreeMap::new();
    for r in &some {
        *rows.entry(r.unit).or_default() += 1.0;
    }
    let mut weighed: Vec<(f64, f64)> =
        some.iter().map(|r| (-r.error, rows.get(r.unit).map_or(0.0, |n: &f64| 1.0 / n.sqrt()))).collect();
    sort::by(&mut weighed, |a, b| a.0.total_cmp(&b.0));
    // The new source counts as one more, with unknown residuals.
    let tail = (0.1 * (1.0 - 1.0 / (rows.len() as f64 + 1.0))).max(0.0);
    let (low, high) = shortest(&weighed, 1.0 - tail);
    Factors { low: math::exp(low).min(1.0), high: math::exp(high).max(1.0) }
}

/// Bounds of the shortest interval that contains a share of the weight of sorted values. Errors are skewed: details
/// that rows do not contain mostly make runs slower, so equal tails would make the interval wider where few
/// measurements lie.
fn shortest(sorted: &[(f64, f64)], share: f64) -> (f64, f64) {
    let need = share * sorted.iter().map(|one| one.1).sum::<f64>() * (1.0 - 1e-12);
    let mut best = (0.0, 0.0);
    let mut width = f64::INFINITY;
    let mut held = 0.0;
    let mut ends = sorted.iter();
    let mut high = 0.0;
    for (low, weight) in sorted {
        while held < need {
            let Some((value, more)) = ends.next() else { return best };
            held += more;
            high = *value;
        }
        if high - low < width {
            (width, best) = (high - low, (*low, high));
        }
        held -= weight;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn residuals(spread: &[(&'static str, f64, usize)]) -> Vec<Residual<'static>> {
        let of = |(unit, center, n): &(&'static str, f64, usize)| {
            let (unit, center, n) = (*unit, *center, *n);
            (0..n).map(move |i| Residual {
                regime: "closed",
                figure: "serving",
                unit,
                error: center + 0.1 * (i as f64 / n as f64 - 0.5),
            })
        };
        spread.iter().flat_map(of).collect()
    }

    const SOURCES: [(&str, f64, usize); 6] =
        [("a", 0.0, 100), ("b", 0.2, 10), ("c", -0.2, 10), ("d", 0.1, 40), ("e", -0.1, 40), ("f", 0.5, 2000)];

    #[test]
    fn interval_covers_ninety_percent_despite_a_dominant_source() {
        let all = residuals(&SOURCES);
        let f = factors(&all, "closed", "serving", None);
        let inside = all.iter().filter(|r| (f.low..=f.high).contains(&(-r.error).exp())).count();
        assert!(inside as f64 >= 0.9 * all.len() as f64);
        assert!(f.high > 1.0, "f alone would put the whole interval below the prediction: {f:?}");
    }

    #[test]
    fn the_shortest_interval_leaves_out_the_longer_tail() {
        // Nine values close together and one far above.
        let values: Vec<(f64, f64)> = (0..10).map(|i| (if i == 9 { 5.0 } else { 0.1 * f64::from(i) }, 1.0)).collect();
        assert_eq!(shortest(&values, 0.9), (0.0, 0.8));
        assert_eq!(shortest(&values, 1.0), (0.0, 5.0));
        assert_eq!(shortest(&[], 0.9), (0.0, 0.0));
    }

    #[test]
    fn excluded_source_does_not_widen_its_own_interval() {
        let all = residuals(&SOURCES);
        let (with, without) = (factors(&all, "closed", "serving", None), factors(&all, "closed", "serving", Some("f")));
        assert!(without.low > with.low);
    }

    #[test]
    fn regime_with_few_sources_falls_back_to_all_regimes() {
        let mut all = residuals(&SOURCES);
        all.push(Residual { regime: "offline", figure: "serving", unit: "a", error: 0.0 });
        assert_eq!(factors(&all, "offline", "serving", None), factors(&all, "nothing", "serving", None));
    }
}
