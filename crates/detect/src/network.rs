//! Derives the network of a node from the ports of its NICs.

use crate::model::{NetworkKind, NetworkLink, Undetermined};
use crate::read::infiniband::Port;
use crate::read::nvidia_topo::Topology;

/// Returns the network that serves the accelerators, and what could not be determined about it.
pub(crate) fn summarize(
    ports: &[Port],
    topology: Option<&Topology>,
    accelerators: u32,
    source: &str,
) -> (Option<NetworkLink>, Option<Undetermined>) {
    let open = |why: String| {
        Undetermined::new(
            "network",
            why,
            "`ibstat` or `ethtool` (rate of each port) and `nvidia-smi topo -m` (ports close to an accelerator)",
        )
    };
    if ports.is_empty() {
        return (None, Some(open("no RDMA device in this system".to_owned())));
    }
    let active: Vec<&Port> = ports.iter().filter(|port| port.active).collect();
    let near = topology.map(Topology::near_nics).unwrap_or_default();
    let beside: Vec<&Port> = active.iter().copied().filter(|port| near.iter().any(|nic| *nic == port.device)).collect();
    let by_topology = !beside.is_empty();
    let considered = if by_topology { beside } else { active };
    let Some(fastest) = considered.iter().max_by(|a, b| a.gbits.total_cmp(&b.gbits)) else {
        return (None, Some(open(format!("{} ports exist, and none is active", ports.len()))));
    };
    let rails = considered.iter().filter(|port| port.kind == fastest.kind && port.gbits >= fastest.gbits).count();
    let rails = u32::try_from(rails).unwrap_or(u32::MAX);
    let clear =
        by_topology || accelerators == 0 || rails.is_multiple_of(accelerators) || accelerators.is_multiple_of(rails);
    let link = NetworkLink {
        kind: fastest.kind,
        gbits_per_nic: Some(fastest.gbits),
        nics_per_node: clear.then_some(rails),
        source: source.to_owned(),
    };
    let doubt = (!clear).then(|| {
        open(format!(
            "{rails} active ports of {} Gbit/s for {accelerators} accelerators; some are probably used for storage",
            fastest.gbits
        ))
    });
    (Some(link), doubt)
}

/// The network that features such as `hdr`, `ndr200` or `opa` state: its kind, and the rate of one NIC.
pub(crate) fn from_features(features: &[String]) -> Option<NetworkLink> {
    let mut found: Option<NetworkLink> = None;
    for feature in features {
        for word in feature.to_ascii_lowercase().split(|c: char| !c.is_ascii_alphanumeric()) {
            let Some((kind, gbits)) = known(word) else { continue };
            let better = found.as_ref().is_none_or(|link| link.gbits_per_nic.is_none() && gbits.is_some());
            if better {
                found = Some(NetworkLink {
                    kind,
                    gbits_per_nic: gbits,
                    nics_per_node: None,
                    source: format!("feature {feature}"),
                });
            }
        }
    }
    found
}

fn known(word: &str) -> Option<(NetworkKind, Option<f64>)> {
    let infiniband = |gbits: f64| Some((NetworkKind::InfiniBand, Some(gbits)));
    match word {
        "fdr" => infiniband(56.0),
        "edr" | "hdr100" => infiniband(100.0),
        "hdr" | "hdr200" | "ndr200" => infiniband(200.0),
        "ndr" | "ndr400" => infiniband(400.0),
        "xdr" | "xdr800" => infiniband(800.0),
        "ib" | "infiniband" => Some((NetworkKind::InfiniBand, None)),
        "opa" | "opa100" | "omnipath" => Some((NetworkKind::OmniPath, Some(100.0))),
        "slingshot" | "ss11" | "cassini" => Some((NetworkKind::Slingshot, None)),
        "roce" => Some((NetworkKind::RoCE, None)),
        "efa" => Some((NetworkKind::Efa, None)),
        _ => None,
    }
}
