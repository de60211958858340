//! Input and output of a training simulation: plain data.

use atlas_core::count::Count;
use std::ops::Range;

use super::program::Action;
use super::schedule::PassKind;
use crate::kernel::Quantiles;
use crate::range::{OutOfRange, Ranges};
use atlas_perf::accelerator::Accelerator;
use atlas_perf::constants::Constants;
use atlas_perf::memory::LocalParams;
use atlas_perf::training::TrainingInput;

/// A training job, and variation of its hardware.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The job: the analytical engine's input.
    pub system: TrainingInput,
    /// Constants of its times.
    pub constants: Constants,
    /// Steps to run.
    pub steps: u32,
    /// Buckets of a chunk's gradients; each is reduced as soon as it is complete.
    pub buckets: u32,
    /// Standard deviation of one rank's pass over its mean; each pass waits for the slowest of its tensor- and
    /// context-parallel ranks.
    pub jitter: f64,
    /// Standard deviation of a micro-batch's length over its mean (dynamic batch sizes, packed sequences). The time of its passes
    /// is in proportion.
    pub lengths: f64,
    /// Slow hosts.
    pub slow: Vec<Slow>,
    /// Accelerators of other kinds that the job uses, and their stages.
    pub kinds: Vec<OtherKind>,
    /// Seconds of reducing a stage's gradients, from a simulated network; `None`: the closed form's.
    pub reduction: Option<f64>,
    /// Compression of gradients before they are reduced.
    pub compression: Option<Compression>,
    /// Seconds in which the loader prepares a step's data, one step ahead.
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
    /// Its time over the time of other stages.
    pub factor: f64,
}

/// A stage of a replica.
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
    /// The job if it ran on these alone.
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
    /// Seconds of compressing and restoring all gradients of a stage.
    pub seconds: f64,
}

/// What a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// A pass.
    Pass(PassKind),
    /// Activations or gradients between stages.
    Transfer,
    /// Reduction of a bucket of gradients.
    Reduce,
    /// Gathering of a chunk's updated weights.
    Gather,
    /// The optimizer.
    Optimizer,
    /// A task of a pass on a stream besides the kernels'.
    Inside(Action),
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
    /// What it is.
    pub kind: TaskKind,
    /// Where it runs.
    pub stream: StreamKind,
    /// Data-parallel replica; 0 for collectives, which run on all.
    pub replica: u32,
    /// Pipeline stage; the sender's for a transfer.
    pub stage: u32,
    /// Micro-batch; 0 for tasks that have none.
    pub micro: u32,
    /// Chunk of the stage.
    pub chunk: u32,
    /// Seconds since the run began.
    pub begin: f64,
    /// See `begin`.
    pub end: f64,
    /// The last task that it waited for, by number; `None` if it waited for none of this step.
    pub after: Option<u32>,
}

/// A kernel of a pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inner {
    /// The number of the pass among the tasks.
    pub pass: u32,
    /// What it does.
    pub action: Action,
    /// Seconds since the run began.
    pub begin: f64,
    /// See `begin`.
    pub end: f64,
}

/// Breakdown of a step, mean seconds. All but [`StageLoad::data`] add up to the step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageLoad {
    /// Computing, without slowness and jitter.
    pub compute: f64,
    /// Waiting inside passes for collectives of layers and for copies.
    pub collectives: f64,
    /// Added by slowness and jitter of the stage.
    pub uneven: f64,
    /// Waiting for a transfer in progress.
    pub transfer: f64,
    /// Waiting for other stages.
    pub bubble: f64,
    /// Waiting for collectives of its data-parallel group.
    pub exposed_data: f64,
    /// Optimizer, and the host's work once a step.
    pub optimizer: f64,
    /// Waiting for data.
    pub loading: f64,
    /// Data-parallel collectives, exposed or not.
    pub data: f64,
}

impl StageLoad {
    /// The sum of the parts of the step.
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

    /// `self + factor * other`, part by part.
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
    /// The one that is simulated.
    pub replica: u32,
    /// Number of replicas in the class.
    pub count: u32,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Output {
    /// Seconds of a step.
    pub step: Quantiles,
    /// Tokens per second of the job.
    pub tokens_per_second: f64,
    /// Share of the stages' time in which they compute.
    pub busy: f64,
    /// Mean over all stages.
    pub load: StageLoad,
    /// Of each stage, mean over replicas and steps.
    pub stages: Vec<StageLoad>,
    /// Every step's seconds.
    pub steps: Vec<f64>,
    /// Tasks of the recorded step.
    pub tasks: Vec<Task>,
    /// Kernels of the first replica's recorded passes, by pass and time.
    pub operators: Vec<Inner>,
    /// The critical path of the recorded steps: tasks in order, each of which waited for the one before it.
    pub critical_path: Vec<u32>,
    /// Number of replicas that were simulated.
    pub replicas: u32,
    /// Events handled.
    pub events: u64,
    /// Whether the run was cancelled before its end.
    pub cancelled: bool,
}

/// Buckets of a chunk's gradients: of the usual default size (40 million weights, or one million times the number of
/// replicas if that is more), or half of the software's bucket memory.
fn buckets(system: &TrainingInput) -> u32 {
    let allocated = 0.5 * system.bucket_bytes / 2.0;
    let each = if allocated > 0.0 { allocated } else { (1e6 * system.dp).max(40e6) };
    let local = LocalParams::of(system);
    let weights = (local.dense + local.experts) * system.trained / system.vpp.max(Count::ONE);
    (weights / each).ceil().clamp(1.0, MOST_BUCKETS) as u32
}

/// Maximum buckets of a chunk; more would not change the exposed time noticeably.
const MOST_BUCKETS: f64 = 64.0;

/// Maximum passes of all simulated stages and steps; each is two or three events.
const MOST_PASSES: f64 = 1e8;

/// The irregularities of a replica: stage, kind of accelerator, bits of the slow factor.
type Pattern = Vec<(u32, u32, u64)>;

impl Input {
    /// Ten steps of a job on uniform hardware.
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
    fn differs(&self) -> bool {
        self.draws() || self.every_replica
    }

    /// Whether pass times are random.
    pub fn draws(&self) -> bool {
        self.jitter > 0.0 || self.lengths > 0.0
    }

    /// The replicas as classes with the same slow stages. Identical replicas do the same at the same time, so one of each class
    /// is enough. With random pass times every replica is a class.
    pub fn classes(&self) -> Vec<Class> {
        let replicas = self.system.dp.get();
        if self.differs() {
            return (0..replicas).map(|replica| Class { replica, count: 1 }).collect();
        }
        // The irregularities of each replica that has any, sorted so that equal ones compare equal.
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

    /// Everything that is invalid.
    pub fn problems(&self) -> Vec<OutOfRange> {
        let mut ranges = Ranges::default();
        let mut range = |what, found, least, most| ranges.check(what, found, least, most);
        let s = &self.system;
        range("steps", f64::from(self.steps), 1.0, 1e6);
        range("buckets", f64::from(self.buckets), 1.0, 4096.0);
        range("jitter", self.jitter, 0.0, 10.0);
        range("spread of lengths", self.lengths, 0.0, 10.0);
        range("seconds of loading", self.loading, 0.0, 1e6);
        range("seconds of a reduction", self.reduction.unwrap_or(0.0), 0.0, 1e6);
        if let Some(c) = self.compression {
            range("ratio of compression", c.ratio, 1.0, 1e6);
            range("seconds of compression", c.seconds, 0.0, 1e6);
        }
        range("pp", f64::from(s.pp), 1.0, 4096.0);
        range("vpp", f64::from(s.vpp), 1.0, 4096.0);
        range("dp", f64::from(s.dp), 1.0, 1e6);
        let touched = self.slow.len() + self.kinds.iter().map(|kind| kind.places.len()).sum::<usize>();
        let distinct = if self.differs() { f64::from(s.dp) } else { touched as f64 + 1.0 };
        let replicas = distinct.min(f64::from(s.dp));
        let passes = 3.0 * s.micro_batches() * s.pp * s.vpp * replicas;
        range("passes of a step", passes, 1.0, MOST_PASSES);
        range("passes of all steps", passes * f64::from(self.steps), 0.0, MOST_PASSES);
        for slow in &self.slow {
            range("replica of a slow host", f64::from(slow.replica), 0.0, s.dp - 1.0);
            range("stage of a slow host", f64::from(slow.stage), 0.0, s.pp - 1.0);
            range("factor of a slow host", slow.factor, 0.01, 1e3);
        }
        for place in self.kinds.iter().flat_map(|kind| &kind.places) {
            range("replica of another kind", f64::from(place.replica), 0.0, s.dp - 1.0);
            range("stage of another kind", f64::from(place.stage), 0.0, s.pp - 1.0);
        }
        ranges.0
    }
}
