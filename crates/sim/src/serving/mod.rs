//! Request-level serving: every request arrives, waits, is prefilled in chunks, decodes token by token, and leaves.
//!
//! The time of a step is the analytical engine's ([`atlas_perf::serving::step`]), asked anew for every
//! step with what is really in it; queueing, batching, paging, preemption and bursts follow from the events. The
//! scheduler is the usual one (decodes first, then chunks of prompts, under a token budget; recomputation
//! on preemption); with prompts in steps of their own, and a look at the queue every this many steps, a polling one.
//!
//! * [`input`] – what goes in: plain data
//! * [`workload`] – which requests arrive when, with what lengths
//! * `kv` – blocks of keys and values, and the prefix cache
//! * `engine`, `replica` – what a pool's engines have in common; one of them: its queue, its batch, its steps
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
/// Everything in the input that makes no sense, at once; a run that does not come to its end within the events it may
/// take.
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
