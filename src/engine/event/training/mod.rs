//! Training steps as they happen: passes of chunks on pipeline stages, transfers between them, bucketed reductions beside
//! them, the optimizer after all; uneven hardware; and months of them, with failures and checkpoints.
//!
//! * [`costs`] – the analytical engine's times, cut into passes
//! * [`schedule`] – in which order a stage takes them
//! * [`operators`] – what a pass is made of, for the eye
//! * [`hosts`] – which ranks share a host
//! * [`input`] – what is asked and answered
//! * [`allocation`], [`allocator`] – what a stage holds, in the order in which it is asked for
//! * [`faults`] – failures, restarts, checkpoints
//!
//! Where all replicas are alike one stands for all; that this changes nothing is a test. Not modelled: operators one by
//! one (a pass is a task), contention between collectives of different stages.

pub mod allocation;
pub mod allocator;
pub mod costs;
pub mod faults;
pub mod hosts;
pub mod input;
pub mod operators;
pub mod schedule;
mod step;

#[cfg(test)]
mod tests;

use super::kernel::{EventQueue, Progress, Time, run};
use super::range::OutOfRange;
pub use hosts::Hosts;
pub use input::{Compression, Input, Output, Slow, StreamKind, Task, TaskKind};

/// Runs the steps.
///
/// # Errors
///
/// Everything in the input that makes no sense, at once.
pub fn simulate(input: &Input, seed: u64, progress: &Progress) -> Result<Output, Vec<OutOfRange>> {
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut queue = EventQueue::with_capacity(4096);
    let mut job = step::Job::new(input, seed, &mut queue);
    let ended = run(&mut job, &mut queue, Time::MAX, progress);
    progress.set(1.0);
    Ok(job.finish(&queue, ended))
}
