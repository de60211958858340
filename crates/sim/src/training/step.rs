//! Steps as they happen: stages take passes in order, micro-batches travel, gradients are reduced as they are complete,
//! the optimizer waits for all.
#![expect(clippy::indexing_slicing, reason = "stages, replicas and chunks are numbered here from checked counts")]

mod data;
mod pass;
mod rounds;
mod streams;
mod wires;

use super::costs::{Costs, Meets};
use super::input::{Class, Input, Output, StageLoad, Task};
use super::schedule::{Pass, orders};
use atlas_core::count::Count;

use crate::kernel::{Ended, EventQueue, Model, Quantiles, Time};
use crate::network::flows::NetworkEvent;
use atlas_perf::training::{Sharding, TrainingInput};
use pass::Jitter;
use rounds::Round;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::VecDeque;
use streams::Streams;
use wires::{Message, Wires};

/// Maximum operators that are described of a run: enough for a step of any size to be looked at.
const MOST_INSIDE: usize = 2_000_000;
/// No task.
const NONE: u32 = u32::MAX;

/// The task of this number, if it is recorded.
fn recorded(task: u32) -> Option<u32> {
    (task != NONE).then_some(task)
}

/// What can happen.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A process ends its pass.
    PassEnd(u32),
    /// A process ends a kernel of a pass that runs task by task.
    KernelEnd(u32),
    /// Something in the network.
    Network(NetworkEvent),
    /// A message is through that shares nothing, by its number.
    Sent(u32),
    /// All replicas of a stage have a bucket of gradients complete.
    Bucket { stage: u32, bucket: u32 },
    /// The optimizer of a stage ends, or of all stages up to it, and with it their step.
    OptimizerEnd(u32),
    /// The next step's data are there.
    Loaded,
}

impl From<NetworkEvent> for Event {
    fn from(event: NetworkEvent) -> Self {
        Event::Network(event)
    }
}

/// Activations, or their gradients, on their way to the stage that continues with them.
#[derive(Debug, Clone, Copy)]
struct Transfer {
    to: u32,
    slot: u32,
    micro: u32,
    chunk: u32,
    backward: bool,
    /// The pass that made them.
    pass: u32,
}

/// A collective of a data-parallel group.
#[derive(Debug, Clone, Copy)]
enum Item {
    Reduce(u32),
    /// The first bucket of a chunk's weights, and the others; all weights at once where nothing runs alongside it.
    Gather(u32),
    Rest(u32),
}

/// Tasks that have brought something, [`ABSENT`] where nothing has come yet.
#[derive(Debug, Clone, Default)]
struct Brought(Vec<u32>);

/// Nothing has come; one less than no task.
const ABSENT: u32 = NONE - 1;

impl Brought {
    /// So many slots; what has come already stays.
    fn make_room(&mut self, slots: usize) {
        self.0.resize(slots, ABSENT);
    }

    /// What has come is used up.
    fn use_up(&mut self, slot: usize) {
        self.0[slot] = ABSENT;
    }

    fn put(&mut self, slot: usize, task: u32) {
        self.0[slot] = task;
    }

    fn by(&self, slot: usize) -> Option<u32> {
        Some(self.0[slot]).filter(|&task| task != ABSENT)
    }
}

/// One stage of one replica: four lines of the cache.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
struct Process {
    place: u32,
    current: Option<Pass>,
    current_task: u32,
    last_task: u32,
    /// Passes that each chunk's gradients still lack.
    owed: SmallVec<[u32; 2]>,
    /// What has arrived for each (micro-batch, chunk), and by which task.
    inputs: Brought,
    gradients: Brought,
    /// Which accelerators it runs on.
    kind: usize,
    /// What happens in its passes, where they run task by task: apart, for most events need the rest alone.
    streams: Box<Streams>,
    /// What it sends, one after the other, and the task that tells the first.
    transfers: SmallVec<[Transfer; 1]>,
    transfer_task: u32,
    drawn: u32,
    /// Whether its step is over but for the optimizer.
    left: bool,
    /// Whether its present pass only waits for its last weights, and for what it sends itself.
    closing: bool,
    /// Before which its present pass does not end.
    not_before: Time,
    /// When its last pass ended, and when what it had sent was through.
    free_at: Time,
    drained_at: Time,
    /// Sums over all steps.
    load: StageLoad,
}

/// What a stage that could not continue has waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// Another stage, or what it sends.
    Pipeline,
    /// A collective of its data-parallel group.
    Data,
}

/// What of a group's collective is on its way.
#[derive(Debug, Clone, Copy, Default)]
struct Sent {
    /// Seconds alone that kernels can slow; of what comes after, none.
    size: f64,
    /// Seconds alone of the collective.
    all: f64,
    /// When it was sent, and for how long kernels had run by then.
    at: Time,
    computed: f64,
}

/// How complete a bucket of gradients is: how many replicas have said when theirs is, the latest of these, and its pass.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    described: u32,
    at: Time,
    task: u32,
}

/// The data-parallel group of one stage.
#[derive(Debug, Clone, Default)]
struct Group {
    buckets: Vec<Bucket>,
    waiting: VecDeque<(Item, u32)>,
    current: Option<Item>,
    current_task: u32,
    last_task: u32,
    left: u32,
    /// The task that brought each chunk's first weights, and when the last ones come.
    gathered: Vec<Option<u32>>,
    gathered_by: Vec<Time>,
    busy: Time,
    /// When its present collective began, and what of it is on its way.
    began: Time,
    sent: Sent,
    /// When its last collective ended.
    free_at: Time,
}

/// The model.
pub(super) struct Job<'a> {
    input: &'a Input,
    /// Of every kind of accelerator that there is; the job's own first.
    costs: Vec<Costs>,
    /// When passes run task by task.
    meets: Meets,
    wires: Wires,
    seed: u64,
    stages: u32,
    /// Replicas that are simulated.
    replicas: u32,
    classes: Vec<Class>,
    micros: u32,
    chunks: u32,
    /// Micro-batches enter from both ends: chunk 0 is a stage of one way, chunk 1 of the other.
    two_ways: bool,
    buckets: u32,
    orders: Vec<Vec<Pass>>,
    factors: Vec<f64>,
    jitter: Jitter,
    processes: Vec<Process>,
    groups: Vec<Group>,
    /// How far each stage is; steps that all have finished, and when the last of these ended.
    rounds: Vec<Round>,
    step: u32,
    step_begin: Time,
    /// Steps whose data are there, and that have begun on some stage.
    loaded: u32,
    requested: u32,
    out: Output,
}

impl<'a> Job<'a> {
    pub(super) fn new(input: &'a Input, seed: u64, queue: &mut EventQueue<Event>) -> Self {
        let s = &input.system;
        let two_ways = s.copies() > 1.0;
        let (stages, micros) = (s.pp.get(), s.micro_batches() as u32);
        let chunks = if two_ways { 2 } else { s.vpp.get() };
        let classes = input.classes();
        let replicas = classes.len() as u32;
        let mut factors = vec![1.0; (stages * replicas) as usize];
        for slow in &input.slow {
            if let Ok(place) = classes.binary_search_by_key(&slow.replica, |class| class.replica) {
                factors[place * stages as usize + slow.stage as usize] *= slow.factor;
            }
        }
        let joined = input.recorded.is_none();
        let costs: Vec<Costs> = std::iter::once(*s)
            .chain(input.kinds.iter().map(|kind| kind.system(s)))
            .map(|system| costs_of(&system, input, joined))
            .collect();
        let mut processes = vec![Process::default(); (stages * replicas) as usize];
        for (number, kind) in (1..).zip(&input.kinds) {
            for place in &kind.places {
                if let Ok(at) = classes.binary_search_by_key(&place.replica, |class| class.replica) {
                    processes[at * stages as usize + place.stage as usize].kind = number;
                }
            }
        }
        let reduces = costs.iter().any(|costs| costs.reduce > 0.0);
        // Fully sharded weights that are replicated besides are reduced as they are sharded: layer by layer.
        let places = if two_ways { stages } else { stages * chunks };
        let layers = (s.arch.depth() / f64::from(places).max(1.0)).ceil().clamp(1.0, 4096.0) as u32;
        let each = if s.held_sharding() == Sharding::Zero3 { layers } else { input.buckets };
        let buckets = if reduces { each * chunks } else { 0 };
        let orders = orders(s, micros, costs.first().map_or(0.0, |costs| costs.in_flight));
        let mut job = Job {
            orders,
            processes,
            meets: meets(&costs, f64::from(micros) * if input.draws() { s.dp } else { Count::ONE }),
            wires: Wires::new(stages * replicas),
            groups: vec![Group::default(); stages as usize],
            jitter: Jitter::new(input.jitter, (s.tp * s.cp).max(1.0) as u32),
            rounds: vec![Round::default(); stages as usize],
            step: 0,
            step_begin: Time::ZERO,
            loaded: if input.loading > 0.0 { 1 } else { u32::MAX },
            requested: 0,
            out: Output { replicas, ..Output::default() },
            input,
            costs,
            seed,
            stages,
            replicas,
            classes,
            micros,
            chunks,
            two_ways,
            buckets,
            factors,
        };
        job.begin_first(queue);
        job
    }

    /// Where a chunk of a stage stands in the way of its micro-batches through the model.
    fn position(&self, stage: u32, chunk: u32) -> u32 {
        match (self.two_ways, chunk) {
            (false, chunk) => chunk * self.stages + stage,
            (true, 0) => stage,
            (true, _) => self.stages - 1 - stage,
        }
    }

    /// Stage and chunk at a position of the way that a micro-batch of this chunk takes.
    fn at(&self, position: u32, chunk: u32) -> (u32, u32) {
        match (self.two_ways, chunk) {
            (false, _) => (position % self.stages, position / self.stages),
            (true, 0) => (position, 0),
            (true, _) => (self.stages - 1 - position, 1),
        }
    }

    /// Positions of a way through the model.
    fn positions(&self) -> u32 {
        if self.two_ways { self.stages } else { self.stages * self.chunks }
    }

    /// Micro-batches that pass a chunk.
    fn micros_of_chunk(&self) -> u32 {
        if self.two_ways { self.micros / 2 } else { self.micros }
    }

    fn splits(&self) -> bool {
        self.input.system.schedule.splits()
    }

    /// Whether a stage's present step is described.
    fn recording(&self, stage: u32) -> bool {
        let step = self.rounds[stage as usize].step;
        self.input.recorded.as_ref().is_some_and(|steps| steps.contains(&step))
    }

    fn record(&mut self, task: Task) -> u32 {
        if !self.recording(task.stage) {
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

    /// The most of a cost over all kinds of accelerators that run: a group waits for its slowest rank.
    fn most(&self, cost: impl Fn(&Costs) -> f64) -> f64 {
        let there = |kind: &usize| self.processes.iter().any(|process| process.kind == *kind);
        (0..self.costs.len()).filter(there).filter_map(|kind| self.costs.get(kind)).map(cost).fold(0.0, f64::max)
    }

    /// Whether the tasks inside a process's passes are described: those of the first replica, which is like the others.
    fn detailed(&self, number: u32) -> bool {
        number < self.stages && self.recording(number) && self.out.operators.len() < MOST_INSIDE
    }

    /// A message is through.
    fn arrived(&mut self, message: Message, queue: &mut EventQueue<Event>) {
        match message {
            Message::Stream(process, lane) => self.end_send(process, lane, queue),
            Message::Transfer(process) => self.end_transfer(process, queue),
            Message::Group(stage) => self.end_data(stage, queue),
        }
    }

    /// A task that was recorded when it began has ended.
    fn ended(&mut self, task: u32, now: Time) {
        if let Some(task) = self.out.tasks.get_mut(task as usize) {
            task.end = now.seconds();
        }
    }

    /// The answer after the run.
    pub(super) fn finish(mut self, queue: &EventQueue<Event>, ended: Ended) -> Output {
        let seconds: f64 = self.out.steps.iter().sum();
        let steps = self.out.steps.len() as f64;
        let stood_for: u32 = self.classes.iter().map(|class| class.count).sum();
        let per_step = if steps > 0.0 { 1.0 / steps } else { 0.0 };
        let last = self.rounds.iter().map(|round| round.ended).max().unwrap_or(Time::ZERO);
        let of_stage = |stage: u32| {
            // A stage that is ahead of the others at the end waits for them.
            let ahead = last.since(self.rounds[stage as usize].ended).seconds();
            let data =
                StageLoad { data: self.groups[stage as usize].busy.seconds(), bubble: ahead, ..StageLoad::default() };
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
        self.out.operators.sort_by(|a, b| (a.pass, a.begin).partial_cmp(&(b.pass, b.begin)).unwrap_or(Ordering::Equal));
        self.out.step = Quantiles::of(&mut self.out.steps.clone());
        self.out.events = queue.handled();
        self.out.cancelled = ended == Ended::Cancelled;
        self.out
    }
}

/// Maximum tasks of a step for which passes are run task by task only because of the transfers between stages: beyond, passes
/// and transfers go through a common port without seeing each other, which delays a transfer by its own length at most.
const MOST_TASKS: f64 = 5e5;

/// When passes run task by task; `passes` is how often all chunks are gone through in a step.
fn meets(costs: &[Costs], passes: f64) -> Meets {
    let found = costs.iter().map(Costs::meets).max().unwrap_or(Meets::Never);
    let tasks = passes * costs.iter().map(Costs::tasks).fold(0.0, f64::max);
    if found == Meets::Transfers && tasks > MOST_TASKS { Meets::Collectives } else { found }
}

/// What a step is made of on one kind of accelerator, as it was requested.
fn costs_of(system: &TrainingInput, input: &Input, joined: bool) -> Costs {
    let mut costs = Costs::of(system, &input.constants);
    if let Some(seconds) = input.reduction.filter(|_| costs.reduce > 0.0) {
        costs.reduce = seconds;
    }
    if let Some(c) = input.compression.filter(|_| costs.reduce > 0.0) {
        costs.reduce = costs.reduce / c.ratio + c.seconds;
    }
    costs.free();
    if joined {
        costs.join();
    }
    costs
}

impl Model for Job<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        match event {
            Event::PassEnd(process) => self.pass_over(process, queue),
            Event::KernelEnd(process) => self.end_kernel(process, queue),
            Event::Network(event) => {
                if let Some(message) = self.wires.handle(event, queue) {
                    self.arrived(message, queue);
                }
            }
            Event::Sent(number) => self.arrived(Message::of(number), queue),
            Event::Bucket { stage, bucket } => self.reduce_bucket(stage, bucket, queue),
            Event::OptimizerEnd(stage) => self.end_optimizer(stage, queue),
            Event::Loaded => self.data_loaded(queue),
        }
    }

    fn share_done(&self) -> f64 {
        f64::from(self.step) / f64::from(self.input.steps.max(1))
    }
}
