//! Flows that share links. Every flow has its max-min fair rate (Bertsekas and Gallager, *Data Networks*, section
//! 6.5.2), which changes only when a flow starts or ends that it shares a link with, directly or through other flows.
//!
//! Changes of one instant are handled together at its end. Only the flows whose rates a change affects are recomputed
//! (`fair`); a flow that shares no link needs no computation of rates at all.
#![expect(clippy::indexing_slicing, reason = "flows and hops are numbered here, links by the topology that made them")]

mod channels;
mod fair;

use super::routing::Route;
use super::topology::Topology;
use crate::kernel::{EventQueue, Handle, Time};
use channels::{Channel, channels};
use fair::ChannelState;
use std::ops::Range;

/// An event of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkEvent {
    /// All changes of the instant are known: rates are recomputed.
    RecomputeRates,
    /// The last byte of a flow has left its sender.
    Departed(u32),
    /// The last byte of a message has reached its receiver.
    Delivered(u32),
}

/// What an event means for the sender of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowOutcome {
    /// No message has left or arrived.
    Nothing,
    /// This message has left its sender.
    Departed(u32),
    /// This message has reached its receiver.
    Delivered(u32),
}

/// Lines of the event queue, for departures of messages that share no link and for arrivals. Most of either take
/// equally long, so that they are scheduled in order of time.
const DEPARTURES: usize = 0;
const ARRIVALS: usize = 1;
/// Relative difference up to which rates are the same.
const SAME: f64 = 1e-9;
/// Hops that are stored with every flow. Longer routes are kept separately, so that one collective over hundreds of
/// links does not spread the hops of all other flows in memory.
const INLINE_HOPS: usize = 4;
/// Initial capacity of the list of flows of a channel.
const INITIAL_FLOW_CAPACITY: u32 = 2;

/// State of a flow that determines its rate.
#[derive(Debug, Clone, Copy, Default)]
struct Flow {
    rate: f64,
    /// The rate found in the current round of settling.
    fair: f64,
    /// Range of its hops in `Flows::hops`.
    first: u32,
    hops: u32,
    /// The narrowest of its channels, and the one that limits its rate.
    narrowest: u32,
    decided_by: u32,
    /// Round of settling in which it was last included, and filling in which its rate was last fixed.
    met: u32,
    frozen: u32,
    /// Range of its channels in `Flows::looked_at` that are considered in that round.
    looked_at: u32,
    lookers: u32,
}

impl Flow {
    /// Range of its hops.
    #[inline]
    fn hops(&self) -> Range<usize> {
        self.first as usize..(self.first + self.hops) as usize
    }

    /// Range of its channels that are considered in this round.
    #[inline]
    fn considered_channels(&self) -> Range<usize> {
        self.looked_at as usize..(self.looked_at + self.lookers) as usize
    }
}

/// Placeholder of `FlowProgress::due` before the end of a flow is scheduled.
const UNSCHEDULED: Time = Time::MAX;

/// Progress of a flow. It nearly fills a cache line, and is aligned to one.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct FlowProgress {
    bytes: f64,
    remaining: f64,
    since: Time,
    latency: Time,
    /// Departure at the current rate. The scheduled event (`due`) may be earlier and is then postponed: most flows that
    /// are slowed down are sped up again before.
    ends: Time,
    due: Time,
    handle: Handle,
    message: u32,
    /// Capacity of its list of hops.
    room: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Hop {
    channel: u32,
    /// Index in the list of flows of the channel.
    place: u32,
}

/// The links of a network and the flows over them.
#[derive(Debug, Clone)]
pub struct Flows {
    channels: Vec<Channel>,
    /// Flows over each channel, and which of their hops it is.
    listed: Vec<(u32, u32)>,
    /// State of each channel while rates are computed. Separate from `channels`, because flows that share no link do
    /// not need it.
    fillings: Vec<ChannelState>,
    /// The channel of each link.
    of: Vec<u32>,
    flows: Vec<Flow>,
    courses: Vec<FlowProgress>,
    hops: Vec<Hop>,
    /// Unused flow entries, for short and for long routes.
    free: [Vec<u32>; 2],
    /// Flows that were limited by a channel that another flow has left, and flows that have started, in this instant.
    relieved: Vec<u32>,
    fresh: Vec<u32>,
    settling: bool,
    round: u32,
    filling: u32,
    met_channels: Vec<u32>,
    met_flows: Vec<u32>,
    looked_at: Vec<u32>,
    active: Vec<u32>,
    started: u64,
    tells_arrivals: bool,
}

impl Flows {
    /// Creates the links of `topology` without flows. Network cards between two other nodes are passed through; no flow
    /// may start or end at them.
    pub fn new(topology: &Topology) -> Self {
        let (channels, of) = channels(topology);
        Flows::over(channels, of)
    }

    /// Creates links with the given bandwidths only, numbered in this order.
    pub fn with_bandwidths(bandwidths: impl Iterator<Item = f64>) -> Self {
        let channels: Vec<Channel> = bandwidths.map(|capacity| Channel { capacity, ..Channel::default() }).collect();
        let of = (0..channels.len() as u32).collect();
        Flows::over(channels, of)
    }

    fn over(mut channels: Vec<Channel>, of: Vec<u32>) -> Self {
        for (channel, first) in channels.iter_mut().zip((0..).step_by(INITIAL_FLOW_CAPACITY as usize)) {
            (channel.first, channel.room) = (first, INITIAL_FLOW_CAPACITY);
        }
        Flows {
            listed: vec![(0, 0); channels.len() * INITIAL_FLOW_CAPACITY as usize],
            fillings: vec![ChannelState::default(); channels.len()],
            channels,
            of,
            flows: Vec::new(),
            courses: Vec::new(),
            hops: Vec::new(),
            free: [const { Vec::new() }; 2],
            relieved: Vec::new(),
            fresh: Vec::new(),
            settling: false,
            round: 1,
            filling: 0,
            met_channels: Vec::new(),
            met_flows: Vec::new(),
            looked_at: Vec::new(),
            active: Vec::new(),
            started: 0,
            tells_arrivals: true,
        }
    }

    /// Reports messages only when they have left, not when they arrive.
    #[must_use]
    pub fn departures_only(self) -> Self {
        Flows { tells_arrivals: false, ..self }
    }

    /// Number of messages sent so far.
    pub fn started(&self) -> u64 {
        self.started
    }

    /// Bytes of finished flows that each link has carried.
    pub fn carried(&self) -> impl Iterator<Item = f64> {
        self.of.iter().map(|&channel| self.channels[channel as usize].carried)
    }

    /// Sends `bytes` along `route`. [`Flows::handle`] reports `message` when it has left and when it has arrived.
    pub fn send<E: Copy + From<NetworkEvent>>(
        &mut self,
        queue: &mut EventQueue<E>,
        route: &Route,
        bytes: f64,
        message: u32,
    ) {
        self.started += 1;
        let now = queue.now();
        let (id, base) = self.place_flow(route.links.len());
        let course = &mut self.courses[id as usize];
        (course.bytes, course.remaining) = (bytes, bytes.max(0.0));
        (course.since, course.latency, course.ends) = (now, route.latency, now);
        (course.due, course.handle, course.message) = (UNSCHEDULED, Handle::NONE, message);
        // An empty message, or one to the sender itself, takes no bandwidth.
        if route.links.is_empty() || bytes <= 0.0 {
            queue.after(Time::ZERO, NetworkEvent::Departed(id).into());
            return;
        }
        let (mut alone, mut narrowest, mut least) = (true, u32::MAX, f64::INFINITY);
        // Among equally narrow links the middle one: it is shared more often than those at the ends.
        let middle = route.links.len() / 2;
        let mut last = u32::MAX;
        let mut hops = 0;
        let (of, channels, room) = (self.of.as_slice(), self.channels.as_mut_slice(), &mut self.hops[base..]);
        for (place, &link) in route.links.iter().enumerate() {
            let number = of[link as usize];
            if number == last {
                continue;
            }
            last = number;
            let channel = &mut channels[number as usize];
            alone &= channel.flows == 0;
            if channel.capacity < least || (channel.capacity == least && place <= middle) {
                (narrowest, least) = (number, channel.capacity);
            }
            room[hops] = Hop { channel: number, place: channel.flows };
            if channel.flows == channel.room {
                channel.grow_flow_list(&mut self.listed);
            }
            self.listed[(channel.first + channel.flows) as usize] = (id, hops as u32);
            channel.flows += 1;
            hops += 1;
        }
        let flow = &mut self.flows[id as usize];
        (flow.hops, flow.narrowest, flow.decided_by) = (hops as u32, narrowest, narrowest);
        if alone {
            // No flow to share with. A flow that starts in the same instant triggers a recomputation.
            flow.rate = route.bandwidth;
            let course = &mut self.courses[id as usize];
            course.ends = now.plus(Time::from_seconds(bytes / route.bandwidth));
            course.due = course.ends;
            // The flow never becomes faster, so the event need not be canceled and needs no handle.
            queue.push_fifo(DEPARTURES, course.ends, NetworkEvent::Departed(id).into());
        } else {
            self.fresh.push(id);
            self.expect_settling(queue);
        }
    }

    /// Handles an event of the network.
    pub fn handle<E: Copy + From<NetworkEvent>>(
        &mut self,
        event: NetworkEvent,
        queue: &mut EventQueue<E>,
    ) -> FlowOutcome {
        match event {
            NetworkEvent::RecomputeRates => {
                self.settle(queue);
                FlowOutcome::Nothing
            }
            NetworkEvent::Delivered(message) => FlowOutcome::Delivered(message),
            NetworkEvent::Departed(id) => {
                let course = &mut self.courses[id as usize];
                if course.ends > queue.now() {
                    course.due = course.ends;
                    course.handle = queue.at(course.ends, event.into());
                    return FlowOutcome::Nothing;
                }
                let (latency, message) = (course.latency, course.message);
                self.remove(id, queue);
                if self.tells_arrivals {
                    queue.push_fifo(ARRIVALS, queue.now().plus(latency), NetworkEvent::Delivered(message).into());
                }
                FlowOutcome::Departed(message)
            }
        }
    }

    fn expect_settling<E: Copy + From<NetworkEvent>>(&mut self, queue: &mut EventQueue<E>) {
        if !self.settling {
            self.settling = true;
            queue.at_end_of_instant(NetworkEvent::RecomputeRates.into());
        }
    }

    /// Allocates a flow with space for `hops` hops; returns its number and the index of its first hop.
    fn place_flow(&mut self, hops: usize) -> (u32, usize) {
        let long = hops > INLINE_HOPS;
        if let Some(id) = self.free[usize::from(long)].pop() {
            let flow = &mut self.flows[id as usize];
            (flow.rate, flow.fair, flow.met, flow.frozen) = (0.0, 0.0, 0, 0);
            if hops > self.courses[id as usize].room as usize {
                (flow.first, self.courses[id as usize].room) = allocate_hops(&mut self.hops, hops);
            }
            return (id, flow.first as usize);
        }
        let (first, room) = allocate_hops(&mut self.hops, hops.max(INLINE_HOPS));
        self.flows.push(Flow { first, ..Flow::default() });
        self.courses.push(FlowProgress { room, ..FlowProgress::default() });
        ((self.flows.len() - 1) as u32, first as usize)
    }

    fn remove<E: Copy + From<NetworkEvent>>(&mut self, id: u32, queue: &mut EventQueue<E>) {
        let FlowProgress { bytes, room, .. } = self.courses[id as usize];
        let (channels, listed) = (self.channels.as_mut_slice(), self.listed.as_mut_slice());
        let (flows, hops, round) = (self.flows.as_mut_slice(), self.hops.as_mut_slice(), self.round);
        let flow = &mut flows[id as usize];
        let own = flow.hops();
        flow.hops = 0;
        for hop in own {
            let Hop { channel: number, place } = hops[hop];
            let channel = &mut channels[number as usize];
            channel.carried += bytes;
            channel.flows -= 1;
            // Until rates are recomputed, no other flows become limited by this channel: collecting them once is
            // enough.
            let first = std::mem::replace(&mut channel.left, round) != round;
            if channel.flows == 0 {
                continue;
            }
            // The last entry of the list replaces it.
            let others = channel.listed();
            let (moved, its_hop) = listed[others.end];
            listed[others.start + place as usize] = (moved, its_hop);
            hops[(flows[moved as usize].first + its_hop) as usize].place = place;
            if first {
                for &(other, _) in &listed[others] {
                    if flows[other as usize].decided_by == number {
                        self.relieved.push(other);
                    }
                }
            }
        }
        self.free[usize::from(room as usize > INLINE_HOPS)].push(id);
        if !self.relieved.is_empty() {
            self.expect_settling(queue);
        }
    }
}

/// Allocates space for at least `room` hops; returns the index of the first and the capacity.
fn allocate_hops(hops: &mut Vec<Hop>, room: usize) -> (u32, u32) {
    let first = hops.len();
    let room = room.next_power_of_two();
    hops.resize(first + room, Hop::default());
    (first as u32, room as u32)
}

#[cfg(test)]
mod tests;
