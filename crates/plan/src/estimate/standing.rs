//! Ranking of targets in a metric, as far as their confidence intervals separate them.

use super::{Direction, Estimate, Metric, MetricId, Section};
use crate::scenario::Scenario;
use atlas_core::plan::Engine;

/// Rank of a target in one metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rank {
    /// Not the best, the only one, all equal, without a value, or of a metric without a better direction.
    #[default]
    Unmarked,
    /// Better than all others, with an interval that does not overlap theirs.
    Best,
    /// Best, or with an interval that overlaps that of the best.
    Tied,
}

/// Value of a metric with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ValueWithInterval {
    /// Value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Whether the results of two engines are comparable: the engines are the same, or both model the hardware.
#[must_use]
pub fn comparable(a: Engine, b: Engine) -> bool {
    a == b || (a.models_hardware() && b.models_hardware())
}

/// Whether the estimate has this metric. A scenario that cannot run has no throughput, latency or cost per token, only
/// the cost of the hardware, its break-even time and the memory it would need.
#[must_use]
pub fn is_available(metric: &Metric, estimate: &Estimate) -> bool {
    estimate.runs()
        || matches!(
            metric.id,
            MetricId::UsdPerHour
                | MetricId::BreakEvenMonths
                | MetricId::Accelerators
                | MetricId::PeakMemGb
                | MetricId::MemoryFill
                | MetricId::Headroom
        )
}

/// Whether a metric depends on the price basis: costs, except those of owned hardware.
#[must_use]
pub fn depends_on_price_basis(metric: &Metric) -> bool {
    let owned = matches!(metric.id, MetricId::UsdPerHourOwned | MetricId::DollarPer1mTokensOwned);
    metric.section == Section::Cost && !owned
}

/// Value of a metric, or `None` if it does not apply, the scenario cannot run, or it is a cost and no price is stated.
#[must_use]
pub fn available_value(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> Option<f64> {
    let priced = !depends_on_price_basis(metric) || scenario.usd_node_hour().is_some();
    if !(metric.applies_to(scenario) && is_available(metric, estimate) && priced) {
        return None;
    }
    metric.value(estimate, scenario).filter(|value| !value.is_nan())
}

/// Metric whose interval applies to a metric without one of its own: latencies of a request consist mostly of the one
/// they are derived from.
fn source(id: MetricId) -> MetricId {
    match id {
        MetricId::TokensPerSecPerUser | MetricId::P50Ms | MetricId::P95Ms | MetricId::P99Ms | MetricId::ItlP99Ms => {
            MetricId::TpotMs
        }
        MetricId::TtftP99Ms => MetricId::TtftMs,
        id => id,
    }
}

/// Value of a metric with its interval, or that of the metric from which it is derived; without one, both ends equal the
/// value.
#[must_use]
pub fn value_with_interval(metric: &Metric, scenario: &Scenario, estimate: &Estimate) -> Option<ValueWithInterval> {
    let value = available_value(metric, scenario, estimate)?;
    let factors = source(metric.id).metric().factors(estimate, scenario);
    // A rate per user is the reciprocal of a time.
    let inverse = metric.id == MetricId::TokensPerSecPerUser;
    let factors = factors.map(|factors| if inverse { factors.inverse() } else { factors });
    let (low, high) = factors.map_or((value, value), |factors| metric.around(value, factors));
    Some(ValueWithInterval { value, low: low.min(value), high: high.max(value) })
}

/// Rank of each value. The best one is marked [`Rank::Best`] only if its interval overlaps no other.
#[must_use]
pub fn ranks(figures: &[Option<ValueWithInterval>], better: Direction) -> Vec<Rank> {
    let finite = || figures.iter().flatten().filter(|figure| figure.value.is_finite());
    let ranked = better != Direction::Neutral && finite().count() > 1;
    let key = |figure: &ValueWithInterval| better.sort_key(figure.value);
    let best = finite().max_by(|a, b| key(b).total_cmp(&key(a))).filter(|_| ranked);
    let Some(best) = best.copied() else { return vec![Rank::Unmarked; figures.len()] };
    let overlaps = |figure: &ValueWithInterval| figure.low <= best.high && best.low <= figure.high;
    let among = finite().filter(|figure| overlaps(figure)).count();
    // All values are equal, so there is no ranking.
    if finite().all(|figure| figure.value == best.value) {
        return vec![Rank::Unmarked; figures.len()];
    }
    let standing = |figure: &Option<ValueWithInterval>| match figure {
        Some(figure) if figure.value.is_finite() && overlaps(figure) && among > 1 => Rank::Tied,
        Some(figure) if figure.value == best.value => Rank::Best,
        _ => Rank::Unmarked,
    };
    figures.iter().map(standing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(value: f64, low: f64, high: f64) -> Option<ValueWithInterval> {
        Some(ValueWithInterval { value, low, high })
    }

    #[test]
    fn only_a_value_with_disjoint_interval_is_best() {
        use Rank::{Best, Tied, Unmarked};
        let apart = [at(10.0, 9.0, 11.0), at(5.0, 4.0, 6.0), None];
        assert_eq!(ranks(&apart, Direction::Higher), [Best, Unmarked, Unmarked]);
        assert_eq!(ranks(&apart, Direction::Lower), [Unmarked, Best, Unmarked]);
        let overlapping = [at(10.0, 7.0, 11.0), at(8.0, 6.0, 9.0), at(5.0, 4.0, 6.0)];
        assert_eq!(ranks(&overlapping, Direction::Higher), [Tied, Tied, Unmarked]);
        assert_eq!(ranks(&overlapping, Direction::Neutral), [Unmarked; 3]);
    }

    #[test]
    fn intervals_of_shares_end_at_100_percent() {
        let (_, scenario) = crate::testing::scenario("h100-sxm-64", "mixtral-8x7b-train", &["precision=fp32"]);
        let estimate = crate::engine::estimate(&scenario);
        let ends = [MetricId::MfuCausal, MetricId::Mfu, MetricId::Hfu, MetricId::TokensPerSec].map(|id| {
            let metric = id.metric();
            let high = value_with_interval(metric, &scenario, &estimate).map(|found| found.high);
            assert_eq!(high, metric.interval(&estimate, &scenario).map(|(_, high)| high));
            high
        });
        assert!(matches!(ends, [Some(1.0), Some(1.0), Some(..=1.0), Some(2.0..)]), "{ends:?}");
    }

    #[test]
    fn single_or_equal_values_are_unmarked() {
        assert_eq!(ranks(&[at(1.0, 1.0, 1.0), None], Direction::Higher), [Rank::Unmarked; 2]);
        assert_eq!(ranks(&[at(1.0, 0.5, 2.0), at(1.0, 0.9, 1.1)], Direction::Higher), [Rank::Unmarked; 2]);
        let endless = [at(f64::INFINITY, f64::INFINITY, f64::INFINITY), at(3.0, 3.0, 3.0)];
        assert_eq!(ranks(&endless, Direction::Lower), [Rank::Unmarked; 2]);
    }

    #[test]
    fn only_analytical_and_event_engines_are_mutually_comparable() {
        assert!(comparable(Engine::Analytical, Engine::Event));
        assert!(!comparable(Engine::Analytical, Engine::SemiEmpirical));
        assert!(comparable(Engine::SemiEmpirical, Engine::SemiEmpirical));
        assert!(!comparable(Engine::SemiEmpirical, Engine::Benchboard));
    }
}
