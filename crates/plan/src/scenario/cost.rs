//! Hourly cost of rented or owned hardware, and power limits.

use atlas_core::math;
use std::sync::Arc;

use super::{Parts, Scenario};
use atlas_catalog::price::Median;
use atlas_config::Cost;
use atlas_core::count::Count;
use atlas_core::plan::PriceBasis;

/// Cost of network and storage relative to the purchase price of nodes, by default. The links between nodes are 9 to 13
/// % of the cost of training a frontier model, accelerators and servers 38 to 55 % (Cottier et al., arXiv 2405.21015,
/// section 3).
const NETWORK_SHARE: f64 = 0.235;
/// Cost of spares relative to the purchase price of nodes, by default: two spare nodes per hundred. An assumption;
/// 16,384 H100 lost 148 accelerators in 54 days (arXiv 2407.21783, table 5), most of which a warranty replaces.
const SPARES_SHARE: f64 = 0.02;
/// Cost of staff, USD per node and year, by default. An administrator costs 135,000 USD a year (median pay of 95,360
/// and benefits of 29 % of the compensation: US Bureau of Labor Statistics, 2023); 50 nodes per administrator are an
/// assumption.
const STAFF_USD_NODE_YEAR: f64 = 2700.0;
/// Colocation rent without energy, USD per kW and month, by default: the mean asking price in North America for 250 to
/// 500 kW, 184.06 (CBRE, North America Data Center Trends, second half of 2024).
const USD_PER_KW_MONTH: f64 = 184.0;
/// Annual interest rate by default: about the cost of capital of US technology companies (Damodaran, cost of capital by
/// sector, January 2025).
const CAPITAL_COST: f64 = 0.09;

/// Mean hours per year, including leap days.
pub const HOURS_PER_YEAR: f64 = 365.25 * 24.0;
/// Mean hours per month.
pub const HOURS_PER_MONTH: f64 = HOURS_PER_YEAR / 12.0;

/// Price terms, cost of ownership, and power limits.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceTerms {
    /// Requested price basis.
    pub basis: PriceBasis,
    /// Basis of the price in the target, if stated.
    pub stated: Option<PriceBasis>,
    /// Offers behind the price, if it is the median of the catalog.
    pub listed: Option<Arc<Median>>,
    /// Whether the price includes energy, if a file or a knob states it.
    pub energy_included: Option<bool>,
    /// Whether the target states an energy price.
    metered: bool,
    /// Energy price in peak hours, USD per kWh.
    pub peak_usd_per_kwh: Option<f64>,
    /// Peak hours per day.
    pub peak_hours: f64,
    /// Power limit of an accelerator, W, if below its design power.
    pub power_cap: Option<f64>,
    /// Limit of the core clock relative to its maximum; 1 without a limit.
    pub clock_share: f64,
    /// Power limit of a rack, kW, if any.
    pub rack_kw: Option<f64>,
    /// Nodes per rack; `None`: as many as the power limit allows.
    pub nodes_per_rack: Option<Count>,
    /// Cost of network and storage relative to the purchase price of the nodes.
    pub network_share: f64,
    /// Cost of spares relative to the purchase price of the nodes.
    pub spares_share: f64,
    /// Cost of staff, USD per node and year.
    pub staff_usd_node_year: f64,
    /// Colocation rent, USD per kW and month.
    pub usd_per_kw_month: f64,
    /// Annual interest rate.
    pub capital_cost: f64,
}

impl PriceTerms {
    /// Terms stated by a target, completed with defaults.
    #[must_use]
    pub fn of(cost: &Cost) -> PriceTerms {
        PriceTerms {
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

/// Annual share of a loan to pay, in monthly installments, to repay it with interest over `years` years.
#[must_use]
pub fn capital_recovery(interest: f64, years: f64) -> f64 {
    let month = interest / 12.0;
    if interest <= 0.0 { 1.0 / years } else { interest / (1.0 - math::powf(1.0 + month, -12.0 * years)) }
}

impl Scenario {
    /// Switches to another price basis. The price is the target's own for that basis, otherwise the catalog's, if
    /// either has one.
    pub(super) fn set_price_basis(&mut self, basis: PriceBasis, parts: &Parts) {
        let cost = &parts.target.cost;
        self.terms.basis = basis;
        self.terms.listed = None;
        let positive = |price: &f64| *price > 0.0;
        self.hourly_usd = Some(cost.hourly_usd).filter(positive);
        let Some(kind) = PriceBasis::RENTS.iter().position(|rent| *rent == basis) else { return };
        if cost.basis == Some(basis) && self.hourly_usd.is_some() {
            return;
        }
        let stated = cost.prices.get(kind).copied().flatten();
        let listed = parts.prices.get(kind).cloned().flatten().filter(|_| stated.is_none());
        let node_price = |listed: &Arc<Median>| listed.usd_per_accelerator_hour * self.accelerators_per_node;
        self.hourly_usd = stated.or_else(|| listed.as_ref().map(node_price)).filter(positive);
        self.terms.listed = listed;
    }

    /// Price basis in effect, if known.
    #[must_use]
    pub fn price_basis(&self) -> Option<PriceBasis> {
        match self.terms.basis {
            PriceBasis::Stated => self.terms.stated,
            basis => Some(basis),
        }
    }

    /// Price basis of the hourly rent, if known. Owned hardware is compared with the target's rent.
    #[must_use]
    pub fn rent_basis(&self) -> Option<PriceBasis> {
        match self.terms.basis {
            PriceBasis::Owned => self.terms.stated,
            _ => self.price_basis(),
        }
    }

    /// Whether the hourly rent includes energy. By default it does, unless the target states an energy price. The
    /// predecessor's model always adds energy.
    #[must_use]
    pub fn rent_includes_energy(&self) -> bool {
        let owned = self.terms.stated == Some(PriceBasis::Owned);
        self.terms.energy_included.unwrap_or(self.engine.models_hardware() && !self.terms.metered && !owned)
    }

    /// Whether the hourly price includes energy; that of owned hardware does not.
    #[must_use]
    pub fn energy_is_included(&self) -> bool {
        self.terms.basis != PriceBasis::Owned && self.rent_includes_energy()
    }

    /// Mean energy price over the working hours, USD per kWh. Working hours are scheduled outside peak hours first.
    #[must_use]
    pub fn energy_usd_per_kwh(&self) -> f64 {
        let Some(peak) = self.terms.peak_usd_per_kwh else { return self.usd_per_kwh };
        let worked = 24.0 * self.utilization;
        let outside = worked.min(24.0 - self.terms.peak_hours);
        (outside * self.usd_per_kwh + (worked - outside) * peak) / worked.max(1e-9)
    }

    /// Initial cost of buying a node, USD: the node and its shares of network, storage and spares; `None` without a
    /// purchase price.
    #[must_use]
    pub fn outlay_usd_node(&self) -> Option<f64> {
        Some(self.capex_usd_node? * (1.0 + self.terms.network_share + self.terms.spares_share))
    }

    /// Annual cost of running an owned node, USD: colocation and staff, without energy.
    #[must_use]
    pub fn running_usd_node_year(&self) -> f64 {
        self.terms.staff_usd_node_year + 12.0 * self.terms.usd_per_kw_month * self.node_watts * 1e-3
    }

    /// Mean energy price over the hours in which owned hardware does not work, USD per kWh. They include the peak hours,
    /// as far as they are no working hours.
    #[must_use]
    pub fn idle_usd_per_kwh(&self) -> f64 {
        let idle = 24.0 * (1.0 - self.utilization);
        match self.terms.peak_usd_per_kwh {
            Some(peak) if idle > 0.0 => {
                let at_peak = idle.min(self.terms.peak_hours);
                (at_peak * peak + (idle - at_peak) * self.usd_per_kwh) / idle
            }
            _ => self.usd_per_kwh,
        }
    }

    /// Idle hours of owned hardware per productive hour.
    #[must_use]
    pub fn idle_hours(&self) -> f64 {
        (1.0 - self.utilization) / self.utilization.max(1e-9)
    }

    /// Energy cost of the idle hours of an owned node per productive hour, USD.
    #[must_use]
    pub fn idle_usd_node_hour(&self) -> f64 {
        let idle = self.idle_hours();
        // Most scenarios have none; this saves the computation of the power.
        if idle > 0.0 { idle * self.idle_node_watts() * 1e-3 * self.pue * self.idle_usd_per_kwh() } else { 0.0 }
    }

    /// Cost of a productive hour of an owned node without the energy of that hour, USD: purchase with interest,
    /// colocation and staff, spread over the productive hours, and the energy of the idle hours. `None` without a purchase
    /// price.
    #[must_use]
    pub fn owned_usd_node_hour(&self) -> Option<f64> {
        let recovered = self.outlay_usd_node()? * capital_recovery(self.terms.capital_cost, self.amortization_years);
        let year = recovered + self.running_usd_node_year();
        Some(year / (HOURS_PER_YEAR * self.utilization).max(1e-9) + self.idle_usd_node_hour())
    }

    /// Cost of a productive hour of a rented node, USD, if known. Reserved nodes are also paid while idle.
    #[must_use]
    pub fn rent_usd_node_hour(&self) -> Option<f64> {
        let reserved = self.rent_basis() == Some(PriceBasis::Reserved);
        self.hourly_usd.map(|usd| if reserved { usd / self.utilization.max(1e-9) } else { usd })
    }

    /// Cost of a productive hour of a node at the price basis in effect, USD, without separately billed energy, if known.
    #[must_use]
    pub fn usd_node_hour(&self) -> Option<f64> {
        match self.terms.basis {
            PriceBasis::Owned => self.owned_usd_node_hour(),
            _ => self.rent_usd_node_hour(),
        }
    }

    /// What to do about a missing price of the price basis in effect; `None` if it is known.
    #[must_use]
    pub fn missing_price(&self) -> Option<String> {
        if self.usd_node_hour().is_some() {
            return None;
        }
        Some(match self.terms.basis {
            PriceBasis::Stated => "no price: set cost.hourly_usd in the target".to_owned(),
            PriceBasis::Owned => "no purchase price known: set cost.capex_usd_node".to_owned(),
            basis => format!(
                "neither the target nor the catalog has a {0} price for this accelerator: set cost.prices.{0} in the \
                 target, or add a dated offer with `basis: {0}` to workload/prices.yaml",
                basis.name()
            ),
        })
    }

    /// Months after which buying a node is cheaper than renting it for its productive hours, including interest;
    /// infinite if it never is, `None` unless both prices are known. `energy` is the hourly energy cost per working node that only the owner pays, USD.
    #[must_use]
    pub fn break_even_months(&self, energy: f64) -> Option<f64> {
        let month = HOURS_PER_MONTH * self.utilization;
        let energy = energy + self.idle_usd_node_hour();
        let saved = (self.rent_usd_node_hour()? - energy) * month - self.running_usd_node_year() / 12.0;
        let (outlay, interest) = (self.outlay_usd_node()?, self.terms.capital_cost / 12.0);
        if saved <= outlay * interest {
            return Some(f64::INFINITY);
        }
        Some(if interest <= 0.0 {
            outlay / saved
        } else {
            -math::ln(1.0 - outlay * interest / saved) / math::ln_1p(interest)
        })
    }
}
