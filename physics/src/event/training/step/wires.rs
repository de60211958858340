//! What is sent: every stage has a port into the scale-up fabric and one into the network, and what goes through a port at a
//! time shares it, max-min fair. Sizes are seconds alone, so that a port's capacity is one second a second.

use super::Event;
use crate::event::kernel::{EventQueue, Time};
use crate::event::network::flows::{Flows, Happened, NetworkEvent};
use crate::event::network::routing::Route;
use crate::event::training::program::{LANES, Port};

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

/// The ports of all processes.
#[derive(Debug, Clone)]
pub(super) struct Wires {
    flows: Flows,
}

impl Wires {
    pub(super) fn new(processes: u32) -> Wires {
        // A cable each for the link and the network card of every process, two ways.
        let ways = 2 * 2 * processes as usize;
        Wires { flows: Flows::with_bandwidths(std::iter::repeat_n(1.0, ways)).departures_only() }
    }

    /// Sends `seconds` from the first of `ends` to the last, or, of a collective, through both ways of all of them.
    pub(super) fn send(
        &mut self,
        ends: impl Iterator<Item = u32>,
        port: Port,
        seconds: f64,
        message: Message,
        queue: &mut EventQueue<Event>,
    ) {
        let place = match port {
            Port::None => {
                queue.after(Time::from_seconds(seconds), Event::Sent(message.number()));
                return;
            }
            Port::Link => 0,
            Port::Nic => 1,
        };
        // A cable is two links, out of the process and into it.
        let cable = |process: u32| 2 * (2 * process + place);
        let mut route = Route { links: smallvec::SmallVec::new(), latency: Time::ZERO, bandwidth: 1.0 };
        if matches!(message, Message::Transfer(_)) {
            route.links.extend(ends.zip(0..).map(|(process, way)| cable(process) + way));
        } else {
            route.links.extend(ends.flat_map(|process| [cable(process), cable(process) + 1]));
        }
        self.flows.send(queue, &route, seconds, message.number());
    }

    /// The message that an event ends, if it ends one.
    pub(super) fn handle(&mut self, event: NetworkEvent, queue: &mut EventQueue<Event>) -> Option<Message> {
        match self.flows.handle(event, queue) {
            Happened::Left(number) => Some(Message::of(number)),
            Happened::Nothing | Happened::Delivered(_) => None,
        }
    }
}
