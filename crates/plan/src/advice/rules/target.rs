//! Rules on the amount of hardware and the network.

use super::super::Rule;
use super::super::case::{floor_power, number};
use super::{both, serving};
use crate::estimate::{Cause, Verdict};
use crate::knob::Knob;

/// Share of the time above which a faster network between nodes is worth its price.
const NETWORK_MATTERS: f64 = 0.05;

pub(super) static RULES: &[Rule] = &[
    both(
        "use the idle accelerators",
        "accelerators outside the layout cost money and do no work",
        "number of ranks compared with the accelerators of the target",
        |case, out| {
            let dp = (case.devices / (case.tp * case.pp * case.cp)).floor();
            if case.scenario.base.plan.dp.is_some() && dp > case.dp {
                let mut changes = vec![number(Knob::Dp, dp)];
                case.keep_load(&mut changes, dp, case.micro);
                let mut power = vec![number(Knob::Dp, floor_power(dp))];
                case.keep_load(&mut power, floor_power(dp), case.micro);
                out.extend([changes, power]);
            }
        },
    ),
    both(
        "use a faster network",
        "the time of transfers between nodes falls in proportion",
        "NVIDIA, DGX SuperPOD reference architecture (one 400 Gb/s NIC per GPU, rail-optimized)",
        |case, out| {
            let gbps = case.number(Knob::NetworkGbps);
            if gbps > 0.0 && case.share(Cause::InterNode) > NETWORK_MATTERS {
                out.push(vec![number(Knob::NetworkGbps, 2.0 * gbps)]);
            }
        },
    ),
    both(
        "use a non-blocking network",
        "an oversubscribed spine reduces the bandwidth of all traffic that crosses it",
        "Al-Fares et al., SIGCOMM 2008; NVIDIA, DGX SuperPOD reference architecture",
        |case, out| {
            if case.number(Knob::Oversubscription) > 1.0 {
                out.push(vec![number(Knob::Oversubscription, 1.0)]);
            }
        },
    ),
    both(
        "use fewer nodes",
        "communication and stragglers grow with the number of nodes, so tokens cost less on fewer",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 5",
        |case, out| {
            let nodes = (case.scenario.num_nodes / 2.0).floor();
            if nodes >= 1.0 && case.scenario.base.plan.dp.is_none() {
                let mut changes = vec![number(Knob::NumNodes, nodes)];
                case.keep_load(&mut changes, (case.dp / 2.0).floor().max(1.0), case.micro);
                out.push(changes);
            }
        },
    ),
    serving(
        "add nodes",
        "the load exceeds the capacity of the target, so the queue grows without limit",
        "Allen-Cunneen approximation of G/G/m queues (Allen 1990)",
        |case, out| {
            if let Some(Verdict::Overload { offered, capacity }) = case.detail().map(|detail| detail.verdict) {
                // At 90 % of its capacity, a system still responds within a few service times.
                let nodes = (case.scenario.num_nodes * offered / (0.9 * capacity)).ceil();
                if nodes.is_finite() && nodes < 1e6 {
                    out.push(vec![number(Knob::NumNodes, nodes)]);
                }
            }
        },
    ),
];
