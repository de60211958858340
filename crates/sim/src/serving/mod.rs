//! Request-level simulation of serving: every request arrives, waits, is prefilled in chunks, decodes token by token,
//! and leaves.
//!
//! The analytical engine ([`atlas_perf::serving::step`]) gives the time of every step for the sequences in it;
//! queueing, batching, paging, preemption and bursts follow from the events. By default, the scheduler schedules
//! decodes first, then chunks of prompts, under a token budget, and recomputes preempted sequences. It can also run
//! prompts in separate steps, and poll the queue only every few steps.
//!
//! * [`input`] – the input: plain data
//! * [`workload`] – arrivals and lengths of requests
//! * `kv` – KV cache blocks, and the prefix cache
//! * `engine` – properties shared by the replicas of a pool; `replica` – queue, batch and steps of a replica
//! * `cluster` – routing, front ends, transfers between pools, scaling
//! * [`output`] – distributions, goodput, levels over time
//!
//! Not modeled: priorities, swapping to host memory (preempted sequences are recomputed, except for what is still in a
//! prefix cache), layer-wise overlap of KV transfers, network contention between transfers of different replicas, steps
//! that mix prompts and decodes without chunked prefill.

mod cluster;
mod engine;
pub mod input;
mod kv;
pub mod output;
mod replica;
mod request;
pub mod workload;

#[cfg(test)]
mod tests;

use super::kernel::{EventQueue, Progress, StopReason, Time, run_within};
pub use input::{Arrivals, Autoscaling, Input, Lengths, Phase, Prefixes, Problem, Router, Slo, TraceRequest};
pub use output::{Output, RequestRecord};

/// Runs all requests through the system.
///
/// # Errors
///
/// Returns all invalid parts of the input at once, or an error if the run exceeds its maximum number of events.
pub fn simulate(input: &Input, seed: u64, progress: &Progress) -> Result<Output, Vec<Problem>> {
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut queue = EventQueue::with_capacity(4096);
    let mut cluster = cluster::Cluster::new(input, seed, &mut queue);
    let ended = run_within(&mut cluster, &mut queue, Time::MAX, input.max_events, progress);
    if ended == StopReason::Exhausted {
        let (left, requests) = cluster.left();
        let (events, seconds) = (queue.handled(), queue.now().seconds());
        return Err(vec![Problem::Endless { events, seconds, left, requests }]);
    }
    progress.set(1.0);
    Ok(cluster.finish(&queue, ended))
}
