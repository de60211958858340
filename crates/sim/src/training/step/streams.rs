//! Passes that run task by task: a task queued on a stream of the accelerator runs when its stream is free and its
//! dependencies are complete. Kernels and layer-wise collectives slow each other while both run.
#![expect(clippy::indexing_slicing, reason = "processes are numbered by the job, streams by their kinds")]

use super::wires::Message;
use super::{Event, Job};
use crate::kernel::{EventQueue, Handle, Time};
use crate::training::input::{KernelRecord, StreamKind, Task, TaskKind};
use crate::training::program::{Action, LANES, Lane, Port, Program};
use std::collections::VecDeque;

/// A task waiting on its stream.
#[derive(Debug, Clone, Copy)]
struct Queued {
    action: Action,
    seconds: f64,
    port: Port,
    /// Number of tasks of each stream that must be complete, counted from the beginning of the step.
    after: [u32; LANES],
    pass: u32,
}

/// A running task.
#[derive(Debug, Clone, Copy)]
struct Running {
    task: Queued,
    begin: Time,
    /// When the current part was sent, and total kernel time by then.
    sent: Time,
    computed: f64,
    /// Duration of the current part without contention, s; 0 for a final part, which kernels do not slow again.
    size: f64,
}

/// Streams of a process.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams {
    queued: [VecDeque<Queued>; LANES],
    running: [Option<Running>; LANES],
    issued: [u32; LANES],
    done: [u32; LANES],
    /// End of the running kernel, its work left at `since` in seconds at full speed, and its current speed.
    ends: Option<Handle>,
    left: f64,
    speed: f64,
    since: Time,
    /// Total time in which kernels have run, s.
    computed: f64,
    /// End of a layer-wise collective without a shared port, its work left at `data_since` without contention, and its
    /// rate.
    data_ends: Option<Handle>,
    data_left: f64,
    data_since: Time,
    data_rate: f64,
    /// Number of completed kernels at which the current pass ends, and number of kernels of the pass.
    target: u32,
    kernels: u32,
    /// Factors relative to a uniform pass: of kernels, and of the whole pass.
    pace: f64,
    stretch: f64,
    /// Kernel time of the pass that the host has already launched while the stage was idle.
    launched: f64,
    /// End of the last kernel.
    idle_since: Time,
    /// Chunk whose buckets the pass completes, and number of buckets completed.
    pub(super) completes: Option<(u32, u32)>,
}

impl Streams {
    /// Resets the counters for a new step.
    pub(super) fn clear(&mut self) {
        (self.issued, self.done) = ([0; LANES], [0; LANES]);
        self.completes = None;
    }

    /// Whether no task is running or waiting.
    pub(super) fn drained(&self) -> bool {
        self.issued == self.done
    }
}

/// How a pass differs from a uniform pass.
#[derive(Debug, Clone, Copy)]
pub(super) struct PassVariation {
    /// Factor on the time of its kernels.
    pub(super) pace: f64,
    /// Factor on the time of all its tasks.
    pub(super) stretch: f64,
    /// Seconds of kernels that are already launched.
    pub(super) launched: f64,
}

const DATA: usize = Lane::Data as usize;

impl Job<'_> {
    /// Queues the tasks of a pass.
    pub(super) fn issue(
        &mut self,
        number: u32,
        program: &Program,
        uneven: PassVariation,
        queue: &mut EventQueue<Event>,
    ) {
        let pass = self.processes[number as usize].current_task;
        let streams = &mut self.processes[number as usize].streams;
        let base = streams.issued;
        for (lane, items) in program.lanes.iter().enumerate() {
            for item in items {
                let mut after = item.after;
                for (other, (count, base)) in after.iter_mut().zip(&base).enumerate() {
                    // The copies for the first kernels of a pass were started by the pass before.
                    let copied = lane == Lane::Compute as usize && other == Lane::Copy as usize;
                    *count = if *count > 0 || copied { *count + base } else { 0 };
                }
                // No task of a pass may begin before its kernels may.
                after[0] = after[0].max(base[0]);
                let (action, seconds, port) = (item.action, item.seconds, item.port);
                streams.queued[lane].push_back(Queued { action, seconds, port, after, pass });
            }
            streams.issued[lane] += items.len() as u32;
        }
        streams.kernels = program.count(Lane::Compute);
        streams.target = streams.issued[0];
        (streams.pace, streams.stretch, streams.launched) = (uneven.pace, uneven.stretch, uneven.launched);
        streams.idle_since = queue.now();
        self.pump(number, Lane::Compute, queue);
    }

    /// Starts tasks that are ready. `cause`: the stream on which a task has just ended.
    fn pump(&mut self, number: u32, cause: Lane, queue: &mut EventQueue<Event>) {
        for lane in Lane::ALL {
            let streams = &mut self.processes[number as usize].streams;
            let at = lane as usize;
            if streams.running[at].is_some() {
                continue;
            }
            let Some(&task) = streams.queued[at].front() else { continue };
            if task.after.iter().zip(&streams.done).any(|(after, done)| after > done) {
                continue;
            }
            streams.queued[at].pop_front();
            if lane == Lane::Compute {
                self.begin_kernel(number, task, cause, queue);
            } else {
                let (now, size) = (queue.now(), task.seconds * streams.stretch);
                let computed = self.computed(number, now);
                let streams = &mut self.processes[number as usize].streams;
                streams.running[at] = Some(Running { task, begin: now, sent: now, computed, size });
                if lane == Lane::Data && task.port == Port::None {
                    (streams.data_left, streams.data_since, streams.data_rate) = (size, now, 0.0);
                } else {
                    self.wires.send(std::iter::once(number), task.port, size, Message::Stream(number, at), queue);
                }
                if lane == Lane::Data {
                    self.retime(number, queue);
                }
            }
        }
        self.retime_data(number, queue);
    }

    /// Updates the rate of a layer-wise collective without a shared port when kernels start or stop.
    fn retime_data(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let process = &mut self.processes[number as usize];
        let streams = &mut process.streams;
        if streams.running[DATA].is_none_or(|running| running.task.port != Port::None) {
            return;
        }
        let rate = if streams.running[0].is_some() { self.costs[process.kind].overlap.data } else { 1.0 };
        if rate == streams.data_rate {
            return;
        }
        streams.data_left = (streams.data_left - now.since(streams.data_since).seconds() * streams.data_rate).max(0.0);
        (streams.data_since, streams.data_rate) = (now, rate);
        if let Some(old) = streams.data_ends.take() {
            queue.cancel(old);
        }
        let end = Time::from_seconds(streams.data_left / rate);
        streams.data_ends = Some(queue.after(end, Event::Sent(Message::Stream(number, DATA).number())));
    }

    fn begin_kernel(&mut self, number: u32, task: Queued, cause: Lane, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let process = &mut self.processes[number as usize];
        let streams = &mut process.streams;
        let gap = now.since(streams.idle_since).seconds();
        match cause {
            Lane::Data => process.load.exposed_data += gap,
            _ => process.load.collectives += gap,
        }
        let even = task.seconds * streams.stretch;
        let launched = streams.launched.min(even);
        streams.launched -= launched;
        let seconds = (even - launched) * streams.pace;
        let plain = (task.seconds - launched).max(0.0);
        process.load.compute += plain;
        process.load.uneven += seconds - plain;
        let computed = streams.computed;
        streams.running[0] = Some(Running { task, begin: now, sent: now, computed, size: seconds });
        (streams.left, streams.since) = (seconds, now);
        self.schedule_kernel(number, queue);
    }

    /// Current rate of kernels relative to their full rate. Each concurrent collective of fully sharded weights slows
    /// them.
    fn rate(&self, number: u32) -> f64 {
        let process = &self.processes[number as usize];
        let layered =
            if process.streams.running[DATA].is_some() { self.costs[process.kind].overlap.compute } else { 1.0 };
        let grouped = self.group_overlap(number % self.stages, process.kind);
        (layered + grouped - 1.0).max(0.01)
    }

    fn schedule_kernel(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let rate = self.rate(number);
        let streams = &mut self.processes[number as usize].streams;
        streams.speed = rate;
        streams.ends = Some(queue.after(Time::from_seconds(streams.left / rate), Event::KernelEnd(number)));
    }

    /// Reschedules the end of the kernel after a concurrent collective has begun or ended.
    pub(super) fn retime(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let streams = &mut self.processes[number as usize].streams;
        if streams.running[0].is_none() {
            return;
        }
        let ran = now.since(streams.since).seconds();
        streams.left = (streams.left - ran * streams.speed).max(0.0);
        streams.computed += ran;
        streams.since = now;
        if let Some(old) = streams.ends.take() {
            queue.cancel(old);
        }
        self.schedule_kernel(number, queue);
    }

    /// Total time in which kernels have run until `now`, s.
    pub(super) fn computed(&self, number: u32, now: Time) -> f64 {
        let streams = &self.processes[number as usize].streams;
        let under_way = if streams.running[0].is_some() { now.since(streams.since).seconds() } else { 0.0 };
        streams.computed + under_way
    }

    pub(super) fn end_kernel(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let process = &mut self.processes[number as usize];
        let streams = &mut process.streams;
        let Some(kernel) = streams.running[0].take() else { return };
        streams.computed += now.since(streams.since).seconds();
        streams.done[0] += 1;
        streams.idle_since = now;
        // Time lost by sharing the device with collectives.
        process.load.exposed_data += (now.since(kernel.begin).seconds() - kernel.size).max(0.0);
        if self.detailed(number) {
            let (begin, end) = (kernel.begin.seconds(), now.seconds());
            self.out.operators.push(KernelRecord { pass: kernel.task.pass, action: kernel.task.action, begin, end });
        }
        self.complete_buckets(number, queue);
        let streams = &self.processes[number as usize].streams;
        if streams.done[0] == streams.target {
            self.kernels_finished(number, queue);
        }
        self.pump(number, Lane::Compute, queue);
    }

    /// Completes buckets of gradients as the kernels of the last backward pass end.
    fn complete_buckets(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let each = self.buckets / self.chunks;
        let overlaps = self.input.system.software.overlap_data;
        loop {
            let streams = &mut self.processes[number as usize].streams;
            let Some((chunk, next)) = streams.completes else { return };
            let done = streams.kernels - (streams.target - streams.done[0]);
            let needed = if overlaps { f64::from(next + 1) / f64::from(each) } else { 1.0 };
            if next >= each || f64::from(done) < needed * f64::from(streams.kernels) - 1e-9 {
                return;
            }
            streams.completes = Some((chunk, next + 1));
            self.bucket(number, chunk * each + next, queue.now(), queue);
        }
    }

    /// Handles the end of a task's communication. If kernels have slowed a collective, the delayed part is sent again
    /// first.
    pub(super) fn end_send(&mut self, number: u32, at: usize, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let computed = self.computed(number, now);
        let kind = self.processes[number as usize].kind;
        let rate = self.costs[kind].overlap.data;
        let streams = &mut self.processes[number as usize].streams;
        let Some(sent) = &mut streams.running[at] else { return };
        if at == DATA && rate < 1.0 && sent.size > 0.0 && sent.task.port != Port::None {
            let beside = (computed - sent.computed) / now.since(sent.sent).seconds().max(1e-15);
            if let Some((size, counted)) = delayed_collective(sent.size, beside, rate, sent.task.seconds) {
                (sent.size, sent.sent, sent.computed) = (counted, now, computed);
                let port = sent.task.port;
                self.wires.send(std::iter::once(number), port, size, Message::Stream(number, at), queue);
                return;
            }
        }
        let Some(sent) = streams.running[at].take() else { return };
        streams.done[at] += 1;
        let lane = Lane::ALL[at];
        if self.detailed(number) {
            self.record_sent(number, lane, sent.task.action, sent.task.pass, [sent.begin.seconds(), now.seconds()]);
        }
        if lane == Lane::Data {
            self.processes[number as usize].load.data += now.since(sent.begin).seconds();
            self.retime(number, queue);
        }
        self.pump(number, lane, queue);
        self.leave_if_drained(number, queue);
    }

    /// Records a task on a stream other than that of the kernels.
    pub(super) fn record_sent(&mut self, number: u32, lane: Lane, action: Action, pass: u32, [begin, end]: [f64; 2]) {
        let (micro, chunk) = self.out.tasks.get(pass as usize).map_or((0, 0), |task| (task.micro, task.chunk));
        let stream = match lane {
            Lane::Compute => StreamKind::Compute,
            Lane::Model => StreamKind::Model,
            Lane::Data => StreamKind::Data,
            Lane::Copy => StreamKind::Copy,
        };
        let replica = self.classes[(number / self.stages) as usize].replica;
        let stage = number % self.stages;
        let kind = TaskKind::PassTask(action);
        self.record(Task { kind, stream, replica, stage, micro, chunk, begin, end, after: None });
    }
}

/// Returns the part of a collective that kernels have delayed, to be sent next, and the size of it that can be delayed
/// again; `None` if it is negligible. The collective has sent `size` of `all`, kernels ran for share `beside` of that
/// time, and it ran at `rate` meanwhile. Delayed parts form a geometric series, the rest of which is sent at once when
/// it is short.
pub(super) fn delayed_collective(size: f64, beside: f64, rate: f64, all: f64) -> Option<(f64, f64)> {
    let lost = size * beside.min(1.0) * (1.0 - rate);
    if lost <= 1e-3 * all {
        return None;
    }
    Some(if lost < 0.05 * all { (lost / rate, 0.0) } else { (lost, lost) })
}
