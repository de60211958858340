//! Load, scheduling and speculative decoding.

use super::slot::{count, flag, nonzero, number, positive, word};
use super::{Field, Group, Knob, Step, ValueType, entry, ranks, real, whole};
use crate::plan::{DraftMethod, LoadKind};

/// A field of serving without aliases and unit.
pub(super) const fn serving_field(
    knob: Knob,
    name: &'static str,
    kind: ValueType,
    path: &'static [&'static str],
    help: &'static str,
) -> Field {
    entry(knob, name, &[], Group::Serving, kind, path, help).inference().hardware_modeling()
}

pub(super) const SERVING: &[Field] = &[
    entry(
        Knob::Load,
        "load",
        &["load_type"],
        Group::Serving,
        ValueType::Choice(LoadKind::NAMES),
        &["serving", "load"],
        "load type: closed or open loop, all requests at once, a static batch, or one phase alone",
    )
    .slot(word!(LoadKind, serving.load))
    .inference()
    .hardware_modeling(),
    entry(
        Knob::Concurrency,
        "concurrency",
        &["users"],
        Group::Serving,
        ranks(1_048_576.0),
        &["serving", "concurrency"],
        "requests in flight over all replicas; each is replaced when it completes",
    )
    .slot(count!(serving.concurrency))
    .with_file_bounds(1.0, 1e9)
    .unit("req")
    .inference()
    .hardware_modeling(),
    entry(
        Knob::RequestRate,
        "request_rate",
        &["rps", "qps"],
        Group::Serving,
        real(0.0, 1e9, 1.0),
        &["serving", "request_rate"],
        "random arrivals per second, used instead of concurrency; with load=open, concurrency caps the requests in flight; 0: off",
    )
    .slot(positive!(serving.request_rate))
    .zero_is_unset()
    .with_default(0.0)
    .with_file_bounds(0.0, 1e30)
    .unit("req/s")
    .inference()
    .hardware_modeling(),
    entry(
        Knob::RunRequests,
        "run_requests",
        &["total_requests"],
        Group::Serving,
        whole(0.0, 1e9, Step::Double),
        &["serving", "run_requests"],
        "requests in the whole run, including ramp-up and drain; 0: steady state",
    )
    .slot(nonzero!(serving.run_requests))
    .zero_is_unset()
    .with_default(0.0)
    .with_file_bounds(1.0, 1e9)
    .unit("req")
    .inference()
    .hardware_modeling(),
    entry(
        Knob::MaxNumSeqs,
        "max_num_seqs",
        &["max_running_requests", "max_batch_size"],
        Group::Serving,
        ranks(65_536.0),
        &["serving", "max_num_seqs"],
        "maximum sequences per step of a replica",
    )
    .slot(count!(serving.max_num_seqs))
    .with_file_bounds(1.0, 1e9)
    .unit("seq")
    .inference()
    .hardware_modeling(),
    entry(
        Knob::MaxNumBatchedTokens,
        "max_num_batched_tokens",
        &["chunked_prefill_size", "max_num_tokens"],
        Group::Serving,
        ranks(1_048_576.0),
        &["serving", "max_num_batched_tokens"],
        "maximum tokens per step of a replica (prefill chunk size)",
    )
    .slot(count!(serving.max_num_batched_tokens))
    .with_file_bounds(1.0, 1e9)
    .unit("tok")
    .inference()
    .hardware_modeling(),
    entry(
        Knob::GpuMemoryUtilization,
        "gpu_memory_utilization",
        &["mem_fraction_static"],
        Group::Serving,
        real(0.05, 1.0, 0.01),
        &["serving", "gpu_memory_utilization"],
        "share of device memory available to the serving engine",
    )
    .slot(number!(serving.gpu_memory_utilization))
    .inference()
    .hardware_modeling(),
    entry(
        Knob::ChunkedPrefill,
        "chunked_prefill",
        &[],
        Group::Serving,
        ValueType::Toggle,
        &["serving", "chunked_prefill"],
        "chunked prefill: prompt chunks share steps with decode (Sarathi-Serve)",
    )
    .slot(flag!(serving.chunked_prefill))
    .inference()
    .hardware_modeling(),
    entry(
        Knob::LongPrefillTokenThreshold,
        "long_prefill_token_threshold",
        &["long_prefill"],
        Group::Serving,
        whole(0.0, 1_048_576.0, Step::Double),
        &["serving", "long_prefill_token_threshold"],
        "maximum prompt tokens of one request per step, so short prompts are not blocked by long ones; 0: no limit",
    )
    .slot(nonzero!(serving.long_prefill_token_threshold))
    .zero_is_unset()
    .with_default(0.0)
    .unit("tok")
    .inference()
    .simulated(),
    entry(
        Knob::OverlapScheduling,
        "overlap_scheduling",
        &["async_scheduling"],
        Group::Serving,
        ValueType::Toggle,
        &["serving", "overlap_scheduling"],
        "asynchronous scheduling: prepare the next step while the accelerator computes",
    )
    .slot(flag!(serving.overlap_scheduling))
    .inference()
    .hardware_modeling(),
    entry(
        Knob::RecvInterval,
        "recv_interval",
        &["scheduler_recv_interval"],
        Group::Serving,
        ranks(4096.0),
        &["serving", "recv_interval"],
        "decode steps between polls of the request queue",
    )
    .slot(count!(serving.recv_interval))
    .with_default(1.0)
    .with_file_bounds(1.0, 1e6)
    .inference()
    .hardware_modeling(),
    entry(
        Knob::ReserveOutput,
        "reserve_output",
        &["guaranteed_no_evict"],
        Group::Serving,
        ValueType::Toggle,
        &["serving", "reserve_output"],
        "admit a sequence only if its whole output fits in the KV cache",
    )
    .slot(flag!(serving.reserve_output))
    .inference()
    .hardware_modeling(),
    entry(
        Knob::PythonExecutor,
        "python_executor",
        &[],
        Group::Serving,
        ValueType::Toggle,
        &["serving", "python_executor"],
        "run scheduler and sampler of a compiled runtime in Python",
    )
    .slot(flag!(serving.python_executor))
    .inference()
    .hardware_modeling(),
    entry(
        Knob::CompiledBatch,
        "compiled_batch",
        &[],
        Group::Serving,
        whole(0.0, 65_536.0, Step::Double),
        &["serving", "compiled_batch"],
        "batch size of graphs compiled for a fixed shape; 0: dynamic shapes",
    )
    .zero_is_unset()
    .slot(count!(serving.compiled_batch))
    .with_default(0.0)
    .with_file_bounds(1.0, 1e6)
    .unit("seq")
    .inference()
    .hardware_modeling(),
    entry(
        Knob::Beams,
        "beams",
        &["beam_width"],
        Group::Serving,
        ranks(1024.0),
        &["serving", "beams"],
        "beams per request (beam search); 1: sampling or greedy decoding",
    )
    .slot(count!(serving.beams))
    .with_default(1.0)
    .inference()
    .hardware_modeling(),
    entry(
        Knob::PrefixHit,
        "prefix_hit",
        &["prefix_cache_hit"],
        Group::Serving,
        real(0.0, 1.0, 0.1),
        &["serving", "prefix_cache_hit"],
        "prefix cache hit rate: share of prompt tokens that are cached",
    )
    .slot(number!(serving.prefix_hit))
    .with_default(0.0)
    .inference()
    .hardware_modeling(),
    entry(
        Knob::DraftTokens,
        "draft_tokens",
        &["speculative_tokens"],
        Group::Serving,
        whole(0.0, 64.0, Step::Add(1.0)),
        &["serving", "speculative", "tokens"],
        "draft tokens per step (speculative decoding, MTP, EAGLE); 0: off",
    )
    .zero_is_unset()
    .slot(count!(serving.draft_tokens))
    .with_default(0.0)
    .with_file_bounds(0.0, 1e9)
    .unit("tok")
    .inference()
    .hardware_modeling(),
    entry(
        Knob::DraftAcceptance,
        "draft_acceptance",
        &["acceptance"],
        Group::Serving,
        real(0.0, 1.0, 0.05),
        &["serving", "speculative", "acceptance"],
        "acceptance rate of the first draft token; default: published value for the model and draft_method",
    )
    .slot(number!(serving.draft_acceptance))
    .inference()
    .hardware_modeling(),
    serving_field(
        Knob::DraftMethod,
        "draft_method",
        ValueType::Choice(DraftMethod::NAMES),
        &["serving", "speculative", "method"],
        "draft method: layers of the model (mtp), a trained layer (eagle3), a smaller model, or n-grams",
    )
    .slot(word!(DraftMethod, serving.draft_method))
    .with_default_word(DraftMethod::Mtp.name()),
    serving_field(
        Knob::DraftDecline,
        "draft_decline",
        real(0.0, 1.0, 0.05),
        &["serving", "speculative", "decline"],
        "relative loss of acceptance from one draft position to the next",
    )
    .slot(number!(serving.draft_decline)),
    serving_field(
        Knob::DraftParams,
        "draft_params_b",
        real(0.0, 1e4, 0.5),
        &["serving", "speculative", "params_b"],
        "size of the draft model, billions of parameters",
    )
    .slot(number!(serving.draft_params_b))
    .model_property(),
    serving_field(
        Knob::DraftMaxBatch,
        "draft_max_batch",
        whole(0.0, 1e6, Step::Double),
        &["serving", "speculative", "max_batch"],
        "batch size of a replica above which drafting stops; 0: never",
    )
    .slot(nonzero!(serving.draft_max_batch))
    .zero_is_unset()
    .with_default(0.0),
];
