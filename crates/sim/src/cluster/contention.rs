//! Concurrent jobs on one fabric: each computes on its own hosts and reduces gradients in a ring over shared links.
//!
//! Hosts are connected to leaf switches, leaves to one core. The bandwidth of a leaf's uplinks is that of its hosts over
//! the oversubscription, evenly spread over cables. Flows share links max-min fairly. A job's collectives begin when they
//! would begin if it ran alone, and its step ends when both they and the computation have ended. Not simulated: collisions
//! of hashed routes, and traffic of a job other than its data-parallel collectives.
#![expect(clippy::indexing_slicing, reason = "jobs are numbered here, and links are laid here")]

use super::fabric::Fabric;
use crate::kernel::{EventQueue, Stream, Time};
use crate::network::flows::{Flows, Happened, NetworkEvent};
use crate::network::routing::Route;
use crate::network::topology::Topology;
use crate::network::{NodeKind, Wire};

/// Steps of every job that its mean step is taken from, after a first one that is not counted.
const STEPS: u32 = 12;
/// Maximum events; then the steps so far are used. Reached if jobs' steps differ in length by orders of magnitude.
const MOST_EVENTS: u64 = 2_000_000;
/// Purpose of the random streams that draw each job's initial position in its step.
const OFFSET: u32 = 41;
/// Bytes per second of a host. Arbitrary: traffic is given in seconds at this rate.
const HOST: f64 = 1e9;

/// A job's step when it runs alone, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Traffic {
    /// The step.
    pub step: f64,
    /// Seconds of its collectives, at the full bandwidth of its hosts; 0 if it sends nothing.
    pub collectives: f64,
    /// Seconds of them that overlap with computation.
    pub hidden: f64,
}

impl Traffic {
    /// Clamped so that collectives are no longer than the step, and the hidden part no longer than the collectives.
    fn bounded(self) -> Traffic {
        let collectives = self.collectives.clamp(0.0, self.step);
        Traffic { step: self.step, collectives, hidden: self.hidden.clamp(0.0, collectives) }
    }
}

/// A job where it runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed<'a> {
    /// Its hosts and how many accelerators it has of each, in order.
    pub(super) places: &'a [(u32, u32)],
    pub(super) traffic: Traffic,
}

impl Fabric {
    fn leaf(&self, host: u32) -> u32 {
        host / self.hosts_per_leaf.max(1)
    }

    /// Bandwidth of a leaf's uplinks together, in hosts'.
    fn uplink(&self) -> f64 {
        f64::from(self.hosts_per_leaf.max(1)) / self.oversubscription.max(1.0)
    }

    /// Every job's step when all run at once, over its step alone.
    pub(super) fn slowdowns(&self, jobs: &[Placed<'_>], seed: u64) -> Vec<f64> {
        let mut out = vec![1.0; jobs.len()];
        let sends: Vec<usize> = (0..jobs.len()).filter(|&at| self.sends(&jobs[at])).collect();
        let Some(hosts) = sends.iter().flat_map(|&at| jobs[at].places).map(|place| place.0 + 1).max() else {
            return out;
        };
        let all: Vec<Placed<'_>> = sends.iter().map(|&at| jobs[at]).collect();
        let together = self.steps(&all, hosts, seed);
        for (&at, step) in sends.iter().zip(together) {
            let alone = self.steps(&jobs[at..=at], hosts, seed);
            out[at] = (step / alone[0].max(1e-12)).max(1.0);
        }
        // A job that sends nothing, or only over links of its own, is never delayed.
        out
    }

    /// Whether a job uses links that others may use: uplinks, or NICs of a host that it shares.
    fn sends(&self, job: &Placed<'_>) -> bool {
        let crosses = match (job.places.first(), job.places.last()) {
            (Some(first), Some(last)) => self.leaf(first.0) != self.leaf(last.0) && self.oversubscription > 1.0,
            _ => false,
        };
        let shares = job.places.len() > 1 && job.places.iter().any(|place| place.1 < self.accelerators_per_host);
        job.traffic.step > 0.0 && job.traffic.collectives > 0.0 && (crosses || shares)
    }

    /// Leaves, the core and the cables between them: host `h` sends over link `2 h` and receives over the next, leaf `l`
    /// likewise after all hosts.
    fn topology(&self, hosts: u32) -> Topology {
        let mut t = Topology::default();
        t.nodes(NodeKind::Accelerator, hosts);
        let leaves = hosts.div_ceil(self.hosts_per_leaf.max(1));
        let first = t.nodes(NodeKind::Switch, leaves);
        let core = t.node(NodeKind::Switch);
        for host in 0..hosts {
            t.cable(host, first + self.leaf(host), Wire { bandwidth: HOST, latency: 0.0 });
        }
        for leaf in 0..leaves {
            t.cable(first + leaf, core, Wire { bandwidth: HOST * self.uplink(), latency: 0.0 });
        }
        t
    }

    fn route(&self, hosts: u32, from: u32, to: u32) -> Route {
        let (here, there) = (self.leaf(from), self.leaf(to));
        let mut links = smallvec::smallvec![2 * from];
        let mut bandwidth = HOST;
        if here != there {
            links.extend([2 * (hosts + here), 2 * (hosts + there) + 1]);
            bandwidth = bandwidth.min(HOST * self.uplink());
        }
        links.push(2 * to + 1);
        Route { links, latency: Time::ZERO, bandwidth }
    }

    /// Mean seconds of every job's step.
    fn steps(&self, jobs: &[Placed<'_>], hosts: u32, seed: u64) -> Vec<f64> {
        let mut queue = EventQueue::with_capacity(256);
        let sides = jobs.iter().zip(0..).map(|(job, number)| {
            let ring: Vec<u32> = job.places.iter().map(|place| place.0).collect();
            let next = ring.iter().cycle().skip(1);
            let offset = Stream::new(seed, OFFSET, ring.first().copied().unwrap_or(number)).uniform();
            queue.at(Time::from_seconds(offset * job.traffic.step), Event::Begin(number));
            Side {
                routes: ring.iter().zip(next).map(|(&from, &to)| self.route(hosts, from, to)).collect(),
                traffic: job.traffic.bounded(),
                pending: 0,
                computing: false,
                steps: 0,
                first: Time::ZERO,
                last: Time::ZERO,
            }
        });
        let mut sides: Vec<Side> = sides.collect();
        let mut flows = Flows::new(&self.topology(hosts));
        let mut short = sides.len();
        while short > 0 && queue.handled() < MOST_EVENTS {
            let Some(event) = queue.pop() else { break };
            let number = match event {
                Event::Begin(number) => {
                    sides[number as usize].begin(number, &mut queue);
                    continue;
                }
                Event::Ready(number) => {
                    let side = &mut sides[number as usize];
                    for route in &side.routes {
                        flows.send(&mut queue, route, HOST * side.traffic.collectives, number);
                    }
                    continue;
                }
                Event::Computed(number) => {
                    sides[number as usize].computing = false;
                    number
                }
                Event::Network(event) => match flows.handle(event, &mut queue) {
                    Happened::Delivered(number) => {
                        sides[number as usize].pending -= 1;
                        number
                    }
                    Happened::Left(_) | Happened::Nothing => continue,
                },
            };
            let side = &mut sides[number as usize];
            if !side.computing && side.pending == 0 {
                short -= usize::from(side.steps == STEPS);
                side.end(number, &mut queue);
            }
        }
        sides.iter().map(Side::mean).collect()
    }
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A job's step begins.
    Begin(u32),
    /// Its collectives may begin.
    Ready(u32),
    /// Its computation ends.
    Computed(u32),
    /// Something in the network.
    Network(NetworkEvent),
}

impl From<NetworkEvent> for Event {
    fn from(event: NetworkEvent) -> Self {
        Event::Network(event)
    }
}

/// A running job.
struct Side {
    /// From each host to the next.
    routes: Vec<Route>,
    traffic: Traffic,
    /// Unfinished hops of the step's collectives.
    pending: usize,
    computing: bool,
    steps: u32,
    /// When its first and its last step ended.
    first: Time,
    last: Time,
}

impl Side {
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

    /// Slowdowns of jobs on these hosts, all with the same traffic.
    fn slowdowns(fabric: Fabric, hosts: &[&[u32]], traffic: Traffic) -> Vec<f64> {
        let places: Vec<Vec<(u32, u32)>> = hosts.iter().map(|hosts| places(hosts)).collect();
        let jobs: Vec<Placed<'_>> = places.iter().map(|places| Placed { places, traffic }).collect();
        fabric.slowdowns(&jobs, 1)
    }

    const SENDING: Traffic = Traffic { step: 1.0, collectives: 1.0, hidden: 0.0 };

    #[test]
    fn two_equal_jobs_over_one_bottleneck_get_half_each() {
        // An uplink as wide as one host, and nothing but sending: twice the bytes in twice the time.
        for slowdown in slowdowns(fabric(4.0), &[&[0, 4], &[1, 5]], SENDING) {
            assert!((slowdown - 2.0).abs() < 1e-6, "{slowdown}");
        }
        for slowdown in slowdowns(fabric(4.0), &[&[0, 4], &[1, 5], &[2, 6]], SENDING) {
            assert!((slowdown - 3.0).abs() < 1e-6, "{slowdown}");
        }
        // An uplink for two of them delays no job; with three jobs it delays each by half.
        assert_eq!(slowdowns(fabric(2.0), &[&[0, 4], &[1, 5]], SENDING), [1.0, 1.0]);
        for slowdown in slowdowns(fabric(2.0), &[&[0, 4], &[1, 5], &[2, 6]], SENDING) {
            assert!((slowdown - 1.5).abs() < 1e-6, "{slowdown}");
        }
    }

    #[test]
    fn jobs_under_leaves_of_their_own_do_not_disturb_each_other() {
        assert_eq!(slowdowns(fabric(8.0), &[&[0, 1, 2, 3], &[4, 5, 6, 7]], SENDING), [1.0, 1.0]);
        // Nor do jobs that cross other uplinks: on 0 and 1, and on 2 and 3.
        assert_eq!(slowdowns(fabric(4.0), &[&[0, 4], &[8, 12]], SENDING), [1.0, 1.0]);
        // One that crosses is not held up by one that does not.
        assert_eq!(slowdowns(fabric(4.0), &[&[0, 4], &[1, 2]], SENDING), [1.0, 1.0]);
    }

    #[test]
    fn contention_first_delays_exposed_communication() {
        // A fifth of the step, half of which overlaps: however the others stand, no more than the fifth takes longer.
        let some = Traffic { step: 1.0, collectives: 0.2, hidden: 0.1 };
        let all = Traffic { step: 1.0, collectives: 0.2, hidden: 0.2 };
        let hosts: [&[u32]; 3] = [&[0, 4], &[1, 5], &[2, 6]];
        let (shown, hidden) = (slowdowns(fabric(4.0), &hosts, some), slowdowns(fabric(4.0), &hosts, all));
        for slowdown in shown.iter().chain(&hidden) {
            assert!((1.0..=1.0 + 0.4 + 1e-9).contains(slowdown), "{slowdown}");
        }
        // A job without traffic runs as if alone.
        let places = [places(&[0, 4]), places(&[1, 5])];
        let jobs = [
            Placed { places: &places[0], traffic: SENDING },
            Placed { places: &places[1], traffic: Traffic { collectives: 0.0, ..SENDING } },
        ];
        assert_eq!(fabric(4.0).slowdowns(&jobs, 1), [1.0, 1.0]);
    }

    #[test]
    fn bytes_are_conserved_over_a_shared_uplink() {
        // Two jobs of different size over one uplink: together they never send more than it carries.
        let places = [places(&[0, 4]), places(&[1, 5])];
        let long = Traffic { step: 2.0, collectives: 2.0, hidden: 0.0 };
        let jobs = [Placed { places: &places[0], traffic: SENDING }, Placed { places: &places[1], traffic: long }];
        let found = fabric(4.0).slowdowns(&jobs, 1);
        // Each sends `1 / slowdown` of the uplink's bandwidth.
        let used: f64 = found.iter().map(|slowdown| 1.0 / slowdown).sum();
        assert!((used - 1.0).abs() < 0.05, "{found:?}");
    }
}
