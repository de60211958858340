//! Simulation of steps: stages run passes in order, micro-batches travel between stages, gradients are reduced when
//! they are complete, and the optimizer waits for all of them.
#![expect(clippy::indexing_slicing, reason = "stages, replicas and chunks are numbered here from checked counts")]

mod data;
mod pass;
mod rounds;
mod streams;
mod wires;

use super::costs::{Costs, DetailLevel};
use super::input::{Class, Input, Output, StageLoad, Task};
use super::schedule::{Pass, orders};
use atlas_core::count::Count;

use crate::kernel::{EventQueue, Model, Quantiles, StopReason, Time};
use crate::network::flows::NetworkEvent;
use atlas_perf::training::{Sharding, TrainingInput};
use pass::Jitter;
use rounds::Round;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::VecDeque;
use streams::Streams;
use wires::{Message, Ports};

/// Maximum number of recorded operators of a run: enough to inspect a step of any size.
const MAX_RECORDED_OPERATORS: usize = 2_000_000;
/// Placeholder for a missing task.
const NONE: u32 = u32::MAX;

/// Returns the number of a task, unless it is [`NONE`].
fn recorded(task: u32) -> Option<u32> {
    (task != NONE).then_some(task)
}

/// Events of the simulation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A process ends its pass.
    PassEnd(u32),
    /// A process ends a kernel of a pass that runs task by task.
    KernelEnd(u32),
    /// An event of the network.
    Network(NetworkEvent),
    /// A message without a shared port has been sent. Holds its number.
    Sent(u32),
    /// A bucket of gradients is complete on all replicas of a stage.
    Bucket { stage: u32, bucket: u32 },
    /// The optimizer of a stage ends, or that of all stages up to it. This ends their step.
    OptimizerEnd(u32),
    /// The data loader has prepared the next step.
    Loaded,
}

impl From<NetworkEvent> for Event {
    fn from(event: NetworkEvent) -> Self {
        Event::Network(event)
    }
}

/// Activations, or their gradients, in transit to the next stage.
#[derive(Debug, Clone, Copy)]
struct Transfer {
    to: u32,
    slot: u32,
    micro: u32,
    chunk: u32,
    backward: bool,
    /// Pass that computed them.
    pass: u32,
}

/// A collective of a data-parallel group.
#[derive(Debug, Clone, Copy)]
enum Item {
    Reduce(u32),
    /// Gathers of the first bucket of a chunk's weights, and of the other buckets. Without overlap, `Gather` covers all
    /// weights.
    Gather(u32),
    Rest(u32),
}

/// Tasks that have delivered the inputs of passes, [`NOT_DELIVERED`] if not delivered yet.
#[derive(Debug, Clone, Default)]
struct DeliveredInputs(Vec<u32>);

/// Not delivered yet; distinct from [`NONE`].
const NOT_DELIVERED: u32 = NONE - 1;

impl DeliveredInputs {
    /// Resizes to `slots` slots; keeps what has been delivered.
    fn resize(&mut self, slots: usize) {
        self.0.resize(slots, NOT_DELIVERED);
    }

    /// Marks an input as consumed.
    fn consume(&mut self, slot: usize) {
        self.0[slot] = NOT_DELIVERED;
    }

    fn put(&mut self, slot: usize, task: u32) {
        self.0[slot] = task;
    }

    fn by(&self, slot: usize) -> Option<u32> {
        Some(self.0[slot]).filter(|&task| task != NOT_DELIVERED)
    }
}

/// One stage of one replica. Four cache lines.
#[derive(Debug, Clone, Default)]
#[repr(align(64))]
struct Process {
    place: u32,
    current: Option<Pass>,
    current_task: u32,
    last_task: u32,
    /// Number of passes until the gradients of each chunk are complete.
    owed: SmallVec<[u32; 2]>,
    /// Inputs that have arrived for each (micro-batch, chunk), and the tasks that delivered them.
    inputs: DeliveredInputs,
    gradients: DeliveredInputs,
    /// Index of its kind of accelerator.
    kind: usize,
    /// State of passes that run task by task. Boxed, because most events do not need it.
    streams: Box<Streams>,
    /// Queue of outgoing transfers, and the recorded task of the first one.
    transfers: SmallVec<[Transfer; 1]>,
    transfer_task: u32,
    drawn: u32,
    /// Whether its step is complete except for the optimizer.
    left: bool,
    /// Whether its current pass only waits for its last weights and for its own transfers.
    closing: bool,
    /// Earliest end of its current pass.
    not_before: Time,
    /// When its last pass ended, and when its last communication ended.
    free_at: Time,
    drained_at: Time,
    /// Sums over all steps.
    load: StageLoad,
}

/// Cause of the wait of an idle stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WaitCause {
    /// Another stage, or a transfer.
    Pipeline,
    /// A collective of its data-parallel group.
    Data,
}

/// State of a group's collective in progress.
#[derive(Debug, Clone, Copy, Default)]
struct GroupCollective {
    /// Duration of the current part without contention, s; 0 for a final part, which kernels do not slow again.
    size: f64,
    /// Duration of the whole collective without contention, s.
    all: f64,
    /// When the current part was sent, and total kernel time by then.
    at: Time,
    computed: f64,
}

/// Completion of a bucket of gradients: number of replicas that have reported their completion time, the latest of
/// these times, and its task.
#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    described: u32,
    at: Time,
    task: u32,
}

/// Data-parallel group of one stage.
#[derive(Debug, Clone, Default)]
struct Group {
    buckets: Vec<Bucket>,
    waiting: VecDeque<(Item, u32)>,
    current: Option<Item>,
    current_task: u32,
    last_task: u32,
    left: u32,
    /// Task that gathered the first weights of each chunk, and the time at which its last weights arrive.
    gathered: Vec<Option<u32>>,
    gathered_by: Vec<Time>,
    busy: Time,
    /// Start of its current collective, and state of the part in progress.
    began: Time,
    sent: GroupCollective,
    /// End of its last collective.
    free_at: Time,
}

/// State of the simulation.
pub(super) struct Job<'a> {
    input: &'a Input,
    /// Costs on every kind of accelerator; the job's own kind is first.
    costs: Vec<Costs>,
    /// When passes run task by task.
    meets: DetailLevel,
    wires: Ports,
    seed: u64,
    stages: u32,
    /// Number of simulated replicas.
    replicas: u32,
    classes: Vec<Class>,
    micros: u32,
    chunks: u32,
    /// Whether micro-batches enter from both ends: chunk 0 belongs to one path, chunk 1 to the other.
    is_bidirectional: bool,
    buckets: u32,
    orders: Vec<Vec<Pass>>,
    factors: Vec<f64>,
    jitter: Jitter,
    processes: Vec<Process>,
    groups: Vec<Group>,
    /// Progress of each stage; number of steps that all stages have finished, and the end of the last of these.
    rounds: Vec<Round>,
    step: u32,
    step_begin: Time,
    /// Number of steps whose data are loaded, and whose loading has been triggered.
    loaded: u32,
    requested: u32,
    out: Output,
}

impl<'a> Job<'a> {
    pub(super) fn new(input: &'a Input, seed: u64, queue: &mut EventQueue<Event>) -> Self {
        let s = &input.system;
        let is_bidirectional = s.copies() > 1.0;
        let (stages, micros) = (s.pp.get(), s.micro_batches() as u32);
        let chunks = if is_bidirectional { 2 } else { s.vpp.get() };
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
        // Fully sharded weights that are also replicated are reduced as they are sharded: layer by layer.
        let places = if is_bidirectional { stages } else { stages * chunks };
        let layers = (s.arch.depth() / f64::from(places).max(1.0)).ceil().clamp(1.0, 4096.0) as u32;
        let each = if s.persistent_sharding() == Sharding::Zero3 { layers } else { input.buckets };
        let buckets = if reduces { each * chunks } else { 0 };
        let orders = orders(s, micros, costs.first().map_or(0.0, |costs| costs.in_flight));
        let mut job = Job {
            orders,
            processes,
            meets: detail_level(&costs, f64::from(micros) * if input.has_random_times() { s.dp } else { Count::ONE }),
            wires: Ports::new(stages * replicas),
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
            is_bidirectional,
            buckets,
            factors,
        };
        job.begin_first(queue);
        job
    }

    /// Position of a chunk of a stage in the path of its micro-batches.
    fn position(&self, stage: u32, chunk: u32) -> u32 {
        match (self.is_bidirectional, chunk) {
            (false, chunk) => chunk * self.stages + stage,
            (true, 0) => stage,
            (true, _) => self.stages - 1 - stage,
        }
    }

    /// Stage and chunk at a position in the path of a micro-batch of `chunk`.
    fn at(&self, position: u32, chunk: u32) -> (u32, u32) {
        match (self.is_bidirectional, chunk) {
            (false, _) => (position % self.stages, position / self.stages),
            (true, 0) => (position, 0),
            (true, _) => (self.stages - 1 - position, 1),
        }
    }

    /// Number of positions in a path.
    fn positions(&self) -> u32 {
        if self.is_bidirectional { self.stages } else { self.stages * self.chunks }
    }

    /// Number of micro-batches that pass a chunk.
    fn micros_of_chunk(&self) -> u32 {
        if self.is_bidirectional { self.micros / 2 } else { self.micros }
    }

    fn splits(&self) -> bool {
        self.input.system.schedule.splits_backward()
    }

    /// Whether the current step of a stage is recorded.
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

    /// Returns the one of `tasks` that ended last.
    fn latest<const N: usize>(&self, tasks: [u32; N]) -> u32 {
        let end = |&task: &u32| self.out.tasks.get(task as usize).map_or(-1.0, |t| t.end);
        tasks.into_iter().filter(|&t| t != NONE).max_by(|a, b| end(a).total_cmp(&end(b))).unwrap_or(NONE)
    }

    /// Largest cost over the kinds of accelerators in use: a group waits for its slowest rank.
    fn max_cost(&self, cost: impl Fn(&Costs) -> f64) -> f64 {
        let there = |kind: &usize| self.processes.iter().any(|process| process.kind == *kind);
        (0..self.costs.len()).filter(there).filter_map(|kind| self.costs.get(kind)).map(cost).fold(0.0, f64::max)
    }

    /// Whether the tasks inside the passes of a process are recorded. Only those of the first replica are, as
    /// representative of all.
    fn detailed(&self, number: u32) -> bool {
        number < self.stages && self.recording(number) && self.out.operators.len() < MAX_RECORDED_OPERATORS
    }

    /// Handles the end of a message.
    fn arrived(&mut self, message: Message, queue: &mut EventQueue<Event>) {
        match message {
            Message::Stream(process, lane) => self.end_send(process, lane, queue),
            Message::Transfer(process) => self.end_transfer(process, queue),
            Message::Group(stage) => self.end_data(stage, queue),
        }
    }

    /// Sets the end of a task that was recorded when it began.
    fn ended(&mut self, task: u32, now: Time) {
        if let Some(task) = self.out.tasks.get_mut(task as usize) {
            task.end = now.seconds();
        }
    }

    /// Returns the results after the run.
    pub(super) fn finish(mut self, queue: &EventQueue<Event>, ended: StopReason) -> Output {
        let seconds: f64 = self.out.steps.iter().sum();
        let steps = self.out.steps.len() as f64;
        let stood_for: u32 = self.classes.iter().map(|class| class.count).sum();
        let per_step = if steps > 0.0 { 1.0 / steps } else { 0.0 };
        let last = self.rounds.iter().map(|round| round.ended).max().unwrap_or(Time::ZERO);
        let of_stage = |stage: u32| {
            // A stage that has finished ahead of the others waits for them.
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
        self.out.canceled = ended == StopReason::Canceled;
        self.out
    }
}

/// Maximum number of tasks of a step for which transfers between stages alone justify running passes task by task.
/// Above it, contention between passes and transfers on a port is ignored. This would delay a transfer by at most its
/// own duration.
const MAX_TASKS: f64 = 5e5;

/// Returns when passes run task by task. `passes`: how often all chunks run in a step.
fn detail_level(costs: &[Costs], passes: f64) -> DetailLevel {
    let found = costs.iter().map(Costs::detail_level).max().unwrap_or(DetailLevel::Never);
    let tasks = passes * costs.iter().map(Costs::tasks).fold(0.0, f64::max);
    if found == DetailLevel::Transfers && tasks > MAX_TASKS { DetailLevel::Collectives } else { found }
}

/// Returns the costs on one kind of accelerator, with the settings of the input.
fn costs_of(system: &TrainingInput, input: &Input, joined: bool) -> Costs {
    let mut costs = Costs::of(system, &input.constants);
    if let Some(seconds) = input.reduction.filter(|_| costs.reduce > 0.0) {
        costs.reduce = seconds;
    }
    if let Some(c) = input.compression.filter(|_| costs.reduce > 0.0) {
        costs.reduce = costs.reduce / c.ratio + c.seconds;
    }
    costs.remove_unshared_ports();
    if joined {
        costs.join();
    }
    costs
}

impl Model for Job<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut EventQueue<Event>) {
        match event {
            Event::PassEnd(process) => self.kernels_finished(process, queue),
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
