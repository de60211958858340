//! All replicas of a deployment: arrivals, front ends, routing, transfers between pools, autoscaling.
#![expect(clippy::indexing_slicing, reason = "request and replica ids are minted here, and neither list ever shrinks")]

mod accounts;
mod scaling;

use super::engine::Engine;
use super::input::{Arrivals, Input, Router};
use super::output::{FirstToken, Output, RequestRecord};
use super::replica::{Outcome, Phase, Replica};
use super::request::Request;
use super::workload::Workload;
use crate::kernel::{EventQueue, Histogram, LevelTimeline, Model, Stream, Time, TimeWeighted};
use atlas_perf::serving::disaggregated;
use atlas_perf::serving::front_end::FrontEnd;
use atlas_perf::serving::latency;

use accounts::CumulativeSums;

/// Purpose of the random streams for routing.
const ROUTING: u32 = 9;

/// Events of the simulation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A request arrives at the router.
    Arrival,
    /// A held-back request is sent.
    Release,
    /// The front end passes a request to its engine.
    Accepted(u32),
    /// An idle engine checks for requests that have just arrived.
    Wake(u32),
    /// An engine's step ends.
    StepEnd(u32),
    /// The front end has returned the last token of a request.
    Returned,
    /// The KV cache of a prompt has reached the replica that decodes it.
    Transferred { id: u32, replica: u32 },
    /// The autoscaler makes a decision.
    Scale,
    /// A replica has started.
    Started(u32),
}

/// State of the simulation.
pub(super) struct Cluster<'a> {
    input: &'a Input,
    workload: Workload<'a>,
    engine: Engine,
    decoder: Option<Engine>,
    requests: Vec<Request>,
    replicas: Vec<Replica>,
    /// Replicas that accept new requests, and those that decode requests prefilled by others.
    ready: Vec<u32>,
    decoders: Vec<u32>,
    outcome: Outcome,
    turn: usize,
    routing: Stream,
    /// Time of a request in the front end, its addition to a step, and its overhead outside of any queue.
    front_end: Time,
    intake: Time,
    overhead: Time,
    /// Bytes per second of a rank's link to the other pool, and its latency.
    transfer_link: (f64, f64),
    seeds_left: bool,
    /// Requests held back because of the limit on concurrent requests.
    held: u64,
    low_since: Option<Time>,
    left: u64,
    gaps: Histogram,
    out: Output,
    tokens: u64,
    /// Sums at the first counted arrival, and at the last arrival.
    from: CumulativeSums,
    upto: CumulativeSums,
    /// Sums when one third and two thirds of the counted requests had arrived.
    between: [CumulativeSums; 2],
    first_token: FirstToken,
    last_arrival: Time,
    last_token: Time,
    present: TimeWeighted,
    waiting: TimeWeighted,
    running: TimeWeighted,
    used: TimeWeighted,
    stepping: TimeWeighted,
    paid: TimeWeighted,
    strip: LevelTimeline<4>,
    capacity: TimeWeighted,
}

impl<'a> Cluster<'a> {
    pub(super) fn new(input: &'a Input, seed: u64, queue: &mut EventQueue<Event>) -> Self {
        let workload = Workload::new(input, seed);
        let s = &input.system;
        let (first, second) = match &s.pools {
            Some(pools) => (pools.prefill, Some(pools.decode)),
            None => (s.layout, None),
        };
        let engine = Engine::new(input, &first, second.is_some(), workload.piece(), seed);
        let decoder = second.map(|layout| Engine::new(input, &layout, false, workload.piece(), seed));
        let count = |dp: f64| dp.clamp(1.0, 65_536.0) as usize;
        let mut start = count(f64::from(first.dp));
        if let Some(a) = &input.autoscaling {
            start = start.clamp(a.min_replicas as usize, a.max_replicas as usize);
            queue.at(Time::from_seconds(a.interval), Event::Scale);
        }
        let mut replicas = vec![Replica::new(&engine, Phase::Ready); start];
        let ready = (0..start as u32).collect();
        let mut decoders = Vec::new();
        if let (Some(decoder), Some(layout)) = (&decoder, &second) {
            decoders.extend((start..start + count(f64::from(layout.dp))).map(|r| r as u32));
            replicas.resize(start + decoders.len(), Replica::new(decoder, Phase::Ready));
        }
        let c = &input.constants;
        let front = if input.front_end { FrontEnd::of(s, c) } else { FrontEnd::default() };
        let mut cluster = Cluster {
            engine,
            decoder,
            requests: Vec::with_capacity(workload.total() as usize),
            paid: TimeWeighted::new(Time::ZERO, replicas.len() as f64),
            replicas,
            ready,
            decoders,
            outcome: Outcome::default(),
            turn: 0,
            routing: Stream::new(seed, ROUTING, 0),
            front_end: Time::from_seconds(front.overlapped_seconds),
            intake: Time::from_seconds(front.blocking_seconds),
            overhead: Time::from_seconds(front.admission_delay() - front.overlapped_seconds),
            transfer_link: match &s.pools {
                Some(pools) => disaggregated::transfer_link(s, pools, c),
                None => (1e6, 0.0),
            },
            seeds_left: true,
            held: 0,
            low_since: None,
            left: 0,
            gaps: Histogram::default(),
            out: Output { records: Vec::with_capacity(workload.total() as usize), ..Output::default() },
            tokens: 0,
            from: CumulativeSums::default(),
            upto: CumulativeSums::default(),
            between: [CumulativeSums::default(); 2],
            first_token: FirstToken::default(),
            last_arrival: Time::ZERO,
            last_token: Time::ZERO,
            present: TimeWeighted::default(),
            waiting: TimeWeighted::default(),
            running: TimeWeighted::default(),
            used: TimeWeighted::default(),
            stepping: TimeWeighted::default(),
            strip: LevelTimeline::new(Time::from_seconds(0.1)),
            capacity: TimeWeighted::default(),
            input,
            workload,
        };
        let blocks: u64 = cluster.replicas.iter().map(|r| r.kv.total()).sum();
        cluster.capacity = TimeWeighted::new(Time::ZERO, blocks as f64);
        cluster.expect_arrival(queue);
        cluster
    }

    /// Schedules the next arrival.
    fn expect_arrival(&mut self, queue: &mut EventQueue<Event>) {
        match self.workload.arrival() {
            Some(at) => {
                queue.at(at, Event::Arrival);
            }
            None => self.seeds_left = false,
        }
    }

    /// Handles an arrival. The request is held back if the maximum number of requests is in flight.
    fn arrive(&mut self, queue: &mut EventQueue<Event>) {
        if self.input.max_in_flight.is_some_and(|most| self.in_flight() >= most) {
            self.held += 1;
        } else {
            self.send(queue);
        }
        if self.seeds_left && self.requests.len() as u64 + self.held < u64::from(self.workload.total()) {
            self.expect_arrival(queue);
        }
    }

    /// Number of requests in flight.
    fn in_flight(&self) -> u64 {
        (self.requests.len() as u64).saturating_sub(self.left)
    }

    fn send(&mut self, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        if self.requests.len() >= self.workload.total() as usize {
            return;
        }
        let id = self.requests.len() as u32;
        if id == self.input.warm_up {
            self.from = self.cumulative_sums(now);
        }
        let total = self.workload.total();
        let third = (total - self.input.warm_up) / 3;
        if id == self.input.warm_up + third {
            self.between[0] = self.cumulative_sums(now);
        }
        if id == total - third {
            self.between[1] = self.cumulative_sums(now);
        }
        if id + 1 == total {
            self.upto = self.cumulative_sums(now);
        }
        self.present.change(now, 1.0);
        self.last_arrival = now;
        let demand = self.workload.demand();
        self.requests.push(Request::new(demand, now));
        let fits =
            self.engine.fits_empty_replica(&demand) && self.decoder.is_none_or(|d| d.fits_empty_replica(&demand));
        if fits {
            let replica = self.route(id);
            let r = &mut self.replicas[replica as usize];
            r.outstanding += 1;
            self.requests[id as usize].replica = replica;
            // Requests pass the front end one after the other; the rest of the overhead needs no queue.
            let begins = r.front_end_free_at.max(now);
            r.front_end_free_at = begins.plus(self.front_end);
            queue.at(r.front_end_free_at.plus(self.overhead), Event::Accepted(id));
        } else {
            self.out.rejected += 1;
            self.leave(queue);
        }
    }

    /// Number of requests that have left, and total number of requests.
    pub(super) fn left(&self) -> (u64, u64) {
        (self.left, u64::from(self.workload.total()))
    }

    /// Counts a request as finished. A closed load replaces it; otherwise a held-back request is released.
    fn leave(&mut self, queue: &mut EventQueue<Event>) {
        self.left += 1;
        self.present.change(queue.now(), -1.0);
        if matches!(self.input.arrivals, Arrivals::Closed { .. }) {
            queue.after(Time::ZERO, Event::Arrival);
        } else if self.held > 0 {
            self.held -= 1;
            queue.after(Time::ZERO, Event::Release);
        }
    }

    fn route(&mut self, id: u32) -> u32 {
        let n = self.ready.len().max(1);
        let load = |replicas: &[Replica], r: u32| replicas[r as usize].outstanding;
        let at = |place: usize| self.ready.get(place).copied().unwrap_or(0);
        match self.input.router {
            Router::RoundRobin => {
                self.turn = (self.turn + 1) % n;
                at(self.turn)
            }
            Router::Random => at(self.routing.at(u64::from(id)).below(n as u64) as usize),
            Router::LeastRequests => least_loaded(&self.ready, &self.replicas),
            Router::TwoChoices => {
                let mut draws = self.routing.at(u64::from(id));
                let (a, b) = (at(draws.below(n as u64) as usize), at(draws.below(n as u64) as usize));
                if load(&self.replicas, b) < load(&self.replicas, a) { b } else { a }
            }
            Router::PrefixAffinity => {
                match self.workload.names(self.requests[id as usize].demand.prefix).first() {
                    // Any hash of the name works.
                    Some(&name) => at(Stream::new(name, ROUTING, 1).below(n as u64) as usize),
                    None => least_loaded(&self.ready, &self.replicas),
                }
            }
        }
    }

    fn wake(&mut self, replica: u32, queue: &mut EventQueue<Event>) {
        let r = &mut self.replicas[replica as usize];
        if !r.stepping && !r.woken {
            r.woken = true;
            queue.at_end_of_instant(Event::Wake(replica));
        }
    }

    fn engine_of(&self, replica: u32) -> Engine {
        match (self.decoder, self.decoders.first()) {
            (Some(decoder), Some(&first)) if replica >= first => decoder,
            _ => self.engine,
        }
    }

    fn begin_step(&mut self, replica: u32, queue: &mut EventQueue<Event>) {
        let engine = self.engine_of(replica);
        let r = &mut self.replicas[replica as usize];
        r.woken = false;
        if r.stepping {
            return;
        }
        self.compose(replica, &engine, queue);
    }

    fn compose(&mut self, replica: u32, engine: &Engine, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let r = &mut self.replicas[replica as usize];
        let before = (r.waiting.len(), r.running.len(), r.kv.used(), r.stepping);
        let step = r.begin_step(&mut self.requests, &self.workload, engine, now).map(|step| {
            let intake = self.intake.seconds() * f64::from(std::mem::take(&mut r.received));
            r.work.host += intake;
            step.plus(Time::from_seconds(intake))
        });
        if let Some(length) = step {
            self.out.steps += 1;
            queue.after(length, Event::StepEnd(replica));
        }
        let after = (r.waiting.len(), r.running.len(), r.kv.used(), step.is_some());
        self.update_levels(now, before, after);
    }

    fn end_step(&mut self, replica: u32, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let engine = self.engine_of(replica);
        let mut outcome = std::mem::take(&mut self.outcome);
        let r = &mut self.replicas[replica as usize];
        let before = (r.waiting.len(), r.running.len(), r.kv.used(), true);
        r.end_step(&mut self.requests, &self.workload, &engine, now, &mut self.gaps, &mut outcome);
        let after = (r.waiting.len(), r.running.len(), r.kv.used(), true);
        self.update_levels(now, before, after);
        self.tokens += outcome.tokens;
        outcome.tokens = 0;
        for id in outcome.finished.drain(..) {
            self.complete(id, queue);
        }
        for id in outcome.handed_over.drain(..) {
            let decoder = least_loaded(&self.decoders, &self.replicas);
            let d = &mut self.replicas[decoder as usize];
            d.outstanding += 1;
            d.incoming.push_back(id);
            self.pull(decoder, queue);
        }
        self.outcome = outcome;
        if !self.replicas[replica as usize].incoming.is_empty() {
            self.pull(replica, queue);
        }
        self.compose(replica, &engine, queue);
    }

    /// Allocates memory on a decoding replica for sequences that wait for it, and requests their transfer.
    fn pull(&mut self, replica: u32, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let Some(decoder) = self.decoder else { return };
        while let Some(&id) = self.replicas[replica as usize].incoming.front() {
            let r = &mut self.replicas[replica as usize];
            let before = (0, 0, r.kv.used(), false);
            let request = &mut self.requests[id as usize];
            if !r.allocate_transferred(request, &decoder) {
                break;
            }
            r.incoming.pop_front();
            let after = (0, 0, r.kv.used(), false);
            // Transfers of one attention group are serialized; those of different groups run in parallel.
            let [sent, received] = [&self.engine, &decoder]
                .map(|engine| engine.transfer_bytes(request.demand.isl) / self.transfer_link.0 + self.transfer_link.1);
            let length = sent.max(received);
            let from = request.replica as usize;
            let start = self.replicas[from].link_free_at.max(self.replicas[replica as usize].link_free_at).max(now);
            for (end, seconds, groups) in
                [(from, sent, self.engine.groups), (replica as usize, received, decoder.groups)]
            {
                self.replicas[end].link_free_at = start.plus(Time::from_seconds(seconds / groups as f64));
            }
            let arrives = start.plus(Time::from_seconds(length)).plus(request.late);
            queue.at(arrives, Event::Transferred { id, replica });
            self.update_levels(now, before, after);
        }
    }

    fn transferred(&mut self, id: u32, replica: u32, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let request = &mut self.requests[id as usize];
        let source = request.replica;
        let from = &mut self.replicas[source as usize];
        let before = (0, 0, from.kv.used(), false);
        from.free_remote_blocks(request, &self.workload);
        from.outstanding -= 1;
        let after = (0, 0, from.kv.used(), false);
        self.update_levels(now, before, after);
        let request = &mut self.requests[id as usize];
        request.replica = replica;
        request.queued = now;
        let to = &mut self.replicas[replica as usize];
        let before = (0, to.running.len(), to.kv.used(), false);
        let done = to.join(request, id, &self.workload, now, &mut self.gaps);
        let after = (0, to.running.len(), to.kv.used(), false);
        self.update_levels(now, before, after);
        self.tokens += 1;
        if done {
            self.complete(id, queue);
            self.pull(replica, queue);
        }
        self.wake(source, queue);
        self.wake(replica, queue);
    }

    fn complete(&mut self, id: u32, queue: &mut EventQueue<Event>) {
        let r = &self.requests[id as usize];
        let (returned, preemptions) = (r.returned, r.preemptions);
        let replica = &mut self.replicas[r.replica as usize];
        replica.outstanding -= 1;
        if replica.phase == Phase::Draining && replica.outstanding == 0 {
            replica.phase = Phase::Off;
            self.change_replicas(queue.now(), -1.0);
        }
        self.last_token = self.last_token.max(returned);
        self.out.preemptions += u64::from(preemptions);
        let r = &self.requests[id as usize];
        if id >= self.input.warm_up {
            // Responses are returned in batches or by polling, depending on the runtime.
            let step = self.replicas[r.replica as usize].step_seconds;
            let cadence = latency::scheduler_delay(&self.input.system, &self.input.constants, step);
            let rest = returned.since(r.handed_out.min(returned)).seconds();
            let ttft = r.handed_out.since(r.arrival).seconds() + cadence;
            let waited = r.waited.seconds();
            let first = &mut self.first_token;
            if r.passed_over {
                first.slot += waited;
            } else {
                first.queue += waited;
            }
            first.prefill += r.first.since(r.admitted).seconds();
            let handing_out = r.handed_out.since(r.first).seconds();
            first.overhead += r.admitted.since(r.arrival).seconds() - waited + handing_out + cadence;
            self.out.records.push(RequestRecord {
                arrival: r.arrival.seconds(),
                ttft,
                // As generated: a front end that returns the first token late returns the next ones with it.
                tpot: r.last.since(r.first).seconds() / f64::from(r.demand.osl - 1).max(1.0),
                e2e: ttft + rest,
                isl: r.demand.isl,
                osl: r.demand.osl,
                replica: r.replica,
                preemptions: r.preemptions,
                complete: r.demand.whole,
            });
        }
        // The client sends its next request once it has the response.
        if returned > queue.now() {
            queue.at(returned, Event::Returned);
        } else {
            self.leave(queue);
        }
    }
}

impl Model for Cluster<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        match event {
            Event::Arrival => self.arrive(queue),
            Event::Release => self.send(queue),
            Event::Accepted(id) => {
                let now = queue.now();
                let request = &mut self.requests[id as usize];
                request.queued = now;
                let replica = request.replica;
                self.replicas[replica as usize].waiting.push_back(id);
                self.replicas[replica as usize].received += 1;
                self.update_levels(now, (0, 0, 0, false), (1, 0, 0, false));
                self.wake(replica, queue);
            }
            Event::Wake(replica) => self.begin_step(replica, queue),
            Event::StepEnd(replica) => self.end_step(replica, queue),
            Event::Returned => self.leave(queue),
            Event::Transferred { id, replica } => self.transferred(id, replica, queue),
            Event::Scale => {
                if let Some(a) = self.input.autoscaling {
                    self.scale(&a, queue);
                }
            }
            Event::Started(replica) => {
                self.replicas[replica as usize].phase = Phase::Ready;
                self.ready.push(replica);
            }
        }
    }

    fn share_done(&self) -> f64 {
        self.left as f64 / f64::from(self.workload.total()).max(1.0)
    }
}

/// Returns the replica of `among` with the fewest requests; the first of equals.
fn least_loaded(among: &[u32], replicas: &[Replica]) -> u32 {
    among.iter().copied().min_by_key(|&r| replicas[r as usize].outstanding).unwrap_or(0)
}
