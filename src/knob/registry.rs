//! The table of knobs. A knob added here appears everywhere.

use super::{Group, Home, Kind, Knob, Spec, Step};
use crate::plan::{Arrivals, Engine, Format, PipelineSchedule, Recompute, Server, Sharding};
use crate::spec::Mode;
use crate::spec::decode::Bounds;

const fn whole(min: f64, max: f64, step: Step) -> Kind {
    Kind::Number { bounds: Bounds { min, max, whole: true }, step }
}

const fn real(min: f64, max: f64, step: f64) -> Kind {
    Kind::Number { bounds: Bounds { min, max, whole: false }, step: Step::Add(step) }
}

const fn ranks(max: f64) -> Kind {
    whole(1.0, max, Step::Double)
}

/// Every engine.
const ALL: &[Engine] = &[Engine::Analytical, Engine::SemiEmpirical, Engine::Event];
/// Those that reason from hardware and model.
const REASONING: &[Engine] = &[Engine::Analytical, Engine::Event];

/// An entry without unit, of both modes, that every engine heeds and that stands in a workload's file.
const fn entry(
    knob: Knob,
    name: &'static str,
    aliases: &'static [&'static str],
    group: Group,
    kind: Kind,
    path: &'static [&'static str],
    help: &'static str,
) -> Spec {
    let home = if path.is_empty() { Home::Nowhere } else { Home::Workload(path) };
    Spec { knob, name, aliases, group, kind, unit: "", home, mode: None, engines: ALL, except: None, help }
}

impl Spec {
    const fn unit(self, unit: &'static str) -> Spec {
        Spec { unit, ..self }
    }

    const fn of_target(self) -> Spec {
        let home = match self.home {
            Home::Workload(path) => Home::Target(path),
            other => other,
        };
        Spec { home, ..self }
    }

    const fn training(self) -> Spec {
        Spec { mode: Some(Mode::Training), ..self }
    }

    const fn inference(self) -> Spec {
        Spec { mode: Some(Mode::Inference), ..self }
    }

    const fn reasoned(self) -> Spec {
        Spec { engines: REASONING, ..self }
    }

    const fn except(self, mode: Mode, engines: &'static [Engine]) -> Spec {
        Spec { except: Some((mode, engines)), ..self }
    }

    const fn simulated(self) -> Spec {
        Spec { engines: &[Engine::Event], ..self }
    }

    const fn drawn(self) -> Spec {
        Spec { engines: &[Engine::SemiEmpirical, Engine::Event], ..self }
    }

    const fn calibrated(self) -> Spec {
        Spec { engines: &[Engine::SemiEmpirical], ..self }
    }
}

/// The knobs that the founding dashboard's estimator heeds.
pub(super) const DASHBOARD: [Knob; 13] = [
    Knob::Engine,
    Knob::Microbatch,
    Knob::Global,
    Knob::Precision,
    Knob::Recompute,
    Knob::Tp,
    Knob::Pp,
    Knob::Dp,
    Knob::Prompt,
    Knob::Generate,
    Knob::TrainTokens,
    Knob::Concurrency,
    Knob::HourlyUsd,
];

/// The registry.
pub const KNOBS: [Spec; 65] = [
    entry(
        Knob::Engine,
        "engine",
        &[],
        Group::Engine,
        Kind::Choice(Engine::NAMES),
        &[],
        "what answers: closed forms, the calibrated model, a simulation event by event, or the founding dashboard",
    ),
    entry(
        Knob::Microbatch,
        "microbatch",
        &["micro", "micro_batch"],
        Group::Runtime,
        ranks(65_536.0),
        &["runtime_tuning", "microbatch"],
        "sequences per device and step; in inference, requests served side by side",
    )
    .unit("seq")
    .except(Mode::Inference, REASONING),
    entry(
        Knob::Global,
        "global",
        &["global_batch", "gbs"],
        Group::Runtime,
        ranks(16_777_216.0),
        &["batch", "global"],
        "sequences of one optimizer step, over all replicas",
    )
    .unit("seq")
    .training()
    .reasoned(),
    entry(
        Knob::Precision,
        "precision",
        &["dtype", "format"],
        Group::Runtime,
        Kind::Choice(Format::NAMES),
        &["precision", "weights"],
        "format of matrix multiplications and of the weights behind them",
    )
    .reasoned(),
    entry(
        Knob::KvPrecision,
        "kv_precision",
        &["kv_cache_dtype", "kv"],
        Group::Runtime,
        Kind::Choice(Format::NAMES),
        &["precision", "kv"],
        "format of the KV cache",
    )
    .inference()
    .reasoned(),
    entry(
        Knob::Recompute,
        "recompute",
        &["activation_checkpointing"],
        Group::Runtime,
        Kind::Choice(Recompute::NAMES),
        &["recompute"],
        "activations computed again in the backward pass: less memory, more work",
    )
    .training()
    .reasoned(),
    entry(
        Knob::Overlap,
        "overlap",
        &[],
        Group::Runtime,
        Kind::Toggle,
        &["overlap"],
        "communication runs beside computation, as far as it can",
    )
    .training()
    .reasoned(),
    entry(
        Knob::ExpertImbalance,
        "expert_imbalance",
        &["imbalance"],
        Group::Runtime,
        real(1.0, 100.0, 0.1),
        &["expert_imbalance"],
        "load of the busiest expert-parallel rank over the mean",
    )
    .training()
    .reasoned(),
    entry(
        Knob::CudaGraphs,
        "cuda_graphs",
        &["graphs"],
        Group::Runtime,
        Kind::Toggle,
        &["runtime_tuning", "cuda_graphs"],
        "launch kernels as captured graphs: less launch overhead, more utilisation",
    ),
    entry(
        Knob::GpudirectRdma,
        "gpudirect_rdma",
        &["gpudirect", "gdr"],
        Group::Runtime,
        Kind::Toggle,
        &["runtime_tuning", "gpudirect_rdma"],
        "NICs read accelerator memory directly: cheaper communication",
    )
    .calibrated(),
    entry(
        Knob::Virt,
        "virt",
        &["virtualization"],
        Group::Runtime,
        Kind::Choice(&["bare", "sriov"]),
        &["runtime_tuning", "virt"],
        "bare metal, or NICs shared by SR-IOV: jitter and longer tails",
    )
    .calibrated(),
    entry(
        Knob::Fabric,
        "fabric",
        &["network"],
        Group::Runtime,
        Kind::Fabric,
        &["runtime_tuning", "fabric"],
        "fabric between accelerators, one of those the profile is calibrated for",
    )
    .calibrated(),
    entry(
        Knob::Tp,
        "tp",
        &["tensor_parallel"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "tp"],
        "tensor-parallel ranks: each layer cut across accelerators",
    ),
    entry(
        Knob::Pp,
        "pp",
        &["pipeline_parallel"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "pp"],
        "pipeline stages: layers in a row of accelerators",
    ),
    entry(
        Knob::Vpp,
        "vpp",
        &["virtual_pipeline"],
        Group::Parallelism,
        ranks(256.0),
        &["parallelism", "vpp"],
        "model chunks of each pipeline stage (interleaving): a smaller bubble, more transfers",
    )
    .training()
    .reasoned(),
    entry(
        Knob::Dp,
        "dp",
        &["data_parallel"],
        Group::Parallelism,
        ranks(1_048_576.0),
        &["parallelism", "dp"],
        "data-parallel replicas; unset, they fill the target",
    ),
    entry(
        Knob::Cp,
        "cp",
        &["context_parallel"],
        Group::Parallelism,
        ranks(1024.0),
        &["parallelism", "cp"],
        "context-parallel ranks: each sequence cut across accelerators",
    )
    .training()
    .reasoned(),
    entry(
        Knob::Ep,
        "ep",
        &["expert_parallel"],
        Group::Parallelism,
        ranks(4096.0),
        &["parallelism", "ep"],
        "expert-parallel ranks: experts spread over accelerators",
    )
    .reasoned(),
    entry(
        Knob::Sp,
        "sp",
        &["sequence_parallel"],
        Group::Parallelism,
        Kind::Toggle,
        &["parallelism", "sp"],
        "norms and residuals split over the tensor-parallel ranks; unset, on where tp > 1",
    )
    .training()
    .reasoned(),
    entry(
        Knob::Sharding,
        "sharding",
        &["zero"],
        Group::Parallelism,
        Kind::Choice(Sharding::NAMES),
        &["sharding"],
        "how model states are spread over replicas: optimizer, gradients, weights (zero3 is FSDP)",
    )
    .training()
    .reasoned(),
    entry(
        Knob::Shard,
        "shard",
        &["hsdp"],
        Group::Parallelism,
        whole(0.0, 1_048_576.0, Step::Double),
        &["shard"],
        "replicas that states are spread over (HSDP); 0: all",
    )
    .training()
    .reasoned(),
    entry(
        Knob::PipelineSchedule,
        "pp_schedule",
        &["pipeline_schedule"],
        Group::Parallelism,
        Kind::Choice(PipelineSchedule::NAMES),
        &["pipeline_schedule"],
        "order of a pipeline's forward and backward passes",
    )
    .training()
    .reasoned(),
    entry(
        Knob::Prompt,
        "prompt",
        &["isl", "seq"],
        Group::Sequence,
        whole(0.0, 16_777_216.0, Step::Double),
        &["sequence", "prompt"],
        "prompt tokens (ISL); the whole sequence in training",
    )
    .unit("tok"),
    entry(
        Knob::Generate,
        "generate",
        &["osl"],
        Group::Sequence,
        whole(0.0, 16_777_216.0, Step::Double),
        &["sequence", "generate"],
        "generated tokens (OSL); 0 in training",
    )
    .unit("tok"),
    entry(
        Knob::TrainTokens,
        "train_tokens",
        &["budget_tokens"],
        Group::Sequence,
        Kind::Number { bounds: Bounds { min: 1.0, max: 1e18, whole: false }, step: Step::Double },
        &["train_tokens"],
        "tokens of the whole training run: its time, cost, energy",
    )
    .unit("tok")
    .training()
    .reasoned(),
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
        Knob::NumNodes,
        "num_nodes",
        &["nodes"],
        Group::Target,
        ranks(1_000_000.0),
        &["num_nodes"],
        "nodes of the target",
    )
    .of_target(),
    entry(
        Knob::NetworkGbps,
        "network_gbps",
        &["nic_gbps"],
        Group::Target,
        real(0.0, 1e6, 100.0),
        &["network", "Gbps_per_accel"],
        "network bandwidth between nodes, of one accelerator",
    )
    .unit("Gb/s")
    .of_target()
    .reasoned(),
    entry(
        Knob::Oversubscription,
        "oversubscription",
        &[],
        Group::Target,
        real(1.0, 100.0, 0.5),
        &["network", "oversubscription"],
        "downlinks over uplinks of the network between nodes; 1: non-blocking",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::HourlyUsd,
        "hourly_usd",
        &["hourly", "price"],
        Group::Target,
        real(0.0, 1e9, 1.0),
        &["cost", "hourly_usd"],
        "rental of one node",
    )
    .unit("$/h")
    .of_target(),
    entry(
        Knob::UsdPerKwh,
        "usd_per_kwh",
        &["kwh", "energy_price"],
        Group::Target,
        real(0.0, 1e6, 0.01),
        &["cost", "usd_per_kwh"],
        "price of energy, paid beside the rental",
    )
    .unit("$/kWh")
    .of_target(),
    entry(
        Knob::Pue,
        "pue",
        &[],
        Group::Target,
        real(0.0, 100.0, 0.05),
        &["cost", "pue"],
        "facility power over IT power",
    )
    .of_target(),
    entry(
        Knob::KgCo2ePerKwh,
        "kg_co2e_per_kwh",
        &["grid_intensity", "co2"],
        Group::Target,
        real(0.0, 10.0, 0.05),
        &["cost", "kg_co2e_per_kwh"],
        "emissions of the grid",
    )
    .unit("kg/kWh")
    .of_target()
    .reasoned(),
    entry(
        Knob::CapexUsdNode,
        "capex_usd_node",
        &["capex"],
        Group::Target,
        real(0.0, 1e9, 10_000.0),
        &["cost", "capex_usd_node"],
        "purchase price of one node, the alternative to rental; 0: none is known",
    )
    .unit("$")
    .of_target()
    .reasoned(),
    entry(
        Knob::AmortizationYears,
        "amortization_years",
        &["years"],
        Group::Target,
        real(0.1, 50.0, 1.0),
        &["cost", "amortization_years"],
        "years over which a purchase is written off",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::Utilization,
        "utilization",
        &["duty"],
        Group::Target,
        real(0.01, 1.0, 0.1),
        &["cost", "utilization"],
        "share of the time that owned hardware works; it is written off all the time",
    )
    .of_target()
    .reasoned(),
    entry(
        Knob::Seed,
        "seed",
        &[],
        Group::Run,
        Kind::Seed,
        &[],
        "seed of all that is drawn; phase i of a schedule draws from seed + i",
    )
    .drawn(),
    entry(
        Knob::Noise,
        "noise",
        &[],
        Group::Run,
        Kind::Toggle,
        &[],
        "draw run-to-run noise as the founding model does; off gives the expectation",
    )
    .calibrated(),
    entry(
        Knob::Replications,
        "replications",
        &["repetitions"],
        Group::Simulation,
        whole(1.0, 1000.0, Step::Add(1.0)),
        &["simulation", "replications"],
        "independent runs, from seed on: figures are their means, and their spread widens the interval",
    )
    .simulated(),
    entry(
        Knob::Requests,
        "requests",
        &["num_prompts"],
        Group::Simulation,
        whole(0.0, 1_000_000.0, Step::Double),
        &["simulation", "requests"],
        "requests that each run serves and counts; 0: as many as the load asks for, a thousand at least",
    )
    .unit("req")
    .inference()
    .simulated(),
    entry(
        Knob::Steps,
        "steps",
        &["simulated_steps"],
        Group::Simulation,
        whole(1.0, 10_000.0, Step::Double),
        &["simulation", "steps"],
        "optimizer steps that each run takes",
    )
    .training()
    .simulated(),
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
        Knob::PromptCv,
        "prompt_cv",
        &["isl_cv"],
        Group::Sequence,
        real(0.0, 10.0, 0.1),
        &["sequence", "prompt_cv"],
        "standard deviation over mean of the prompts' lengths (log-normal); 0: all alike",
    )
    .inference()
    .simulated(),
    entry(
        Knob::GenerateCv,
        "generate_cv",
        &["osl_cv"],
        Group::Sequence,
        real(0.0, 10.0, 0.1),
        &["sequence", "generate_cv"],
        "standard deviation over mean of the outputs' lengths (log-normal); 0: all alike",
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
    entry(
        Knob::Jitter,
        "jitter",
        &["compute_jitter"],
        Group::Simulation,
        real(0.0, 2.0, 0.01),
        &["simulation", "jitter"],
        "standard deviation over mean of one rank's pass; each pass waits for the slowest of its ranks",
    )
    .training()
    .simulated(),
    entry(
        Knob::SlowNodes,
        "slow_nodes",
        &["stragglers", "slow_hosts"],
        Group::Simulation,
        whole(0.0, 1_000_000.0, Step::Add(1.0)),
        &["simulation", "slow_nodes"],
        "nodes that compute slowly all the time; which ones, the seed draws",
    )
    .training()
    .simulated(),
    entry(
        Knob::SlowFactor,
        "slow_factor",
        &["straggler_factor"],
        Group::Simulation,
        real(1.0, 100.0, 0.1),
        &["simulation", "slow_factor"],
        "time of a slow node's pass over another's",
    )
    .training()
    .simulated(),
    entry(
        Knob::NodeMtbf,
        "node_mtbf_h",
        &["mtbf", "node_mtbf"],
        Group::Simulation,
        real(0.0, 1e7, 1000.0),
        &["simulation", "node_mtbf_h"],
        "mean time between failures of one node; 0: none fails (Llama 3's nodes: 6,300 h, arXiv 2407.21783, table 5)",
    )
    .unit("h")
    .training()
    .simulated(),
    entry(
        Knob::CheckpointInterval,
        "checkpoint_interval_s",
        &["checkpoint_interval"],
        Group::Simulation,
        real(0.0, 1e7, 60.0),
        &["simulation", "checkpoint_interval_s"],
        "work between two checkpoints; 0: Daly's interval for these failures",
    )
    .unit("s")
    .training()
    .simulated(),
    entry(
        Knob::Checkpoint,
        "checkpoint_s",
        &["checkpoint_cost"],
        Group::Simulation,
        real(0.0, 1e5, 5.0),
        &["simulation", "checkpoint_s"],
        "time for which a checkpoint stops the work; unset, the model's states at 1 GB/s from each node",
    )
    .unit("s")
    .training()
    .simulated(),
    entry(
        Knob::Restart,
        "restart_s",
        &["recovery"],
        Group::Simulation,
        real(0.0, 1e6, 60.0),
        &["simulation", "restart_s"],
        "time from a failure until work goes on, on a spare node, from the last checkpoint",
    )
    .unit("s")
    .training()
    .simulated(),
];
