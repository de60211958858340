//! The network of a cluster: hosts under leaf switches under one core.

/// Hosts under leaf switches under one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fabric {
    /// Accelerators per host.
    pub accelerators_per_host: u32,
    /// Hosts per leaf.
    pub hosts_per_leaf: u32,
    /// Bandwidth of the hosts of a leaf over that of its uplinks (1 = non-blocking).
    pub oversubscription: f64,
    /// How jobs are placed.
    pub placement: Placement,
}

/// How jobs are placed on leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// Under as few leaves as possible, preferring the leaf with the least free capacity that suffices (Slurm's
    /// `topology/tree`).
    #[default]
    Packed,
    /// Host by host, always under the leaf with the most free accelerators (Slurm's `--distribution=cyclic` over
    /// switches).
    Spread,
}
