//! Output of a network simulation.

use super::collectives::Operation;
use super::input::Job;

/// Timing of one job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobRecord {
    /// Operation of the job.
    pub operation: Operation,
    /// Number of ranks.
    pub ranks: u32,
    /// Size as defined by nccl-tests.
    pub bytes: f64,
    /// Number of messages.
    pub messages: u64,
    /// Start time, s.
    pub begin: f64,
    /// End time, s.
    pub end: f64,
    /// Duration, s.
    pub seconds: f64,
    /// Bytes over seconds (nccl-tests' `algbw`).
    pub algorithm_bandwidth: f64,
    /// Bandwidth of a link that an ideal algorithm would need for this duration (nccl-tests' `busbw`).
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

/// Traffic of one link.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkRecord {
    /// Node where the link begins.
    pub from: u32,
    /// Node where the link ends.
    pub to: u32,
    /// Bytes carried.
    pub bytes: f64,
    /// Time to carry the bytes at full bandwidth, as a share of the time until the end of the last job.
    pub utilization: f64,
}

/// Result of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// Jobs, in the order of the input.
    pub jobs: Vec<JobRecord>,
    /// Links, in the order of the topology.
    pub links: Vec<LinkRecord>,
    /// End time of the last job, s.
    pub seconds: f64,
    /// Number of messages sent.
    pub messages: u64,
    /// Number of events handled.
    pub events: u64,
    /// Whether the run was canceled before its end.
    pub canceled: bool,
}
