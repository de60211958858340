//! Collectives of the data-parallel groups: one at a time on the network of each stage, in the order in which they
//! become ready.
#![expect(clippy::indexing_slicing, reason = "stages, replicas and chunks are numbered by the job from checked counts")]

use super::streams::delayed_collective;
use super::wires::Message;
use super::{Event, GroupCollective, Item, Job, NONE, WaitCause, recorded};
use crate::kernel::{EventQueue, Time};
use crate::training::input::{StreamKind, Task, TaskKind};
use crate::training::program::Port;

impl Job<'_> {
    /// Records when a bucket of gradients is complete on a process: at time `at`, now or later in its pass. Once all
    /// replicas have reported their times, the latest one is known, so that one event suffices for all.
    pub(super) fn bucket(&mut self, number: u32, bucket: u32, at: Time, queue: &mut EventQueue<Event>) {
        let stage = number % self.stages;
        let process = &self.processes[number as usize];
        let task = if process.current.is_some() { process.current_task } else { process.last_task };
        let known = &mut self.groups[stage as usize].buckets[bucket as usize];
        known.described += 1;
        if at >= known.at {
            (known.at, known.task) = (at, task);
        }
        if known.described < self.replicas {
            return;
        }
        if known.at > queue.now() {
            queue.at(known.at, Event::Bucket { stage, bucket });
        } else {
            self.reduce_bucket(stage, bucket, queue);
        }
    }

    /// Handles a bucket that is complete on all replicas.
    pub(super) fn reduce_bucket(&mut self, stage: u32, bucket: u32, queue: &mut EventQueue<Event>) {
        let group = &mut self.groups[stage as usize];
        group.waiting.push_back((Item::Reduce(bucket), group.buckets[bucket as usize].task));
        self.begin_data(stage, true, queue);
    }

    /// Begins the next collective of a group. `ready`: whether a collective has just become ready, rather than the
    /// previous one having ended.
    pub(super) fn begin_data(&mut self, stage: u32, ready: bool, queue: &mut EventQueue<Event>) {
        let group = &mut self.groups[stage as usize];
        if group.current.is_some() {
            return;
        }
        let Some((item, waited)) = group.waiting.pop_front() else { return };
        group.current = Some(item);
        let last = group.last_task;
        let whole = !self.input.system.software.overlap_parameters;
        let (kind, chunk, seconds) = match item {
            Item::Reduce(bucket) => {
                let each = (self.buckets / self.chunks).max(1);
                let whole = self.max_cost(|costs| costs.reduce);
                // The gradient of the embedding is in the last bucket of the first chunk.
                let [first, others] = self.shares(stage);
                let own = if bucket + 1 == each { first } else { 0.0 };
                let size = whole * (own + others / f64::from(self.buckets));
                (TaskKind::Reduce, bucket / each, size)
            }
            Item::Gather(_) if whole => (TaskKind::Gather, 0, self.max_cost(|costs| costs.gather)),
            Item::Gather(chunk) => (TaskKind::Gather, chunk, self.first_bucket(stage, chunk)),
            Item::Rest(chunk) => (TaskKind::Gather, chunk, self.other_buckets(stage)),
        };
        let now = queue.now();
        let after = if ready || last == NONE { waited } else { self.latest([last, waited]) };
        let task = self.record(Task {
            kind,
            stream: StreamKind::Data,
            replica: 0,
            stage,
            micro: 0,
            chunk,
            begin: now.seconds(),
            end: now.seconds(),
            after: recorded(after),
        });
        let group = &mut self.groups[stage as usize];
        group.current_task = task;
        group.began = now;
        group.sent = GroupCollective { size: seconds, all: seconds, ..GroupCollective::default() };
        self.send_data(stage, seconds, queue);
        self.retime_members(stage, queue);
    }

    /// Sends a part of the collective of a group through the ports of all replicas.
    fn send_data(&mut self, stage: u32, seconds: f64, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let port = self.costs.first().map_or(Port::None, |costs| costs.data_port);
        let computed = self.computed(stage, now);
        let sent = &mut self.groups[stage as usize].sent;
        (sent.at, sent.computed) = (now, computed);
        let members = (0..self.replicas).map(|replica| replica * self.stages + stage);
        self.wires.send(members, port, seconds, Message::Group(stage), queue);
    }

    /// Relative rate of the kernels of a stage while the collective of its group runs. Collectives of fully sharded
    /// weights slow kernels; the traffic of others is negligible.
    pub(super) fn group_overlap(&self, stage: u32, kind: usize) -> f64 {
        if self.groups[stage as usize].current.is_some() { self.costs[kind].group_overlap.compute } else { 1.0 }
    }

    fn retime_members(&mut self, stage: u32, queue: &mut EventQueue<Event>) {
        if self.costs.iter().any(|costs| costs.group_overlap.compute < 1.0) {
            (0..self.replicas).for_each(|replica| self.retime(replica * self.stages + stage, queue));
        }
    }

    /// Sends the part of a group's collective that kernels have delayed. Returns whether there is one.
    fn sends_again(&mut self, stage: u32, queue: &mut EventQueue<Event>) -> bool {
        let rate = self.max_cost(|costs| costs.group_overlap.data);
        if rate >= 1.0 || self.groups[stage as usize].current.is_none() {
            return false;
        }
        let now = queue.now();
        let computed = self.computed(stage, now);
        let sent = &mut self.groups[stage as usize].sent;
        let beside = (computed - sent.computed) / now.since(sent.at).seconds().max(1e-15);
        let Some((size, counted)) = delayed_collective(sent.size, beside, rate, sent.all) else { return false };
        sent.size = counted;
        self.send_data(stage, size, queue);
        true
    }

    /// Share of the embedding in the gradients and weights of a stage, and share of the rest, both relative to the
    /// first and last stage. The last stage has an output layer instead of the embedding, the stages between have
    /// neither.
    fn shares(&self, stage: u32) -> [f64; 2] {
        let one = self.costs.first().map_or(0.0, |costs| costs.embedding);
        match stage {
            0 => [one, 1.0 - one],
            _ if stage + 1 == self.stages => [0.0, 1.0],
            _ => [0.0, 1.0 - one],
        }
    }

    /// Seconds to gather the first bucket of a chunk's weights, including the embedding.
    fn first_bucket(&self, stage: u32, chunk: u32) -> f64 {
        let [first, others] = self.shares(stage);
        let own = if chunk == 0 { first } else { 0.0 };
        self.max_cost(|costs| costs.gather) * (own + others / f64::from(self.chunks * self.input.buckets))
    }

    fn other_buckets(&self, stage: u32) -> f64 {
        let behind = 1.0 - 1.0 / f64::from(self.input.buckets);
        let [_, others] = self.shares(stage);
        self.max_cost(|costs| costs.gather) * others / f64::from(self.chunks) * behind
    }

    pub(super) fn end_data(&mut self, stage: u32, queue: &mut EventQueue<Event>) {
        if self.sends_again(stage, queue) {
            return;
        }
        let whole = !self.input.system.software.overlap_parameters;
        let rest = self.other_buckets(stage);
        let group = &mut self.groups[stage as usize];
        let Some(item) = group.current.take() else { return };
        let task = group.current_task;
        let now = queue.now();
        group.busy = group.busy.plus(now.since(group.began));
        group.free_at = now;
        group.last_task = task;
        self.ended(task, now);
        let group = &mut self.groups[stage as usize];
        match item {
            Item::Reduce(_) => {
                group.left -= 1;
                if group.left == 0 {
                    self.count_finished(stage, task, queue);
                }
            }
            Item::Rest(_) => {}
            Item::Gather(chunk) => {
                if let Some(by) = group.gathered_by.get_mut(chunk as usize).filter(|_| !whole) {
                    *by = queue.now().plus(Time::from_seconds(rest));
                }
                let gathered = &mut group.gathered;
                gathered.iter_mut().enumerate().filter(|(c, _)| whole || *c == chunk as usize).for_each(|(_, g)| {
                    *g = Some(task);
                });
                for replica in 0..self.replicas {
                    self.begin_pass(replica * self.stages + stage, WaitCause::Data, queue);
                }
            }
        }
        self.begin_data(stage, false, queue);
        self.retime_members(stage, queue);
    }
}
