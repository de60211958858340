//! Nodes and the links between them.

/// Kind of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Computes, sends and receives.
    Accelerator,
    /// A network card.
    Nic,
    /// A switch that only forwards.
    Switch,
    /// A switch that also reduces the data it forwards (NVLink SHARP, Quantum SHARP).
    ReducingSwitch,
}

/// One direction of a cable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Node where it begins.
    pub from: u32,
    /// Node where it ends.
    pub to: u32,
    /// Bytes per second; 0 if broken.
    pub bandwidth: f64,
    /// Seconds from one end to the other, including the forwarding at its end.
    pub latency: f64,
}

/// Properties of a cable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wire {
    /// Bytes per second, one way.
    pub bandwidth: f64,
    /// Seconds one way, including the forwarding at its end.
    pub latency: f64,
}

/// A graph of accelerators, network cards and switches.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topology {
    kinds: Vec<NodeKind>,
    links: Vec<Link>,
    accelerators: Vec<u32>,
    /// Links that leave each node, in order of creation.
    leaving: Vec<Vec<u32>>,
    /// Links that arrive at each node.
    arriving: Vec<Vec<u32>>,
    forwarding: bool,
}

impl Topology {
    /// Adds a node.
    pub fn node(&mut self, kind: NodeKind) -> u32 {
        let node = self.kinds.len() as u32;
        self.kinds.push(kind);
        self.leaving.push(Vec::new());
        self.arriving.push(Vec::new());
        if kind == NodeKind::Accelerator {
            self.accelerators.push(node);
        }
        node
    }

    /// Adds `count` nodes and returns the number of the first.
    pub fn nodes(&mut self, kind: NodeKind, count: u32) -> u32 {
        let first = self.kinds.len() as u32;
        for _ in 0..count {
            self.node(kind);
        }
        first
    }

    /// Adds a cable between two nodes, as one link each way. Does nothing if a node does not exist.
    pub fn cable(&mut self, a: u32, b: u32, wire: Wire) {
        for (from, to) in [(a, b), (b, a)] {
            let link = self.links.len() as u32;
            let (Some(leaving), true) = (self.leaving.get_mut(from as usize), (to as usize) < self.kinds.len()) else {
                return;
            };
            leaving.push(link);
            if let Some(arriving) = self.arriving.get_mut(to as usize) {
                arriving.push(link);
            }
            self.links.push(Link { from, to, bandwidth: wire.bandwidth, latency: wire.latency });
        }
    }

    /// Lets accelerators forward traffic of others, as in rings and tori. By default only other nodes forward.
    #[must_use]
    pub fn forwarding(self) -> Self {
        Topology { forwarding: true, ..self }
    }

    /// Multiplies the bandwidth of all links at a node, for a damaged cable or a card in a slow slot. 0 disconnects the
    /// node.
    pub fn degrade(&mut self, node: u32, factor: f64) {
        let at = |list: &[Vec<u32>]| list.get(node as usize).cloned().unwrap_or_default();
        for link in at(&self.leaving).into_iter().chain(at(&self.arriving)) {
            if let Some(link) = self.links.get_mut(link as usize) {
                link.bandwidth *= factor.max(0.0);
            }
        }
    }

    /// Node numbers of the accelerators, in order.
    pub fn accelerators(&self) -> &[u32] {
        &self.accelerators
    }

    /// All links; the number of a link is its index.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Kind of a node.
    pub fn kind(&self, node: u32) -> Option<NodeKind> {
        self.kinds.get(node as usize).copied()
    }

    /// Working links that leave a node.
    pub fn leaving(&self, node: u32) -> impl Iterator<Item = (u32, &Link)> + Clone {
        self.working(&self.leaving, node)
    }

    /// Working links that arrive at a node.
    pub fn arriving(&self, node: u32) -> impl Iterator<Item = (u32, &Link)> + Clone {
        self.working(&self.arriving, node)
    }

    fn working<'a>(&'a self, lists: &'a [Vec<u32>], node: u32) -> impl Iterator<Item = (u32, &'a Link)> + Clone {
        lists.get(node as usize).into_iter().flatten().filter_map(|&number| {
            let link = self.links.get(number as usize)?;
            (link.bandwidth > 0.0).then_some((number, link))
        })
    }

    /// Whether a node forwards traffic of others.
    pub fn forwards_traffic(&self, node: u32) -> bool {
        self.forwarding || self.kind(node) != Some(NodeKind::Accelerator)
    }

    /// Returns a reducing switch that all of `nodes` are directly connected to, if there is one.
    pub fn common_switch(&self, nodes: &[u32]) -> Option<u32> {
        let (&first, others) = nodes.split_first()?;
        self.leaving(first).map(|(_, link)| link.to).find(|&switch| {
            self.kind(switch) == Some(NodeKind::ReducingSwitch)
                && others.iter().all(|&node| self.leaving(node).any(|(_, link)| link.to == switch))
        })
    }
}
