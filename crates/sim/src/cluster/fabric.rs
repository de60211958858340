//! The network of a cluster: hosts under leaf switches under one core.

/// Hosts under leaf switches under one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fabric {
    /// Accelerators of a host.
    pub accelerators_per_host: u32,
    /// Hosts of a leaf.
    pub hosts_per_leaf: u32,
    /// Bandwidth of a leaf's hosts over that of its uplinks (1 = non-blocking).
    pub oversubscription: f64,
    /// How jobs are placed.
    pub placement: Placement,
}

/// How jobs are placed on leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// Under as few leaves as possible, the fullest that suffices first (Slurm's `topology/tree`).
    #[default]
    Packed,
    /// Host by host under the leaf with the most left (Slurm's `--distribution=cyclic` over switches).
    Spread,
}
