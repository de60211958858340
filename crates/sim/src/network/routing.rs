//! Shortest-path routing. Among equal paths, the first or one chosen by hash (ECMP).

use super::topology::Topology;
use crate::kernel::{Stream, Time};
use smallvec::SmallVec;

/// Purpose of the random streams that model the hashes of the switches.
const HASH_STREAM: u32 = 16;

/// How one of several shortest paths is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routing {
    /// The path over the links created first: dimension order on a torus.
    #[default]
    First,
    /// By a hash of both ends at every switch: equal-cost multi-path routing. Which flows collide depends on the seed,
    /// as it depends on the hash function in a real network.
    Hashed,
}

/// A route: its links and their combined properties.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Route {
    /// Links, in order.
    pub links: SmallVec<[u32; 6]>,
    /// Sum of the latencies of the links.
    pub latency: Time,
    /// Bandwidth of the narrowest link, bytes/s.
    pub bandwidth: f64,
}

/// Links of a node that lead toward the current destination: `nearer[first..first + count]`.
#[derive(Debug, Clone, Copy, Default)]
struct Choices {
    first: u32,
    count: u32,
}

/// A link, and the node at its other end.
#[derive(Debug, Clone, Copy)]
struct End {
    link: u32,
    node: u32,
}

/// Working links of every node, concatenated: `ends[first[n]..first[n + 1]]`.
#[derive(Debug)]
struct Ends {
    first: Vec<u32>,
    ends: Vec<End>,
}

impl Ends {
    fn new(nodes: usize, of: impl Fn(u32) -> SmallVec<[End; 8]>) -> Ends {
        let mut all = Ends { first: Vec::with_capacity(nodes + 1), ends: Vec::new() };
        all.first.push(0);
        for node in 0..nodes as u32 {
            all.ends.extend(of(node));
            all.first.push(all.ends.len() as u32);
        }
        all
    }

    #[inline]
    fn of(&self, node: u32) -> &[End] {
        let at = |node: usize| self.first.get(node).map_or(0, |&first| first as usize);
        self.ends.get(at(node as usize)..at(node as usize + 1)).unwrap_or_default()
    }
}

/// Finds routes. Search results are kept only for the last destination, so requests should be grouped by destination.
#[derive(Debug)]
pub struct Router<'a> {
    topology: &'a Topology,
    routing: Routing,
    seed: u64,
    leaving: Ends,
    arriving: Ends,
    /// Latency and bandwidth of every link.
    links: Vec<(Time, f64)>,
    destination: u32,
    /// Nodes in order of their hops to the destination, as far as routes have needed them, and how many of them have
    /// been expanded.
    reached: Vec<u32>,
    expanded: usize,
    /// Hops of every node to the destination; [`UNREACHED`] if not reached.
    hops: Vec<u32>,
    /// Choices of the nodes that a route has passed through; not computed yet if the count is zero.
    choices: Vec<Choices>,
    nearer: Vec<End>,
}

/// Hops of a node that has not been reached.
const UNREACHED: u32 = u32::MAX;

impl<'a> Router<'a> {
    /// Creates a router over `topology`.
    pub fn new(topology: &'a Topology, routing: Routing, seed: u64) -> Self {
        let leaving = |node| topology.leaving(node).map(|(link, ends)| End { link, node: ends.to }).collect();
        let arriving = |node| topology.arriving(node).map(|(link, ends)| End { link, node: ends.from }).collect();
        Router {
            topology,
            routing,
            seed,
            leaving: Ends::new(topology.len(), leaving),
            arriving: Ends::new(topology.len(), arriving),
            links: topology.links().iter().map(|link| (Time::from_seconds(link.latency), link.bandwidth)).collect(),
            destination: u32::MAX,
            reached: Vec::new(),
            expanded: 0,
            hops: vec![UNREACHED; topology.len()],
            choices: vec![Choices::default(); topology.len()],
            nearer: Vec::new(),
        }
    }

    /// Returns the route between two nodes, or `None` if they are not connected. The route from a node to itself has no
    /// links.
    pub fn route(&mut self, from: u32, to: u32) -> Option<Route> {
        if to != self.destination {
            self.set_destination(to);
        }
        self.search_until(from)?;
        let hash = Stream::new(self.seed, HASH_STREAM, from);
        let (mut links, mut latency, mut bandwidth) = (SmallVec::new(), Time::ZERO, f64::INFINITY);
        let mut node = from;
        // Every switch on the route has its own number in the stream, which is drawn only if there is a choice.
        let mut switches = 0;
        while node != to {
            let &(mut choices) = self.choices.get(node as usize)?;
            if choices.count == 0 {
                choices = self.find_choices(node)?;
            }
            let chosen = match self.routing {
                Routing::Hashed if choices.count > 1 => {
                    let mut hash = hash.at((u64::from(to) << 8) + switches / 2);
                    if switches % 2 == 1 {
                        hash.bits();
                    }
                    hash.below(u64::from(choices.count)) as u32
                }
                Routing::First | Routing::Hashed => 0,
            };
            switches += 1;
            let &next = self.nearer.get((choices.first + chosen) as usize)?;
            let &(its_latency, its_bandwidth) = self.links.get(next.link as usize)?;
            links.push(next.link);
            latency = latency.plus(its_latency);
            if its_bandwidth < bandwidth {
                bandwidth = its_bandwidth;
            }
            node = next.node;
        }
        Some(Route { links, latency, bandwidth })
    }

    /// Discards the results for the current destination and starts with a new one.
    fn set_destination(&mut self, destination: u32) {
        for &node in &self.reached {
            if let (Some(hops), Some(choices)) = (self.hops.get_mut(node as usize), self.choices.get_mut(node as usize))
            {
                (*hops, *choices) = (UNREACHED, Choices::default());
            }
        }
        self.reached.clear();
        self.nearer.clear();
        self.expanded = 0;
        self.destination = destination;
        if let Some(own) = self.hops.get_mut(destination as usize) {
            *own = 0;
            self.reached.push(destination);
        }
    }

    /// Continues the breadth-first search from the destination until `from` is reached; `None` if it is unreachable.
    fn search_until(&mut self, from: u32) -> Option<()> {
        let (hops, arriving) = (self.hops.as_mut_slice(), &self.arriving);
        while *hops.get(from as usize)? == UNREACHED {
            let node = *self.reached.get(self.expanded)?;
            self.expanded += 1;
            if node != self.destination && !self.topology.forwards_traffic(node) {
                continue;
            }
            let farther = hops.get(node as usize)? + 1;
            for end in arriving.of(node) {
                if let Some(hops) = hops.get_mut(end.node as usize).filter(|hops| **hops == UNREACHED) {
                    *hops = farther;
                    self.reached.push(end.node);
                }
            }
        }
        Some(())
    }

    /// Finds the links of a node that lead closer to the destination; `None` if there are none.
    fn find_choices(&mut self, node: u32) -> Option<Choices> {
        let hops = self.hops.as_slice();
        let &own = hops.get(node as usize)?;
        let first = self.nearer.len();
        let nearer = |end: &&End| hops.get(end.node as usize).is_some_and(|&hops| hops < own);
        self.nearer.extend(self.leaving.of(node).iter().filter(nearer));
        let found = Choices { first: first as u32, count: (self.nearer.len() - first) as u32 };
        *self.choices.get_mut(node as usize)? = found;
        Some(found).filter(|choices| choices.count > 0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::network::shapes::{Fabric, Shape};
    use crate::network::topology::{NodeKind, Wire};

    /// Routes do not depend on earlier requests to the router, and have as few hops as those of a plain breadth-first
    /// search.
    #[test]
    fn routes_do_not_depend_on_earlier_queries() {
        let wire = Wire { bandwidth: 1.0, latency: 1e-6 };
        let fabric = Fabric::FatTree { domains_per_leaf: 2, spines: 3, oversubscription: 1.0, latency: 1e-6 };
        let shapes = [
            Shape::Domains { domains: 6, per_domain: 2, link: wire, nic: wire, fabric },
            Shape::Torus { sides: [3, 4, 2], wrapped: true, link: wire },
            Shape::Dragonfly { groups: 4, routers: 2, per_router: 2, terminal: wire, local: wire, global: wire },
        ];
        for t in shapes.map(|shape| shape.build()) {
            let at = t.accelerators();
            for routing in [Routing::First, Routing::Hashed] {
                let mut router = Router::new(&t, routing, 3);
                for step in 0..3 * at.len() * at.len() {
                    let (from, to) = (at[step * 7 % at.len()], at[step * step % at.len()]);
                    let found = router.route(from, to).unwrap();
                    assert_eq!(Some(&found), Router::new(&t, routing, 3).route(from, to).as_ref());
                    assert_eq!(found.links.len(), hops(&t, from, to));
                }
            }
        }
    }

    /// Breadth-first search by levels until the other end is reached.
    fn hops(t: &Topology, from: u32, to: u32) -> usize {
        let mut there = vec![from];
        let mut count = 0;
        while !there.contains(&to) {
            let goes_on = |node: &&u32| **node == from || t.forwards_traffic(**node);
            let next: Vec<u32> =
                there.iter().filter(goes_on).flat_map(|&node| t.leaving(node).map(|(_, link)| link.to)).collect();
            there.extend(next);
            there.sort_unstable();
            there.dedup();
            count += 1;
        }
        count
    }

    #[test]
    fn there_is_no_route_to_a_disconnected_node() {
        let mut t = Topology::default();
        t.nodes(NodeKind::Accelerator, 2);
        let mut router = Router::new(&t, Routing::First, 0);
        assert_eq!(router.route(0, 1), None);
        assert_eq!(router.route(0, 9), None);
        assert_eq!(router.route(9, 0), None);
        assert!(router.route(1, 1).unwrap().links.is_empty());
    }
}
