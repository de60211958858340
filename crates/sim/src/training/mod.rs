//! Training steps as they happen: passes of chunks on pipeline stages, transfers between them, bucketed reductions alongside
//! them, the optimizer after all; uneven hardware; and months of them, with failures and checkpoints.
//!
//! * [`operators`] – the analytical engine's operators, one at a time
//! * [`program`], [`passes`] – a pass as tasks on the streams of an accelerator
//! * [`costs`] – all that a step is made of
//! * [`schedule`] – in which order a stage takes its passes
//! * [`hosts`] – which ranks share a host
//! * [`input`] – input and output
//! * [`allocation`], [`allocator`] – what a stage holds, in the order of allocation
//! * [`faults`] – failures, restarts, checkpoints
//!
//! Where all replicas are identical one stands for all; that this changes nothing is a test. Where nothing inside a pass can meet
//! what runs alongside it, the pass takes what its streams take alone; else it runs task by task. Not modeled: contention
//! of different stages inside the network's core, other ranks of a stage one by one.

pub mod allocation;
pub mod allocator;
pub mod costs;
pub mod faults;
pub mod hosts;
pub mod input;
pub mod operators;
pub mod passes;
pub mod program;
pub mod schedule;
mod step;

#[cfg(test)]
mod tests;

use super::kernel::{EventQueue, Progress, Time, run};
use super::range::OutOfRange;
pub use hosts::Hosts;
pub use input::{Compression, Input, OtherKind, Output, Place, Slow, StreamKind, Task, TaskKind};

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
