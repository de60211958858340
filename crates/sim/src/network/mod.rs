//! Network simulation: collectives as individual messages over routed links that are shared fairly.
//!
//! * [`topology`], [`shapes`] – nodes and links; common network shapes
//! * [`routing`] – routes through the network
//! * [`flows`] – how flows share links
//! * [`transfers`], [`collectives`] – the messages of a collective and their order
//! * [`closed_form`] – durations of the same algorithms when no link is shared
//! * [`input`], [`output`] – input and output
//!
//! A message is a fluid flow: it is sent at its fair rate, and arrives the latency of its route after it has left. Not
//! modeled: packets, congestion control and its unfairness, limited buffers, adaptive routing, the time of reductions.

pub mod closed_form;
pub mod collectives;
pub mod flows;
pub mod input;
pub mod output;
pub mod routing;
pub mod shapes;
pub mod topology;
pub mod transfers;
mod trees;

#[cfg(test)]
mod tests;

use super::kernel::{EventQueue, Model, Progress, StopReason, Time, run};
pub use collectives::{Algorithm, Operation};
use flows::{FlowOutcome, Flows, NetworkEvent};
pub use input::{Input, Job, Problem};
pub use output::{JobRecord, LinkRecord, Output};
pub use routing::Routing;
use routing::{Route, Router};
pub use shapes::{Fabric, Shape};
use topology::Topology;
pub use topology::{NodeKind, Wire};
use transfers::Transfers;

/// Events of the simulation.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A job begins.
    Begin(u32),
    /// An event of the network.
    Network(NetworkEvent),
}

impl From<NetworkEvent> for Event {
    fn from(event: NetworkEvent) -> Self {
        Event::Network(event)
    }
}

/// A running job.
struct Running {
    transfers: Transfers,
    /// Route of each pair of ends.
    routes: Vec<Route>,
    /// Number of dependencies that each message still waits for.
    waits: Vec<u32>,
    /// Number of its first message, counted over all jobs.
    base: u32,
    left: usize,
    record: JobRecord,
}

struct Network {
    flows: Flows,
    jobs: Vec<Running>,
    total: usize,
    done: usize,
}

impl Network {
    fn begin(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let Some(job) = self.jobs.get_mut(number as usize) else { return };
        job.record.begin = queue.now().seconds();
        job.record.end = job.record.begin;
        for (message, _) in (0..).zip(&job.transfers.waits).filter(|&(_, &waits)| waits == 0) {
            send(&job.transfers, &job.routes, job.base, message, &mut self.flows, queue);
        }
    }

    /// Handles a message that has left or arrived: sends its followers that no longer wait for anything.
    #[inline]
    fn follow(&mut self, message: u32, left: bool, queue: &mut EventQueue<Event>) {
        let number = match self.jobs.len() {
            1 => 0,
            _ => self.jobs.partition_point(|job| job.base <= message).wrapping_sub(1),
        };
        let Some(job) = self.jobs.get_mut(number) else { return };
        let Running { transfers, routes, waits, base, .. } = &mut *job;
        for follower in transfers.followers(message - *base, left) {
            if let Some(count) = waits.get_mut(follower as usize) {
                *count -= 1;
                if *count == 0 {
                    send(transfers, routes, *base, follower, &mut self.flows, queue);
                }
            }
        }
        if !left {
            self.done += 1;
            job.left -= 1;
            if job.left == 0 {
                job.record.end = queue.now().seconds();
            }
        }
    }
}

#[inline]
fn send(
    transfers: &Transfers,
    routes: &[Route],
    base: u32,
    message: u32,
    flows: &mut Flows,
    queue: &mut EventQueue<Event>,
) {
    let pair = transfers.pair.get(message as usize).copied().unwrap_or(0);
    let bytes = transfers.bytes.get(message as usize).copied().unwrap_or(0.0);
    if let Some(route) = routes.get(pair as usize) {
        flows.send(queue, route, bytes, base + message);
    }
}

impl Model for Network {
    type Event = Event;

    #[inline]
    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        match event {
            Event::Begin(number) => self.begin(number, queue),
            Event::Network(event) => match self.flows.handle(event, queue) {
                FlowOutcome::Nothing => {}
                FlowOutcome::Departed(message) => self.follow(message, true, queue),
                FlowOutcome::Delivered(message) => self.follow(message, false, queue),
            },
        }
    }

    fn share_done(&self) -> f64 {
        self.done as f64 / self.total.max(1) as f64
    }
}

/// Runs all jobs on one network.
///
/// # Errors
///
/// Returns all invalid parts of the input at once, or the first route that does not exist.
pub fn simulate(input: &Input, seed: u64, progress: &Progress) -> Result<Output, Vec<Problem>> {
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut topology = input.shape.build();
    for &(accelerator, factor) in &input.degraded {
        if let Some(&node) = topology.accelerators().get(accelerator as usize) {
            topology.degrade(node, factor);
        }
    }
    let mut queue = EventQueue::with_capacity(4096);
    let mut network = Network { flows: Flows::new(&topology), jobs: Vec::new(), total: 0, done: 0 };
    let mut router = Router::new(&topology, input.routing, seed);
    for (number, job) in (0..).zip(&input.jobs) {
        let running = prepare(job, number, network.total as u32, &topology, &mut router).map_err(|p| vec![p])?;
        network.total += running.transfers.len();
        network.jobs.push(running);
        queue.at(Time::from_seconds(job.begin), Event::Begin(number));
    }
    let ended = run(&mut network, &mut queue, Time::MAX, progress);
    progress.set(1.0);
    let seconds = queue.now().seconds();
    let link = |(link, carried): (&topology::Link, f64)| LinkRecord {
        from: link.from,
        to: link.to,
        bytes: carried,
        utilization: if seconds > 0.0 && link.bandwidth > 0.0 { carried / link.bandwidth / seconds } else { 0.0 },
    };
    Ok(Output {
        links: topology.links().iter().zip(network.flows.carried()).map(link).collect(),
        jobs: network.jobs.into_iter().map(|job| job.record.finished()).collect(),
        seconds,
        messages: network.flows.started(),
        events: queue.handled(),
        canceled: ended == StopReason::Canceled,
    })
}

/// Prepares the messages of a job and their routes.
fn prepare(
    job: &Job,
    number: u32,
    base: u32,
    topology: &Topology,
    router: &mut Router<'_>,
) -> Result<Running, Problem> {
    let all: Vec<u32> = (0..topology.accelerators().len() as u32).collect();
    let ranks = if job.ranks.is_empty() { &all } else { &job.ranks };
    let mut nodes: Vec<u32> =
        ranks.iter().filter_map(|&rank| topology.accelerators().get(rank as usize).copied()).collect();
    let count = nodes.len() as u32;
    let transfers = collectives::transfers(job.operation, job.algorithm, count, job.bytes)
        .filter(|t| base as usize + t.len() <= transfers::MAX_MESSAGES)
        .ok_or(Problem::NotDone { job: number, operation: job.operation, algorithm: job.algorithm, ranks: count })?;
    if job.algorithm.needs_switch() && count > 1 {
        nodes.push(topology.common_switch(&nodes).ok_or(Problem::NoSwitch { job: number })?);
    }
    let routes =
        routes(&transfers.pairs, &nodes, router).map_err(|(from, to)| Problem::NoRoute { job: number, from, to })?;
    let record = JobRecord::new(job, count, transfers.len() as u64);
    Ok(Running { waits: transfers.waits.clone(), left: transfers.len(), transfers, routes, base, record })
}

/// Returns the route of every pair of ranks, given the nodes of the ranks, or else the first pair without a route.
#[expect(clippy::indexing_slicing, reason = "places are counted here")]
fn routes(pairs: &[(u32, u32)], nodes: &[u32], router: &mut Router<'_>) -> Result<Vec<Route>, (u32, u32)> {
    let node = |rank: u32| nodes.get(rank as usize).copied().unwrap_or(u32::MAX);
    // The router searches the network from one destination at a time, so pairs are grouped by destination.
    let most = pairs.iter().map(|&(_, to)| to as usize + 1).max().unwrap_or(0);
    let mut first = vec![0u32; most + 1];
    pairs.iter().for_each(|&(_, to)| first[to as usize + 1] += 1);
    (0..most).for_each(|to| first[to + 1] += first[to]);
    let mut order = vec![0u32; pairs.len()];
    for (place, &(_, to)) in (0..).zip(pairs) {
        order[first[to as usize] as usize] = place;
        first[to as usize] += 1;
    }
    let mut way = |(from, to): (u32, u32)| router.route(node(from), node(to));
    let mut routes = vec![Route::default(); pairs.len()];
    for place in order {
        let Some(found) = way(pairs[place as usize]) else {
            return Err(pairs.iter().copied().find(|&pair| way(pair).is_none()).unwrap_or_default());
        };
        routes[place as usize] = found;
    }
    Ok(routes)
}
