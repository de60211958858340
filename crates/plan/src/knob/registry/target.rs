//! What the machine is and costs, and the run on it.

use super::{entry, ranks, real};
use crate::knob::{Group, Kind, Knob, Spec};

pub(super) const TARGET: [Spec; 12] = [
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
        Knob::HourlyUsd,
        "hourly_usd",
        &["hourly", "price"],
        Group::Target,
        real(0.0, 1e9, 1.0),
        &["cost", "hourly_usd"],
        "rental of one node",
    )
    .unit("$/h")
    .of_target(),
    entry(
        Knob::UsdPerKwh,
        "usd_per_kwh",
        &["kwh", "energy_price"],
        Group::Target,
        real(0.0, 1e6, 0.01),
        &["cost", "usd_per_kwh"],
        "price of energy, paid beside the rental",
    )
    .unit("$/kWh")
    .of_target(),
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
        Knob::AmortizationYears,
        "amortization_years",
        &["years"],
        Group::Target,
        real(0.1, 50.0, 1.0),
        &["cost", "amortization_years"],
        "years over which a purchase is written off",
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
        "share of the time that owned hardware works; it is written off all the time",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::Seed,
        "seed",
        &[],
        Group::Run,
        Kind::Seed,
        &[],
        "seed of all that is drawn; phase i of a schedule draws from seed + i",
    )
    .drawn(),
    entry(
        Knob::Noise,
        "noise",
        &[],
        Group::Run,
        Kind::Toggle,
        &[],
        "draw run-to-run noise as the predecessor model does; off gives the expectation",
    )
    .calibrated(),
];
