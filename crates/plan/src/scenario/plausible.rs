//! Values of targets that are probably in another unit, or of another part of the hardware.

use std::fmt;

use atlas_catalog::Accelerator as Sheet;
use atlas_config::Target;
use atlas_core::field::Knob;
use atlas_core::plan::PriceBasis;

use super::HOURS_PER_MONTH;

/// Smallest plausible power of a node, relative to the TDPs of its accelerators.
const MIN_NODE_POWER: f64 = 0.8;
/// Largest plausible bandwidth of a link, relative to that of the datasheet.
const MAX_LINK: f64 = 2.0;
/// Largest plausible price of energy, USD per kWh.
const MAX_USD_PER_KWH: f64 = 2.0;

/// An implausible value of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Implausible {
    /// Path of the field in the entry of the target.
    pub path: String,
    /// Knob that replaces the value, if there is one.
    pub knob: Option<Knob>,
    /// What is implausible.
    pub message: String,
}

impl fmt::Display for Implausible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.message)
    }
}

/// Implausible values of a target with accelerators of this datasheet.
#[must_use]
pub fn implausible(target: &Target, sheet: Option<&Sheet>) -> Vec<Implausible> {
    let mut found = Vec::new();
    // Every resolved scenario is checked, so messages are written only if they are needed.
    let mut add = |implausible: bool, path: &str, knob: Option<Knob>, message: &dyn Fn() -> String| {
        if implausible {
            found.push(Implausible { path: path.to_owned(), knob, message: message() });
        }
    };
    let cost = &target.cost;
    if let Some(sheet) = sheet {
        let same = target.vendor.eq_ignore_ascii_case(&sheet.vendor);
        let message = || format!("is {}, but {} is made by {}", target.vendor, sheet.name, sheet.vendor);
        add(!same, "vendor", None, &message);
        let (stated, count) = (cost.energy_watts_node, target.accelerators_per_node);
        let needed = sheet.tdp_w.unwrap_or(0.0) * count;
        let message = || {
            format!(
                "is {stated} W, less than the {needed} W of {count} {}: state the power of a whole node",
                sheet.name
            )
        };
        add(stated < MIN_NODE_POWER * needed, "cost.energy_watts_node", None, &message);
        let link = target.interconnect.as_ref().and_then(|link| link.bw_gbytes_per_sec);
        let known = sheet.scale_up.as_ref().and_then(|link| link.bw_gbytes_per_sec).map(|one_way| 2.0 * one_way);
        if let Some((stated, known)) = link.zip(known) {
            let message = || {
                format!(
                    "is {stated} GB/s, but {} has {known}: state both directions of one accelerator, not of a node",
                    sheet.name
                )
            };
            add(stated > MAX_LINK * known, "interconnect.bw_GBps", None, &message);
        }
        let nic = target.network.as_ref().and_then(|network| network.gbits_per_accel);
        if let Some((stated, known)) = nic.zip(sheet.scale_out_gbits_per_sec) {
            let message = || {
                format!(
                    "is {stated} Gb/s, but nodes of {} usually have {known}: divide the bandwidth of a node by its accelerators",
                    sheet.name
                )
            };
            add(stated > MAX_LINK * known, "network.Gbps_per_accel", Some(Knob::NetworkGbps), &message);
        }
    }
    for (path, price, knob) in [
        ("cost.usd_per_kwh", cost.usd_per_kwh, Knob::UsdPerKwh),
        ("cost.peak_usd_per_kwh", cost.peak_usd_per_kwh, Knob::PeakUsdPerKwh),
    ] {
        let price = price.unwrap_or(0.0);
        let message = || format!("is {price}: state USD, not cents, per kWh");
        add(price > MAX_USD_PER_KWH, path, Some(knob), &message);
    }
    let bought = cost.capex_usd_node.unwrap_or(0.0);
    let month = HOURS_PER_MONTH * cost.hourly_usd;
    let message = || format!("is {bought}, less than a month's rent of {month:.0} USD: state USD per node");
    add(bought > 0.0 && bought < month, "cost.capex_usd_node", Some(Knob::CapexUsdNode), &message);
    // Commitments and interruptible instances are cheaper than capacity on demand.
    let of = |basis: PriceBasis| {
        let listed = PriceBasis::RENTS.iter().zip(cost.prices).find(|(known, _)| **known == basis);
        listed.and_then(|(_, price)| price).or((cost.basis == Some(basis)).then_some(cost.hourly_usd))
    };
    if let Some(on_demand) = of(PriceBasis::OnDemand).filter(|price| *price > 0.0) {
        for (path, basis) in [("cost.prices.spot", PriceBasis::Spot), ("cost.prices.reserved", PriceBasis::Reserved)] {
            let price = of(basis).unwrap_or(0.0);
            let message = || format!("is {price}, above the {on_demand} on demand");
            add(price > on_demand, path, None, &message);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::engine::estimate;
    use crate::engine::notes::notes;
    use crate::knob::{Overrides, Setting};
    use crate::scenario::Scenario;
    use crate::testing;
    use std::sync::Arc;

    #[test]
    fn values_in_other_units_are_implausible() {
        let parts = testing::parts("h100-sxm-64", "llama3.1-8b-train");
        let changed = |change: fn(&mut Target)| {
            let mut target = (*parts.target).clone();
            change(&mut target);
            let found = implausible(&target, parts.accelerator.as_deref());
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(changed(|_| {}), Vec::<String>::new());
        for (change, expected) in [
            ((|target| target.vendor = "AMD".into()) as fn(&mut Target), "vendor is AMD"),
            (|target| target.cost.energy_watts_node = 10.2, "cost.energy_watts_node is 10.2 W"),
            (|target| target.cost.energy_watts_node = 700.0, "less than the 5600 W of 8 H100"),
            (
                |target| target.network.as_mut().unwrap().gbits_per_accel = Some(3200.0),
                "network.Gbps_per_accel is 3200 Gb/s",
            ),
            (
                |target| target.interconnect.as_mut().unwrap().bw_gbytes_per_sec = Some(7200.0),
                "interconnect.bw_GBps is 7200 GB/s, but H100 SXM5 80 GB has 900",
            ),
            (|target| target.cost.usd_per_kwh = Some(9.0), "cost.usd_per_kwh is 9"),
            (|target| target.cost.capex_usd_node = Some(300.0), "cost.capex_usd_node is 300"),
            (
                |target| {
                    target.cost.basis = Some(PriceBasis::OnDemand);
                    target.cost.prices = PriceBasis::RENTS.map(|basis| (basis == PriceBasis::Spot).then_some(1e3));
                },
                "cost.prices.spot is 1000",
            ),
        ] {
            let found = changed(change);
            assert!(matches!(found.as_slice(), [one] if one.contains(expected)), "{expected}: {found:?}");
        }
    }

    #[test]
    fn shipped_targets_are_plausible() {
        for target in testing::LIBRARY.targets().iter() {
            let Ok(sheet) = crate::scenario::Parts::accelerator_of(testing::LIBRARY.catalog(), target) else {
                continue;
            };
            let found = implausible(target, sheet.as_deref());
            assert!(found.is_empty(), "{}: {found:?}", target.name);
        }
    }

    #[test]
    fn implausible_values_and_a_missing_network_are_noted_unless_replaced() {
        let mut parts = testing::parts("h100-sxm-64", "llama3.1-8b-train");
        let target = Arc::make_mut(&mut parts.target);
        target.cost.usd_per_kwh = Some(9.0);
        target.network = None;
        let noted = |knobs: &[(Knob, f64)]| {
            let knobs: Overrides = knobs.iter().map(|(knob, to)| (*knob, Setting::Number(*to))).collect();
            let scenario = Scenario::resolve(&parts, &knobs).unwrap();
            notes(&scenario, &estimate(&scenario)).join("\n")
        };
        let all = noted(&[]);
        assert!(all.contains("cost.usd_per_kwh is 9"), "{all}");
        assert!(all.contains("the files do not state it: a network of 400 Gb/s per accelerator"), "{all}");
        let replaced = noted(&[(Knob::UsdPerKwh, 0.1), (Knob::NetworkGbps, 100.0)]);
        assert!(!replaced.contains("usd_per_kwh is 9") && !replaced.contains("a network of"), "{replaced}");
        let alone = noted(&[(Knob::NumNodes, 1.0)]);
        assert!(!alone.contains("a network of"), "{alone}");
    }
}
