//! Placement of ranks on hosts: in order, with tensor parallelism as the innermost dimension, then context, data and
//! pipeline parallelism. A slow host slows every stage that has a rank on it.

use super::input::{OtherKind, Place, Slow};
use crate::kernel::Stream;
use atlas_core::count::Count;
use atlas_perf::constants::Constants;
use atlas_perf::training::{TrainingInput, estimate};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Purpose of the random stream for drawing slow hosts.
const SLOW_HOSTS: u32 = 40;

/// The hosts of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hosts {
    /// Number of devices of the job.
    pub devices: u32,
    /// Devices per host.
    pub per_host: u32,
}

impl Hosts {
    /// Number of hosts.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.devices.div_ceil(self.per_host.max(1)).max(1)
    }

    /// Numbers of the (stage, replica) places that have a rank on `host`: `stage * dp + replica`.
    fn places(&self, host: u32, system: &TrainingInput) -> impl Iterator<Item = u64> + use<> {
        let each = u64::from(self.per_host.max(1));
        let process = (system.tp * system.cp).max(1.0) as u64;
        let all = u64::from(system.dp.max(Count::ONE).get()) * u64::from(system.pp.max(Count::ONE).get());
        let ranks = u64::from(host) * each..((u64::from(host) + 1) * each).min(u64::from(self.devices.max(1)));
        ranks.map(move |rank| rank / process).filter(move |place| *place < all)
    }

    /// Assigns the last hosts of the job to other `kinds` of accelerators, with the given number of hosts each, in this
    /// order, and returns the kinds with the stages they determine. A stage with ranks on several kinds waits for the
    /// slowest.
    #[must_use]
    pub fn mixed(&self, system: &TrainingInput, constants: &Constants, kinds: &[(OtherKind, u32)]) -> Vec<OtherKind> {
        let step = |system: &TrainingInput| estimate(system, constants).step_seconds;
        let (mut kinds, counts): (Vec<OtherKind>, Vec<u32>) = kinds.iter().cloned().unzip();
        let hosts = self.count();
        let mut first = hosts.saturating_sub(counts.iter().sum());
        // Step time of each place, and the kind that determines it; `None` for the job's own kind.
        let own = step(system);
        let mut places: BTreeMap<u64, (f64, Option<usize>)> = BTreeMap::new();
        let mut meet = |hosts: Range<u32>, seconds: f64, kind: Option<usize>| {
            for place in hosts.flat_map(|host| self.places(host, system)) {
                let slowest = places.entry(place).or_insert((seconds, kind));
                if seconds > slowest.0 {
                    *slowest = (seconds, kind);
                }
            }
        };
        // Of the job's own hosts, only the last ones can share a place with another kind.
        let process = (system.tp * system.cp / f64::from(self.per_host.max(1))).ceil().max(1.0) as u32;
        meet(first.saturating_sub(process)..first, own, None);
        for (number, (kind, count)) in kinds.iter().zip(&counts).enumerate() {
            let last = first.saturating_add(*count).min(hosts);
            meet(first..last, step(&kind.system(system)), Some(number));
            first = last;
        }
        let dp = u64::from(system.dp.max(Count::ONE).get());
        for (place, (_, number)) in places {
            if let Some(kind) = number.and_then(|number| kinds.get_mut(number)) {
                kind.places.push(Place { replica: (place % dp) as u32, stage: (place / dp) as u32 });
            }
        }
        kinds
    }

    /// Draws `wanted` hosts at random and returns the stages that they slow. A stage is listed once, because it waits
    /// for its slowest rank.
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
        let dp = u64::from(system.dp.max(Count::ONE).get());
        let slow = |place: u64| Slow { replica: (place % dp) as u32, stage: (place / dp) as u32, factor };
        places.into_iter().map(slow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_on_the_hosts_of_its_ranks() {
        let system = TrainingInput {
            tp: Count::new(2),
            pp: Count::new(4),
            dp: Count::new(8),
            accelerators: 64.0,
            ..TrainingInput::default()
        };
        let hosts = Hosts { devices: 64, per_host: 8 };
        let of = |host, system: &TrainingInput| hosts.places(host, system).collect::<BTreeSet<u64>>();
        assert_eq!(hosts.count(), 8);
        // Two ranks per place: four replicas of a stage on each host.
        assert_eq!(of(0, &system), BTreeSet::from([0, 1, 2, 3]));
        assert_eq!(of(7, &system), BTreeSet::from([28, 29, 30, 31]));
        let all: BTreeSet<u64> = (0..8).flat_map(|host| of(host, &system)).collect();
        assert_eq!(all.len(), 32);
        // A place larger than a host spans several hosts.
        let wide = TrainingInput { tp: Count::new(16), pp: Count::ONE, dp: Count::new(4), ..system };
        assert_eq!(of(0, &wide), of(1, &wide));
    }

    #[test]
    fn other_accelerator_kinds_are_placed_on_the_last_hosts() {
        let system = TrainingInput {
            tp: Count::new(8),
            pp: Count::new(2),
            dp: Count::new(2),
            accelerators: 32.0,
            ..TrainingInput::default()
        };
        let hosts = Hosts { devices: 32, per_host: 8 };
        let slower = atlas_perf::accelerator::Accelerator {
            flops: system.accelerator.flops.map(|rate| 0.5 * rate),
            ..system.accelerator
        };
        let kind = OtherKind { accelerator: slower, places: Vec::new() };
        let mixed = |system: &TrainingInput, count| {
            let kinds = hosts.mixed(system, &Constants::default(), &[(kind.clone(), count)]);
            kinds.into_iter().next().map(|kind| kind.places).unwrap_or_default()
        };
        assert_eq!(mixed(&system, 1), vec![Place { replica: 1, stage: 1 }]);
        assert_eq!(mixed(&system, 2), vec![Place { replica: 0, stage: 1 }, Place { replica: 1, stage: 1 }]);
        assert_eq!(mixed(&system, 9).len(), 4);
        // A replica on two hosts, one of which is slower.
        let wide = TrainingInput { tp: Count::new(16), pp: Count::ONE, ..system };
        assert_eq!(mixed(&wide, 1), vec![Place { replica: 1, stage: 0 }]);
    }

    #[test]
    fn slow_hosts_are_drawn_without_replacement_by_seed() {
        let system = TrainingInput {
            tp: Count::new(8),
            pp: Count::new(2),
            dp: Count::new(4),
            accelerators: 64.0,
            ..TrainingInput::default()
        };
        let hosts = Hosts { devices: 64, per_host: 8 };
        let slow = |wanted, seed| hosts.slow(&system, wanted, 1.5, seed);
        assert_eq!(slow(3, 1), slow(3, 1));
        assert_eq!((slow(0, 1).len(), slow(3, 1).len(), slow(99, 1).len()), (0, 3, 8));
        assert!((0..20).any(|seed| slow(1, seed) != slow(1, 99)));
    }
}
