//! Simulation of training steps: passes of chunks on pipeline stages, transfers between stages, bucketed gradient
//! reductions, the optimizer; slow and mixed hardware; and long runs with failures and checkpoints.
//!
//! * [`operators`] – the analytical engine's operators
//! * [`program`], [`passes`] – a pass as tasks on the streams of an accelerator
//! * [`costs`] – the costs of a step
//! * [`schedule`] – the order of a stage's passes
//! * [`hosts`] – placement of ranks on hosts
//! * [`input`] – input and output
//! * [`allocation`], [`allocator`] – memory of a stage
//! * [`faults`] – failures, restarts, checkpoints
//!
//! Only one of several identical replicas is simulated; a test checks that this does not change the result. A pass is
//! one event if nothing inside it contends with other traffic; otherwise it runs task by task. Not modeled: contention
//! between stages in the core of the network, and individual ranks of a stage.

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
/// Returns all invalid parts of the input at once.
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
