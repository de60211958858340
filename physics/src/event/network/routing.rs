//! Ways through the network: shortest paths, the first of equals or one of them by hash (ECMP).

use super::topology::Topology;
use crate::event::kernel::{Stream, Time};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Purpose of the random streams that stand for the switches' hashes.
const HASH: u32 = 16;

/// How one of several shortest paths is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routing {
    /// The one over the links laid first: dimension order on a torus.
    #[default]
    First,
    /// By a hash of the two ends at every switch: equal-cost multi-path routing. Which flows collide depends on the
    /// seed, as it depends on the hash in a real network.
    Hashed,
}

/// A way: its links, and the seconds that they take together.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Links in order.
    pub links: SmallVec<[u32; 6]>,
    /// Sum of their latencies.
    pub latency: Time,
    /// Bandwidth of the narrowest, bytes/s.
    pub bandwidth: f64,
}

/// Finds ways, remembering distances to destinations asked for before.
#[derive(Debug)]
pub struct Router<'a> {
    topology: &'a Topology,
    routing: Routing,
    seed: u64,
    distances: HashMap<u32, Vec<u32>>,
}

impl<'a> Router<'a> {
    /// Over `topology`.
    pub fn new(topology: &'a Topology, routing: Routing, seed: u64) -> Self {
        Router { topology, routing, seed, distances: HashMap::new() }
    }

    /// The way from one node to another; `None` where there is none. From a node to itself it has no links.
    pub fn route(&mut self, from: u32, to: u32) -> Option<Route> {
        let topology = self.topology;
        let hops = self.distances.entry(to).or_insert_with(|| topology.hops_to(to));
        let distance = |node: u32| hops.get(node as usize).copied().unwrap_or(u32::MAX);
        let mut left = distance(from);
        if left == u32::MAX {
            return None;
        }
        let mut hash = Stream::new(self.seed, HASH, from).at(u64::from(to) << 8);
        let mut route = Route { links: SmallVec::new(), latency: Time::ZERO, bandwidth: f64::INFINITY };
        let mut node = from;
        while left > 0 {
            let mut nearer = topology.leaving(node).filter(|(_, link)| distance(link.to) < left);
            let chosen = match self.routing {
                Routing::First => nearer.next(),
                Routing::Hashed => {
                    let choices = nearer.clone().count() as u64;
                    nearer.nth(hash.below(choices) as usize)
                }
            };
            let (number, link) = chosen?;
            route.links.push(number);
            route.latency = route.latency.plus(Time::from_seconds(link.latency));
            route.bandwidth = route.bandwidth.min(link.bandwidth);
            node = link.to;
            left -= 1;
        }
        Some(route)
    }
}
