//! How hours are paid: rents of one kind, or ownership with all that belongs to it; and the power that may be drawn.

use atlas_core::math;
use std::sync::Arc;

use super::{Parts, Scenario};
use atlas_catalog::price::Median;
use atlas_config::Cost;
use atlas_core::count::Count;
use atlas_core::plan::PriceBasis;

/// Network and storage over the purchase price of nodes, where a target states none: links between nodes are 9 to 13 % of
/// what training a frontier model costs, accelerators and servers 38 to 55 % (Cottier et al., arXiv 2405.21015, section 3).
const NETWORK_SHARE: f64 = 0.235;
/// Spares over the purchase price, where a target states none: two spare nodes for a hundred. An assumption; 16,384 H100
/// lost 148 accelerators in 54 days (arXiv 2407.21783, table 5), most of which a warranty replaces.
const SPARES_SHARE: f64 = 0.02;
/// People, USD a node and year, where a target states none: an administrator costs 135,000 USD a year (median pay of 95,360
/// and benefits of 29 % of the compensation: US Bureau of Labor Statistics, 2023), and 50 nodes for each are an assumption.
const STAFF_USD_NODE_YEAR: f64 = 2700.0;
/// Rent of a building, USD for each kW and month without energy, where a target states none: the mean asked in North America
/// for 250 to 500 kW, 184.06 (CBRE, North America Data Center Trends, second half of 2024).
const USD_PER_KW_MONTH: f64 = 184.0;
/// Interest a year, where a target states none: about the cost of capital of US technology companies (Damodaran, cost of
/// capital by sector, January 2025).
const CAPITAL_COST: f64 = 0.09;

/// Hours in a year, leap days counted.
pub const HOURS_PER_YEAR: f64 = 365.25 * 24.0;
/// Hours in a twelfth of a year.
pub const HOURS_PER_MONTH: f64 = HOURS_PER_YEAR / 12.0;

/// How hours are paid, what owning costs, and what may be drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// The kind of price that is requested.
    pub basis: PriceBasis,
    /// The kind of price that the target states, where it says.
    pub stated: Option<PriceBasis>,
    /// The offers behind the price, where it is the catalog's.
    pub listed: Option<Arc<Median>>,
    /// Whether the price includes energy, where a file or a knob says.
    pub energy_included: Option<bool>,
    /// Whether the target states a price of energy.
    metered: bool,
    /// Price of energy in peak hours, USD per kWh.
    pub peak_usd_per_kwh: Option<f64>,
    /// Peak hours of a day.
    pub peak_hours: f64,
    /// Most that an accelerator may draw, W, where that is limited below its design power.
    pub power_cap: Option<f64>,
    /// Limit of the core clock as a share of its maximum; 1 without a limit.
    pub clock_share: f64,
    /// Power of a rack, kW, where that is limited.
    pub rack_kw: Option<f64>,
    /// Nodes of a rack; `None`: as many as its power allows.
    pub nodes_per_rack: Option<Count>,
    /// Network and storage over the purchase price of the nodes.
    pub network_share: f64,
    /// Spares over the purchase price of the nodes.
    pub spares_share: f64,
    /// People, USD a node and year.
    pub staff_usd_node_year: f64,
    /// Rent of the building, USD a kW and month.
    pub usd_per_kw_month: f64,
    /// Interest a year.
    pub capital_cost: f64,
}

impl Terms {
    /// What a target states, and defaults.
    #[must_use]
    pub fn of(cost: &Cost) -> Terms {
        Terms {
            basis: PriceBasis::Stated,
            stated: cost.basis,
            listed: None,
            energy_included: cost.energy_included,
            metered: cost.usd_per_kwh.is_some(),
            peak_usd_per_kwh: cost.peak_usd_per_kwh,
            peak_hours: cost.peak_hours.unwrap_or(0.0),
            power_cap: cost.power_cap,
            clock_share: cost.clock_share.unwrap_or(1.0),
            rack_kw: cost.rack_kw,
            nodes_per_rack: cost.nodes_per_rack,
            network_share: cost.network_share.unwrap_or(NETWORK_SHARE),
            spares_share: cost.spares_share.unwrap_or(SPARES_SHARE),
            staff_usd_node_year: cost.staff_usd_node_year.unwrap_or(STAFF_USD_NODE_YEAR),
            usd_per_kw_month: cost.usd_per_kw_month.unwrap_or(USD_PER_KW_MONTH),
            capital_cost: cost.capital_cost.unwrap_or(CAPITAL_COST),
        }
    }
}

/// Share of a sum to pay in a year, month by month, so that it is paid back with interest after this many years.
#[must_use]
pub fn capital_recovery(interest: f64, years: f64) -> f64 {
    let month = interest / 12.0;
    if interest <= 0.0 { 1.0 / years } else { interest / (1.0 - math::powf(1.0 + month, -12.0 * years)) }
}

impl Scenario {
    /// Pays at another kind of price: the target's own of that kind, else the catalog's; 0, which is no price, where neither
    /// has one.
    pub(super) fn pay(&mut self, basis: PriceBasis, parts: &Parts) {
        let cost = &parts.target.cost;
        self.terms.basis = basis;
        self.terms.listed = None;
        self.hourly_usd = cost.hourly_usd;
        let Some(kind) = PriceBasis::RENTS.iter().position(|rent| *rent == basis) else { return };
        if cost.basis == Some(basis) {
            return;
        }
        let own = cost.prices.get(kind).copied().flatten();
        let listed = parts.prices.get(kind).cloned().flatten().filter(|_| own.is_none());
        let by_accelerator = |listed: &Arc<Median>| listed.usd_per_accelerator_hour * self.accelerators_per_node;
        self.hourly_usd = own.or_else(|| listed.as_ref().map(by_accelerator)).unwrap_or(0.0);
        self.terms.listed = listed;
    }

    /// The kind of price in effect, if known.
    #[must_use]
    pub fn price_basis(&self) -> Option<PriceBasis> {
        match self.terms.basis {
            PriceBasis::Stated => self.terms.stated,
            basis => Some(basis),
        }
    }

    /// Whether the rent of an hour includes energy: it does, unless the target states what energy costs. The predecessor
    /// system's model adds it always.
    #[must_use]
    pub fn rent_includes_energy(&self) -> bool {
        let owned = self.terms.stated == Some(PriceBasis::Owned);
        self.terms.energy_included.unwrap_or(self.engine.reasons() && !self.terms.metered && !owned)
    }

    /// Whether the price of an hour includes energy; that of owned hardware does not.
    #[must_use]
    pub fn energy_is_included(&self) -> bool {
        self.terms.basis != PriceBasis::Owned && self.rent_includes_energy()
    }

    /// Mean price of energy over the hours that are worked: those outside the peak first.
    #[must_use]
    pub fn energy_usd_per_kwh(&self) -> f64 {
        let Some(peak) = self.terms.peak_usd_per_kwh else { return self.usd_per_kwh };
        let worked = 24.0 * self.utilization;
        let outside = worked.min(24.0 - self.terms.peak_hours);
        (outside * self.usd_per_kwh + (worked - outside) * peak) / worked.max(1e-9)
    }

    /// What buying a node takes, USD: the node, its share of network and storage, and of spares.
    #[must_use]
    pub fn outlay_usd_node(&self) -> f64 {
        self.capex_usd_node.unwrap_or(0.0) * (1.0 + self.terms.network_share + self.terms.spares_share)
    }

    /// What running an owned node takes, USD a year: building and people, without energy.
    #[must_use]
    pub fn running_usd_node_year(&self) -> f64 {
        self.terms.staff_usd_node_year + 12.0 * self.terms.usd_per_kw_month * self.node_watts * 1e-3
    }

    /// An hour of work on an owned node without energy, USD: purchase with interest, building and people over the hours that
    /// it works. What it draws while it waits is left out.
    #[must_use]
    pub fn owned_usd_node_hour(&self) -> f64 {
        let recovered = self.outlay_usd_node() * capital_recovery(self.terms.capital_cost, self.amortization_years);
        (recovered + self.running_usd_node_year()) / (HOURS_PER_YEAR * self.utilization).max(1e-9)
    }

    /// An hour of work on a rented node, USD: what is reserved is paid while it waits, too.
    #[must_use]
    pub fn rent_usd_node_hour(&self) -> f64 {
        let waits = self.price_basis() == Some(PriceBasis::Reserved);
        if waits { self.hourly_usd / self.utilization.max(1e-9) } else { self.hourly_usd }
    }

    /// An hour of work on a node at the kind of price in effect, USD, without energy that is paid separately; 0 if no price
    /// is known.
    #[must_use]
    pub fn usd_node_hour(&self) -> f64 {
        match self.terms.basis {
            PriceBasis::Owned if self.capex_usd_node.is_none() => 0.0,
            PriceBasis::Owned => self.owned_usd_node_hour(),
            _ => self.rent_usd_node_hour(),
        }
    }

    /// Months after which a bought node has cost less than renting it for the time that it works, interest included; infinite
    /// where it never does. `energy` is what the owner pays an hour and the renter does not, USD a node.
    #[must_use]
    pub fn break_even_months(&self, energy: f64) -> f64 {
        let month = HOURS_PER_MONTH * self.utilization;
        let saved = (self.rent_usd_node_hour() - energy) * month - self.running_usd_node_year() / 12.0;
        let (outlay, interest) = (self.outlay_usd_node(), self.terms.capital_cost / 12.0);
        if saved <= outlay * interest {
            return f64::INFINITY;
        }
        if interest <= 0.0 {
            outlay / saved
        } else {
            -math::ln(1.0 - outlay * interest / saved) / math::ln_1p(interest)
        }
    }
}
