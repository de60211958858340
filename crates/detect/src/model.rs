//! What was found: machines and partitions, each property optional, and what could not be determined.

use crate::matching::Matched;
pub use crate::matching::Slice;

/// Everything one detection found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Detected {
    /// This machine and the partitions or pools that can be used from it.
    pub machines: Vec<Machine>,
    /// What could not be determined about no machine in particular.
    pub undetermined: Vec<Undetermined>,
}

/// A set of equal nodes: this machine, a Slurm partition's nodes of one kind, or a Kubernetes pool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Machine {
    /// Unique among the machines of one detection; letters, digits, `-`, `_` and `.` only.
    pub name: String,
    /// Where it was found.
    pub origin: Origin,
    /// The accelerators; `None` for nodes without any.
    pub accelerator: Option<Accelerator>,
    /// Accelerators in one node, counted as the catalog counts them.
    pub accelerators_per_node: Option<u32>,
    /// Nodes by state.
    pub nodes: Nodes,
    /// The nodes as Slurm host lists.
    pub node_lists: Vec<String>,
    /// Link between the accelerators of a node, where it was measured.
    pub link: Option<IntraLink>,
    /// Link between nodes.
    pub network: Option<NetworkLink>,
    /// Limits on jobs.
    pub limits: Limits,
    /// CPUs and memory of a node.
    pub host: Host,
    /// Features, labels and taints that users select nodes by.
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
        /// Name of the cluster, where known.
        cluster: Option<String>,
        /// Name of the partition.
        partition: String,
        /// The generic resource of its accelerators as `name:type:count`, where there is one.
        gres: Option<String>,
    },
    /// Nodes of a Kubernetes cluster.
    Kubernetes {
        /// Name of the pool: its node-pool label, else its instance type, else its accelerator.
        pool: String,
    },
}

/// The accelerators of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Accelerator {
    /// The name as the tool or the administrator wrote it, cleaned for the screen.
    pub raw: String,
    /// Where the name was read.
    pub source: String,
    /// The catalog's entry for it.
    pub matched: Matched,
    /// Memory as reported, GiB.
    pub memory_gib: Option<f64>,
    /// Power limit as reported, W.
    pub power_w: Option<f64>,
    /// Set where jobs get a part of a device instead of a whole one.
    pub slice: Option<Slice>,
}

/// Nodes by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Nodes {
    /// All nodes; `None` if it is not known.
    pub total: Option<u32>,
    /// Nodes a job could use now.
    pub idle: Option<u32>,
    /// Nodes with some free resources.
    pub mixed: Option<u32>,
    /// Nodes in use.
    pub allocated: Option<u32>,
    /// Idle nodes that the scheduler keeps for a waiting job.
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
    /// Accelerators joined by it.
    pub domain_size: Option<u32>,
    /// How it was read.
    pub source: String,
}

/// Link between nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkLink {
    /// What it is.
    pub kind: NetworkKind,
    /// Rate of one NIC, Gbit/s, one direction.
    pub gbits_per_nic: Option<f64>,
    /// NICs of a node that serve its accelerators.
    pub nics_per_node: Option<u32>,
    /// How it was read.
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
    /// The kind as targets write it.
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
    /// Longest run.
    pub max_time: Option<Limit>,
    /// Run time of a job that states none, in seconds.
    pub default_seconds: Option<u64>,
    /// Maximum nodes of one job.
    pub max_nodes: Option<Limit>,
    /// Minimum nodes of one job.
    pub min_nodes: Option<u64>,
    /// Accounts, groups or QOS that may use it, where not all.
    pub allowed: Vec<String>,
    /// Whether jobs go here when they name no partition.
    pub is_default: bool,
    /// `UP`, or the state in which no job starts.
    pub state: Option<String>,
}

/// A limit: a number, or none set. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// At most this.
    Most(u64),
    /// Nothing is set.
    Unlimited,
}

/// CPUs and memory of one node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Host {
    /// CPUs as the system counts them.
    pub cpus: Option<u32>,
    /// Memory, GiB.
    pub memory_gib: Option<f64>,
    /// Architecture, such as `x86_64`.
    pub architecture: Option<String>,
    /// Instance type of a cloud.
    pub instance_type: Option<String>,
}

/// Something that could not be determined, and how the user can state it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undetermined {
    /// The field of a target, or the question.
    pub what: String,
    /// Why it is not known.
    pub why: String,
    /// What to write, or what to run.
    pub state: String,
}

impl Undetermined {
    /// Names what is missing, the reason, and what to do.
    #[must_use]
    pub fn new(what: &str, why: impl Into<String>, state: impl Into<String>) -> Undetermined {
        Undetermined { what: what.to_owned(), why: why.into(), state: state.into() }
    }
}
