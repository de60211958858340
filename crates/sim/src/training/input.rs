//! Input and output of a training simulation: plain data.

use atlas_core::count::Count;
use std::ops::Range;

use super::program::Action;
use super::schedule::PassKind;
use crate::kernel::Quantiles;
use crate::range::{OutOfRange, Ranges};
use atlas_perf::accelerator::Accelerator;
use atlas_perf::constants::Constants;
use atlas_perf::training::TrainingInput;
use atlas_perf::training::memory::LocalParams;

/// A training job and the variation of its hardware.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The job: the analytical engine's input.
    pub system: TrainingInput,
    /// Constants of the step time model.
    pub constants: Constants,
    /// Number of steps to run.
    pub steps: u32,
    /// Number of buckets of the gradients of a chunk. Each bucket is reduced as soon as it is complete.
    pub buckets: u32,
    /// Coefficient of variation of the pass time of one rank. Each pass waits for the slowest of its tensor- and
    /// context-parallel ranks.
    pub jitter: f64,
    /// Coefficient of variation of the length of micro-batches (dynamic batch sizes, packed sequences). Pass times are
    /// proportional to the length.
    pub lengths: f64,
    /// Slow hosts.
    pub slow: Vec<Slow>,
    /// Accelerators of other kinds, and the stages that run on them.
    pub kinds: Vec<OtherKind>,
    /// Time to reduce the gradients of a stage, s, from a simulated network; `None` for the closed form.
    pub reduction: Option<f64>,
    /// Compression of gradients before their reduction.
    pub compression: Option<Compression>,
    /// Seconds in which the data loader prepares the data of a step, one step ahead.
    pub loading: f64,
    /// Whether to simulate every data-parallel replica, even if they are identical.
    pub every_replica: bool,
    /// Steps whose tasks are recorded for the timeline.
    pub recorded: Option<Range<u32>>,
}

/// A stage of a replica that is permanently slow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slow {
    /// Data-parallel replica.
    pub replica: u32,
    /// Pipeline stage.
    pub stage: u32,
    /// Time of this stage over the time of other stages.
    pub factor: f64,
}

/// A stage of a replica, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Data-parallel replica.
    pub replica: u32,
    /// Pipeline stage.
    pub stage: u32,
}

/// Accelerators of another kind than the job's, on which some stages run.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherKind {
    /// The accelerator.
    pub accelerator: Accelerator,
    /// The stages, each at most once among all kinds.
    pub places: Vec<Place>,
}

impl OtherKind {
    /// The job as if it ran only on these accelerators.
    #[must_use]
    pub fn system(&self, of: &TrainingInput) -> TrainingInput {
        TrainingInput { accelerator: self.accelerator, ..*of }
    }
}

/// Compression of gradients (PowerSGD, top-k, quantization).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compression {
    /// Bytes before over bytes after.
    pub ratio: f64,
    /// Seconds to compress and decompress all gradients of a stage.
    pub seconds: f64,
}

/// Kind of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// A forward, backward or weight-gradient pass.
    Pass(PassKind),
    /// Transfer of activations or gradients between stages.
    Transfer,
    /// Reduction of a bucket of gradients.
    Reduce,
    /// All-gather of a chunk's updated weights.
    Gather,
    /// The optimizer step.
    Optimizer,
    /// A task inside a pass on a stream other than [`StreamKind::Compute`].
    PassTask(Action),
}

/// The stream that runs a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// The compute units.
    Compute,
    /// Transfers to and from the host.
    Copy,
    /// Collectives inside layers.
    Model,
    /// Transfers between stages.
    Pipeline,
    /// Collectives of the data-parallel group.
    Data,
}

/// One bar of the timeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Task {
    /// Kind of the task.
    pub kind: TaskKind,
    /// Stream that runs the task.
    pub stream: StreamKind,
    /// Data-parallel replica; 0 for collectives, which involve all replicas.
    pub replica: u32,
    /// Pipeline stage; for a transfer, that of the sender.
    pub stage: u32,
    /// Micro-batch; 0 for tasks without one.
    pub micro: u32,
    /// Chunk of the stage.
    pub chunk: u32,
    /// Start, in seconds since the beginning of the run.
    pub begin: f64,
    /// End, in seconds since the beginning of the run.
    pub end: f64,
    /// Index of the last task that it waited for; `None` if it waited for no task of this step.
    pub after: Option<u32>,
}

/// A kernel of a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelRecord {
    /// Index of its pass among the tasks.
    pub pass: u32,
    /// Operator or collective.
    pub action: Action,
    /// Start, in seconds since the beginning of the run.
    pub begin: f64,
    /// End, in seconds since the beginning of the run.
    pub end: f64,
}

/// Mean breakdown of a step, s. All fields except [`StageLoad::data`] add up to the step time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageLoad {
    /// Computation, without slow hardware and jitter.
    pub compute: f64,
    /// Waiting inside passes for collectives of layers and for host copies.
    pub collectives: f64,
    /// Additional time due to slow hardware and jitter of the stage.
    pub uneven: f64,
    /// Waiting for a transfer in progress.
    pub transfer: f64,
    /// Waiting for other stages.
    pub bubble: f64,
    /// Waiting for collectives of the data-parallel group.
    pub exposed_data: f64,
    /// Optimizer, and host work once per step.
    pub optimizer: f64,
    /// Waiting for the data loader.
    pub loading: f64,
    /// Data-parallel collectives, whether exposed or not.
    pub data: f64,
}

impl StageLoad {
    /// Sum of the parts of a step.
    pub fn total(&self) -> f64 {
        self.compute
            + self.collectives
            + self.uneven
            + self.transfer
            + self.bubble
            + self.exposed_data
            + self.optimizer
            + self.loading
    }

    /// Returns `self + factor * other` for every field.
    pub fn add(&self, other: &StageLoad, factor: f64) -> StageLoad {
        StageLoad {
            compute: self.compute + factor * other.compute,
            collectives: self.collectives + factor * other.collectives,
            uneven: self.uneven + factor * other.uneven,
            transfer: self.transfer + factor * other.transfer,
            bubble: self.bubble + factor * other.bubble,
            exposed_data: self.exposed_data + factor * other.exposed_data,
            optimizer: self.optimizer + factor * other.optimizer,
            loading: self.loading + factor * other.loading,
            data: self.data + factor * other.data,
        }
    }
}

/// A class of identical replicas, of which one is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// Replica that is simulated.
    pub replica: u32,
    /// Number of replicas in the class.
    pub count: u32,
}

/// Results of a simulation.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// Step time, s.
    pub step: Quantiles,
    /// Throughput of the job, tokens per second.
    pub tokens_per_second: f64,
    /// Share of time in which the stages compute.
    pub busy: f64,
    /// Mean breakdown over all stages.
    pub load: StageLoad,
    /// Breakdown of each stage, averaged over replicas and steps.
    pub stages: Vec<StageLoad>,
    /// Time of every step, s.
    pub steps: Vec<f64>,
    /// Tasks of the recorded steps.
    pub tasks: Vec<Task>,
    /// Kernels of the recorded passes of the first replica, by pass and time.
    pub operators: Vec<KernelRecord>,
    /// Critical path of the recorded steps: indices of tasks in order, each of which waited for the previous one.
    pub critical_path: Vec<u32>,
    /// Number of replicas that were simulated.
    pub replicas: u32,
    /// Events handled.
    pub events: u64,
    /// Whether the run was canceled before its end.
    pub canceled: bool,
}

/// Number of buckets of the gradients of a chunk. A bucket has the usual default size (40 million weights, or one
/// million times the number of replicas if that is more), or half of the bucket memory of the software.
fn buckets(system: &TrainingInput) -> u32 {
    let allocated = 0.5 * system.bucket_bytes / 2.0;
    let each = if allocated > 0.0 { allocated } else { (1e6 * system.dp).max(40e6) };
    let local = LocalParams::of(system);
    let trained = local.trained(system);
    let weights = (trained.dense + trained.experts) / system.vpp.max(Count::ONE);
    (weights / each).ceil().clamp(1.0, MAX_BUCKETS) as u32
}

/// Maximum number of buckets of a chunk; more would not change the exposed time noticeably.
const MAX_BUCKETS: f64 = 64.0;

/// Maximum number of passes of all simulated stages and steps; each takes two or three events.
const MAX_PASSES: f64 = 1e8;

/// Irregular stages of a replica: stage, kind of accelerator, bits of the slow factor.
type Pattern = Vec<(u32, u32, u64)>;

impl Input {
    /// Returns an input for ten steps of a job on uniform hardware.
    pub fn of(system: &TrainingInput, constants: &Constants) -> Input {
        Input {
            system: *system,
            constants: *constants,
            steps: 10,
            buckets: buckets(system),
            jitter: 0.0,
            lengths: 0.0,
            slow: Vec::new(),
            kinds: Vec::new(),
            reduction: None,
            compression: None,
            loading: 0.0,
            every_replica: false,
            recorded: Some(0..1),
        }
    }

    /// Whether every replica is simulated.
    fn simulates_every_replica(&self) -> bool {
        self.has_random_times() || self.every_replica
    }

    /// Whether pass times are random.
    pub fn has_random_times(&self) -> bool {
        self.jitter > 0.0 || self.lengths > 0.0
    }

    /// Groups the replicas into classes with the same irregular stages. Identical replicas are always in the same
    /// state, so one per class is simulated. With random pass times every replica is its own class.
    pub fn classes(&self) -> Vec<Class> {
        let replicas = self.system.dp.get();
        if self.simulates_every_replica() {
            return (0..replicas).map(|replica| Class { replica, count: 1 }).collect();
        }
        // Replicas with irregular stages. Their patterns are sorted, so that equal ones compare equal.
        let others = || self.kinds.iter().flat_map(|kind| &kind.places);
        let mut touched: Vec<u32> =
            self.slow.iter().map(|slow| slow.replica).chain(others().map(|place| place.replica)).collect();
        touched.sort_unstable();
        touched.dedup();
        let pattern = |replica: u32| {
            let slow = self.slow.iter().filter(|slow| slow.replica == replica);
            let mut own: Pattern = slow.map(|slow| (slow.stage, 0, slow.factor.to_bits())).collect();
            for (number, kind) in (1..).zip(&self.kinds) {
                let places = kind.places.iter().filter(|place| place.replica == replica);
                own.extend(places.map(|place| (place.stage, number, 0)));
            }
            own.sort_unstable();
            own
        };
        let mut known: Vec<(Pattern, Class)> = Vec::new();
        for &replica in &touched {
            let own = pattern(replica);
            match known.iter_mut().find(|(pattern, _)| *pattern == own) {
                Some((_, class)) => class.count += 1,
                None => known.push((own, Class { replica, count: 1 })),
            }
        }
        let rest = replicas.saturating_sub(touched.len() as u32);
        let even = (0..replicas).find(|replica| touched.binary_search(replica).is_err());
        let mut classes: Vec<Class> = known.into_iter().map(|(_, class)| class).collect();
        classes.extend(even.map(|replica| Class { replica, count: rest }));
        classes.sort_unstable_by_key(|class| class.replica);
        classes
    }

    /// Returns all problems of the input.
    pub fn problems(&self) -> Vec<OutOfRange> {
        let mut ranges = Ranges::default();
        let mut range = |what, found, least, most| ranges.check(what, found, least, most);
        let s = &self.system;
        range("steps", f64::from(self.steps), 1.0, 1e6);
        range("buckets", f64::from(self.buckets), 1.0, 4096.0);
        range("jitter", self.jitter, 0.0, 10.0);
        range("coefficient of variation of the micro-batch lengths", self.lengths, 0.0, 10.0);
        range("data loading time in seconds", self.loading, 0.0, 1e6);
        range("gradient reduction time in seconds", self.reduction.unwrap_or(0.0), 0.0, 1e6);
        if let Some(c) = self.compression {
            range("compression ratio", c.ratio, 1.0, 1e6);
            range("compression time in seconds", c.seconds, 0.0, 1e6);
        }
        range("pp", f64::from(s.pp), 1.0, 4096.0);
        range("vpp", f64::from(s.vpp), 1.0, 4096.0);
        range("dp", f64::from(s.dp), 1.0, 1e6);
        let touched = self.slow.len() + self.kinds.iter().map(|kind| kind.places.len()).sum::<usize>();
        let distinct = if self.simulates_every_replica() { f64::from(s.dp) } else { touched as f64 + 1.0 };
        let replicas = distinct.min(f64::from(s.dp));
        let passes = 3.0 * s.micro_batches() * s.pp * s.vpp * replicas;
        range("passes per step", passes, 1.0, MAX_PASSES);
        range("passes in all steps", passes * f64::from(self.steps), 0.0, MAX_PASSES);
        for slow in &self.slow {
            range("replica index of a slow host", f64::from(slow.replica), 0.0, s.dp - 1.0);
            range("stage index of a slow host", f64::from(slow.stage), 0.0, s.pp - 1.0);
            range("factor of a slow host", slow.factor, 0.01, 1e3);
        }
        for place in self.kinds.iter().flat_map(|kind| &kind.places) {
            range("replica index of another accelerator type", f64::from(place.replica), 0.0, s.dp - 1.0);
            range("stage index of another accelerator type", f64::from(place.stage), 0.0, s.pp - 1.0);
        }
        ranges.0
    }
}
