//! Input of a network simulation: plain data.

use super::collectives::{Algorithm, Operation};
use super::routing::Routing;
use super::shapes::{Fabric, Shape};
use super::topology::Wire;
use crate::range::{OutOfRange, Ranges};
use thiserror::Error;

/// A network and the collectives that run on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The network.
    pub shape: Shape,
    /// Accelerators with slow cables, and the factor on their bandwidth; 0 disconnects the accelerator.
    pub degraded: Vec<(u32, f64)>,
    /// How routes are chosen.
    pub routing: Routing,
    /// Collectives to run.
    pub jobs: Vec<Job>,
}

/// One collective.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Operation to run.
    pub operation: Operation,
    /// Algorithm to run it with.
    pub algorithm: Algorithm,
    /// Accelerators that take part, in order of rank; empty for all.
    pub ranks: Vec<u32>,
    /// Size as defined by nccl-tests.
    pub bytes: f64,
    /// Start time, s.
    pub begin: f64,
}

/// A problem of the input.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum Problem {
    /// A number is out of range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// A rank does not exist or occurs twice.
    #[error("job {job}: accelerator {accelerator} occurs twice or does not exist; accelerators are numbered from 0")]
    Rank {
        /// Which job, from 0.
        job: u32,
        /// The accelerator.
        accelerator: u32,
    },
    /// The algorithm does not support the operation with this number of ranks.
    #[error(
        "job {job}: {algorithm:?} does not support {operation:?} over {ranks} ranks, or needs more than 67 million \
         messages; choose another algorithm"
    )]
    NotDone {
        /// Which job, from 0.
        job: u32,
        /// Requested operation.
        operation: Operation,
        /// Requested algorithm.
        algorithm: Algorithm,
        /// Number of ranks.
        ranks: u32,
    },
    /// No reducing switch connects all ranks.
    #[error(
        "job {job}: its accelerators are not connected to a common switch with in-network reduction; choose another \
         algorithm"
    )]
    NoSwitch {
        /// Which job, from 0.
        job: u32,
    },
    /// No working links connect sender and receiver.
    #[error("job {job}: no working links connect rank {from} to rank {to}")]
    NoRoute {
        /// Which job, from 0.
        job: u32,
        /// Sender.
        from: u32,
        /// Receiver.
        to: u32,
    },
}

/// Maximum number of accelerators of a network.
const MAX_ACCELERATORS: f64 = 131_072.0;
/// Maximum number of cables between switches.
const MAX_CABLES: f64 = 4e6;
/// Maximum number of accelerators of a full mesh.
const MAX_MESH_ACCELERATORS: f64 = 2048.0;

impl Input {
    /// Returns all problems of the input.
    pub fn problems(&self) -> Vec<Problem> {
        let mut ranges = Ranges::default();
        let mut range = |what, found, least, most| ranges.check(what, found, least, most);
        let count = self.shape.accelerators().map_or(f64::INFINITY, f64::from);
        match self.shape {
            Shape::FullMesh { .. } => range("number of accelerators of a full mesh", count, 1.0, MAX_MESH_ACCELERATORS),
            _ => range("number of accelerators", count, 1.0, MAX_ACCELERATORS),
        }
        for wire in wires(&self.shape) {
            range("bandwidth of a link", wire.bandwidth, 1.0, 1e18);
            range("latency of a link", wire.latency, 0.0, 1e3);
        }
        if let Shape::Domains { fabric, .. } = self.shape {
            match fabric {
                Fabric::OneSwitch => {}
                Fabric::FatTree { spines, oversubscription, latency, .. }
                | Fabric::Rails { spines, oversubscription, latency } => {
                    range("number of spine switches", f64::from(spines), 1.0, 65_536.0);
                    range("oversubscription", oversubscription, 1e-3, 1e6);
                    range("latency of a spine switch", latency, 0.0, 1e3);
                }
            }
        }
        if let Shape::Dragonfly { groups, routers, per_router, .. } = self.shape {
            range("groups", f64::from(groups), 1.0, 4096.0);
            range("routers per group", f64::from(routers), 1.0, 1024.0);
            range("accelerators per router", f64::from(per_router), 1.0, 1024.0);
        }
        range("number of cables", cables(&self.shape), 0.0, MAX_CABLES);
        for &(accelerator, factor) in &self.degraded {
            range("index of a degraded accelerator", f64::from(accelerator), 0.0, count - 1.0);
            range("bandwidth factor of a degraded accelerator", factor, 0.0, 1e6);
        }
        for job in &self.jobs {
            range("bytes of a job", job.bytes, 0.0, 1e18);
            range("start time of a job", job.begin, 0.0, 1e6);
        }
        let mut out: Vec<Problem> = ranges.0.into_iter().map(Problem::from).collect();
        for (number, job) in (0..).zip(&self.jobs) {
            let mut seen = job.ranks.clone();
            seen.sort_unstable();
            let twice =
                seen.windows(2).find_map(|pair| matches!(pair, [a, b] if a == b).then(|| pair.first().copied()));
            let beyond = seen.last().copied().filter(|&last| f64::from(last) >= count);
            if let Some(accelerator) = twice.flatten().or(beyond) {
                out.push(Problem::Rank { job: number, accelerator });
            }
        }
        out
    }
}

/// Number of cables between switches, for shapes where it may far exceed the number of accelerators.
fn cables(shape: &Shape) -> f64 {
    match *shape {
        Shape::Domains { domains, per_domain, fabric, .. } => match fabric {
            Fabric::OneSwitch => 0.0,
            Fabric::FatTree { domains_per_leaf, spines, .. } => {
                (f64::from(domains) / f64::from(domains_per_leaf.max(1))).ceil() * f64::from(spines)
            }
            Fabric::Rails { spines, .. } => f64::from(per_domain) * f64::from(spines),
        },
        Shape::Dragonfly { groups, routers, .. } => {
            let (groups, routers) = (f64::from(groups), f64::from(routers));
            0.5 * (groups * groups + groups * routers * routers)
        }
        _ => 0.0,
    }
}

fn wires(shape: &Shape) -> Vec<Wire> {
    match *shape {
        Shape::FullMesh { link, .. }
        | Shape::Ring { link, .. }
        | Shape::Tree { link, .. }
        | Shape::Torus { link, .. } => vec![link],
        Shape::Domains { link, nic, .. } => vec![link, nic],
        Shape::Dragonfly { terminal, local, global, .. } => vec![terminal, local, global],
    }
}
