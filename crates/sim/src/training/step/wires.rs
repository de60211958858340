//! Communication through ports. Every stage has one port into the scale-up fabric and one into the network; concurrent
//! messages share a port max-min fairly. Sizes are durations without contention, s, so the capacity of a port is one
//! second per second.

use super::Event;
use crate::kernel::{EventQueue, Time};
use crate::network::flows::{FlowOutcome, Flows, NetworkEvent};
use crate::network::routing::Route;
use crate::training::program::{LANES, Port};
use smallvec::SmallVec;

/// Identifies a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// Task of a process on a stream, by the index of the stream.
    Stream(u32, usize),
    /// Transfer of a process to another stage.
    Transfer(u32),
    /// Collective of the data-parallel group of a stage.
    Group(u32),
}

/// Message numbers per sender: its streams, its transfer, its group.
const MESSAGES_PER_SENDER: u32 = LANES as u32 + 2;

impl Message {
    /// Returns the number of the message.
    pub(super) fn number(self) -> u32 {
        match self {
            Message::Stream(process, lane) => process * MESSAGES_PER_SENDER + lane as u32,
            Message::Transfer(process) => process * MESSAGES_PER_SENDER + MESSAGES_PER_SENDER - 2,
            Message::Group(stage) => stage * MESSAGES_PER_SENDER + MESSAGES_PER_SENDER - 1,
        }
    }

    /// Returns the message with a number.
    pub(super) fn of(number: u32) -> Message {
        let (owner, what) = (number / MESSAGES_PER_SENDER, number % MESSAGES_PER_SENDER);
        match what {
            _ if what == MESSAGES_PER_SENDER - 1 => Message::Group(owner),
            _ if what == MESSAGES_PER_SENDER - 2 => Message::Transfer(owner),
            _ => Message::Stream(owner, what as usize),
        }
    }
}

/// Index of a port among the cables of a process.
fn place(port: Port) -> Option<u32> {
    match port {
        Port::None => None,
        Port::Link => Some(0),
        Port::Nic => Some(1),
    }
}

/// First of the two links of a cable: out of the process. The next one is into it.
fn cable(process: u32, place: u32) -> u32 {
    2 * (2 * process + place)
}

/// Ports of all processes.
#[derive(Debug, Clone)]
pub(super) struct Ports {
    flows: Flows,
    /// Route of the current message; reused to avoid allocations.
    way: Route,
}

impl Ports {
    pub(super) fn new(processes: u32) -> Ports {
        // Two cables per process, one for the link and one for the network card, with two links each.
        let ways = 2 * 2 * processes as usize;
        let way = Route { links: SmallVec::new(), latency: Time::ZERO, bandwidth: 1.0 };
        Ports { flows: Flows::with_bandwidths(std::iter::repeat_n(1.0, ways)).departures_only(), way }
    }

    /// Sends `seconds` from one process to another, out of the port of one and into that of the other.
    pub(super) fn transfer(&mut self, from: u32, to: u32, port: Port, seconds: f64, queue: &mut EventQueue<Event>) {
        self.way.links.clear();
        if let Some(place) = place(port) {
            self.way.links.extend_from_slice(&[cable(from, place), cable(to, place) + 1]);
        }
        self.go(port, seconds, Message::Transfer(from), queue);
    }

    /// Sends `seconds` of a collective, through the ports of all its members in both directions.
    pub(super) fn send(
        &mut self,
        members: impl Iterator<Item = u32>,
        port: Port,
        seconds: f64,
        message: Message,
        queue: &mut EventQueue<Event>,
    ) {
        self.way.links.clear();
        if let Some(place) = place(port) {
            self.way.links.extend(members.flat_map(|process| [cable(process, place), cable(process, place) + 1]));
        }
        self.go(port, seconds, message, queue);
    }

    fn go(&mut self, port: Port, seconds: f64, message: Message, queue: &mut EventQueue<Event>) {
        match port {
            Port::None => {
                queue.after(Time::from_seconds(seconds), Event::Sent(message.number()));
            }
            Port::Link | Port::Nic => self.flows.send(queue, &self.way, seconds, message.number()),
        }
    }

    /// Returns the message that `event` completes, if any.
    pub(super) fn handle(&mut self, event: NetworkEvent, queue: &mut EventQueue<Event>) -> Option<Message> {
        match self.flows.handle(event, queue) {
            FlowOutcome::Departed(number) => Some(Message::of(number)),
            FlowOutcome::Nothing | FlowOutcome::Delivered(_) => None,
        }
    }
}
