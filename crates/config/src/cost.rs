//! Price and power of a target.

use crate::read_field::ReadField as _;
use atlas_core::count::Count;
use atlas_core::field::Knob;
use atlas_core::plan::PriceBasis;
use atlas_document::decode::{Bounds, Fields};

/// Price and power of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// Rental of one node, USD per hour.
    pub hourly_usd: f64,
    /// Kind of the hourly price.
    pub basis: Option<PriceBasis>,
    /// Date of the price: `YYYY`, `YYYY-MM` or `YYYY-MM-DD`.
    pub date: Option<String>,
    /// Prices of other kinds, USD per hour and node, in the order of [`PriceBasis::RENTS`].
    pub prices: [Option<f64>; PriceBasis::RENTS.len()],
    /// Whether the price includes energy.
    pub energy_included: Option<bool>,
    /// Nominal power of one node, W.
    pub energy_watts_node: f64,
    /// Power usage effectiveness: facility power over IT power.
    pub pue: f64,
    /// Price of energy, USD per kWh.
    pub usd_per_kwh: Option<f64>,
    /// Price of energy in peak hours, USD per kWh.
    pub peak_usd_per_kwh: Option<f64>,
    /// Peak hours of a day.
    pub peak_hours: Option<f64>,
    /// Emissions of the grid, kg CO2e per kWh.
    pub kg_co2e_per_kwh: Option<f64>,
    /// Power limit of an accelerator, W.
    pub power_cap: Option<f64>,
    /// Limit on an accelerator's core clock relative to its maximum.
    pub clock_share: Option<f64>,
    /// Power available to a rack, kW.
    pub rack_kw: Option<f64>,
    /// Nodes per rack.
    pub nodes_per_rack: Option<Count>,
    /// Purchase price of one node, USD: the alternative to rental.
    pub capex_usd_node: Option<f64>,
    /// Cost of network and storage relative to the purchase price of the nodes.
    pub network_share: Option<f64>,
    /// Cost of spare nodes and parts relative to the purchase price of the nodes.
    pub spares_share: Option<f64>,
    /// Cost of staff per node, USD per year.
    pub staff_usd_node_year: Option<f64>,
    /// Price of colocation, USD per kW of nominal power and month, without energy.
    pub usd_per_kw_month: Option<f64>,
    /// Interest rate on the capital, per year.
    pub capital_cost: Option<f64>,
    /// Depreciation period, years.
    pub amortization_years: Option<f64>,
    /// Share of the time in which owned or reserved hardware is in use.
    pub utilization: Option<f64>,
}

impl Cost {
    pub(super) fn read(cost: &mut Fields<'_>) -> Option<Cost> {
        let hourly_usd = cost.required_number_of(Knob::HourlyUsd);
        let basis = cost.choice("basis", PriceBasis::WORDS.get(1..).unwrap_or_default());
        let date = cost.text("date");
        let prices = cost.map("prices", |listed| {
            PriceBasis::RENTS.map(|basis| listed.number(basis.name(), Bounds { max: 1e7, ..Bounds::POSITIVE }))
        });
        let energy_included = cost.flag_of(Knob::EnergyIncluded);
        let energy_watts_node = cost.required_number("energy_watts_node", Bounds { max: 1e7, ..Bounds::POSITIVE });
        // A facility draws at least the power of its computers.
        let pue = cost.required_number_of(Knob::Pue);
        let usd_per_kwh = cost.number_of(Knob::UsdPerKwh);
        let peak_usd_per_kwh = cost.number_of(Knob::PeakUsdPerKwh);
        let peak_hours = cost.number_of(Knob::PeakHours);
        let kg_co2e_per_kwh = cost.number_of(Knob::KgCo2ePerKwh);
        // In files, 0 means no limit.
        let positive = |limit: &f64| *limit > 0.0;
        let power_cap = cost.number_of(Knob::PowerCap).filter(positive);
        let clock_share = cost.number_of(Knob::ClockShare);
        let rack_kw = cost.number_of(Knob::RackKw).filter(positive);
        let nodes_per_rack = cost.count_of(Knob::NodesPerRack).and_then(Count::nonzero);
        let capex_usd_node = cost.number_of(Knob::CapexUsdNode);
        let network_share = cost.number_of(Knob::NetworkShare);
        let spares_share = cost.number_of(Knob::SparesShare);
        let staff_usd_node_year = cost.number_of(Knob::StaffUsdNodeYear);
        let usd_per_kw_month = cost.number_of(Knob::UsdPerKwMonth);
        let capital_cost = cost.number_of(Knob::CapitalCost);
        let amortization_years = cost.number_of(Knob::AmortizationYears);
        let utilization = cost.number_of(Knob::Utilization);
        let (hourly_usd, energy_watts_node, pue) = (hourly_usd?, energy_watts_node?, pue?);
        Some(Cost {
            hourly_usd,
            basis,
            date,
            prices: prices.unwrap_or_default(),
            energy_included,
            energy_watts_node,
            pue,
            usd_per_kwh,
            peak_usd_per_kwh,
            peak_hours,
            kg_co2e_per_kwh,
            power_cap,
            clock_share,
            rack_kw,
            nodes_per_rack,
            capex_usd_node,
            network_share,
            spares_share,
            staff_usd_node_year,
            usd_per_kw_month,
            capital_cost,
            amortization_years,
            utilization,
        })
    }
}
