//! Request-level serving: every request arrives, waits, is prefilled in chunks, decodes token by token, and leaves.
//!
//! The time of every step is the analytical engine's ([`atlas_perf::serving::step`]) for the sequences in it; queueing,
//! batching, paging, preemption and bursts follow from the events. The scheduler is the usual one (decodes first, then
//! chunks of prompts, under a token budget; recomputation on preemption). It can also run prompts in separate steps and
//! look at the queue only every few steps.
//!
//! * [`input`] – the input: plain data
//! * [`workload`] – arrivals and lengths of requests
//! * `kv` – blocks of keys and values, and the prefix cache
//! * `engine` – what the replicas of a pool share; `replica` – queue, batch and steps of one
//! * `cluster` – routing, front ends, transfers between pools, scaling
//! * [`output`] – distributions, goodput, levels over time
//!
//! Not modeled: priorities, swapping to host memory (preempted sequences are recomputed, but for what a prefix cache
//! still has of them), layer-wise overlap of KV transfers, network contention between transfers of different replicas,
//! prompts alongside decodes where they are not chunked.

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

use super::kernel::{Ended, EventQueue, Progress, Time, run_within};
pub use input::{Arrivals, Autoscaling, Input, Lengths, Phase, Prefixes, Problem, Router, Slo, TraceRequest};
pub use output::{Output, RequestRecord};

/// Runs all requests through the system.
///
/// # Errors
///
/// Everything in the input that is invalid, at once; or that the run did not end within its maximum of events.
pub fn simulate(input: &Input, seed: u64, progress: &Progress) -> Result<Output, Vec<Problem>> {
    let problems = input.problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut queue = EventQueue::with_capacity(4096);
    let mut cluster = cluster::Cluster::new(input, seed, &mut queue);
    let ended = run_within(&mut cluster, &mut queue, Time::MAX, input.most_events, progress);
    if ended == Ended::Exhausted {
        let (left, requests) = cluster.left();
        let (events, seconds) = (queue.handled(), queue.now().seconds());
        return Err(vec![Problem::Endless { events, seconds, left, requests }]);
    }
    progress.set(1.0);
    Ok(cluster.finish(&queue, ended))
}
