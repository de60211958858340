//! The hardware, its cost, and the run.

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
        "number of nodes",
    )
    .of_target(),
    entry(
        Knob::NetworkGbps,
        "network_gbps",
        &["nic_gbps"],
        Group::Target,
        real(0.001, 1e6, 100.0),
        &["network", "Gbps_per_accel"],
        "network bandwidth between nodes, per accelerator",
    )
    .with_file_bounds(0.001, 1e30)
    .unit("Gb/s")
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::Oversubscription,
        "oversubscription",
        &[],
        Group::Target,
        real(1.0, 100.0, 0.5),
        &["network", "oversubscription"],
        "oversubscription of the network between nodes (downlinks / uplinks); 1: non-blocking",
    )
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::HostMemoryGb,
        "host_memory_gb",
        &["host_memory"],
        Group::Target,
        real(0.0, 1e6, 256.0),
        &["host_memory_gb"],
        "host memory of one node, which holds what is offloaded; 0: unknown; default: of the vendor's reference node",
    )
    .zero_is_unset()
    .unit("GB")
    .of_target()
    .training()
    .hardware_modeling(),
    entry(
        Knob::PriceBasis,
        "price_basis",
        &["basis"],
        Group::Target,
        ValueType::Choice(PriceBasis::NAMES),
        &[],
        "type of price: the target's own, a type of rental (from its cost.prices, else the catalog median), or owned",
    )
    .hardware_modeling(),
    entry(
        Knob::HourlyUsd,
        "hourly_usd",
        &["hourly", "price"],
        Group::Target,
        real(0.0, 1e9, 1.0),
        &["cost", "hourly_usd"],
        "rental price of one node",
    )
    .with_file_bounds(0.0, 1e7)
    .unit("$/h")
    .of_target(),
    entry(
        Knob::EnergyIncluded,
        "energy_included",
        &[],
        Group::Target,
        ValueType::Toggle,
        &["cost", "energy_included"],
        "whether the price includes energy; rental prices do, unless the target states an energy price",
    )
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::UsdPerKwh,
        "usd_per_kwh",
        &["kwh", "energy_price"],
        Group::Target,
        real(0.0, 1e6, 0.01),
        &["cost", "usd_per_kwh"],
        "energy price; added to hourly prices that do not include energy",
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
        "energy price in peak hours",
    )
    .unit("$/kWh")
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::PeakHours,
        "peak_hours",
        &[],
        Group::Target,
        real(0.0, 24.0, 1.0),
        &["cost", "peak_hours"],
        "peak hours per day; partly used hardware runs off-peak first",
    )
    .unit("h")
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::Pue,
        "pue",
        &[],
        Group::Target,
        real(1.0, 10.0, 0.05),
        &["cost", "pue"],
        "power usage effectiveness: facility power / IT power",
    )
    .of_target(),
    entry(
        Knob::KgCo2ePerKwh,
        "kg_co2e_per_kwh",
        &["grid_intensity", "co2"],
        Group::Target,
        real(0.0, 10.0, 0.05),
        &["cost", "kg_co2e_per_kwh"],
        "carbon intensity of the grid",
    )
    .unit("kg/kWh")
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::PowerCap,
        "power_cap",
        &["cap_w"],
        Group::Target,
        real(0.0, 1e6, 50.0),
        &["cost", "power_cap"],
        "power cap per accelerator, met by lower clocks; 0: its TDP",
    )
    .zero_is_unset()
    .unit("W")
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::ClockShare,
        "clock_share",
        &["clock_limit"],
        Group::Target,
        real(0.1, 1.0, 0.05),
        &["cost", "clock_share"],
        "limit of the core clock over its maximum (nvidia-smi -lgc); memory keeps its own clock; 1: no limit",
    )
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::RackKw,
        "rack_kw",
        &[],
        Group::Target,
        real(0.0, 1e5, 1.0),
        &["cost", "rack_kw"],
        "power budget of a rack, shared by its nodes; caps their accelerators; 0: no limit",
    )
    .zero_is_unset()
    .unit("kW")
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::NodesPerRack,
        "nodes_per_rack",
        &[],
        Group::Target,
        whole(0.0, 1e3, Step::Add(1.0)),
        &["cost", "nodes_per_rack"],
        "nodes per rack; 0: as many as its power budget supports without a cap",
    )
    .zero_is_unset()
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::CapexUsdNode,
        "capex_usd_node",
        &["capex"],
        Group::Target,
        real(0.0, 1e9, 10_000.0),
        &["cost", "capex_usd_node"],
        "purchase price of one node, as an alternative to renting; 0: unknown",
    )
    .zero_is_unset()
    .unit("$")
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::NetworkShare,
        "network_share",
        &[],
        Group::Target,
        real(0.0, 10.0, 0.05),
        &["cost", "network_share"],
        "network and storage bought with a node, relative to its price",
    )
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::SparesShare,
        "spares_share",
        &[],
        Group::Target,
        real(0.0, 10.0, 0.01),
        &["cost", "spares_share"],
        "spare nodes and parts, relative to the price of the nodes",
    )
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::StaffUsdNodeYear,
        "staff_usd_node_year",
        &["staff"],
        Group::Target,
        real(0.0, 1e9, 500.0),
        &["cost", "staff_usd_node_year"],
        "staff cost of an owned node",
    )
    .unit("$/year")
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::UsdPerKwMonth,
        "usd_per_kw_month",
        &["colocation"],
        Group::Target,
        real(0.0, 1e9, 10.0),
        &["cost", "usd_per_kw_month"],
        "colocation per kW of nominal power, without energy",
    )
    .unit("$/month")
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::CapitalCost,
        "capital_cost",
        &["wacc"],
        Group::Target,
        real(0.0, 1.0, 0.01),
        &["cost", "capital_cost"],
        "annual interest rate of a purchase",
    )
    .of_target()
    .hardware_modeling(),
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
    .hardware_modeling(),
    entry(
        Knob::Utilization,
        "utilization",
        &["duty"],
        Group::Target,
        real(0.01, 1.0, 0.1),
        &["cost", "utilization"],
        "share of the time that owned or reserved hardware is in use; it is paid for all the time",
    )
    .of_target()
    .hardware_modeling(),
    entry(
        Knob::Seed,
        "seed",
        &[],
        Group::Run,
        ValueType::Seed,
        &[],
        "random seed; phase i of a schedule uses seed + i",
    )
    .randomized(),
    entry(
        Knob::Noise,
        "noise",
        &[],
        Group::Run,
        ValueType::Toggle,
        &[],
        "add run-to-run noise like the predecessor model; off gives the expected value",
    )
    .calibrated(),
];
