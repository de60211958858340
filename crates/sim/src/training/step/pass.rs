//! Passes of a stage: when one may begin, how long it takes, and which stage receives its output.
#![expect(clippy::indexing_slicing, reason = "stages, replicas and chunks are numbered by the job from checked counts")]

use super::streams::PassVariation;
use super::{Event, Job, NONE, Transfer, WaitCause, recorded};
use crate::kernel::{EventQueue, Stream, Time};
use crate::training::allocation::length;
use crate::training::costs::DetailLevel;
use crate::training::input::{KernelRecord, StreamKind, Task, TaskKind};
use crate::training::passes;
use crate::training::program::{Lane, Program};
use crate::training::schedule::{Pass, PassKind};
use atlas_core::math;
use atlas_core::statistics::normal_quantile;

/// Purpose of the random streams for pass times.
const JITTER: u32 = 24;

/// Duration of a pass without contention, duration of its kernels, and share of the output layer in the kernels.
#[derive(Debug, Clone, Copy)]
struct PassTiming {
    seconds: f64,
    kernels: f64,
    head: f64,
}

impl Job<'_> {
    /// Begins the next pass of a process if it is idle and the inputs are there. `for_what`: kind of input that has
    /// just arrived.
    pub(super) fn begin_pass(&mut self, number: u32, for_what: WaitCause, queue: &mut EventQueue<Event>) {
        let stage = number % self.stages;
        let process = &self.processes[number as usize];
        if process.current.is_some() {
            return;
        }
        let now = queue.now();
        let idle = now.since(process.free_at).seconds();
        let Some(&pass) = self.orders[stage as usize].get(process.place as usize) else { return };
        let Some(waited) = self.ready(number, stage, pass) else { return };
        let costs = self.of(number, stage, pass);
        let alone = PassTiming { seconds: costs.seconds, kernels: costs.compute, head: costs.head };
        let several = costs.program.count(Lane::Compute) > 0;
        let uneven = self.uneven(number, pass, alone.kernels, idle);
        let slot = (pass.micro * self.chunks + pass.chunk) as usize;
        let process = &mut self.processes[number as usize];
        process.place += 1;
        process.current = Some(pass);
        // The input is consumed: a stage that is a step ahead may send the next one.
        match pass.kind {
            PassKind::Forward => process.inputs.consume(slot),
            PassKind::Backward => process.gradients.consume(slot),
            PassKind::Weights => {}
        }
        match for_what {
            WaitCause::Data => process.load.exposed_data += idle,
            WaitCause::Pipeline => {
                let one = self.costs[process.kind].transfer;
                process.load.transfer += idle.min(one);
                process.load.bubble += (idle - one).max(0.0);
            }
        }
        let mut task = NONE;
        if self.recording(stage) {
            let after = self.latest([self.processes[number as usize].last_task, waited]);
            task = self.record(Task {
                kind: TaskKind::Pass(pass.kind),
                stream: StreamKind::Compute,
                replica: self.classes[(number / self.stages) as usize].replica,
                stage,
                micro: pass.micro,
                chunk: pass.chunk,
                begin: now.seconds(),
                end: now.seconds(),
                after: recorded(after),
            });
        }
        let process = &mut self.processes[number as usize];
        process.current_task = task;
        // Weights arrive bucket by bucket, and the last layers wait for the last bucket.
        process.not_before = Time::ZERO;
        let first = if self.is_bidirectional { pass.chunk * self.micros_of_chunk() } else { 0 };
        let process = &mut self.processes[number as usize];
        if pass.kind == PassKind::Forward && pass.micro == first {
            let last = self.groups[stage as usize].gathered_by[pass.chunk as usize];
            let behind = alone.head + (1.0 - alone.head) / f64::from(self.input.buckets);
            process.not_before = last.plus(Time::from_seconds(alone.kernels * behind));
        }
        let completes = pass.kind == (if self.splits() { PassKind::Weights } else { PassKind::Backward });
        // Passes that contend with other traffic run task by task; others take their duration without contention.
        let last = completes && self.processes[number as usize].owed[pass.chunk as usize] == 1 && self.buckets > 0;
        let group = &self.groups[stage as usize];
        let meets = match self.meets {
            DetailLevel::Never => false,
            DetailLevel::Collectives => last || group.current.is_some() || !group.waiting.is_empty(),
            DetailLevel::Transfers | DetailLevel::Always => true,
        };
        if meets && several {
            let program = std::mem::take(&mut self.of_mut(number, stage, pass).program);
            self.processes[number as usize].streams.completes = None;
            if completes && self.count_down_gradients(number, pass.chunk) {
                self.processes[number as usize].streams.completes = Some((pass.chunk, 0));
            }
            self.issue(number, &program, uneven, queue);
            self.of_mut(number, stage, pass).program = program;
        } else {
            self.run_uncontended(number, stage, pass, alone, uneven, queue);
        }
    }

    /// Runs a pass as a single event, without contention.
    fn run_uncontended(
        &mut self,
        number: u32,
        stage: u32,
        pass: Pass,
        alone: PassTiming,
        uneven: PassVariation,
        queue: &mut EventQueue<Event>,
    ) {
        let now = queue.now();
        let PassTiming { seconds, kernels, head } = alone;
        let shown = (seconds - kernels).max(0.0);
        let even = (kernels - uneven.launched).max(0.0);
        let all = (even * uneven.pace + shown) * uneven.stretch;
        if self.detailed(number) && seconds > 0.0 {
            let program = self.of(number, stage, pass).program.clone();
            self.record_kernels(number, &program, now.seconds(), all / seconds);
        }
        let process = &mut self.processes[number as usize];
        process.load.compute += even;
        process.load.collectives += shown;
        process.load.uneven += all - even - shown;
        let task = process.current_task;
        let length = Time::from_seconds(all);
        self.ended(task, now.plus(length));
        // The last bucket is complete when the pass ends, and is handled before its end.
        if pass.kind == (if self.splits() { PassKind::Weights } else { PassKind::Backward })
            && self.count_down_gradients(number, pass.chunk)
        {
            self.buckets_within(number, pass.chunk, length, head, queue);
        }
        queue.after(length, Event::PassEnd(number));
    }

    /// Records the tasks of a pass that runs as a single event.
    fn record_kernels(&mut self, number: u32, program: &Program, begin: f64, by: f64) {
        let alone = program.uncontended_timing();
        let pass = self.processes[number as usize].current_task;
        for lane in Lane::ALL {
            for (item, span) in program.lane(lane).iter().zip(&alone.spans[lane as usize]) {
                let [from, to] = [span.0, span.1].map(|at| begin + by * at);
                match lane {
                    Lane::Compute => {
                        self.out.operators.push(KernelRecord { pass, action: item.action, begin: from, end: to })
                    }
                    _ => self.record_sent(number, lane, item.action, pass, [from, to]),
                }
            }
        }
    }

    /// Returns the costs of a pass.
    fn of(&self, number: u32, stage: u32, pass: Pass) -> &passes::Pass {
        let kind = self.processes[number as usize].kind;
        self.costs[kind].chunks[self.position(stage, pass.chunk) as usize].pass(pass.kind, self.splits())
    }

    fn of_mut(&mut self, number: u32, stage: u32, pass: Pass) -> &mut passes::Pass {
        let (kind, splits) = (self.processes[number as usize].kind, self.splits());
        let at = self.position(stage, pass.chunk) as usize;
        self.costs[kind].chunks[at].pass_mut(pass.kind, splits)
    }

    /// Counts down the passes of a chunk. Returns whether its gradients are now complete and must be reduced.
    fn count_down_gradients(&mut self, number: u32, chunk: u32) -> bool {
        let owed = &mut self.processes[number as usize].owed[chunk as usize];
        *owed -= 1;
        *owed == 0 && self.buckets > 0
    }

    /// Schedules the completion of buckets during a pass, after the output layer.
    fn buckets_within(&mut self, number: u32, chunk: u32, length: Time, head: f64, queue: &mut EventQueue<Event>) {
        let each = self.buckets / self.chunks;
        for bucket in 0..each {
            let complete = head + (1.0 - head) * f64::from(bucket + 1) / f64::from(each);
            let share = if self.input.system.software.overlap_data { complete } else { 1.0 };
            let at = queue.now().plus(Time::from_seconds(length.seconds() * share));
            self.bucket(number, chunk * each + bucket, at, queue);
        }
    }

    /// Returns the task that a pass had to wait for ([`NONE`] if none), or `None` if it may not begin yet.
    fn ready(&self, number: u32, stage: u32, pass: Pass) -> Option<u32> {
        let process = &self.processes[number as usize];
        let slot = (pass.micro * self.chunks + pass.chunk) as usize;
        match pass.kind {
            PassKind::Forward => {
                let gathered = self.groups[stage as usize].gathered[pass.chunk as usize]?;
                let input = if self.position(stage, pass.chunk) == 0 { NONE } else { process.inputs.by(slot)? };
                Some(self.latest([gathered, input]))
            }
            PassKind::Backward => {
                let last = self.position(stage, pass.chunk) + 1 == self.positions();
                if last { Some(NONE) } else { process.gradients.by(slot) }
            }
            PassKind::Weights => Some(NONE),
        }
    }

    /// Returns how a pass differs from a pass on uniform hardware that never waits. While a stage is idle, the host
    /// launches kernels ahead.
    fn uneven(&mut self, number: u32, pass: Pass, kernels: f64, idle: f64) -> PassVariation {
        let kind = self.processes[number as usize].kind;
        let [other, last] = self.costs[kind].host_shares;
        let share = if number % self.stages + 1 == self.stages { last } else { other };
        let launched = idle.min(share * kernels);
        let mut pace = self.factors[number as usize];
        let mut stretch = 1.0;
        if self.input.lengths > 0.0 {
            let at = u64::from(self.rounds[(number % self.stages) as usize].step) * u64::from(self.micros)
                + u64::from(pass.micro);
            stretch = length(self.input.lengths, self.seed, number / self.stages, at);
        }
        if self.input.jitter > 0.0 {
            let process = &mut self.processes[number as usize];
            let mut stream = Stream::new(self.seed, JITTER, number).at(u64::from(process.drawn));
            process.drawn += 1;
            pace *= self.jitter.slowest(stream.uniform());
        }
        PassVariation { pace, stretch, launched }
    }

    /// Handles the end of the last kernel of a pass. The pass ends when its last weights have arrived and its own
    /// transfers are sent.
    pub(super) fn kernels_finished(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let now = queue.now();
        let process = &mut self.processes[number as usize];
        if process.closing {
            process.closing = false;
            self.end_pass(number, queue);
            return;
        }
        let sends = process.current.is_some_and(|pass| pass.kind != PassKind::Weights);
        let missing = process.not_before.since(now);
        let apart = self.input.system.software.overlap_pipeline || self.stages == 1;
        let stage = number % self.stages;
        let hop = match process.current {
            Some(Pass { kind: PassKind::Forward, .. }) => stage,
            _ => (stage + self.stages - 1) % self.stages,
        };
        let sent = if apart || !sends { 0.0 } else { self.costs[process.kind].hop(hop).0 };
        process.load.exposed_data += missing.seconds();
        process.load.transfer += sent;
        let left = missing.plus(Time::from_seconds(sent));
        if left > Time::ZERO {
            process.closing = true;
            queue.after(left, Event::PassEnd(number));
        } else {
            self.end_pass(number, queue);
        }
    }

    fn end_pass(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let stage = number % self.stages;
        let now = queue.now();
        let process = &mut self.processes[number as usize];
        let Some(pass) = process.current.take() else { return };
        process.free_at = now;
        process.last_task = process.current_task;
        let task = process.last_task;
        let done = process.place as usize == self.orders[stage as usize].len();
        self.ended(task, now);
        if pass.kind != PassKind::Weights {
            self.send_output(number, stage, pass, queue);
        }
        if done {
            self.leave_if_drained(number, queue);
        } else {
            self.begin_pass(number, WaitCause::Pipeline, queue);
        }
    }

    /// If a process has no passes left and its streams are empty, it waits for the optimizer.
    pub(super) fn leave_if_drained(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let process = &mut self.processes[number as usize];
        let over =
            process.place as usize == self.orders[(number % self.stages) as usize].len() && process.current.is_none();
        if over && process.streams.drained() && !process.left {
            process.left = true;
            process.drained_at = queue.now();
            let task = process.last_task;
            self.count_finished(number % self.stages, task, queue);
        }
    }

    /// Sends the output of a pass to the next stage.
    fn send_output(&mut self, number: u32, stage: u32, pass: Pass, queue: &mut EventQueue<Event>) {
        let at = self.position(stage, pass.chunk);
        let backward = pass.kind == PassKind::Backward;
        let to = if backward { at.checked_sub(1) } else { Some(at + 1).filter(|&v| v < self.positions()) };
        let Some(to) = to else { return };
        let (to_stage, to_chunk) = self.at(to, pass.chunk);
        let receiver = number - stage + to_stage;
        let slot = pass.micro * self.chunks + to_chunk;
        let transfer = Transfer {
            to: receiver,
            slot,
            micro: pass.micro,
            chunk: pass.chunk,
            backward,
            pass: self.processes[number as usize].last_task,
        };
        let apart = self.stages > 1 && self.input.system.software.overlap_pipeline;
        if !apart || self.costs[self.processes[number as usize].kind].transfer <= 0.0 {
            self.deliver_input(transfer, transfer.pass, queue);
            return;
        }
        let process = &mut self.processes[number as usize];
        process.transfers.push(transfer);
        if process.transfers.len() == 1 {
            self.begin_transfer(number, queue);
        }
    }

    /// Starts the first transfer in the queue of a process.
    fn begin_transfer(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let process = &self.processes[number as usize];
        let Some(&transfer) = process.transfers.first() else { return };
        let ends = [process.kind, self.processes[transfer.to as usize].kind];
        let stage = number % self.stages;
        let hop = if transfer.backward { transfer.to % self.stages } else { stage };
        let seconds = ends.iter().map(|&kind| self.costs[kind].hop(hop).0).fold(0.0, f64::max);
        let port = self.costs[process.kind].hop(hop).1;
        let mut task = NONE;
        if self.recording(stage) {
            let after = self.latest([transfer.pass, process.transfer_task]);
            let now = queue.now().seconds();
            task = self.record(Task {
                kind: TaskKind::Transfer,
                stream: StreamKind::Pipeline,
                replica: self.classes[(number / self.stages) as usize].replica,
                stage,
                micro: transfer.micro,
                chunk: transfer.chunk,
                begin: now,
                end: now,
                after: recorded(after),
            });
        }
        self.processes[number as usize].transfer_task = task;
        self.wires.transfer(number, transfer.to, port, seconds, queue);
    }

    pub(super) fn end_transfer(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let process = &mut self.processes[number as usize];
        if process.transfers.is_empty() {
            return;
        }
        let transfer = process.transfers.remove(0);
        let task = process.transfer_task;
        self.ended(task, queue.now());
        self.begin_transfer(number, queue);
        self.deliver_input(transfer, task, queue);
    }

    /// Delivers the input of a pass to its stage.
    fn deliver_input(&mut self, transfer: Transfer, task: u32, queue: &mut EventQueue<Event>) {
        let receiver = &mut self.processes[transfer.to as usize];
        let list = if transfer.backward { &mut receiver.gradients } else { &mut receiver.inputs };
        list.put(transfer.slot as usize, task);
        self.begin_pass(transfer.to, WaitCause::Pipeline, queue);
    }
}

/// Number of cells of the table of [`Jitter`]. In the first and last [`FORMULA_CELLS`] cells the function is too steep,
/// so the formula is used.
const CELLS: usize = 512;
const FORMULA_CELLS: usize = 24;

/// Distribution of the times of ranks: log-normal with mean 1. The slowest of several ranks is drawn from the
/// distribution of their maximum by inversion. This takes a power, a quantile and an exponential, which is expensive
/// compared with the two events of a pass. The values are therefore looked up in a table with cubic interpolation,
/// whose error is below 1e-7 of the deviation.
#[derive(Debug, Clone)]
pub(super) struct Jitter {
    /// Standard deviation of the logarithm, and half its square.
    deviation: f64,
    half_variance: f64,
    /// One over the number of ranks that wait for each other.
    share: f64,
    /// Value and slope per cell at the edge of each cell, from cell [`FORMULA_CELLS`] on.
    table: Vec<(f64, f64)>,
}

impl Jitter {
    /// Creates the distribution with coefficient of variation `cv`.
    pub(super) fn new(cv: f64, ranks: u32) -> Jitter {
        let variance = math::ln_1p(cv * cv);
        let mut jitter = Jitter {
            deviation: variance.sqrt(),
            half_variance: 0.5 * variance,
            share: 1.0 / f64::from(ranks),
            table: Vec::new(),
        };
        if cv > 0.0 {
            let place = |place: usize| jitter.place(place as f64 / CELLS as f64);
            jitter.table = (FORMULA_CELLS..=CELLS - FORMULA_CELLS).map(place).collect();
        }
        jitter
    }

    /// Slowest time of the ranks at quantile `u` of the distribution of their maximum.
    fn slowest(&self, u: f64) -> f64 {
        let at = u * CELLS as f64;
        let below = at as usize;
        let cell = below.wrapping_sub(FORMULA_CELLS);
        let (Some(&(from, rise)), Some(&(to, then))) = (self.table.get(cell), self.table.get(cell.wrapping_add(1)))
        else {
            return self.exact(u).0;
        };
        let (t, over) = (at - below as f64, to - from);
        from + t * (rise + t * (3.0 * over - 2.0 * rise - then + t * (rise + then - 2.0 * over)))
    }

    /// The slowest time by the formula, and the normal quantile used for it.
    fn exact(&self, u: f64) -> (f64, f64) {
        let z = normal_quantile(math::powf(u, self.share).min(1.0 - 1e-16));
        (math::exp(self.deviation * z - self.half_variance), z)
    }

    /// The slowest time, and its slope per cell: the derivative of the quantile is one over the density.
    fn place(&self, u: f64) -> (f64, f64) {
        let (value, z) = self.exact(u);
        let density = math::exp(-0.5 * z * z) / std::f64::consts::TAU.sqrt();
        let rise = self.share * math::powf(u, self.share - 1.0) / density;
        (value, value * self.deviation * rise / CELLS as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_table_matches_the_exact_quantile() {
        for (cv, ranks) in [(0.001, 1), (0.03, 8), (0.5, 64), (2.0, 2)] {
            let jitter = Jitter::new(cv, ranks);
            let mut last = 0.0;
            for step in 1..100_000 {
                let u = f64::from(step) / 100_000.0;
                let (looked_up, exact) = (jitter.slowest(u), jitter.exact(u).0);
                assert!((looked_up / exact - 1.0).abs() < 1e-7 * jitter.deviation, "{cv} {ranks} {u}");
                assert!(looked_up > last);
                last = looked_up;
            }
        }
    }
}
