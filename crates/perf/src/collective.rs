//! Alpha-beta models of collectives on a two-level hierarchy: scale-up domains, connected by one NIC per accelerator.
//! As in NCCL, the algorithm depends on the size: the fastest one is used.
//!
//! Message sizes follow nccl-tests: `bytes` is the full vector (all-reduce: the vector of each rank; all-gather and
//! reduce-scatter: the gathered vector; all-to-all: the total that one rank sends).

use crate::accelerator::{Accelerator, Bridge, mesh_share};
use crate::constants::Constants;
use atlas_core::math;
use atlas_core::network::Network;

/// The links of a group: bytes/s one way, and seconds per step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fabric {
    /// Scale-up bandwidth that a large collective reaches, bytes/s one way.
    pub link_bw: f64,
    /// Latency of a step inside the domain, s.
    pub link_latency: f64,
    /// Scale-out bandwidth of one rank, bytes/s one way.
    pub nic_bw: f64,
    /// Latency of a step between domains, s.
    pub nic_latency: f64,
    /// Ramp-up cost of a message, in bytes.
    pub message_ramp: f64,
    /// Speed-up by in-switch reduction inside the domain; 1 if the switch cannot reduce.
    pub in_switch: f64,
    /// Loss of `nic_bw` per doubling of the number of domains that a group spans.
    pub congestion: f64,
    /// Topology of the network between the domains.
    pub network: Network,
    /// Share of the full bandwidth available to a pair inside the domain: 1 with a switch or PCIe, less in a mesh, ring
    /// or torus.
    pub pair_share: f64,
    /// Number of accelerators that share `link_bw` in a full mesh; see [`Accelerator::mesh_peers`].
    pub mesh_peers: Option<f64>,
    /// Whether gathers over several domains run as one ring, as in NCCL and RCCL, rather than in stages.
    pub ring_gathers: bool,
    /// A bridge between neighbors, with the bandwidth that a large collective reaches.
    pub bridge: Option<Bridge>,
}

impl Fabric {
    /// Creates the fabric of `acc`. `oversubscription` is the ratio of downlinks to uplinks of the leaf switches (1 =
    /// non-blocking), which reduces the bandwidth beyond a leaf.
    pub fn new(acc: &Accelerator, c: &Constants, oversubscription: f64) -> Self {
        Fabric {
            link_bw: acc.effective_link_bw(c),
            link_latency: c.link_latency,
            nic_bw: (acc.nic_bw * c.nic_fraction).max(1e6),
            nic_latency: c.nic_latency,
            message_ramp: c.message_ramp,
            in_switch: if reduces_in_switch(acc) { c.in_switch_gain } else { 1.0 },
            congestion: c.congestion,
            network: Network { oversubscription, ..acc.network },
            pair_share: match acc.mesh_peers {
                Some(peers) => 1.0 / peers.max(1.0),
                None if acc.switched || acc.over_pcie() => 1.0,
                None => 1.0 / (acc.domain - 1.0).max(1.0),
            },
            mesh_peers: acc.mesh_peers,
            ring_gathers: acc.generation.uses_nccl(),
            bridge: acc.bridge.map(|bridge| Bridge { bw: bridge.effective_bw(c), ..bridge }),
        }
    }

    /// The fabric of a group of `ranks` neighbors: the bridge, if one connects all of them.
    #[must_use]
    pub fn among(self, ranks: f64) -> Self {
        match self.bridge {
            Some(Bridge { ranks: joined, bw }) if ranks <= joined => {
                Fabric { link_bw: bw, pair_share: 1.0 / (joined - 1.0).max(1.0), mesh_peers: None, ..self }
            }
            _ => self,
        }
    }
}

/// NVLink switches of the third generation and later reduce in the switch (NVLS).
pub(crate) fn reduces_in_switch(acc: &Accelerator) -> bool {
    acc.switched && acc.generation.properties().switches_reduce
}

/// Gain of in-switch reduction over a ring, at most `largest`. A rank sends the vector once instead of 2 (n-1)/n times,
/// so that two ranks gain nothing.
pub(crate) fn in_switch_gain(largest: f64, ranks: f64) -> f64 {
    largest.min(2.0 * (ranks - 1.0) / ranks).max(1.0)
}

/// Ranks of a collective and how many of them share one scale-up domain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    /// Number of ranks.
    pub size: f64,
    /// Ranks of this group inside one domain, at most `size`.
    pub local: f64,
    /// Distance between neighboring domains of the group, in domains.
    pub domain_stride: f64,
}

impl Group {
    /// `size` ranks, `stride` accelerators apart, in domains of `domain` accelerators.
    pub fn strided(size: f64, stride: f64, domain: f64) -> Self {
        let local = (domain / stride.max(1.0)).floor().clamp(1.0, size.max(1.0));
        let domain_stride = (local * stride.max(1.0) / domain.max(1.0)).max(1.0);
        Group { size: size.max(1.0), local, domain_stride }
    }

    fn crosses(&self) -> bool {
        self.local < self.size
    }

    /// Domains that the group spans.
    fn domains(&self) -> f64 {
        (self.size / self.local).ceil().max(1.0)
    }
}

/// Time to send `bytes` at `bw`, s; small messages run at a reduced rate.
fn transfer(bytes: f64, bw: f64, ramp: f64) -> f64 {
    (bytes + ramp.min(2.0 * bytes)) / bw
}

/// Scale-out bandwidth of one rank in a group that spans many domains.
fn nic_rate(f: &Fabric, g: &Group) -> f64 {
    f.nic_bw / (1.0 + f.congestion * math::log2(g.domains()))
}

/// As [`nic_rate`], if every domain sends to the next one only.
fn neighbor_rate(f: &Fabric, g: &Group) -> f64 {
    nic_rate(f, g) * f.network.ring_share(g.domain_stride)
}

/// Scale-up bandwidth of one rank to the ranks of the group in its domain.
fn local_bw(f: &Fabric, g: &Group) -> f64 {
    f.link_bw * mesh_share(f.mesh_peers, g.local)
}

/// Bandwidth of a ring through the group: the ring of a domain leaves through the NICs of all participating ranks.
fn ring_bw(f: &Fabric, g: &Group) -> f64 {
    let local = local_bw(f, g);
    if g.crosses() { local.min(neighbor_rate(f, g) * g.local) } else { local }
}

/// Latency of one trip around the ring: local steps and steps between domains.
fn ring_latency(f: &Fabric, g: &Group) -> f64 {
    if g.crosses() {
        (g.size - g.domains()) * f.link_latency + (g.domains() - 1.0) * f.nic_latency
    } else {
        (g.size - 1.0) * f.link_latency
    }
}

/// Latency of a hierarchical algorithm: logarithmic in the number of domains.
fn tree_latency(f: &Fabric, g: &Group) -> f64 {
    math::log2(g.local).ceil() * f.link_latency + math::log2(g.domains()).ceil() * f.nic_latency
}

/// Time of a reduce-scatter or all-gather of a vector of `bytes`, s.
pub fn all_gather(f: &Fabric, g: Group, bytes: f64) -> f64 {
    if g.size <= 1.0 || bytes <= 0.0 {
        return 0.0;
    }
    let moved = bytes * (g.size - 1.0) / g.size;
    let ring = ring_latency(f, &g) + transfer(moved, ring_bw(f, &g), f.message_ramp);
    // NCCL's tree algorithm for gathers (PAT) supports one rank per node only, so that the latency of gathers over many
    // nodes grows with the number of ranks (NCCL, src/graph/tuning.cc).
    if !g.crosses() || (f.ring_gathers && g.local > 1.0) {
        return ring;
    }
    // Hierarchical: each rank's own share between domains first, then inside the domain.
    let domains = g.domains();
    let outer = bytes / g.local * (domains - 1.0) / domains;
    let inner = bytes * (g.local - 1.0) / g.local;
    let staged = tree_latency(f, &g)
        + transfer(outer, neighbor_rate(f, &g), f.message_ramp)
        + transfer(inner, local_bw(f, &g), f.message_ramp);
    ring.min(staged)
}

/// Time of a reduce-scatter, s: that of [`all_gather`], with the traffic reversed.
pub fn reduce_scatter(f: &Fabric, g: Group, bytes: f64) -> f64 {
    all_gather(f, g, bytes)
}

/// Time of an all-reduce of a vector of `bytes`, s: the fastest of ring, double binary tree, one-shot and in-switch
/// reduction.
pub fn all_reduce(f: &Fabric, g: Group, bytes: f64) -> f64 {
    if g.size <= 1.0 || bytes <= 0.0 {
        return 0.0;
    }
    let bw = ring_bw(f, &g);
    let moved = 2.0 * bytes * (g.size - 1.0) / g.size;
    let ring = 2.0 * ring_latency(f, &g) + transfer(moved, bw, f.message_ramp);
    // A double binary tree sends every byte up and down once, slightly below the ring's bandwidth.
    let tree = 2.0 * tree_latency(f, &g) + transfer(2.0 * bytes, 0.92 * bw, f.message_ramp);
    // One-shot: every rank sends its whole vector to every other rank. Only for small vectors in one domain.
    let one_shot = if g.crosses() {
        f64::INFINITY
    } else {
        let share = if f.mesh_peers.is_some() { 1.0 } else { f.pair_share.max(1.0 / g.size) };
        f.link_latency + bytes * (g.size - 1.0) / (local_bw(f, &g) * share)
    };
    let best = ring.min(tree).min(one_shot);
    if f.in_switch > 1.0 && !g.crosses() {
        let gain = in_switch_gain(f.in_switch, g.size);
        best.min(2.0 * f.link_latency + transfer(moved, bw * gain, f.message_ramp))
    } else {
        best
    }
}

/// Time of an all-to-all in which one rank sends `bytes` in total (including its own share), s. `copies` copies of each
/// item are sent to random ranks, but only one to each remote domain (arXiv 2412.19437, section 3.2.2). With one copy,
/// this is a plain all-to-all.
pub fn all_to_all(f: &Fabric, g: Group, bytes: f64, copies: f64) -> f64 {
    if g.size <= 1.0 || bytes <= 0.0 {
        return 0.0;
    }
    let domains = g.domains();
    let copies = copies.max(1.0);
    let distinct = if domains > 1.0 { domains * (1.0 - math::powf(1.0 - 1.0 / domains, copies)) / copies } else { 1.0 };
    let inside = bytes * (g.local - 1.0) / g.local;
    let outside = bytes * distinct * (domains - 1.0) / domains;
    let inner = if inside > 0.0 { f.link_latency + transfer(inside, local_bw(f, &g), f.message_ramp) } else { 0.0 };
    let rate = nic_rate(f, &g) * f.network.exchange_share(domains, g.domain_stride);
    let outer = if outside > 0.0 { f.nic_latency + transfer(outside, rate, f.message_ramp) } else { 0.0 };
    // The two transfers use different links and overlap.
    inner.max(outer)
}

/// Time to send `bytes` to a neighbor, in the same domain if `inside`, else in another one, s.
pub fn point_to_point(f: &Fabric, bytes: f64, inside: bool) -> f64 {
    if bytes <= 0.0 {
        return 0.0;
    }
    if inside {
        f.link_latency + transfer(bytes, f.link_bw * f.pair_share, f.message_ramp)
    } else {
        f.nic_latency + transfer(bytes, f.nic_bw * f.network.any_node_share(), f.message_ramp)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use atlas_core::network::{LinkPath, Topology};

    fn fabric() -> Fabric {
        Fabric::new(&Accelerator::default(), &Constants::default(), 1.0)
    }

    #[test]
    fn one_rank_needs_no_time() {
        let g = Group::strided(1.0, 1.0, 8.0);
        assert_eq!(all_reduce(&fabric(), g, 1e9), 0.0);
        assert_eq!(all_to_all(&fabric(), g, 1e9, 1.0), 0.0);
    }

    #[test]
    fn crossing_domains_is_slower_than_staying_inside() {
        let f = fabric();
        let inside = all_reduce(&f, Group::strided(8.0, 1.0, 8.0), 1e9);
        let across = all_reduce(&f, Group::strided(8.0, 8.0, 8.0), 1e9);
        assert!(across > 4.0 * inside);
    }

    #[test]
    fn torus_slows_all_to_all_but_not_all_reduce() {
        let (rail, torus) =
            (fabric(), Fabric { network: Network { topology: Topology::Torus, ..fabric().network }, ..fabric() });
        let g = Group::strided(4096.0, 1.0, 8.0);
        assert!(all_to_all(&torus, g, 1e9, 1.0) > 4.0 * all_to_all(&rail, g, 1e9, 1.0));
        assert_eq!(all_reduce(&torus, g, 1e9), all_reduce(&rail, g, 1e9));
    }

    #[test]
    fn oversubscription_slows_all_to_all_and_distant_rings_not_near_rings() {
        let at = |topology, ratio| {
            let f = Fabric::new(&Accelerator::default(), &Constants::default(), ratio);
            Fabric { network: Network { topology, ..f.network }, ..f }
        };
        let near = Group::strided(2048.0, 1.0, 8.0);
        let far = Group::strided(16.0, 512.0, 8.0);
        for topology in [Topology::Rail, Topology::FatTree] {
            let (plain, thin) = (at(topology, 1.0), at(topology, 4.0));
            assert_eq!(all_reduce(&thin, near, 1e9), all_reduce(&plain, near, 1e9));
            assert!(all_reduce(&thin, far, 1e9) > 3.0 * all_reduce(&plain, far, 1e9));
            assert!(all_to_all(&thin, near, 1e9, 1.0) > 2.0 * all_to_all(&plain, near, 1e9, 1.0));
        }
        // 32 nodes of a rail share a leaf, as do those of a dragonfly group; those of a fat tree do not.
        let some = Group::strided(256.0, 1.0, 8.0);
        let exchange = |topology| all_to_all(&at(topology, 3.0), some, 1e9, 1.0);
        assert!(exchange(Topology::FatTree) > 1.5 * exchange(Topology::Rail));
        assert_eq!(exchange(Topology::Dragonfly), exchange(Topology::Rail));
        let detour =
            all_reduce(&at(Topology::Dragonfly, 1.0), far, 1e9) / all_reduce(&at(Topology::Rail, 1.0), far, 1e9);
        assert!((1.8..2.1).contains(&detour), "{detour}");
    }

    #[test]
    fn collective_time_is_monotonic_in_bytes_and_bandwidth() {
        let f = fabric();
        let mut quick = f;
        quick.link_bw *= 2.0;
        quick.nic_bw *= 2.0;
        for g in [Group::strided(8.0, 1.0, 8.0), Group::strided(64.0, 1.0, 8.0), Group::strided(16.0, 8.0, 8.0)] {
            let mut last = 0.0;
            for bytes in [1e3, 1e5, 1e6, 1e7, 1e9] {
                let spread = |f: &Fabric, g, b| all_to_all(f, g, b, 8.0);
                for op in [all_reduce, all_gather, spread] {
                    assert!(op(&quick, g, bytes) <= op(&f, g, bytes));
                }
                let t = all_reduce(&f, g, bytes);
                assert!(t >= last);
                last = t;
            }
        }
    }

    #[test]
    fn faster_links_through_the_host_slow_no_transfer() {
        let seconds = |link_bw| {
            let card = Accelerator { link_bw, link_path: LinkPath::Host, switched: false, ..Accelerator::default() };
            point_to_point(&Fabric::new(&card, &Constants::default(), 1.0), 1e8, true)
        };
        let rates = [30e9, 63e9, 69e9, 71e9, 90e9, 128e9].map(seconds);
        assert!(rates.is_sorted_by(|slower, faster| faster < slower), "{rates:?}");
    }

    #[test]
    fn all_reduce_beyond_the_bridge_uses_the_slower_node_fabric() {
        let card = Accelerator {
            link_bw: 32e9,
            link_path: LinkPath::Host,
            bridge: Some(Bridge { ranks: 2.0, bw: 300e9 }),
            switched: false,
            ..Accelerator::default()
        };
        let f = Fabric::new(&card, &Constants::default(), 1.0);
        let reduce = |ranks| all_reduce(&f.among(ranks), Group::strided(ranks, 1.0, 8.0), 1e8);
        assert!(reduce(4.0) > 8.0 * reduce(2.0), "{} {}", reduce(4.0), reduce(2.0));
        let plain = Fabric::new(&Accelerator { bridge: None, ..card }, &Constants::default(), 1.0);
        assert_eq!(reduce(4.0), all_reduce(&plain, Group::strided(4.0, 1.0, 8.0), 1e8));
    }

    #[test]
    fn groups_in_a_mesh_use_only_the_links_between_their_ranks() {
        // Eight accelerators with seven links of 64 GB/s each.
        let mesh = Accelerator { link_bw: 448e9, switched: false, mesh_peers: Some(7.0), ..Accelerator::default() };
        let switched = Accelerator { link_bw: 448e9, ..Accelerator::default() };
        let seconds = |device: &Accelerator, ranks, op: fn(&Fabric, Group, f64) -> f64| {
            op(&Fabric::new(device, &Constants::default(), 1.0), Group::strided(ranks, 1.0, 8.0), 1e9)
        };
        let spread = |f: &Fabric, g: Group, bytes: f64| all_to_all(f, g, bytes, 1.0);
        for op in [all_reduce, all_gather, spread] {
            for (ranks, links) in [(2.0, 1.0), (4.0, 3.0), (8.0, 7.0)] {
                let ratio = seconds(&mesh, ranks, op) / seconds(&switched, ranks, op);
                assert!((ratio * links / 7.0 - 1.0).abs() < 0.02, "{ranks} ranks: {ratio}");
            }
        }
    }

    #[test]
    fn strided_group_computes_local_size_and_distance() {
        assert_eq!(Group::strided(16.0, 1.0, 8.0), Group { size: 16.0, local: 8.0, domain_stride: 1.0 });
        assert_eq!(Group::strided(16.0, 8.0, 8.0), Group { size: 16.0, local: 1.0, domain_stride: 1.0 });
        assert_eq!(Group::strided(16.0, 32.0, 8.0), Group { size: 16.0, local: 1.0, domain_stride: 4.0 });
        assert_eq!(Group::strided(4.0, 2.0, 8.0), Group { size: 4.0, local: 4.0, domain_stride: 1.0 });
    }
}
