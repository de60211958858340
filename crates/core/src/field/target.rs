//! The hardware, its cost, and the run on it.

use super::{Field, Group, Knob, Step, ValueType, entry, ranks, real, whole};
use crate::plan::PriceBasis;

pub(super) const TARGET: &[Field] = &[
    entry(
        Knob::NumNodes,
        "num_nodes",
        &["nodes"],
        Group::Target,
        ranks(1_000_000.0),
        &["num_nodes"],
        "nodes of the target",
    )
    .of_target(),
    entry(
        Knob::NetworkGbps,
        "network_gbps",
        &["nic_gbps"],
        Group::Target,
        real(0.0, 1e6, 100.0),
        &["network", "Gbps_per_accel"],
        "network bandwidth between nodes, of one accelerator",
    )
    .files(0.0, 1e30)
    .unit("Gb/s")
    .of_target()
    .reasoned(),
    entry(
        Knob::Oversubscription,
        "oversubscription",
        &[],
        Group::Target,
        real(1.0, 100.0, 0.5),
        &["network", "oversubscription"],
        "downlinks over uplinks of the network between nodes; 1: non-blocking",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::PriceBasis,
        "price_basis",
        &["basis"],
        Group::Target,
        ValueType::Choice(PriceBasis::NAMES),
        &[],
        "kind of price: the target's own, a rent of one kind (its cost.prices, else the catalog's median), or owned",
    )
    .reasoned(),
    entry(
        Knob::HourlyUsd,
        "hourly_usd",
        &["hourly", "price"],
        Group::Target,
        real(0.0, 1e9, 1.0),
        &["cost", "hourly_usd"],
        "rental of one node",
    )
    .files(0.0, 1e7)
    .unit("$/h")
    .of_target(),
    entry(
        Knob::EnergyIncluded,
        "energy_included",
        &[],
        Group::Target,
        ValueType::Toggle,
        &["cost", "energy_included"],
        "whether the price includes energy: rents do, unless the target states a price of energy",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::UsdPerKwh,
        "usd_per_kwh",
        &["kwh", "energy_price"],
        Group::Target,
        real(0.0, 1e6, 0.01),
        &["cost", "usd_per_kwh"],
        "price of energy; added to the price of an hour that does not include it",
    )
    .unit("$/kWh")
    .of_target(),
    entry(
        Knob::PeakUsdPerKwh,
        "peak_usd_per_kwh",
        &["peak_kwh"],
        Group::Target,
        real(0.0, 1e6, 0.01),
        &["cost", "peak_usd_per_kwh"],
        "price of energy in peak hours",
    )
    .unit("$/kWh")
    .of_target()
    .reasoned(),
    entry(
        Knob::PeakHours,
        "peak_hours",
        &[],
        Group::Target,
        real(0.0, 24.0, 1.0),
        &["cost", "peak_hours"],
        "peak hours of a day; hardware that works part of the time works outside them first",
    )
    .unit("h")
    .of_target()
    .reasoned(),
    entry(
        Knob::Pue,
        "pue",
        &[],
        Group::Target,
        real(1.0, 10.0, 0.05),
        &["cost", "pue"],
        "facility power over IT power",
    )
    .of_target(),
    entry(
        Knob::KgCo2ePerKwh,
        "kg_co2e_per_kwh",
        &["grid_intensity", "co2"],
        Group::Target,
        real(0.0, 10.0, 0.05),
        &["cost", "kg_co2e_per_kwh"],
        "emissions of the grid",
    )
    .unit("kg/kWh")
    .of_target()
    .reasoned(),
    entry(
        Knob::PowerCap,
        "power_cap",
        &["cap_w"],
        Group::Target,
        real(0.0, 1e6, 50.0),
        &["cost", "power_cap"],
        "power limit of an accelerator: clocks fall to meet it; 0: its design power",
    )
    .unit("W")
    .of_target()
    .reasoned(),
    entry(
        Knob::RackKw,
        "rack_kw",
        &[],
        Group::Target,
        real(0.0, 1e5, 1.0),
        &["cost", "rack_kw"],
        "power of a rack, shared by its nodes: limits their accelerators; 0: no limit",
    )
    .unit("kW")
    .of_target()
    .reasoned(),
    entry(
        Knob::NodesPerRack,
        "nodes_per_rack",
        &[],
        Group::Target,
        whole(0.0, 1e3, Step::Add(1.0)),
        &["cost", "nodes_per_rack"],
        "nodes of a rack; 0: as many as its power supports without a cap",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::CapexUsdNode,
        "capex_usd_node",
        &["capex"],
        Group::Target,
        real(0.0, 1e9, 10_000.0),
        &["cost", "capex_usd_node"],
        "purchase price of one node, the alternative to rental; 0: none is known",
    )
    .unit("$")
    .of_target()
    .reasoned(),
    entry(
        Knob::NetworkShare,
        "network_share",
        &[],
        Group::Target,
        real(0.0, 10.0, 0.05),
        &["cost", "network_share"],
        "network and storage that are bought with a node, over its price",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::SparesShare,
        "spares_share",
        &[],
        Group::Target,
        real(0.0, 10.0, 0.01),
        &["cost", "spares_share"],
        "spare nodes and parts, over the price of the nodes",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::StaffUsdNodeYear,
        "staff_usd_node_year",
        &["staff"],
        Group::Target,
        real(0.0, 1e9, 500.0),
        &["cost", "staff_usd_node_year"],
        "staff of an owned node",
    )
    .unit("$/year")
    .of_target()
    .reasoned(),
    entry(
        Knob::UsdPerKwMonth,
        "usd_per_kw_month",
        &["colocation"],
        Group::Target,
        real(0.0, 1e9, 10.0),
        &["cost", "usd_per_kw_month"],
        "colocation for each kW of nominal power, without energy",
    )
    .unit("$/month")
    .of_target()
    .reasoned(),
    entry(
        Knob::CapitalCost,
        "capital_cost",
        &["wacc"],
        Group::Target,
        real(0.0, 1.0, 0.01),
        &["cost", "capital_cost"],
        "yearly interest on a purchase",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::AmortizationYears,
        "amortization_years",
        &["years"],
        Group::Target,
        real(0.1, 50.0, 1.0),
        &["cost", "amortization_years"],
        "depreciation period of a purchase",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::Utilization,
        "utilization",
        &["duty"],
        Group::Target,
        real(0.01, 1.0, 0.1),
        &["cost", "utilization"],
        "share of the time for which owned or reserved hardware is in use; it is paid all the time",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::Seed,
        "seed",
        &[],
        Group::Run,
        ValueType::Seed,
        &[],
        "seed of all random draws; phase i of a schedule draws from seed + i",
    )
    .drawn(),
    entry(
        Knob::Noise,
        "noise",
        &[],
        Group::Run,
        ValueType::Toggle,
        &[],
        "draw run-to-run noise as the predecessor model does; off gives the expectation",
    )
    .calibrated(),
];
