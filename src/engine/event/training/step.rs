//! Steps as they happen: stages take passes in order, micro-batches travel, gradients are reduced as they are complete,
//! the optimizer waits for all.
#![expect(clippy::indexing_slicing, reason = "stages, replicas and chunks are numbered here from checked counts")]

mod data;

use super::allocation::length;
use super::costs::Costs;
use super::input::{Class, Input, Output, StageLoad, StreamKind, Task, TaskKind};
use super::schedule::{Kind, Pass, order};
use crate::engine::analytical::training::Schedule;
use crate::engine::event::kernel::distribution::normal_quantile;
use crate::engine::event::kernel::{Ended, EventQueue, Model, Quantiles, Stream, Time};
use std::collections::VecDeque;

/// Purpose of the random streams of the passes' times.
const JITTER: u32 = 24;
/// No task.
const NONE: u32 = u32::MAX;

/// What can happen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A process ends its pass.
    PassEnd(u32),
    /// A micro-batch's activations, or their gradients, reach a process.
    Arrived { process: u32, slot: u32, backward: bool, task: u32 },
    /// A process has a bucket of gradients complete.
    Bucket { process: u32, bucket: u32 },
    /// The collective of a stage's data-parallel group ends.
    DataEnd(u32),
    /// The optimizer ends, and with it the step.
    OptimizerEnd,
    /// The next step's data are there.
    Loaded,
}

/// A collective of a data-parallel group.
#[derive(Debug, Clone, Copy)]
enum Item {
    Reduce(u32),
    /// The first bucket of a chunk's weights, and the others; all weights at once where nothing runs beside it.
    Gather(u32),
    Rest(u32),
}

/// One stage of one replica.
#[derive(Debug, Clone, Default)]
struct Process {
    place: usize,
    current: Option<Pass>,
    current_task: u32,
    last_task: u32,
    /// Passes that each chunk's gradients still lack.
    owed: Vec<u32>,
    /// What has arrived for each (micro-batch, chunk), and by which task.
    inputs: Vec<Option<u32>>,
    gradients: Vec<Option<u32>>,
    link_free: Time,
    link_task: u32,
    drawn: u64,
    /// When its last pass ended.
    free_at: Time,
    /// Sums over all steps.
    load: StageLoad,
}

/// What a stage that could not go on has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// Another stage, or what it sends.
    Pipeline,
    /// A collective of its data-parallel group.
    Data,
}

/// The data-parallel group of one stage.
#[derive(Debug, Clone, Default)]
struct Group {
    arrived: Vec<u32>,
    waiting: VecDeque<(Item, u32)>,
    current: Option<Item>,
    current_task: u32,
    last_task: u32,
    left: u32,
    /// The task that brought each chunk's first weights, and when the last ones come.
    gathered: Vec<Option<u32>>,
    gathered_by: Vec<Time>,
    busy: Time,
    /// When its last collective ended.
    free_at: Time,
}

/// The model.
pub(super) struct Job<'a> {
    input: &'a Input,
    costs: Costs,
    seed: u64,
    stages: u32,
    /// Replicas that are simulated.
    replicas: u32,
    classes: Vec<Class>,
    micros: u32,
    chunks: u32,
    buckets: u32,
    orders: Vec<Vec<Pass>>,
    factors: Vec<f64>,
    ranks: f64,
    processes: Vec<Process>,
    groups: Vec<Group>,
    /// Processes with passes, and groups with collectives, before the optimizer.
    left: u32,
    last_before_optimizer: u32,
    step: u32,
    step_begin: Time,
    /// Whether the next step's data are there, and whether it waits for them.
    loaded: bool,
    waiting: bool,
    out: Output,
}

impl<'a> Job<'a> {
    pub(super) fn new(input: &'a Input, seed: u64, queue: &mut EventQueue<Event>) -> Self {
        let s = &input.system;
        let (stages, chunks, micros) = (s.pp as u32, s.vpp as u32, s.micro_batches() as u32);
        let classes = input.classes();
        let replicas = classes.len() as u32;
        let mut factors = vec![1.0; (stages * replicas) as usize];
        for slow in &input.slow {
            if let Ok(place) = classes.binary_search_by_key(&slow.replica, |class| class.replica) {
                factors[place * stages as usize + slow.stage as usize] *= slow.factor;
            }
        }
        let mut costs = Costs::of(s, &input.constants);
        if let Some(seconds) = input.reduction.filter(|_| costs.reduce > 0.0) {
            costs.reduce = seconds;
        }
        if let Some(c) = input.compression.filter(|_| costs.reduce > 0.0) {
            costs.reduce = costs.reduce / c.ratio + c.seconds;
        }
        let buckets = if costs.reduce > 0.0 { input.buckets * chunks } else { 0 };
        let orders: Vec<Vec<Pass>> =
            (0..stages).map(|stage| order(s.schedule, stage, stages, micros, chunks)).collect();
        let mut job = Job {
            orders,
            processes: vec![Process::default(); (stages * replicas) as usize],
            groups: vec![Group::default(); stages as usize],
            ranks: (s.tp * s.cp).max(1.0),
            left: 0,
            last_before_optimizer: NONE,
            step: 0,
            step_begin: Time::ZERO,
            loaded: true,
            waiting: false,
            out: Output { replicas, ..Output::default() },
            input,
            costs,
            seed,
            stages,
            replicas,
            classes,
            micros,
            chunks,
            buckets,
            factors,
        };
        job.begin_step(queue);
        job
    }

    fn splits(&self) -> bool {
        self.input.system.schedule == Schedule::ZeroBubble
    }

    fn recording(&self) -> bool {
        self.step.checked_sub(self.input.recorded_step).is_some_and(|past| past < self.input.recorded_steps)
    }

    fn record(&mut self, task: Task) -> u32 {
        if !self.recording() {
            return NONE;
        }
        self.out.tasks.push(task);
        (self.out.tasks.len() - 1) as u32
    }

    /// The one of these tasks that ended last.
    fn latest<const N: usize>(&self, tasks: [u32; N]) -> u32 {
        let end = |&task: &u32| self.out.tasks.get(task as usize).map_or(-1.0, |t| t.end);
        tasks.into_iter().filter(|&t| t != NONE).max_by(|a, b| end(a).total_cmp(&end(b))).unwrap_or(NONE)
    }

    fn begin_step(&mut self, queue: &mut EventQueue<Event>) {
        self.waiting = false;
        let now = queue.now();
        let loading = now.since(self.step_begin).seconds();
        if self.input.loading > 0.0 {
            self.loaded = false;
            queue.after(Time::from_seconds(self.input.loading), Event::Loaded);
        }
        let slots = (self.micros * self.chunks) as usize;
        for process in &mut self.processes {
            process.place = 0;
            process.current = None;
            process.free_at = now;
            process.load.loading += loading;
            (process.current_task, process.last_task, process.link_task) = (NONE, NONE, NONE);
            process.owed.clear();
            process.owed.resize(self.chunks as usize, self.micros);
            for list in [&mut process.inputs, &mut process.gradients] {
                list.clear();
                list.resize(slots, None);
            }
        }
        let gathers = self.costs.gather > 0.0;
        for group in &mut self.groups {
            group.arrived.clear();
            group.arrived.resize(self.buckets as usize, 0);
            group.left = self.buckets;
            group.free_at = now;
            group.last_task = NONE;
            group.gathered.clear();
            group.gathered.resize(self.chunks as usize, if gathers { None } else { Some(NONE) });
            group.gathered_by.clear();
            group.gathered_by.resize(self.chunks as usize, now);
        }
        self.left = self.processes.len() as u32 + if self.buckets > 0 { self.stages } else { 0 };
        if gathers {
            for stage in 0..self.stages {
                let waiting = &mut self.groups[stage as usize].waiting;
                if self.input.system.software.overlap_data {
                    let pieces = |chunk| [Item::Gather(chunk), Item::Rest(chunk)];
                    waiting.extend((0..self.chunks).flat_map(pieces).map(|item| (item, NONE)));
                } else {
                    waiting.push_back((Item::Gather(0), NONE));
                }
                self.begin_data(stage, queue);
            }
        }
        for process in 0..self.processes.len() as u32 {
            self.begin_pass(process, Waited::Pipeline, queue);
        }
    }

    /// Begins the next pass of a process, if it is free and what the pass needs is there; `waited` is what has just come.
    fn begin_pass(&mut self, number: u32, for_what: Waited, queue: &mut EventQueue<Event>) {
        let stage = number % self.stages;
        let process = &self.processes[number as usize];
        if process.current.is_some() {
            return;
        }
        let now = queue.now();
        let idle = now.since(process.free_at).seconds();
        let Some(&pass) = self.orders[stage as usize].get(process.place) else { return };
        let Some(waited) = self.ready(number, stage, pass) else { return };
        let process = &mut self.processes[number as usize];
        process.place += 1;
        process.current = Some(pass);
        let (even, uneven, sent) = self.length(number, stage, pass, idle);
        let mut length = Time::from_seconds(even + uneven + sent);
        if pass.kind == Kind::Forward && pass.micro == 0 {
            // Weights come bucket by bucket, and the last layers wait for the last of them.
            let last = self.groups[stage as usize].gathered_by[pass.chunk as usize];
            let least = last.plus(Time::from_seconds(even / f64::from(self.input.buckets))).since(now);
            let waits = least.since(length);
            length = length.plus(waits);
            self.processes[number as usize].load.exposed_data += waits.seconds();
        }
        let end = now.plus(length);
        self.account(number, for_what, idle, [even, uneven, sent]);
        self.processes[number as usize].free_at = end;
        let after = self.latest([self.processes[number as usize].last_task, waited]);
        let task = self.record(Task {
            kind: TaskKind::Pass(pass.kind),
            stream: StreamKind::Compute,
            replica: self.classes[(number / self.stages) as usize].replica,
            stage,
            micro: pass.micro,
            chunk: pass.chunk,
            begin: now.seconds(),
            end: end.seconds(),
            after,
        });
        let process = &mut self.processes[number as usize];
        process.current_task = task;
        // The last bucket is complete with the pass, and comes before its end.
        if pass.kind == (if self.splits() { Kind::Weights } else { Kind::Backward }) {
            self.owe_less(number, pass.chunk, length, queue);
        }
        queue.at(end, Event::PassEnd(number));
    }

    /// Accounts for the wait that ends now and for the pass that begins.
    fn account(&mut self, number: u32, for_what: Waited, gap: f64, [even, uneven, sent]: [f64; 3]) {
        let one = self.costs.transfer;
        let load = &mut self.processes[number as usize].load;
        match for_what {
            Waited::Data => load.exposed_data += gap,
            Waited::Pipeline => {
                load.transfer += gap.min(one);
                load.bubble += (gap - one).max(0.0);
            }
        }
        load.compute += even;
        load.uneven += uneven;
        load.transfer += sent;
    }

    /// The last micro-batch completes a chunk's gradients, bucket by bucket while it runs.
    fn owe_less(&mut self, number: u32, chunk: u32, length: Time, queue: &mut EventQueue<Event>) {
        let owed = &mut self.processes[number as usize].owed[chunk as usize];
        *owed -= 1;
        if *owed > 0 || self.buckets == 0 {
            return;
        }
        let each = self.buckets / self.chunks;
        for bucket in 0..each {
            let share =
                if self.input.system.software.overlap_data { f64::from(bucket + 1) / f64::from(each) } else { 1.0 };
            let delay = Time::from_seconds(length.seconds() * share);
            queue.after(delay, Event::Bucket { process: number, bucket: chunk * each + bucket });
        }
    }

    /// Whether a pass may begin: the task that it had to wait for, or [`NONE`] for none.
    fn ready(&self, number: u32, stage: u32, pass: Pass) -> Option<u32> {
        let process = &self.processes[number as usize];
        let slot = (pass.micro * self.chunks + pass.chunk) as usize;
        match pass.kind {
            Kind::Forward => {
                let gathered = self.groups[stage as usize].gathered[pass.chunk as usize]?;
                let input = if stage == 0 && pass.chunk == 0 { NONE } else { process.inputs[slot]? };
                Some(self.latest([gathered, input]))
            }
            Kind::Backward => {
                let last = stage + 1 == self.stages && pass.chunk + 1 == self.chunks;
                if last { Some(NONE) } else { process.gradients[slot] }
            }
            Kind::Weights => Some(NONE),
        }
    }

    /// Seconds that a pass takes: on even hardware, for what is uneven, and to send what nothing hides.
    /// A stage that was idle has had its launches done meanwhile.
    fn length(&mut self, number: u32, stage: u32, pass: Pass, idle: f64) -> (f64, f64, f64) {
        let costs = &self.costs.chunks[(pass.chunk * self.stages + stage) as usize];
        let mut seconds = match pass.kind {
            Kind::Forward => costs.forward,
            Kind::Backward if self.splits() => costs.input_gradient,
            Kind::Backward => costs.input_gradient + costs.weight_gradient,
            Kind::Weights => costs.weight_gradient,
        };
        seconds -= idle.min(self.costs.host_share * seconds);
        let even = seconds;
        seconds *= self.factors[number as usize];
        if self.input.lengths > 0.0 {
            let at = u64::from(self.step) * u64::from(self.micros) + u64::from(pass.micro);
            seconds *= length(self.input.lengths, self.seed, number / self.stages, at);
        }
        if self.input.jitter > 0.0 {
            let process = &mut self.processes[number as usize];
            let stream = Stream::new(self.seed, JITTER, number).at(process.drawn);
            process.drawn += 1;
            seconds *= slowest(self.input.jitter, self.ranks, stream);
        }
        let apart = self.input.system.software.overlap_pipeline || self.stages == 1;
        let sent = if apart || pass.kind == Kind::Weights { 0.0 } else { self.costs.transfer };
        (even, seconds - even, sent)
    }

    fn end_pass(&mut self, number: u32, queue: &mut EventQueue<Event>) {
        let stage = number % self.stages;
        let process = &mut self.processes[number as usize];
        let Some(pass) = process.current.take() else { return };
        process.last_task = process.current_task;
        let (done, task) = (process.place == self.orders[stage as usize].len(), process.last_task);
        if pass.kind != Kind::Weights {
            self.hand_on(number, stage, pass, queue);
        }
        if done {
            self.one_less(task, queue);
        } else {
            self.begin_pass(number, Waited::Pipeline, queue);
        }
    }

    /// Sends what a pass has computed to the stage that goes on with it.
    fn hand_on(&mut self, number: u32, stage: u32, pass: Pass, queue: &mut EventQueue<Event>) {
        let at = pass.chunk * self.stages + stage;
        let backward = pass.kind == Kind::Backward;
        let to = if backward { at.checked_sub(1) } else { Some(at + 1).filter(|&v| v < self.stages * self.chunks) };
        let Some(to) = to else { return };
        let receiver = number - stage + to % self.stages;
        let slot = pass.micro * self.chunks + to / self.stages;
        let now = queue.now();
        let process = &self.processes[number as usize];
        let apart = self.stages > 1 && self.input.system.software.overlap_pipeline;
        let begin = if apart { process.link_free.max(now) } else { now };
        let end = if apart { begin.plus(Time::from_seconds(self.costs.transfer)) } else { now };
        let after = self.latest([process.last_task, process.link_task]);
        let mut task = self.processes[number as usize].last_task;
        if end > begin {
            task = self.record(Task {
                kind: TaskKind::Transfer,
                stream: StreamKind::Pipeline,
                replica: self.classes[(number / self.stages) as usize].replica,
                stage,
                micro: pass.micro,
                chunk: pass.chunk,
                begin: begin.seconds(),
                end: end.seconds(),
                after,
            });
        }
        let process = &mut self.processes[number as usize];
        (process.link_free, process.link_task) = (end, task);
        queue.at(end, Event::Arrived { process: receiver, slot, backward, task });
    }

    /// One process or group less before the optimizer.
    fn one_less(&mut self, task: u32, queue: &mut EventQueue<Event>) {
        self.left -= 1;
        self.last_before_optimizer = task;
        if self.left == 0 {
            let length = Time::from_seconds(self.costs.optimizer);
            let now = queue.now();
            for (number, process) in self.processes.iter_mut().enumerate() {
                // After its last pass a stage waits for its group, then for the other stages.
                let own = self.groups[number % self.stages as usize].free_at.max(process.free_at);
                process.load.exposed_data += own.since(process.free_at).seconds();
                process.load.bubble += now.since(own).seconds();
                process.load.optimizer += length.seconds();
            }
            self.record(Task {
                kind: TaskKind::Optimizer,
                stream: StreamKind::Compute,
                replica: 0,
                stage: self.stages - 1,
                micro: 0,
                chunk: 0,
                begin: now.seconds(),
                end: now.plus(length).seconds(),
                after: task,
            });
            queue.after(length, Event::OptimizerEnd);
        }
    }

    fn end_step(&mut self, queue: &mut EventQueue<Event>) {
        self.out.steps.push(queue.now().since(self.step_begin).seconds());
        if self.recording() {
            let before = self.out.critical_path.len();
            let mut task = (self.out.tasks.len() as u32).wrapping_sub(1);
            while let Some(t) = self.out.tasks.get(task as usize) {
                self.out.critical_path.push(task);
                task = t.after;
            }
            if let Some(path) = self.out.critical_path.get_mut(before..) {
                path.reverse();
            }
        }
        self.step += 1;
        self.step_begin = queue.now();
        self.waiting = self.step < self.input.steps;
        self.begin_if_loaded(queue);
    }

    fn begin_if_loaded(&mut self, queue: &mut EventQueue<Event>) {
        if self.waiting && self.loaded {
            self.begin_step(queue);
        }
    }

    /// The answer after the run.
    pub(super) fn finish(mut self, queue: &EventQueue<Event>, ended: Ended) -> Output {
        let seconds: f64 = self.out.steps.iter().sum();
        let steps = self.out.steps.len() as f64;
        let stood_for: u32 = self.classes.iter().map(|class| class.count).sum();
        let per_step = if steps > 0.0 { 1.0 / steps } else { 0.0 };
        let of_stage = |stage: u32| {
            let data = StageLoad { data: self.groups[stage as usize].busy.seconds(), ..StageLoad::default() };
            let mut sum = StageLoad::default().add(&data, per_step);
            for (place, class) in self.classes.iter().enumerate() {
                let load = &self.processes[place * self.stages as usize + stage as usize].load;
                sum = sum.add(load, per_step * f64::from(class.count) / f64::from(stood_for.max(1)));
            }
            sum
        };
        self.out.stages = (0..self.stages).map(of_stage).collect();
        let share = 1.0 / f64::from(self.stages.max(1));
        self.out.load = self.out.stages.iter().fold(StageLoad::default(), |sum, stage| sum.add(stage, share));
        if seconds > 0.0 {
            self.out.busy = (self.out.load.compute + self.out.load.uneven) * steps / seconds;
            self.out.tokens_per_second = steps * self.input.system.global * self.input.system.seq / seconds;
        }
        self.out.step = Quantiles::of(&mut self.out.steps.clone());
        self.out.events = queue.handled();
        self.out.cancelled = ended == Ended::Cancelled;
        self.out
    }
}

/// The slowest of `ranks` log-normal times of mean 1: one draw through the distribution of their maximum.
fn slowest(cv: f64, ranks: f64, mut stream: Stream) -> f64 {
    let variance = (cv * cv).ln_1p();
    let u = stream.uniform().powf(1.0 / ranks).min(1.0 - 1e-16);
    (variance.sqrt() * normal_quantile(u) - 0.5 * variance).exp()
}

impl Model for Job<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        match event {
            Event::PassEnd(process) => self.end_pass(process, queue),
            Event::Arrived { process, slot, backward, task } => {
                let p = &mut self.processes[process as usize];
                let list = if backward { &mut p.gradients } else { &mut p.inputs };
                list[slot as usize] = Some(task);
                self.begin_pass(process, Waited::Pipeline, queue);
            }
            Event::Bucket { process, bucket } => self.bucket(process, bucket, queue),
            Event::DataEnd(stage) => self.end_data(stage, queue),
            Event::OptimizerEnd => self.end_step(queue),
            Event::Loaded => {
                self.loaded = true;
                self.begin_if_loaded(queue);
            }
        }
    }

    fn share_done(&self) -> f64 {
        f64::from(self.step) / f64::from(self.input.steps.max(1))
    }
}
