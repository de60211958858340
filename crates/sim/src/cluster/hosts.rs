//! Selection of hosts for a job: under few leaves, so that it uses few uplinks, or spread over all leaves.

use super::fabric::{Fabric, Placement};

/// Number of free accelerators of every host.
#[derive(Debug, Clone)]
pub(super) struct Hosts {
    free: Vec<u32>,
    per_host: u32,
    per_leaf: usize,
    placement: Placement,
}

impl Hosts {
    /// Creates free hosts for `accelerators`; the last host may have fewer accelerators than the others.
    pub(super) fn new(accelerators: u32, fabric: &Fabric) -> Self {
        let per_host = fabric.accelerators_per_host.max(1);
        let count = accelerators.div_ceil(per_host);
        let free = (0..count).map(|host| per_host.min(accelerators - host * per_host)).collect();
        Hosts { free, per_host, per_leaf: fabric.hosts_per_leaf.max(1) as usize, placement: fabric.placement }
    }

    /// Allocates accelerators for a job; returns its hosts and the number of accelerators on each. Enough must be free.
    pub(super) fn allocate(&mut self, accelerators: u32) -> Vec<(u32, u32)> {
        let mut out: Vec<(u32, u32)> = Vec::new();
        let mut left = accelerators;
        while left > 0 {
            let Some(leaf) = self.leaf_for(left) else { break };
            let all = match self.placement {
                Placement::Packed => left,
                Placement::Spread => left.min(self.per_host),
            };
            let mut here = all;
            while here > 0 {
                let Some(host) = self.host_for(leaf, here) else { break };
                let Some(free) = self.free.get_mut(host) else { break };
                let taken = here.min(*free);
                *free -= taken;
                here -= taken;
                out.push((host as u32, taken));
            }
            left -= all - here;
        }
        out.sort_unstable();
        out
    }

    /// Releases a job's accelerators.
    pub(super) fn release(&mut self, places: &[(u32, u32)]) {
        for &(host, count) in places {
            if let Some(free) = self.free.get_mut(host as usize) {
                *free += count;
            }
        }
    }

    /// Leaf from which the next hosts are taken.
    fn leaf_for(&self, wanted: u32) -> Option<usize> {
        let leaves = self.free.chunks(self.per_leaf).map(|hosts| hosts.iter().sum::<u32>()).enumerate();
        let leaves = leaves.filter(|&(_, free)| free > 0);
        let most = leaves.clone().max_by_key(|&(leaf, free)| (free, std::cmp::Reverse(leaf)));
        let enough = leaves.filter(|&(_, free)| free >= wanted).min_by_key(|&(leaf, free)| (free, leaf));
        match self.placement {
            Placement::Packed => enough.or(most),
            Placement::Spread => most,
        }
        .map(|(leaf, _)| leaf)
    }

    /// Host of the leaf with the fewest free accelerators that suffice, or otherwise with the most.
    fn host_for(&self, leaf: usize, wanted: u32) -> Option<usize> {
        let first = leaf * self.per_leaf;
        let hosts = (first..).zip(self.free.iter().copied().skip(first).take(self.per_leaf));
        let hosts = hosts.filter(|&(_, free)| free > 0);
        let enough = hosts.clone().filter(|&(_, free)| free >= wanted).min_by_key(|&(host, free)| (free, host));
        enough.or(hosts.max_by_key(|&(host, free)| (free, std::cmp::Reverse(host)))).map(|(host, _)| host)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;
    use proptest::prelude::*;

    fn fabric(placement: Placement) -> Fabric {
        Fabric { accelerators_per_host: 8, hosts_per_leaf: 4, oversubscription: 2.0, placement }
    }

    #[test]
    fn allocation_packs_hosts_under_one_leaf_or_spreads_over_leaves() {
        let mut packed = Hosts::new(64, &fabric(Placement::Packed));
        assert_eq!(packed.allocate(16), [(0, 8), (1, 8)]);
        // The leaf with fewer free accelerators suffices.
        assert_eq!(packed.allocate(16), [(2, 8), (3, 8)]);
        assert_eq!(packed.allocate(4), [(4, 4)]);
        assert_eq!(packed.allocate(4), [(4, 4)]);
        let mut spread = Hosts::new(64, &fabric(Placement::Spread));
        assert_eq!(spread.allocate(16), [(0, 8), (4, 8)]);
        spread.release(&[(0, 8), (4, 8)]);
        assert_eq!(spread.allocate(64).len(), 8);
    }

    proptest! {
        #[test]
        fn allocation_grants_the_requested_size_and_conserves_accelerators(
            all in 1u32..200, sizes in prop::collection::vec(1u32..60, 1..20), spread in any::<bool>(),
        ) {
            let placement = if spread { Placement::Spread } else { Placement::Packed };
            let mut hosts = Hosts::new(all, &fabric(placement));
            let mut held: Vec<Vec<(u32, u32)>> = Vec::new();
            for size in sizes {
                while hosts.free.iter().sum::<u32>() < size.min(all) {
                    hosts.release(&held.remove(0));
                }
                let places = hosts.allocate(size.min(all));
                prop_assert_eq!(places.iter().map(|p| p.1).sum::<u32>(), size.min(all));
                held.push(places);
                let used: u32 = held.iter().flatten().map(|p| p.1).sum();
                prop_assert_eq!(hosts.free.iter().sum::<u32>() + used, all);
            }
        }
    }
}
