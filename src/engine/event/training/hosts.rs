//! How devices sit in hosts: ranks in order, tensor parallelism the quickest, then context, data and pipeline parallelism,
//! as Megatron places them. A slow host slows every stage that has a rank on it.

use super::input::Slow;
use crate::engine::analytical::training::TrainingInput;
use crate::engine::event::kernel::Stream;
use std::collections::BTreeSet;

/// Purpose of the random stream that draws which hosts are slow.
const SLOW_HOSTS: u32 = 40;

/// The hosts of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hosts {
    /// Devices of the job.
    pub devices: f64,
    /// Devices of one host.
    pub per_host: f64,
}

impl Hosts {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u32 {
        (self.devices / self.per_host.max(1.0)).ceil().max(1.0) as u32
    }

    /// The (stage, replica) places that have a rank on a host, by their number: stages one after the other, replicas within.
    fn places(&self, host: u32, system: &TrainingInput) -> impl Iterator<Item = u64> + use<> {
        let each = self.per_host.max(1.0) as u64;
        let process = (system.tp * system.cp).max(1.0) as u64;
        let all = (system.dp.max(1.0) as u64) * (system.pp.max(1.0) as u64);
        let ranks = u64::from(host) * each..((u64::from(host) + 1) * each).min(self.devices.max(1.0) as u64);
        ranks.map(move |rank| rank / process).filter(move |place| *place < all)
    }

    /// So many hosts drawn by the seed, every set of them as likely as any other, and the stages that they slow, once each:
    /// a stage waits for the slowest of its ranks.
    #[must_use]
    pub fn slow(&self, system: &TrainingInput, wanted: u32, factor: f64, seed: u64) -> Vec<Slow> {
        let hosts = u64::from(self.count());
        let wanted = u64::from(wanted).min(hosts);
        let mut stream = Stream::new(seed, SLOW_HOSTS, 0);
        // Floyd's sampling.
        let mut chosen = BTreeSet::new();
        for most in hosts - wanted..hosts {
            let host = stream.below(most + 1);
            if !chosen.insert(host) {
                chosen.insert(most);
            }
        }
        let mut places = BTreeSet::new();
        for host in chosen {
            places.extend(self.places(host as u32, system));
        }
        let dp = system.dp.max(1.0) as u64;
        let slow = |place: u64| Slow { replica: (place % dp) as u32, stage: (place / dp) as u32, factor };
        places.into_iter().map(slow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_hold_their_ranks_places_and_every_place_once_or_more() {
        let system = TrainingInput { tp: 2.0, pp: 4.0, dp: 8.0, accelerators: 64.0, ..TrainingInput::default() };
        let hosts = Hosts { devices: 64.0, per_host: 8.0 };
        let of = |host, system: &TrainingInput| hosts.places(host, system).collect::<BTreeSet<u64>>();
        assert_eq!(hosts.count(), 8);
        // Two ranks a place: four replicas of a stage on each host.
        assert_eq!(of(0, &system), BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(of(7, &system), BTreeSet::from([28, 29, 30, 31]));
        let all: BTreeSet<u64> = (0..8).flat_map(|host| of(host, &system)).collect();
        assert_eq!(all.len(), 32);
        // A place wider than a host is on several.
        let wide = TrainingInput { tp: 16.0, pp: 1.0, dp: 4.0, ..system };
        assert_eq!(of(0, &wide), of(1, &wide));
    }

    #[test]
    fn slow_hosts_are_drawn_by_the_seed_without_putting_back() {
        let system = TrainingInput { tp: 8.0, pp: 2.0, dp: 4.0, accelerators: 64.0, ..TrainingInput::default() };
        let hosts = Hosts { devices: 64.0, per_host: 8.0 };
        let slow = |wanted, seed| hosts.slow(&system, wanted, 1.5, seed);
        assert_eq!(slow(3, 1), slow(3, 1));
        assert_eq!((slow(0, 1).len(), slow(3, 1).len(), slow(99, 1).len()), (0, 3, 8));
        assert!((0..20).any(|seed| slow(1, seed) != slow(1, 99)));
    }
}
