//! What a network simulation answers.

use super::collectives::Operation;
use super::input::Job;

/// One job's course.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobRecord {
    /// What was done.
    pub operation: Operation,
    /// Ranks that took part.
    pub ranks: u32,
    /// Size as nccl-tests count it.
    pub bytes: f64,
    /// Messages it was made of.
    pub messages: u64,
    /// When it began and ended, seconds.
    pub begin: f64,
    /// See `begin`.
    pub end: f64,
    /// Seconds from one to the other.
    pub seconds: f64,
    /// Bytes over seconds (nccl-tests' `algbw`).
    pub algorithm_bandwidth: f64,
    /// The bandwidth of a link that an ideal algorithm would need for it (nccl-tests' `busbw`).
    pub bus_bandwidth: f64,
}

impl JobRecord {
    pub(super) fn new(job: &Job, ranks: u32, messages: u64) -> Self {
        JobRecord {
            operation: job.operation,
            ranks,
            bytes: job.bytes,
            messages,
            begin: job.begin,
            end: job.begin,
            seconds: 0.0,
            algorithm_bandwidth: 0.0,
            bus_bandwidth: 0.0,
        }
    }

    pub(super) fn finished(mut self) -> Self {
        self.seconds = self.end - self.begin;
        if self.seconds > 0.0 {
            let n = f64::from(self.ranks.max(1));
            let factor = match self.operation {
                Operation::AllReduce => 2.0 * (n - 1.0) / n,
                Operation::ReduceScatter | Operation::AllGather | Operation::AllToAll => (n - 1.0) / n,
                Operation::Broadcast | Operation::PointToPoint => 1.0,
            };
            self.algorithm_bandwidth = self.bytes / self.seconds;
            self.bus_bandwidth = factor * self.algorithm_bandwidth;
        }
        self
    }
}

/// What one link has carried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkRecord {
    /// The node where it begins.
    pub from: u32,
    /// The node where it ends.
    pub to: u32,
    /// Bytes carried.
    pub bytes: f64,
    /// Share of the time, to the end of the last job, that this takes at full bandwidth.
    pub utilization: f64,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The jobs, in the input's order.
    pub jobs: Vec<JobRecord>,
    /// The links, in the topology's order.
    pub links: Vec<LinkRecord>,
    /// Until the last job's end.
    pub seconds: f64,
    /// Messages sent.
    pub messages: u64,
    /// Events handled.
    pub events: u64,
    /// Whether the run was cancelled before its end.
    pub cancelled: bool,
}
