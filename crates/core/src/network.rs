//! Topology of the network between scale-up domains, and the share of the NIC bandwidth that it provides.

use crate::math;

/// The topology, which determines the bandwidth of exchanges between domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Topology {
    /// Each NIC of a node is on a separate leaf switch, shared with the corresponding NIC of many nodes.
    #[default]
    Rail,
    /// All NICs of a node are on one leaf switch, shared by few nodes, with further levels of switches above.
    FatTree,
    /// Each node is linked to its neighbors in three dimensions; distant traffic shares the links in between.
    Torus,
    /// Groups of nodes with all-to-all links inside a group and between groups.
    Dragonfly,
}

/// How the accelerators of a node reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LinkPath {
    /// Over links of their own: NVLink, Infinity Fabric, ICI, Ethernet ports.
    #[default]
    Direct,
    /// Through the I/O bus of the host: PCIe, Thunderbolt, USB.
    Host,
}

impl LinkPath {
    /// The path of a link that a datasheet or target calls `name`.
    #[must_use]
    pub fn named(name: &str) -> LinkPath {
        let starts = |bus: &&str| name.get(..bus.len()).is_some_and(|start| start.eq_ignore_ascii_case(bus));
        if ["PCI", "Thunderbolt", "USB"].iter().any(starts) { LinkPath::Host } else { LinkPath::Direct }
    }
}

/// Ports of a leaf switch: 64 at 400 Gb/s (NVIDIA QM9700; the reference architecture of DGX SuperPOD H100 connects 32
/// nodes with eight of them).
const LEAF_PORTS: f64 = 64.0;
/// Endpoints of a group: 32 switches of 16 (De Sensi et al., "An In-Depth Analysis of the Slingshot Interconnect",
/// arXiv 2008.08886, section II-B).
const GROUP_ENDPOINTS: f64 = 512.0;
/// Share of the bandwidth that remains if all nodes of a group send to the same other group: every message is routed
/// through a third group and crosses two global links instead of one (Kim et al., "Technology-Driven, Highly-Scalable
/// Dragonfly Topology", ISCA 2008, section 4).
const DETOUR_SHARE: f64 = 0.5;

/// A network of nodes: topology and oversubscription.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// Topology.
    pub topology: Topology,
    /// Ratio of downlinks to uplinks of a leaf switch or group; 1 = non-blocking. In a torus, the reduction of link
    /// bandwidth.
    pub oversubscription: f64,
    /// NICs per node (scale-up domain).
    pub nics: f64,
}

impl Default for Network {
    fn default() -> Self {
        Network { topology: Topology::default(), oversubscription: 1.0, nics: 1.0 }
    }
}

impl Topology {
    /// Names of the topologies, as spelled in documents.
    pub const WORDS: &'static [(&'static str, Topology)] = &[
        ("rail", Topology::Rail),
        ("fat-tree", Topology::FatTree),
        ("torus", Topology::Torus),
        ("dragonfly", Topology::Dragonfly),
    ];

    /// Name of the topology.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Topology::Rail => "rail",
            Topology::FatTree => "fat-tree",
            Topology::Torus => "torus",
            Topology::Dragonfly => "dragonfly",
        }
    }
}

impl Network {
    /// Ratio of downlinks to uplinks, at least 1.
    #[inline]
    fn ratio(&self) -> f64 {
        self.oversubscription.max(1.0)
    }

    /// Number of nodes that reach one another without crossing oversubscribed links.
    #[must_use]
    pub fn nodes_without_oversubscription(&self) -> f64 {
        let nics = self.nics.max(1.0);
        // With a ratio of s, s / (1 + s) of a leaf's ports are downlinks.
        let down = || LEAF_PORTS * self.ratio() / (1.0 + self.ratio());
        match self.topology {
            Topology::Rail => down(),
            Topology::FatTree => (down() / nics).max(1.0),
            Topology::Torus => 1.0,
            Topology::Dragonfly => (GROUP_ENDPOINTS / nics).max(1.0),
        }
    }

    /// Share of the NIC bandwidth available to each of `nodes` nodes in an all-to-all exchange. Neighboring nodes of
    /// the exchange are `apart` nodes apart.
    ///
    /// In a three-dimensional torus with k nodes per side, bytes cross 3 k / 4 links on average, so the bandwidth is
    /// 4 / (3 k) of that between neighbors (Dally and Towles, *Principles and Practices of Interconnection Networks*,
    /// section 5.2). In other topologies, traffic that leaves a leaf or group shares its uplinks; other traffic does
    /// not.
    #[must_use]
    pub fn exchange_share(&self, nodes: f64, apart: f64) -> f64 {
        if self.topology == Topology::Torus {
            return 1.0 / (0.75 * math::cbrt(nodes.max(1.0))).max(1.0) / self.ratio();
        }
        if self.ratio() <= 1.0 {
            return 1.0;
        }
        let staying = (self.nodes_without_oversubscription() / (nodes * apart.max(1.0)).max(1.0)).min(1.0);
        1.0 / (self.ratio() * (1.0 - staying)).max(1.0)
    }

    /// Share of the NIC bandwidth available to a node that sends to any other, while all others do the same.
    #[must_use]
    pub fn any_node_share(&self) -> f64 {
        1.0 / self.ratio()
    }

    /// Share of the NIC bandwidth available to each node of a ring whose next node is `apart` nodes away.
    ///
    /// Of the `n` nodes on a leaf, `apart` have their next node on another leaf, so the uplinks carry `apart` streams.
    /// Neighbors in a torus have separate links. In a dragonfly, if every step leaves the group, all traffic of a group
    /// goes to one other group and takes the detour.
    #[must_use]
    pub fn ring_share(&self, apart: f64) -> f64 {
        if self.topology == Topology::Torus {
            return 1.0 / self.ratio();
        }
        let dragonfly = self.topology == Topology::Dragonfly;
        if self.ratio() <= 1.0 && !dragonfly {
            return 1.0;
        }
        let leaving = (apart.max(1.0) / self.nodes_without_oversubscription()).min(1.0);
        let detour = if dragonfly && leaving >= 1.0 { DETOUR_SHARE } else { 1.0 };
        detour / (self.ratio() * leaving).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Topology; 4] = [Topology::Rail, Topology::FatTree, Topology::Torus, Topology::Dragonfly];

    fn network(topology: Topology, oversubscription: f64) -> Network {
        Network { topology, oversubscription, nics: 8.0 }
    }

    #[test]
    fn only_torus_exchange_share_falls_with_size_without_oversubscription() {
        for topology in [Topology::Rail, Topology::FatTree, Topology::Dragonfly] {
            assert_eq!(network(topology, 1.0).exchange_share(4096.0, 1.0), 1.0);
        }
        let torus = network(Topology::Torus, 1.0);
        assert_eq!(torus.exchange_share(2.0, 1.0), 1.0);
        // 16 per side: bytes cross 12 links on average.
        assert!((torus.exchange_share(4096.0, 1.0) - 1.0 / 12.0).abs() < 1e-12);
        assert_eq!(torus.ring_share(16.0), 1.0);
    }

    #[test]
    fn oversubscription_never_increases_bandwidth_shares() {
        for topology in ALL {
            for (nodes, apart) in [(2.0, 1.0), (16.0, 1.0), (64.0, 4.0), (512.0, 1.0), (2048.0, 16.0)] {
                let mut last = [1.0, 1.0];
                for ratio in [0.5, 1.0, 1.5, 2.0, 4.0, 8.0, 64.0] {
                    let of = network(topology, ratio);
                    let now = [of.exchange_share(nodes, apart), of.ring_share(apart)];
                    for (now, last) in now.iter().zip(&last) {
                        assert!(*now > 0.0 && now <= last, "{topology:?} {nodes} {apart} {ratio}: {now} {last}");
                    }
                    last = now;
                }
            }
        }
    }

    #[test]
    fn rails_keep_more_nodes_below_oversubscribed_links_than_a_fat_tree() {
        let (rail, tree) = (network(Topology::Rail, 3.0), network(Topology::FatTree, 3.0));
        assert_eq!((rail.nodes_without_oversubscription(), tree.nodes_without_oversubscription()), (48.0, 6.0));
        assert!(rail.exchange_share(32.0, 1.0) == 1.0 && tree.exchange_share(32.0, 1.0) < 0.5);
        // A ring of neighbors leaves a leaf once. A ring over every eighth node leaves it at every step.
        assert_eq!((rail.ring_share(1.0), tree.ring_share(1.0)), (1.0, 1.0));
        assert_eq!((rail.ring_share(8.0), tree.ring_share(8.0)), (1.0, 1.0 / 3.0));
    }

    #[test]
    fn dragonfly_halves_the_ring_share_between_groups() {
        let of = network(Topology::Dragonfly, 1.0);
        assert_eq!((of.nodes_without_oversubscription(), of.ring_share(1.0), of.ring_share(64.0)), (64.0, 1.0, 0.5));
        assert_eq!(of.exchange_share(4096.0, 1.0), 1.0);
    }

    #[test]
    fn links_named_after_a_bus_of_the_host_pass_through_it() {
        for name in ["PCIe", "pcie 5.0 x16", "PCI Express", "Thunderbolt 5", "USB4"] {
            assert_eq!(LinkPath::named(name), LinkPath::Host, "{name}");
        }
        for name in ["NVLink 3 bridge", "NeuronLink-v4 (PCIe switched)", "Ethernet (chip to chip)", "", "ICI"] {
            assert_eq!(LinkPath::named(name), LinkPath::Direct, "{name}");
        }
    }
}
