//! Common network shapes.

use super::topology::{NodeKind, Topology, Wire};

/// Shape of a network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// A cable between every pair of accelerators.
    FullMesh {
        /// Number of accelerators.
        accelerators: u32,
        /// Properties of each cable.
        link: Wire,
    },
    /// Each accelerator connected to the next, the last to the first.
    Ring {
        /// Number of accelerators.
        accelerators: u32,
        /// Properties of each cable.
        link: Wire,
    },
    /// Accelerators under a tree of switches with as many levels as needed. All cables are equal.
    Tree {
        /// Number of accelerators.
        accelerators: u32,
        /// Children of a switch.
        fan_out: u32,
        /// Properties of each cable.
        link: Wire,
    },
    /// Torus of up to three dimensions; a side of 1 adds no dimension, a side of 2 has one cable. Without `wrapped` it
    /// is a mesh, as TPU slices smaller than a cube of 4 are.
    Torus {
        /// Accelerators along each side.
        sides: [u32; 3],
        /// Whether rows close to rings.
        wrapped: bool,
        /// Properties of each cable.
        link: Wire,
    },
    /// Domains of accelerators under one scale-up switch (NVSwitch), each accelerator with a network card. `fabric`
    /// connects the cards. A single domain needs no cards.
    Domains {
        /// Number of domains.
        domains: u32,
        /// Accelerators per domain.
        per_domain: u32,
        /// From accelerator to its scale-up switch.
        link: Wire,
        /// From accelerator through its card to the leaf switch.
        nic: Wire,
        /// Network that connects the cards.
        fabric: Fabric,
    },
    /// Groups of routers, with a cable between every two routers of a group and between every two groups (Kim, Dally,
    /// Scott, Abts, ISCA 2008). The cables of a group are distributed over its routers in turn.
    Dragonfly {
        /// Number of groups.
        groups: u32,
        /// Routers per group.
        routers: u32,
        /// Accelerators per router.
        per_router: u32,
        /// From accelerator to router.
        terminal: Wire,
        /// Between routers of a group.
        local: Wire,
        /// Between groups.
        global: Wire,
    },
}

/// Network between network cards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fabric {
    /// One non-blocking switch.
    OneSwitch,
    /// The cards of a domain are on one leaf, shared with `domains_per_leaf - 1` other domains. Spines connect the
    /// leaves.
    FatTree {
        /// Domains under one leaf.
        domains_per_leaf: u32,
        /// Number of spines; every leaf is connected to each.
        spines: u32,
        /// Bandwidth of the downlinks over that of the uplinks (1 = no oversubscription).
        oversubscription: f64,
        /// Seconds of a hop between leaf and spine.
        latency: f64,
    },
    /// The cards of equal index in their domains are on one leaf (rail). Spines connect the rails.
    Rails {
        /// Number of spines; every rail is connected to each.
        spines: u32,
        /// Bandwidth of the downlinks over that of the uplinks.
        oversubscription: f64,
        /// Seconds of a hop between rail and spine.
        latency: f64,
    },
}

impl Shape {
    /// Number of accelerators; `None` if it overflows.
    pub fn accelerators(&self) -> Option<u32> {
        match *self {
            Shape::FullMesh { accelerators, .. }
            | Shape::Ring { accelerators, .. }
            | Shape::Tree { accelerators, .. } => Some(accelerators),
            Shape::Torus { sides: [x, y, z], .. } => x.checked_mul(y)?.checked_mul(z),
            Shape::Domains { domains, per_domain, .. } => domains.checked_mul(per_domain),
            Shape::Dragonfly { groups, routers, per_router, .. } => {
                groups.checked_mul(routers)?.checked_mul(per_router)
            }
        }
    }

    /// Builds the topology.
    pub fn build(&self) -> Topology {
        let mut t = Topology::default();
        match *self {
            Shape::FullMesh { accelerators: n, link } => {
                t.nodes(NodeKind::Accelerator, n);
                for a in 0..n {
                    for b in a + 1..n {
                        t.cable(a, b, link);
                    }
                }
            }
            Shape::Ring { accelerators: n, link } => {
                t.nodes(NodeKind::Accelerator, n);
                row(&mut t, n, |k| k, true, link);
                t = t.forwarding();
            }
            Shape::Tree { accelerators, fan_out, link } => tree(&mut t, accelerators, fan_out.max(2), link),
            Shape::Torus { sides, wrapped, link } => {
                torus(&mut t, sides, wrapped, link);
                t = t.forwarding();
            }
            Shape::Domains { domains, per_domain, link, nic, fabric } => {
                clustered(&mut t, domains, per_domain, link, nic, fabric);
            }
            Shape::Dragonfly { groups, routers, per_router, terminal, local, global } => {
                dragonfly(&mut t, [groups, routers, per_router], [terminal, local, global]);
            }
        }
        t
    }
}

/// Connects `n` nodes in a row.
fn row(t: &mut Topology, n: u32, node: impl Fn(u32) -> u32, wrapped: bool, link: Wire) {
    for k in 1..n {
        t.cable(node(k - 1), node(k), link);
    }
    if wrapped && n > 2 {
        t.cable(node(n - 1), node(0), link);
    }
}

fn tree(t: &mut Topology, n: u32, fan_out: u32, link: Wire) {
    let mut below = t.nodes(NodeKind::Accelerator, n);
    let mut count = n;
    while count > 1 {
        let switches = count.div_ceil(fan_out);
        let first = t.nodes(if switches == 1 { NodeKind::ReducingSwitch } else { NodeKind::Switch }, switches);
        for child in 0..count {
            t.cable(below + child, first + child / fan_out, link);
        }
        (below, count) = (first, switches);
    }
}

fn torus(t: &mut Topology, sides: [u32; 3], wrapped: bool, link: Wire) {
    let [x, y, z] = sides;
    t.nodes(NodeKind::Accelerator, x * y * z);
    // Along x first, so that the shortest routes over the lowest link numbers are dimension-ordered.
    for k in 0..z {
        for j in 0..y {
            row(t, x, |i| i + x * (j + y * k), wrapped, link);
        }
    }
    for k in 0..z {
        for i in 0..x {
            row(t, y, |j| i + x * (j + y * k), wrapped, link);
        }
    }
    for j in 0..y {
        for i in 0..x {
            row(t, z, |k| i + x * (j + y * k), wrapped, link);
        }
    }
}

fn clustered(t: &mut Topology, domains: u32, per_domain: u32, link: Wire, nic: Wire, fabric: Fabric) {
    let n = domains * per_domain;
    t.nodes(NodeKind::Accelerator, n);
    let switches = t.nodes(NodeKind::ReducingSwitch, domains);
    for a in 0..n {
        t.cable(a, switches + a / per_domain, link);
    }
    if domains < 2 {
        return;
    }
    let cards = t.nodes(NodeKind::Nic, n);
    // Inside the host the card is as fast as its port. Its latency is included in that of the port.
    for a in 0..n {
        t.cable(a, cards + a, Wire { latency: 0.0, ..nic });
    }
    match fabric {
        Fabric::OneSwitch => {
            let switch = t.node(NodeKind::Switch);
            (0..n).for_each(|a| t.cable(cards + a, switch, nic));
        }
        Fabric::FatTree { domains_per_leaf, spines, oversubscription, latency } => {
            let per_leaf = domains_per_leaf.max(1) * per_domain;
            let leaves = t.nodes(NodeKind::Switch, n.div_ceil(per_leaf));
            (0..n).for_each(|a| t.cable(cards + a, leaves + a / per_leaf, nic));
            let uplinks = f64::from(per_leaf) * nic.bandwidth / oversubscription.max(1e-9);
            spine(t, leaves, n.div_ceil(per_leaf), spines, uplinks, latency);
        }
        Fabric::Rails { spines, oversubscription, latency } => {
            let rails = t.nodes(NodeKind::Switch, per_domain);
            (0..n).for_each(|a| t.cable(cards + a, rails + a % per_domain, nic));
            let uplinks = f64::from(domains) * nic.bandwidth / oversubscription.max(1e-9);
            spine(t, rails, per_domain, spines, uplinks, latency);
        }
    }
}

/// Connects leaves by spines, with a total of `uplinks` bytes/s per leaf.
fn spine(t: &mut Topology, leaves: u32, count: u32, spines: u32, uplinks: f64, latency: f64) {
    if count < 2 {
        return;
    }
    let spines = spines.max(1);
    let first = t.nodes(NodeKind::Switch, spines);
    let wire = Wire { bandwidth: uplinks / f64::from(spines), latency };
    for leaf in 0..count {
        (0..spines).for_each(|s| t.cable(leaves + leaf, first + s, wire));
    }
}

fn dragonfly(t: &mut Topology, [groups, routers, per_router]: [u32; 3], [terminal, local, global]: [Wire; 3]) {
    let n = groups * routers * per_router;
    t.nodes(NodeKind::Accelerator, n);
    let first = t.nodes(NodeKind::Switch, groups * routers);
    (0..n).for_each(|a| t.cable(a, first + a / per_router, terminal));
    for group in 0..groups {
        let router = |r: u32| first + group * routers + r;
        for a in 0..routers {
            (a + 1..routers).for_each(|b| t.cable(router(a), router(b), local));
        }
    }
    for a in 0..groups {
        for b in a + 1..groups {
            // The k-th other group is connected to router k modulo `routers`.
            let port = |from: u32, to: u32| first + from * routers + ((to + groups - from - 1) % groups) % routers;
            t.cable(port(a, b), port(b, a), global);
        }
    }
}
