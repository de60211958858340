//! How the network between scale-up domains is wired.

/// The wiring, as far as it decides how fast domains exchange data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Topology {
    /// Every accelerator's NIC on a switch of its own rail: full bisection, unless oversubscribed.
    #[default]
    Rail,
    /// Switches in levels: full bisection, unless oversubscribed.
    FatTree,
    /// Every node linked to its neighbors in three dimensions: what goes far shares the links between.
    Torus,
}

impl Topology {
    /// Name and value, as documents are read.
    pub const WORDS: &'static [(&'static str, Topology)] =
        &[("rail", Topology::Rail), ("fat-tree", Topology::FatTree), ("torus", Topology::Torus)];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Topology::Rail => "rail",
            Topology::FatTree => "fat-tree",
            Topology::Torus => "torus",
        }
    }

    /// Share of its NICs' rate at which each of `nodes` exchanges data with all others at once.
    ///
    /// In a torus of three dimensions with k nodes a side, bytes cross 3 k / 4 links on average, so that the links carry
    /// 4 / (3 k) of what they would between neighbors (Dally and Towles, *Principles and Practices of Interconnection
    /// Networks*, section 5.2). Rings along neighbors run at the full rate.
    #[must_use]
    pub fn exchange_share(self, nodes: f64) -> f64 {
        match self {
            Topology::Rail | Topology::FatTree => 1.0,
            Topology::Torus => 1.0 / (0.75 * nodes.max(1.0).cbrt()).max(1.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_torus_loses_rate_as_it_grows() {
        assert_eq!(Topology::Rail.exchange_share(4096.0), 1.0);
        assert_eq!(Topology::FatTree.exchange_share(4096.0), 1.0);
        assert_eq!(Topology::Torus.exchange_share(2.0), 1.0);
        // 16 a side: bytes cross 12 links.
        assert!((Topology::Torus.exchange_share(4096.0) - 1.0 / 12.0).abs() < 1e-12);
    }
}
