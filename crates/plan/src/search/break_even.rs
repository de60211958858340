//! Rent or own: what an hour of work costs either way, by the share of the time that the hardware works.

use crate::engine::estimate_into;
use crate::estimate::{Estimate, Metric, MetricId};
use crate::scenario::Scenario;
use atlas_core::plan::PriceBasis;

/// Both ways at one share of the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Share of the time that the hardware works.
    pub utilization: f64,
    /// An hour of work of all nodes, rented, USD.
    pub rent: f64,
    /// An hour of work of all nodes, owned, USD.
    pub owned: f64,
    /// Million tokens in that hour.
    pub million_tokens: f64,
    /// Months of use after which owning has cost less; infinite where it never does.
    pub months: f64,
}

/// Both ways at this share of the time; `None` if a price is missing.
#[must_use]
pub fn at(start: &Scenario, utilization: f64) -> Option<Point> {
    let mut scenario = Scenario { utilization, ..start.clone() };
    if scenario.terms.basis == PriceBasis::Owned {
        scenario.terms.basis = PriceBasis::Stated;
    }
    if scenario.capex_usd_node.is_none() || scenario.hourly_usd <= 0.0 {
        return None;
    }
    let mut answer = Estimate::default();
    estimate_into(&scenario, &mut answer);
    let figure = |metric: &Metric| (metric.get)(&answer, &scenario);
    Some(Point {
        utilization,
        rent: figure(MetricId::UsdPerHour.metric()),
        owned: figure(MetricId::UsdPerHourOwned.metric()),
        million_tokens: answer.total.tokens_per_sec * 3600.0 * 1e-6 / answer.shortfall(),
        months: figure(MetricId::BreakEvenMonths.metric()),
    })
}

/// Both ways from a tenth of the time to all of it.
#[must_use]
pub fn curve(start: &Scenario) -> Vec<Point> {
    (1..=10).filter_map(|tenth| at(start, f64::from(tenth) / 10.0)).collect()
}

/// The share of the time from which on owning costs no more than renting; `None` if it never does.
#[must_use]
pub fn even(start: &Scenario) -> Option<f64> {
    const LEAST: f64 = 0.001;
    let cheaper = |utilization: f64| at(start, utilization).is_some_and(|point| point.owned <= point.rent);
    if !cheaper(1.0) {
        return None;
    }
    let (mut low, mut high) = (LEAST, 1.0);
    if cheaper(low) {
        return Some(low);
    }
    while high - low > 1e-6 {
        let middle = 0.5 * (low + high);
        if cheaper(middle) { high = middle } else { low = middle }
    }
    Some(high)
}
