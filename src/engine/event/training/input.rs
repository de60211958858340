//! What is asked of a training simulation, and what it answers: plain data.

use super::schedule::Kind;
use crate::engine::analytical::constants::Constants;
use crate::engine::analytical::training::TrainingInput;
use crate::engine::event::kernel::Quantiles;
use crate::engine::event::range::{OutOfRange, Ranges};

/// A training job and how uneven its hardware is.
#[derive(Debug, Clone, PartialEq)]
pub struct Input {
    /// The job, as the analytical engine has it.
    pub system: TrainingInput,
    /// Constants of its times.
    pub constants: Constants,
    /// Steps to run.
    pub steps: u32,
    /// Pieces in which a chunk's gradients are reduced, each as soon as it is complete.
    pub buckets: u32,
    /// Standard deviation of one rank's pass over its mean; each pass waits for the slowest of its tensor- and
    /// context-parallel ranks.
    pub jitter: f64,
    /// Slow hosts.
    pub slow: Vec<Slow>,
    /// Seconds in which a stage's gradients are reduced, where a network was asked; the closed form's where unset.
    pub reduction: Option<f64>,
    /// Gradients are compressed before they are reduced.
    pub compression: Option<Compression>,
    /// Seconds in which the loader has a step's data ready, one step ahead; 0 = always.
    pub loading: f64,
    /// Simulate every data-parallel replica even where all are alike.
    pub every_replica: bool,
    /// Keep the tasks of this step for the timeline; `u32::MAX` = of none.
    pub recorded_step: u32,
    /// Steps from it on whose tasks are kept.
    pub recorded_steps: u32,
}

/// A stage of one replica that is slow all the time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slow {
    /// Data-parallel replica.
    pub replica: u32,
    /// Pipeline stage.
    pub stage: u32,
    /// Its time over the others'.
    pub factor: f64,
}

/// Compression of gradients (PowerSGD, top-k, quantisation).
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
    Pass(Kind),
    /// Activations or gradients between stages.
    Transfer,
    /// Reduction of a bucket of gradients.
    Reduce,
    /// Gathering of a chunk's updated weights.
    Gather,
    /// The optimizer.
    Optimizer,
}

/// What carries it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    /// The compute units.
    Compute,
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
    /// Data-parallel replica; of collectives 0, for they run on all at once.
    pub replica: u32,
    /// Pipeline stage; the sender's for a transfer.
    pub stage: u32,
    /// Micro-batch; 0 where that means nothing.
    pub micro: u32,
    /// Chunk of the stage.
    pub chunk: u32,
    /// Seconds since the run began.
    pub begin: f64,
    /// See `begin`.
    pub end: f64,
    /// The task that it waited for last; `u32::MAX` for one of an earlier step, or for none.
    pub after: u32,
}

/// Means of a step, seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StageLoad {
    /// In which the stage computes.
    pub compute: f64,
    /// In which its data-parallel collectives run.
    pub data: f64,
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
    /// Of each stage, mean over replicas and steps.
    pub stages: Vec<StageLoad>,
    /// Every step's seconds.
    pub steps: Vec<f64>,
    /// Tasks of the recorded step.
    pub tasks: Vec<Task>,
    /// The tasks that decided the recorded steps' ends, in order: each waited for the one before it in its step.
    pub critical_path: Vec<u32>,
    /// Replicas that were simulated; one where all are alike.
    pub replicas: u32,
    /// Events handled.
    pub events: u64,
    /// Whether the run was cancelled before its end.
    pub cancelled: bool,
}

/// Most passes of a step over all simulated stages.
const MOST_PASSES: f64 = 1e8;

impl Input {
    /// Ten steps of a job whose hardware is even.
    pub fn of(system: &TrainingInput, constants: &Constants) -> Input {
        Input {
            system: *system,
            constants: *constants,
            steps: 10,
            buckets: 8,
            jitter: 0.0,
            slow: Vec::new(),
            reduction: None,
            compression: None,
            loading: 0.0,
            every_replica: false,
            recorded_step: 0,
            recorded_steps: 1,
        }
    }

    /// Whether all replicas are alike, so that one stands for all.
    pub fn even(&self) -> bool {
        self.jitter <= 0.0 && self.slow.is_empty() && !self.every_replica
    }

    /// All that makes no sense.
    pub fn problems(&self) -> Vec<OutOfRange> {
        let mut ranges = Ranges::default();
        let mut range = |what, found, least, most| ranges.check(what, found, least, most);
        let s = &self.system;
        range("steps", f64::from(self.steps), 1.0, 1e6);
        range("buckets", f64::from(self.buckets), 1.0, 4096.0);
        range("jitter", self.jitter, 0.0, 10.0);
        range("seconds of loading", self.loading, 0.0, 1e6);
        range("seconds of a reduction", self.reduction.unwrap_or(0.0), 0.0, 1e6);
        if let Some(c) = self.compression {
            range("ratio of compression", c.ratio, 1.0, 1e6);
            range("seconds of compression", c.seconds, 0.0, 1e6);
        }
        range("pp", s.pp, 1.0, 4096.0);
        range("vpp", s.vpp, 1.0, 4096.0);
        range("dp", s.dp, 1.0, 1e6);
        let replicas = if self.even() { 1.0 } else { s.dp };
        range("passes of a step", 3.0 * s.micro_batches() * s.pp * s.vpp * replicas, 1.0, MOST_PASSES);
        for slow in &self.slow {
            range("replica of a slow host", f64::from(slow.replica), 0.0, s.dp - 1.0);
            range("stage of a slow host", f64::from(slow.stage), 0.0, s.pp - 1.0);
            range("factor of a slow host", slow.factor, 0.01, 1e3);
        }
        ranges.0
    }
}
