//! How requests come and are served.

use super::{entry, ranks, real, whole};
use crate::knob::{Group, Kind, Knob, Spec, Step};
use crate::plan::{Arrivals, Server};

pub(super) const SERVING: [Spec; 16] = [
    entry(
        Knob::Server,
        "server",
        &["serving_engine"],
        Group::Serving,
        Kind::Choice(Server::NAMES),
        &["serving", "engine"],
        "software that serves: it decides batching, launches and the limits below",
    )
    .inference()
    .reasoned(),
    entry(
        Knob::Concurrency,
        "concurrency",
        &["users"],
        Group::Serving,
        ranks(1_048_576.0),
        &["serving", "concurrency"],
        "requests in flight, over all replicas; each is replaced when it ends",
    )
    .unit("req")
    .inference()
    .reasoned(),
    entry(
        Knob::RequestRate,
        "request_rate",
        &["rps", "qps"],
        Group::Serving,
        real(0.0, 1e9, 1.0),
        &["serving", "request_rate"],
        "requests per second that arrive at random, in place of a concurrency; 0: none",
    )
    .unit("req/s")
    .inference()
    .reasoned(),
    entry(
        Knob::MaxNumSeqs,
        "max_num_seqs",
        &["max_running_requests", "max_batch_size"],
        Group::Serving,
        ranks(65_536.0),
        &["serving", "max_num_seqs"],
        "most sequences in one step of a replica",
    )
    .unit("seq")
    .inference()
    .reasoned(),
    entry(
        Knob::MaxNumBatchedTokens,
        "max_num_batched_tokens",
        &["chunked_prefill_size", "max_num_tokens"],
        Group::Serving,
        ranks(1_048_576.0),
        &["serving", "max_num_batched_tokens"],
        "most tokens in one step of a replica: the size of a prompt's chunk",
    )
    .unit("tok")
    .inference()
    .reasoned(),
    entry(
        Knob::GpuMemoryUtilization,
        "gpu_memory_utilization",
        &["mem_fraction_static"],
        Group::Serving,
        real(0.05, 1.0, 0.01),
        &["serving", "gpu_memory_utilization"],
        "share of device memory that the engine may use",
    )
    .inference()
    .reasoned(),
    entry(
        Knob::ChunkedPrefill,
        "chunked_prefill",
        &[],
        Group::Serving,
        Kind::Toggle,
        &["serving", "chunked_prefill"],
        "prompt chunks share steps with decoding (Sarathi-Serve)",
    )
    .inference()
    .reasoned(),
    entry(
        Knob::PrefixHit,
        "prefix_hit",
        &["prefix_cache_hit"],
        Group::Serving,
        real(0.0, 1.0, 0.1),
        &["serving", "prefix_cache_hit"],
        "share of prompt tokens found in the prefix cache",
    )
    .inference()
    .reasoned(),
    entry(
        Knob::DraftTokens,
        "draft_tokens",
        &["speculative_tokens"],
        Group::Serving,
        whole(0.0, 64.0, Step::Add(1.0)),
        &["serving", "speculative", "tokens"],
        "tokens drafted per step (speculative decoding, MTP, EAGLE); 0: off",
    )
    .unit("tok")
    .inference()
    .reasoned(),
    entry(
        Knob::DraftAcceptance,
        "draft_acceptance",
        &["acceptance"],
        Group::Serving,
        real(0.0, 1.0, 0.05),
        &["serving", "speculative", "acceptance"],
        "probability that a drafted token is accepted",
    )
    .inference()
    .reasoned(),
    entry(
        Knob::PrefillAccelerators,
        "prefill_accelerators",
        &["prefill_pool"],
        Group::Serving,
        whole(0.0, 1_048_576.0, Step::Double),
        &["serving", "prefill_accelerators"],
        "accelerators that only prefill, apart from those that decode; 0: both on all",
    )
    .inference()
    .reasoned(),
    entry(
        Knob::Arrivals,
        "arrivals",
        &["arrival_process"],
        Group::Serving,
        Kind::Choice(Arrivals::NAMES),
        &["serving", "arrivals"],
        "how requests come: a constant number in flight, at random, in bursts, or all at once",
    )
    .inference()
    .simulated(),
    entry(
        Knob::ArrivalCv,
        "arrival_cv",
        &["burstiness_cv"],
        Group::Serving,
        real(0.0, 20.0, 0.5),
        &["serving", "arrival_cv"],
        "standard deviation over mean of the gaps of gamma arrivals: 1 is Poisson, 0 a metronome, more comes in bursts",
    )
    .inference()
    .simulated(),
    entry(
        Knob::SloTtft,
        "slo_ttft_ms",
        &[],
        Group::Serving,
        real(0.0, 1e7, 100.0),
        &["serving", "slo", "ttft_ms"],
        "a request is good where its first token comes within this; 0: whenever it comes",
    )
    .unit("ms")
    .inference()
    .simulated(),
    entry(
        Knob::SloTpot,
        "slo_tpot_ms",
        &[],
        Group::Serving,
        real(0.0, 1e7, 5.0),
        &["serving", "slo", "tpot_ms"],
        "a request is good where its tokens come this fast after the first; 0: however slowly",
    )
    .unit("ms")
    .inference()
    .simulated(),
    entry(
        Knob::SloE2e,
        "slo_e2e_ms",
        &[],
        Group::Serving,
        real(0.0, 1e8, 1000.0),
        &["serving", "slo", "e2e_ms"],
        "a request is good where its last token comes within this; 0: whenever it comes",
    )
    .unit("ms")
    .inference()
    .simulated(),
];
