//! Rent or own: cost of a productive hour in both cases, by utilization.

use crate::engine::estimate_into;
use crate::estimate::{Estimate, Metric, MetricId};
use crate::scenario::Scenario;
use atlas_core::plan::PriceBasis;

/// Cost of renting and owning at one utilization.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Share of the time in which the hardware is in use.
    pub utilization: f64,
    /// Cost of a productive hour of all rented nodes, USD.
    pub rent: f64,
    /// Cost of a productive hour of all owned nodes, USD.
    pub owned: f64,
    /// Million tokens per hour.
    pub million_tokens: f64,
    /// Months after which owning is cheaper; infinite if it never is.
    pub months: f64,
}

/// Compares renting and owning at a utilization; `None` if a price is missing.
#[must_use]
pub fn at(start: &Scenario, utilization: f64) -> Option<Point> {
    let mut scenario = Scenario { utilization, ..start.clone() };
    if scenario.terms.basis == PriceBasis::Owned {
        scenario.terms.basis = PriceBasis::Stated;
    }
    if scenario.capex_usd_node.is_none() || scenario.hourly_usd.is_none() {
        return None;
    }
    let mut answer = Estimate::default();
    estimate_into(&scenario, &mut answer);
    let figure = |metric: &Metric| metric.value(&answer, &scenario);
    Some(Point {
        utilization,
        rent: figure(MetricId::UsdPerHour.metric())?,
        owned: figure(MetricId::UsdPerHourOwned.metric())?,
        million_tokens: answer.total.tokens_per_sec * 3600.0 * 1e-6 / answer.shortfall(),
        months: figure(MetricId::BreakEvenMonths.metric())?,
    })
}

/// Compares renting and owning at utilizations from 10 % to 100 %.
#[must_use]
pub fn curve(start: &Scenario) -> Vec<Point> {
    (1..=10).filter_map(|tenth| at(start, f64::from(tenth) / 10.0)).collect()
}

/// Utilization from which owning costs no more than renting; `None` if it never does.
#[must_use]
pub fn break_even_utilization(start: &Scenario) -> Option<f64> {
    const MIN_UTILIZATION: f64 = 0.001;
    let cheaper = |utilization: f64| at(start, utilization).is_some_and(|point| point.owned <= point.rent);
    if !cheaper(1.0) {
        return None;
    }
    let (mut low, mut high) = (MIN_UTILIZATION, 1.0);
    if cheaper(low) {
        return Some(low);
    }
    while high - low > 1e-6 {
        let middle = 0.5 * (low + high);
        if cheaper(middle) { high = middle } else { low = middle }
    }
    Some(high)
}
