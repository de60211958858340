//! What is sent: every stage has a port into the scale-up fabric and one into the network, and what goes through a port at a
//! time shares it, max-min fair. Sizes are seconds alone, so that a port's capacity is one second a second.

use super::Event;
use crate::kernel::{EventQueue, Time};
use crate::network::flows::{Flows, Happened, NetworkEvent};
use crate::network::routing::Route;
use crate::training::program::{LANES, Port};
use smallvec::SmallVec;

/// What has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// A process's task on a stream, by the stream's place.
    Stream(u32, usize),
    /// A process's transfer to another stage.
    Transfer(u32),
    /// The collective of a stage's data-parallel group.
    Group(u32),
}

/// Numbers of a sender: its streams, its transfer, its group.
const EACH: u32 = LANES as u32 + 2;

impl Message {
    /// Its number.
    pub(super) fn number(self) -> u32 {
        match self {
            Message::Stream(process, lane) => process * EACH + lane as u32,
            Message::Transfer(process) => process * EACH + EACH - 2,
            Message::Group(stage) => stage * EACH + EACH - 1,
        }
    }

    /// Of a number.
    pub(super) fn of(number: u32) -> Message {
        let (owner, what) = (number / EACH, number % EACH);
        match what {
            _ if what == EACH - 1 => Message::Group(owner),
            _ if what == EACH - 2 => Message::Transfer(owner),
            _ => Message::Stream(owner, what as usize),
        }
    }
}

/// Which of a process's cables a port is.
fn place(port: Port) -> Option<u32> {
    match port {
        Port::None => None,
        Port::Link => Some(0),
        Port::Nic => Some(1),
    }
}

/// A cable is two links, out of the process and into it: the first of these.
fn cable(process: u32, place: u32) -> u32 {
    2 * (2 * process + place)
}

/// The ports of all processes.
#[derive(Debug, Clone)]
pub(super) struct Wires {
    flows: Flows,
    /// The way of what is sent now.
    way: Route,
}

impl Wires {
    pub(super) fn new(processes: u32) -> Wires {
        // A cable each for the link and the network card of every process, two ways.
        let ways = 2 * 2 * processes as usize;
        let way = Route { links: SmallVec::new(), latency: Time::ZERO, bandwidth: 1.0 };
        Wires { flows: Flows::with_bandwidths(std::iter::repeat_n(1.0, ways)).departures_only(), way }
    }

    /// Sends `seconds` from one process to another, out of the one's port and into the other's.
    pub(super) fn transfer(&mut self, from: u32, to: u32, port: Port, seconds: f64, queue: &mut EventQueue<Event>) {
        self.way.links.clear();
        if let Some(place) = place(port) {
            self.way.links.extend_from_slice(&[cable(from, place), cable(to, place) + 1]);
        }
        self.go(port, seconds, Message::Transfer(from), queue);
    }

    /// Sends `seconds` of a collective, through both ways of all its members' ports.
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

    /// The message that an event ends, if it ends one.
    pub(super) fn handle(&mut self, event: NetworkEvent, queue: &mut EventQueue<Event>) -> Option<Message> {
        match self.flows.handle(event, queue) {
            Happened::Left(number) => Some(Message::of(number)),
            Happened::Nothing | Happened::Delivered(_) => None,
        }
    }
}
