//! Code shared by the serving engines: the distribution of replicas, and the client that generates the planned load.

use super::{Draft, features};
use crate::launch::job::{Job, Serving};
use crate::launch::words::Arguments;
use atlas_plan::knob::Knob;

/// Knobs that both vLLM and SGLang can express.
const PAGED: [Knob; 13] = [
    Knob::Tp,
    Knob::Pp,
    Knob::Ep,
    Knob::AttentionDp,
    Knob::Precision,
    Knob::KvPrecision,
    Knob::ContextRanks,
    Knob::MaxNumSeqs,
    Knob::MaxNumBatchedTokens,
    Knob::GpuMemoryUtilization,
    Knob::ChunkedPrefill,
    Knob::CudaGraphs,
    Knob::OverlapScheduling,
];

/// [`PAGED`] and the knobs for experts, speculative decoding and KV cache offloading.
pub(super) fn paged() -> impl Iterator<Item = Knob> {
    PAGED.into_iter().chain(features::EXPRESSED).chain(features::OVERLAPPED)
}

/// How replicas are distributed over servers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Servers {
    /// Number of servers.
    pub(super) count: u64,
    /// Number of replicas per server.
    pub(super) replicas: u64,
    /// Number of nodes per server.
    pub(super) nodes: u64,
}

/// Distributes replicas over servers. With `together`, an engine runs all replicas of a node as one server.
pub(super) fn servers(job: &Job<'_>, s: &Serving, together: bool) -> Servers {
    let devices = s.devices();
    if devices > job.per_node {
        return Servers { count: s.replicas, replicas: 1, nodes: devices.div_ceil(job.per_node) };
    }
    let fit = job.per_node / devices;
    let even = together && s.replicas.is_multiple_of(fit.min(s.replicas));
    let replicas = if even { fit.min(s.replicas) } else { 1 };
    Servers { count: s.replicas / replicas, replicas, nodes: 1 }
}

/// Sets the fields of the draft that describe servers.
pub(super) fn set_servers(job: &Job<'_>, s: &Serving, servers: Servers, draft: &mut Draft) {
    draft.servers = servers.count;
    draft.devices = (s.devices() * servers.replicas).min(job.per_node);
    draft.port = Some(8000);
    draft.client = Some(benchmark_arguments(job, s));
}

/// Arguments of `vllm bench serve`, which supports all engines with the OpenAI API.
fn benchmark_arguments(job: &Job<'_>, s: &Serving) -> Arguments {
    let mut a = Arguments::default();
    let requests = s.concurrency.saturating_mul(4);
    a.comment("planned load");
    a.put("--dataset-name", "random")
        .put("--random-input-len", s.prompt)
        .put("--random-output-len", s.generate)
        .put("--num-prompts", requests);
    match s.rate {
        Some(rate) => a.put("--request-rate", rate.to_string()),
        None => a.put("--max-concurrency", s.concurrency),
    };
    a.push_unchecked(["--ignore-eos".into()]);
    if let Some(model) = &job.weights {
        a.push_unchecked(["--model".into(), model.as_str().into()]);
    }
    a
}
