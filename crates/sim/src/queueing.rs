//! One station: arrivals, a FIFO queue, equal servers (G/G/m). It serves to compare the kernel with queueing theory,
//! and with other simulators in the benchmarks.

use super::kernel::{Distribution, EventQueue, Model, Progress, Stream, Tally, Time, TimeWeighted, run};
use std::collections::VecDeque;

/// Input of [`simulate`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Input {
    /// Seconds between arrivals.
    pub between: Distribution,
    /// Seconds of service.
    pub service: Distribution,
    /// Number of equal servers.
    pub servers: u32,
    /// Number of customers in the statistics.
    pub customers: u64,
    /// Number of customers before those, excluded from the statistics because the queue starts empty.
    pub warm_up: u64,
}

/// Means over the counted customers.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Output {
    /// Seconds waited before service.
    pub wait: Tally,
    /// Seconds from arrival to departure.
    pub sojourn: Tally,
    /// Time-weighted mean number of waiting customers.
    pub waiting: f64,
    /// Time-weighted mean number of busy servers.
    pub busy: f64,
    /// Events handled.
    pub events: u64,
}

/// Purposes of the random streams.
const ARRIVALS: u32 = 0;
const SERVICES: u32 = 1;

#[derive(Debug, Clone, Copy)]
enum Event {
    Arrival,
    Departure { arrived: Time },
}

struct Station<'a> {
    input: &'a Input,
    arrivals: Stream,
    services: Stream,
    queue: VecDeque<Time>,
    free: u32,
    arrived: u64,
    started: u64,
    departed: u64,
    out: Output,
    waiting: TimeWeighted,
    busy: TimeWeighted,
}

impl Station<'_> {
    fn total(&self) -> u64 {
        self.input.warm_up.saturating_add(self.input.customers)
    }

    #[inline]
    fn begin(&mut self, arrived: Time, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        if self.started >= self.input.warm_up {
            self.out.wait.add(now.since(arrived).seconds());
        }
        self.started += 1;
        let service = Time::from_seconds(self.input.service.draw(&mut self.services));
        queue.after(service, Event::Departure { arrived });
    }
}

impl Model for Station<'_> {
    type Event = Event;

    #[inline]
    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        match event {
            Event::Arrival => {
                if self.arrived == self.input.warm_up {
                    self.waiting.restart(now);
                    self.busy.restart(now);
                }
                self.arrived += 1;
                if self.arrived < self.total() {
                    let gap = Time::from_seconds(self.input.between.draw(&mut self.arrivals));
                    queue.after(gap, Event::Arrival);
                }
                if self.free > 0 {
                    self.free -= 1;
                    self.busy.change(now, 1.0);
                    self.begin(now, queue);
                } else {
                    self.queue.push_back(now);
                    self.waiting.change(now, 1.0);
                }
            }
            Event::Departure { arrived } => {
                if self.departed >= self.input.warm_up {
                    self.out.sojourn.add(now.since(arrived).seconds());
                }
                self.departed += 1;
                match self.queue.pop_front() {
                    Some(next) => {
                        self.waiting.change(now, -1.0);
                        self.begin(next, queue);
                    }
                    None => {
                        self.free += 1;
                        self.busy.change(now, -1.0);
                    }
                }
            }
        }
    }

    fn share_done(&self) -> f64 {
        self.departed as f64 / self.total().max(1) as f64
    }
}

/// Runs the station until its last customer has left, or `progress` is canceled.
pub fn simulate(input: &Input, seed: u64, progress: &Progress) -> Output {
    let mut station = Station {
        input,
        arrivals: Stream::new(seed, ARRIVALS, 0),
        services: Stream::new(seed, SERVICES, 0),
        queue: VecDeque::with_capacity(1024),
        free: input.servers.max(1),
        arrived: 0,
        started: 0,
        departed: 0,
        out: Output::default(),
        waiting: TimeWeighted::default(),
        busy: TimeWeighted::default(),
    };
    let mut queue = EventQueue::with_capacity(input.servers.min(4096) as usize + 2);
    if station.total() > 0 {
        queue.at(Time::ZERO, Event::Arrival);
    }
    run(&mut station, &mut queue, Time::MAX, progress);
    let now = queue.now();
    Output { waiting: station.waiting.mean(now), busy: station.busy.mean(now), events: queue.handled(), ..station.out }
}

#[cfg(test)]
mod tests;
