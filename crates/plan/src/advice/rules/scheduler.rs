//! How requests are batched, chunked and placed.

use super::super::case::{floor_power, number, toggle};
use super::super::{Case, Changes, Rule};
use super::serving;
use crate::knob::{Knob, Setting};

/// Throughput that a doubling of the requests in flight must bring, so that it is still below the knee: with less,
/// most of what a request adds is its own waiting.
const KNEE: f64 = 0.25;

pub(super) static RULES: &[Rule] = &[
    Rule {
        worth: up_to_the_knee,
        ..serving(
            "more requests in flight, up to the knee",
            "steps read the weights once for all sequences: until arithmetic or the KV cache takes over, more are nearly free",
            "Pope et al., Efficiently Scaling Transformer Inference, arXiv 2211.05102, section 2",
            |case, out| {
                let serving = case.detail().and_then(|detail| detail.serving);
                let room = serving.map_or(0.0, |serving| serving.max_concurrency * case.dp);
                if !case.open_load() {
                    let more = [2.0, 4.0, 8.0].map(|times| times * case.concurrency());
                    out.extend(more.into_iter().filter(|c| *c <= room).map(|c| vec![number(Knob::Concurrency, c)]));
                }
            },
        )
    },
    serving(
        "fewer requests in flight",
        "beyond the knee requests only wait for each other",
        "Zhong et al., DistServe, arXiv 2401.09670, section 2 (goodput under latency objectives)",
        |case, out| {
            if !case.open_load() && case.concurrency() >= 2.0 {
                out.push(vec![number(Knob::Concurrency, (case.concurrency() / 2.0).floor())]);
            }
        },
    ),
    serving(
        "more sequences in a step",
        "sequences beyond max_num_seqs wait in line although memory would hold them",
        "vLLM documentation, Optimization and Tuning",
        |case, out| {
            let seqs = case.number(Knob::MaxNumSeqs);
            if seqs < case.concurrency() / case.dp || case.open_load() {
                out.push(vec![number(Knob::MaxNumSeqs, 2.0 * seqs)]);
                let all = 2.0 * floor_power(case.concurrency() / case.dp);
                if all > 2.0 * seqs {
                    out.push(vec![number(Knob::MaxNumSeqs, all)]);
                }
            }
        },
    ),
    serving(
        "larger prompt chunks",
        "more tokens in a step fill the matrix units, and prompts are done in fewer steps",
        "vLLM documentation, Optimization and Tuning (max_num_batched_tokens)",
        |case, out| {
            let tokens = case.number(Knob::MaxNumBatchedTokens);
            if tokens < 32_768.0 {
                out.push(vec![number(Knob::MaxNumBatchedTokens, 2.0 * tokens)]);
                out.push(vec![number(Knob::MaxNumBatchedTokens, 4.0 * tokens)]);
            }
        },
    ),
    serving(
        "smaller prompt chunks",
        "a decoding sequence waits for the chunk that shares its step, so that smaller chunks mean steadier tokens",
        "Agrawal et al., Sarathi-Serve, arXiv 2403.02310, section 4",
        |case, out| {
            let tokens = case.number(Knob::MaxNumBatchedTokens);
            if tokens >= 1024.0 {
                out.push(vec![number(Knob::MaxNumBatchedTokens, (tokens / 2.0).floor())]);
                out.push(vec![number(Knob::MaxNumBatchedTokens, (tokens / 4.0).floor())]);
            }
        },
    ),
    serving(
        "more memory for the KV cache",
        "pages that the engine may not use hold no sequences; what stays free is needed only by other processes",
        "vLLM documentation, Optimization and Tuning (gpu_memory_utilization)",
        |case, out| {
            let share = case.number(Knob::GpuMemoryUtilization);
            let capped = case.detail().is_some_and(|detail| detail.limits.memory_capacity || !detail.verdict.fits());
            if share < 0.95 && capped {
                out.push(vec![number(Knob::GpuMemoryUtilization, 0.95)]);
            }
        },
    ),
    serving(
        "chunked prefill",
        "prompts that share steps with decoding use its idle arithmetic and never stall it",
        "Agrawal et al., Sarathi-Serve, arXiv 2403.02310, section 4",
        |case, out| {
            let on = case.scenario.get(Knob::ChunkedPrefill) == Setting::Toggle(true);
            if case.scenario.base.shape.prompt > 0.0 {
                out.push(vec![toggle(Knob::ChunkedPrefill, !on)]);
            }
        },
    ),
    serving(
        "prefill and decode apart",
        "prompts then never wait for decoding steps, nor decoding for prompts",
        "Zhong et al., DistServe, arXiv 2401.09670; Patel et al., Splitwise, arXiv 2311.18677",
        |case, out| {
            if case.dp >= 2.0 && case.number(Knob::PrefillAccelerators) == 0.0 {
                for share in [4.0, 2.0] {
                    let replicas = (case.dp / share).floor().max(1.0);
                    out.push(vec![number(Knob::PrefillAccelerators, replicas * case.replica())]);
                }
            }
        },
    ),
    serving(
        "prefill and decode together",
        "pools cut to the wrong proportion idle; one pool balances itself",
        "Zhong et al., DistServe, arXiv 2401.09670, section 4 (placement must match the workload)",
        |case, out| {
            if case.number(Knob::PrefillAccelerators) > 0.0 {
                out.push(vec![number(Knob::PrefillAccelerators, 0.0)]);
            }
        },
    ),
    serving(
        "CUDA graphs for decoding",
        "a decoding step is hundreds of short kernels; captured as a graph they are launched at once",
        "vLLM documentation, Optimization and Tuning (enforce_eager)",
        |case, out| {
            if !case.scenario.graphs(&case.scenario.base) {
                out.push(vec![toggle(Knob::CudaGraphs, true)]);
            }
        },
    ),
];

/// What requests in flight must bring, at [`KNEE`] a doubling.
pub(super) fn up_to_the_knee(case: &Case<'_>, changes: &Changes) -> f64 {
    let more = changes.iter().find_map(|(knob, setting)| match (knob, setting) {
        (Knob::Concurrency, Setting::Number(more)) => Some(*more),
        _ => None,
    });
    let doublings = (more.unwrap_or_default() / case.concurrency()).max(1.0).log2();
    (1.0 + KNEE).powf(doublings) - 1.0
}
