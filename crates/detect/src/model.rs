//! The result of detection: machines and partitions, whose properties are optional, and what could not be determined.

use crate::matching::Matched;
pub use crate::matching::Slice;

/// Everything that one detection found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Detected {
    /// This machine and the partitions or pools that can be used from it.
    pub machines: Vec<Machine>,
    /// What could not be determined and does not concern a single machine.
    pub undetermined: Vec<Undetermined>,
}

/// A set of equal nodes: this machine, the nodes of one kind of a Slurm partition, or a Kubernetes pool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// Name, unique within one detection. It consists of letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Where it was found.
    pub origin: Origin,
    /// The accelerators; `None` for nodes without any.
    pub accelerator: Option<Accelerator>,
    /// Number of accelerators in one node, as the catalog counts them.
    pub accelerators_per_node: Option<u32>,
    /// Nodes by state.
    pub nodes: Nodes,
    /// The nodes, as Slurm host lists.
    pub node_lists: Vec<String>,
    /// Link between the accelerators of a node, if it was measured.
    pub link: Option<IntraLink>,
    /// Link between nodes.
    pub network: Option<NetworkLink>,
    /// Limits on jobs.
    pub limits: Limits,
    /// CPUs and memory of a node.
    pub host: Host,
    /// Features, labels and taints by which users select nodes.
    pub features: Vec<String>,
    /// Remarks for the user.
    pub remarks: Vec<String>,
    /// What could not be determined about this machine.
    pub undetermined: Vec<Undetermined>,
}

/// Where a machine was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Origin {
    /// The machine this program runs on.
    #[default]
    Local,
    /// A partition of a Slurm cluster.
    Slurm {
        /// Name of the cluster, if known.
        cluster: Option<String>,
        /// Name of the partition.
        partition: String,
        /// Generic resource (GRES) of its accelerators as `name:type:count`, if there is one.
        gres: Option<String>,
    },
    /// Nodes of a Kubernetes cluster.
    Kubernetes {
        /// Name of the pool: its node-pool label, or its instance type, or its accelerator.
        pool: String,
    },
}

/// The accelerators of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Accelerator {
    /// Name as the tool or the administrator wrote it, with control characters removed.
    pub raw: String,
    /// Source from which the name was read.
    pub source: String,
    /// The matching catalog entries.
    pub matched: Matched,
    /// Memory as reported, GiB.
    pub memory_gib: Option<f64>,
    /// Power limit as reported, W.
    pub power_w: Option<f64>,
    /// Set if jobs get a part of a device instead of a whole one.
    pub slice: Option<Slice>,
}

/// Nodes by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nodes {
    /// All nodes; `None` if unknown.
    pub total: Option<u32>,
    /// Nodes that a job could use now.
    pub idle: Option<u32>,
    /// Nodes with some free resources.
    pub mixed: Option<u32>,
    /// Nodes in use.
    pub allocated: Option<u32>,
    /// Idle nodes that the scheduler reserves for a pending job.
    pub planned: Option<u32>,
    /// Nodes that are down, drained, reserved or in maintenance.
    pub unavailable: Option<u32>,
}

/// Link between the accelerators of one node.
#[derive(Debug, Clone, PartialEq)]
pub struct IntraLink {
    /// NVLink, xGMI, PCIe, …
    pub kind: String,
    /// Bandwidth per accelerator, both directions together, GB/s.
    pub gbytes_per_sec: Option<f64>,
    /// Number of accelerators that it connects.
    pub domain_size: Option<u32>,
    /// How it was determined.
    pub source: String,
}

/// Link between nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkLink {
    /// Its kind.
    pub kind: NetworkKind,
    /// Rate of one NIC in one direction, Gbit/s.
    pub gbits_per_nic: Option<f64>,
    /// Number of NICs per node that serve its accelerators.
    pub nics_per_node: Option<u32>,
    /// How it was determined.
    pub source: String,
}

/// Kind of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetworkKind {
    /// InfiniBand.
    InfiniBand,
    /// RDMA over Ethernet.
    RoCE,
    /// Elastic Fabric Adapter of AWS.
    Efa,
    /// Slingshot of HPE.
    Slingshot,
    /// Omni-Path of Cornelis.
    OmniPath,
}

impl NetworkKind {
    /// The name of the kind in targets.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            NetworkKind::InfiniBand => "IB",
            NetworkKind::RoCE => "RoCE",
            NetworkKind::Efa => "EFA",
            NetworkKind::Slingshot => "Slingshot",
            NetworkKind::OmniPath => "Omni-Path",
        }
    }
}

/// Limits on the jobs of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum run time of a job.
    pub max_time: Option<Limit>,
    /// Run time of a job that does not state one, s.
    pub default_seconds: Option<u64>,
    /// Maximum nodes of one job.
    pub max_nodes: Option<Limit>,
    /// Minimum nodes of one job.
    pub min_nodes: Option<u64>,
    /// Accounts, groups or QOS that may use the partition, if it is restricted.
    pub allowed: Vec<String>,
    /// `UP`, or the state in which no jobs start.
    pub state: Option<String>,
}

/// A limit that may be unset. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// The maximum.
    Max(u64),
    /// No limit is set.
    Unlimited,
}

/// CPUs and memory of one node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Host {
    /// Number of logical CPUs.
    pub cpus: Option<u32>,
    /// Memory, GiB.
    pub memory_gib: Option<f64>,
    /// Architecture, such as `x86_64`.
    pub architecture: Option<String>,
    /// Instance type of a cloud.
    pub instance_type: Option<String>,
}

/// A property that could not be determined, and how the user can supply it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undetermined {
    /// The field of a target, or the question that is open.
    pub what: String,
    /// Why it could not be determined.
    pub why: String,
    /// What to write, or which command to run.
    pub state: String,
}

impl Undetermined {
    /// Creates an entry from what is missing, the reason, and the remedy.
    #[must_use]
    pub fn new(what: &str, why: impl Into<String>, state: impl Into<String>) -> Undetermined {
        Undetermined { what: what.to_owned(), why: why.into(), state: state.into() }
    }
}
