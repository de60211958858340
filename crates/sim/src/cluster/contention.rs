//! Concurrent jobs on one fabric: each computes on its own hosts and reduces gradients in a ring over shared links.
//!
//! Hosts are connected to leaf switches, leaves to one core. The bandwidth of a leaf's uplinks is that of its hosts
//! over the oversubscription, spread evenly over cables. Flows share links max-min fairly. The collectives of a job
//! begin at the same point of its step as without contention, and a step ends when both collectives and computation
//! have ended. Not simulated: collisions of hashed routes, and traffic of a job other than its data-parallel
//! collectives.
#![expect(clippy::indexing_slicing, reason = "jobs are numbered here, and links are laid here")]

use super::fabric::Fabric;
use crate::kernel::{EventQueue, Stream, Time};
use crate::network::flows::{FlowOutcome, Flows, NetworkEvent};
use crate::network::routing::Route;
use crate::network::topology::Topology;
use crate::network::{NodeKind, Wire};

/// Number of steps of every job over which its step time is averaged, after a first one that is not counted.
const STEPS: u32 = 12;
/// Maximum number of events, after which the steps so far are used. Reached if step times of jobs differ by orders of
/// magnitude.
const MAX_EVENTS: u64 = 2_000_000;
/// Purpose of the random streams for the initial position of each job in its step.
const OFFSET_STREAM: u32 = 41;
/// Bandwidth of a host, bytes per second. Arbitrary: traffic is given in seconds at this rate.
const HOST_BANDWIDTH: f64 = 1e9;

/// Step of a job without contention, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Traffic {
    /// Step time.
    pub step: f64,
    /// Duration of its collectives at the full bandwidth of its hosts; 0 if it sends nothing.
    pub collectives: f64,
    /// Part of the collectives that overlaps with computation.
    pub hidden: f64,
}

impl Traffic {
    /// Returns the traffic with collectives clamped to the step time, and the hidden part clamped to the collectives.
    fn bounded(self) -> Traffic {
        let collectives = self.collectives.clamp(0.0, self.step);
        Traffic { step: self.step, collectives, hidden: self.hidden.clamp(0.0, collectives) }
    }
}

/// A job and its location.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlacedJob<'a> {
    /// Its hosts, and the number of its accelerators on each, in order.
    pub(super) places: &'a [(u32, u32)],
    pub(super) traffic: Traffic,
}

impl Fabric {
    fn leaf(&self, host: u32) -> u32 {
        host / self.hosts_per_leaf.max(1)
    }

    /// Total bandwidth of the uplinks of a leaf, in units of a host's bandwidth.
    fn uplink(&self) -> f64 {
        f64::from(self.hosts_per_leaf.max(1)) / self.oversubscription.max(1.0)
    }

    /// Returns the step time of each job when all run concurrently, over its step time without contention.
    pub(super) fn slowdowns(&self, jobs: &[PlacedJob<'_>], seed: u64) -> Vec<f64> {
        let mut out = vec![1.0; jobs.len()];
        let sends: Vec<usize> = (0..jobs.len()).filter(|&at| self.sends(&jobs[at])).collect();
        let Some(hosts) = sends.iter().flat_map(|&at| jobs[at].places).map(|place| place.0 + 1).max() else {
            return out;
        };
        let all: Vec<PlacedJob<'_>> = sends.iter().map(|&at| jobs[at]).collect();
        let together = self.steps(&all, hosts, seed);
        for (&at, step) in sends.iter().zip(together) {
            let alone = self.steps(&jobs[at..=at], hosts, seed);
            out[at] = (step / alone[0].max(1e-12)).max(1.0);
        }
        // A job that sends nothing, or only over links of its own, is never delayed.
        out
    }

    /// Whether a job uses links that others may use: uplinks, or network cards of a host that it shares.
    fn sends(&self, job: &PlacedJob<'_>) -> bool {
        let crosses = match (job.places.first(), job.places.last()) {
            (Some(first), Some(last)) => self.leaf(first.0) != self.leaf(last.0) && self.oversubscription > 1.0,
            _ => false,
        };
        let shares = job.places.len() > 1 && job.places.iter().any(|place| place.1 < self.accelerators_per_host);
        job.traffic.step > 0.0 && job.traffic.collectives > 0.0 && (crosses || shares)
    }

    /// Builds the topology of hosts, leaves and the core. Host `h` sends over link `2 h` and receives over `2 h + 1`;
    /// the links of leaf `l` follow in the same way after those of all hosts.
    fn topology(&self, hosts: u32) -> Topology {
        let mut t = Topology::default();
        t.nodes(NodeKind::Accelerator, hosts);
        let leaves = hosts.div_ceil(self.hosts_per_leaf.max(1));
        let first = t.nodes(NodeKind::Switch, leaves);
        let core = t.node(NodeKind::Switch);
        for host in 0..hosts {
            t.cable(host, first + self.leaf(host), Wire { bandwidth: HOST_BANDWIDTH, latency: 0.0 });
        }
        for leaf in 0..leaves {
            t.cable(first + leaf, core, Wire { bandwidth: HOST_BANDWIDTH * self.uplink(), latency: 0.0 });
        }
        t
    }

    fn route(&self, hosts: u32, from: u32, to: u32) -> Route {
        let (here, there) = (self.leaf(from), self.leaf(to));
        let mut links = smallvec::smallvec![2 * from];
        let mut bandwidth = HOST_BANDWIDTH;
        if here != there {
            links.extend([2 * (hosts + here), 2 * (hosts + there) + 1]);
            bandwidth = bandwidth.min(HOST_BANDWIDTH * self.uplink());
        }
        links.push(2 * to + 1);
        Route { links, latency: Time::ZERO, bandwidth }
    }

    /// Returns the mean step time of every job, s.
    fn steps(&self, jobs: &[PlacedJob<'_>], hosts: u32, seed: u64) -> Vec<f64> {
        let mut queue = EventQueue::with_capacity(256);
        let sides = jobs.iter().zip(0..).map(|(job, number)| {
            let ring: Vec<u32> = job.places.iter().map(|place| place.0).collect();
            let next = ring.iter().cycle().skip(1);
            let offset = Stream::new(seed, OFFSET_STREAM, ring.first().copied().unwrap_or(number)).uniform();
            queue.at(Time::from_seconds(offset * job.traffic.step), Event::Begin(number));
            RunningJob {
                routes: ring.iter().zip(next).map(|(&from, &to)| self.route(hosts, from, to)).collect(),
                traffic: job.traffic.bounded(),
                pending: 0,
                computing: false,
                steps: 0,
                first: Time::ZERO,
                last: Time::ZERO,
            }
        });
        let mut sides: Vec<RunningJob> = sides.collect();
        let mut flows = Flows::new(&self.topology(hosts));
        let mut short = sides.len();
        while short > 0 && queue.handled() < MAX_EVENTS {
            let Some(event) = queue.pop() else { break };
            let number = match event {
                Event::Begin(number) => {
                    sides[number as usize].begin(number, &mut queue);
                    continue;
                }
                Event::Ready(number) => {
                    let side = &mut sides[number as usize];
                    for route in &side.routes {
                        flows.send(&mut queue, route, HOST_BANDWIDTH * side.traffic.collectives, number);
                    }
                    continue;
                }
                Event::Computed(number) => {
                    sides[number as usize].computing = false;
                    number
                }
                Event::Network(event) => match flows.handle(event, &mut queue) {
                    FlowOutcome::Delivered(number) => {
                        sides[number as usize].pending -= 1;
                        number
                    }
                    FlowOutcome::Departed(_) | FlowOutcome::Nothing => continue,
                },
            };
            let side = &mut sides[number as usize];
            if !side.computing && side.pending == 0 {
                short -= usize::from(side.steps == STEPS);
                side.end(number, &mut queue);
            }
        }
        sides.iter().map(RunningJob::mean).collect()
    }
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A step of a job begins.
    Begin(u32),
    /// Collectives of a job may begin.
    Ready(u32),
    /// The computation of a job ends.
    Computed(u32),
    /// An event of the network.
    Network(NetworkEvent),
}

impl From<NetworkEvent> for Event {
    fn from(event: NetworkEvent) -> Self {
        Event::Network(event)
    }
}

/// A running job.
struct RunningJob {
    /// Routes from each host to the next in the ring.
    routes: Vec<Route>,
    traffic: Traffic,
    /// Number of unfinished hops of the current collectives.
    pending: usize,
    computing: bool,
    steps: u32,
    /// End of its first and of its last step.
    first: Time,
    last: Time,
}

impl RunningJob {
    fn begin(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let Traffic { step, collectives, hidden } = self.traffic;
        (self.pending, self.computing) = (self.routes.len(), true);
        queue.after(Time::from_seconds(step - collectives), Event::Ready(number));
        queue.after(Time::from_seconds(step - collectives + hidden), Event::Computed(number));
    }

    fn end(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        self.last = queue.now();
        if self.steps == 0 {
            self.first = self.last;
        }
        self.steps += 1;
        self.begin(number, queue);
    }

    fn mean(&self) -> f64 {
        match self.steps {
            0 | 1 => self.traffic.step,
            n => self.last.since(self.first).seconds() / f64::from(n - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::cluster::Placement;

    fn fabric(oversubscription: f64) -> Fabric {
        Fabric { accelerators_per_host: 8, hosts_per_leaf: 4, oversubscription, placement: Placement::Packed }
    }

    fn places(hosts: &[u32]) -> Vec<(u32, u32)> {
        hosts.iter().map(|&host| (host, 8)).collect()
    }

    /// Slowdowns of jobs on the given hosts, all with the same traffic.
    fn slowdowns(fabric: Fabric, hosts: &[&[u32]], traffic: Traffic) -> Vec<f64> {
        let places: Vec<Vec<(u32, u32)>> = hosts.iter().map(|hosts| places(hosts)).collect();
        let jobs: Vec<PlacedJob<'_>> = places.iter().map(|places| PlacedJob { places, traffic }).collect();
        fabric.slowdowns(&jobs, 1)
    }

    const SENDING: Traffic = Traffic { step: 1.0, collectives: 1.0, hidden: 0.0 };

    #[test]
    fn two_equal_jobs_over_one_bottleneck_get_half_each() {
        // Uplinks with the bandwidth of one host, and no computation: twice the bytes take twice the time.
        for slowdown in slowdowns(fabric(4.0), &[&[0, 4], &[1, 5]], SENDING) {
            assert!((slowdown - 2.0).abs() < 1e-6, "{slowdown}");
        }
        for slowdown in slowdowns(fabric(4.0), &[&[0, 4], &[1, 5], &[2, 6]], SENDING) {
            assert!((slowdown - 3.0).abs() < 1e-6, "{slowdown}");
        }
        // Uplinks for two jobs delay none of two, but delay each of three by half.
        assert_eq!(slowdowns(fabric(2.0), &[&[0, 4], &[1, 5]], SENDING), [1.0, 1.0]);
        for slowdown in slowdowns(fabric(2.0), &[&[0, 4], &[1, 5], &[2, 6]], SENDING) {
            assert!((slowdown - 1.5).abs() < 1e-6, "{slowdown}");
        }
    }

    #[test]
    fn jobs_on_disjoint_uplinks_do_not_slow_each_other() {
        assert_eq!(slowdowns(fabric(8.0), &[&[0, 1, 2, 3], &[4, 5, 6, 7]], SENDING), [1.0, 1.0]);
        // Jobs that use different uplinks do not contend either: on leaves 0 and 1, and on 2 and 3.
        assert_eq!(slowdowns(fabric(4.0), &[&[0, 4], &[8, 12]], SENDING), [1.0, 1.0]);
        // A job that crosses leaves is not delayed by one that does not.
        assert_eq!(slowdowns(fabric(4.0), &[&[0, 4], &[1, 2]], SENDING), [1.0, 1.0]);
    }

    #[test]
    fn contention_slowdown_is_bounded_by_the_collective_share() {
        // A fifth of the step, half of which overlaps: whatever the offsets of the jobs, only that fifth can take
        // longer.
        let some = Traffic { step: 1.0, collectives: 0.2, hidden: 0.1 };
        let all = Traffic { step: 1.0, collectives: 0.2, hidden: 0.2 };
        let hosts: [&[u32]; 3] = [&[0, 4], &[1, 5], &[2, 6]];
        let (shown, hidden) = (slowdowns(fabric(4.0), &hosts, some), slowdowns(fabric(4.0), &hosts, all));
        for slowdown in shown.iter().chain(&hidden) {
            assert!((1.0..=1.0 + 0.4 + 1e-9).contains(slowdown), "{slowdown}");
        }
        // A job without traffic runs without contention.
        let places = [places(&[0, 4]), places(&[1, 5])];
        let jobs = [
            PlacedJob { places: &places[0], traffic: SENDING },
            PlacedJob { places: &places[1], traffic: Traffic { collectives: 0.0, ..SENDING } },
        ];
        assert_eq!(fabric(4.0).slowdowns(&jobs, 1), [1.0, 1.0]);
    }

    #[test]
    fn bytes_are_conserved_over_a_shared_uplink() {
        // Two jobs of different size over one uplink: together they never exceed its bandwidth.
        let places = [places(&[0, 4]), places(&[1, 5])];
        let long = Traffic { step: 2.0, collectives: 2.0, hidden: 0.0 };
        let jobs =
            [PlacedJob { places: &places[0], traffic: SENDING }, PlacedJob { places: &places[1], traffic: long }];
        let found = fabric(4.0).slowdowns(&jobs, 1);
        // Each sends `1 / slowdown` of the uplink's bandwidth.
        let used: f64 = found.iter().map(|slowdown| 1.0 / slowdown).sum();
        assert!((used - 1.0).abs() < 0.05, "{found:?}");
    }
}
