//! Options of a workload's run as stated in files: batch, layout, formats, serving load, simulation. All fields are
//! optional; files in the original format have none of them. The table of fields states the location of each.

use crate::count::Count;
use crate::plan::{
    Arrivals, AttentionKernel, ContextExchange, CpuOffload, DraftMethod, Format, GraphCapture, KvTransfer, LoadKind,
    LoraTargets, MoeCapacity, MoeDispatcher, Optimizer, PipelineSchedule, Recompute, Routing, Sharding, SharedExperts,
    Trained,
};

/// Default share of device memory that stays free: half of the 90 % error interval of the memory model is on the unsafe
/// side (`atlas validate`).
pub const HEADROOM: f64 = 0.05;
/// Default rank of LoRA adapters: that of TRL's recipes (`ModelConfig.lora_r`).
pub const LORA_RANK: f64 = 16.0;

/// Options as stated in a file; `None` if not stated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PlanSpec {
    /// `batch.micro`: sequences of a micro-batch.
    pub micro: Option<Count>,
    /// `batch.global`: sequences of an optimizer step.
    pub global: Option<Count>,
    /// `parallelism.cp`: context-parallel ranks.
    pub cp: Option<Count>,
    /// `parallelism.ep`: expert-parallel ranks.
    pub ep: Option<Count>,
    /// `parallelism.vpp`: model chunks per pipeline stage.
    pub vpp: Option<Count>,
    /// `parallelism.first_layers`: layers of the first pipeline stage.
    pub first_layers: Option<Count>,
    /// `parallelism.last_layers`: layers of the last pipeline stage.
    pub last_layers: Option<Count>,
    /// `parallelism.sp`: sequence parallelism.
    pub sp: Option<bool>,
    /// `parallelism.tp`: tensor-parallel ranks; default: the minimum for which the weights fit.
    pub tp: Option<Count>,
    /// `parallelism.pp`: pipeline stages; default: one, or the minimum for which the weights fit beyond a scale-up
    /// domain.
    pub pp: Option<Count>,
    /// `parallelism.dp`: data-parallel replicas; default: as many as fit the target.
    pub dp: Option<Count>,
    /// `sharding`.
    pub sharding: Option<Sharding>,
    /// `shard`: number of ranks over which states are sharded (HSDP).
    pub shard: Option<Count>,
    /// `recompute`.
    pub recompute: Option<Recompute>,
    /// `pipeline_schedule`.
    pub schedule: Option<PipelineSchedule>,
    /// `overlap`: whether communication overlaps with computation.
    pub overlap: Option<bool>,
    /// `expert_imbalance`: load of the busiest expert-parallel rank relative to the mean.
    pub imbalance: Option<f64>,
    /// `recompute.layers`: number of layers recomputed in full.
    pub recompute_layers: Option<Count>,
    /// `recompute.reserve`: share of device memory that planned recomputation keeps free.
    pub recompute_reserve: Option<f64>,
    /// `sequence.images`: images per request or training sequence.
    pub images: Option<f64>,
    /// `sequence.image_size`: side of an image, pixels.
    pub image_size: Option<Count>,
    /// `freeze_vision`: whether the vision encoder is frozen.
    pub freeze_vision: Option<bool>,
    /// `optimizer`.
    pub optimizer: Option<Optimizer>,
    /// `trained`: which weights are trained.
    pub trained: Option<Trained>,
    /// `lora_targets`: which linear layers have adapters.
    pub lora_targets: Option<LoraTargets>,
    /// `lora_rank`: rank of the adapters.
    pub lora_rank: Option<Count>,
    /// `cpu_offload`: state offloaded to host memory.
    pub cpu_offload: Option<CpuOffload>,
    /// `parallelism.cp_comm_type`: what context-parallel ranks exchange.
    pub cp_comm_type: Option<ContextExchange>,
    /// `mtp_layers`: multi-token-prediction layers.
    pub mtp_layers: Option<Count>,
    /// `parallelism.etp`: tensor-parallel ranks inside an expert.
    pub etp: Option<Count>,
    /// `parallelism.attention_dp`: data-parallel attention groups inside a serving replica.
    pub attention_dp: Option<Count>,
    /// `runtime_tuning`: options that override the software's defaults.
    pub switches: Switches,
    /// `precision.gradients`: format in which gradients are stored and reduced.
    pub gradient_format: Option<Format>,
    /// `precision.bf16_layers`: layers computed in 16 bit although the format is narrower.
    pub bf16_layers: Option<Count>,
    /// `precision.compute`: format of GEMMs, if it differs from the software's default for these weights.
    pub compute: Option<Format>,
    /// `precision.weight_bits`: bits per weight, for formats defined by their size (GGUF, EXL2).
    pub weight_bits: Option<f64>,
    /// `precision.weights`: the format of the weights.
    pub format: Option<Format>,
    /// Whether `format` is NVFP4, whose block scales are 8-bit floating-point numbers rather than the powers of two of MX
    /// formats.
    pub nvfp4: Option<bool>,
    /// `precision.experts`: format of expert weights, if it differs from the other weights.
    pub experts: Option<Format>,
    /// `precision.kv`: the format of the KV cache.
    pub kv: Option<Format>,
    /// `runtime_tuning.cuda_graphs`, if it overrides the serving software's default: steps are replayed as captured
    /// graphs.
    pub graphs: Option<bool>,
    /// `train_tokens`: tokens of the whole training run.
    pub train_tokens: Option<f64>,
    /// `serving`.
    pub serving: ServingSpec,
    /// `simulation`, and the fields of `serving` and `sequence` used by simulations only.
    pub simulation: SimulationSpec,
}

/// Options of the software that a run sets explicitly; `None`: default of the release.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Switches {
    /// `attention_kernel`.
    pub attention_kernel: Option<AttentionKernel>,
    /// `graph_capture`.
    pub graph_capture: Option<GraphCapture>,
    /// `compiled`: whether the model is compiled (torch.compile, XLA).
    pub compiled: Option<bool>,
    /// `moe_dispatcher`.
    pub moe_dispatcher: Option<MoeDispatcher>,
    /// `moe_capacity`.
    pub moe_capacity: Option<MoeCapacity>,
    /// `overlap_tensor`: overlap of tensor-parallel communication with GEMMs.
    pub overlap_tensor: Option<bool>,
    /// `overlap_pipeline`: overlap of pipeline transfers with the next micro-batch.
    pub overlap_pipeline: Option<bool>,
    /// `overlap_experts`: overlap of the exchange of tokens between experts with another micro-batch.
    pub overlap_experts: Option<bool>,
    /// `overlap_data`: overlap of gradient and parameter communication with computation.
    pub overlap_data: Option<bool>,
}

/// A pool of a disaggregated deployment: `workers` replicas of this layout. Missing fields are taken from
/// `parallelism`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PoolSpec {
    /// Replicas.
    pub workers: Option<Count>,
    /// Tensor-parallel ranks.
    pub tp: Option<Count>,
    /// Pipeline stages.
    pub pp: Option<Count>,
    /// Expert-parallel ranks.
    pub ep: Option<Count>,
    /// Data-parallel attention groups.
    pub attention_dp: Option<Count>,
    /// Redundant copies of busy experts per layer.
    pub redundant_experts: Option<Count>,
}

/// `serving.pools`: prefill and decode on separate accelerators.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PoolsSpec {
    /// Replicas for prefill.
    pub prefill: PoolSpec,
    /// Replicas for decode.
    pub decode: PoolSpec,
}

/// `serving`: load and scheduler, with vLLM's names.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ServingSpec {
    /// `load`: kind of load; default: closed loop, or open loop if a request rate is stated.
    pub load: Option<LoadKind>,
    /// `run_requests`: number of requests in the whole run; `None`: the load does not end.
    pub run_requests: Option<Count>,
    /// `beams`: beams per request (beam search).
    pub beams: Option<Count>,
    /// `context_ranks`: ranks that share the KV cache of a sequence in decode (`decode_context_parallel_size`).
    pub context_ranks: Option<Count>,
    /// `recv_interval`: decode steps between two polls of the queue (SGLang's `scheduler_recv_interval`).
    pub recv_interval: Option<Count>,
    /// `overlap_scheduling`: whether the next step is scheduled while the accelerator computes.
    pub overlap_scheduling: Option<bool>,
    /// `reserve_output`: whether a sequence is admitted only if its whole output fits in the KV cache.
    pub reserve_output: Option<bool>,
    /// `python_executor`: whether scheduler and sampler of a compiled runtime run in Python.
    pub python_executor: Option<bool>,
    /// `compiled_batch`: batch size of graphs compiled for a fixed shape.
    pub compiled_batch: Option<Count>,
    /// `sequence.generate_max`: maximum output length, tokens.
    pub generate_max: Option<Count>,
    /// `sequence.generate_spread`: ratio of the longest typical to the mean output length.
    pub generate_spread: Option<f64>,
    /// `pools`: separate pools, if the prefill pool has workers.
    pub pools: PoolsSpec,
    /// `kv_transfer`: link for KV cache transfers between the pools.
    pub kv_transfer: Option<KvTransfer>,
    /// `redundant_experts`: redundant copies of busy experts per layer.
    pub redundant_experts: Option<Count>,
    /// `two_batch_overlap`: whether one half of a batch computes while the other communicates.
    pub two_batch_overlap: Option<bool>,
    /// `shared_experts`: how shared experts run.
    pub shared_experts: Option<SharedExperts>,
    /// Concurrent requests over all replicas.
    pub concurrency: Option<Count>,
    /// Requests per second over all replicas; replaces the concurrency.
    pub request_rate: Option<f64>,
    /// Maximum number of sequences in one step of a replica.
    pub max_num_seqs: Option<Count>,
    /// Maximum number of tokens in one step of a replica.
    pub max_num_batched_tokens: Option<Count>,
    /// Share of device memory that the engine may use.
    pub gpu_memory_utilization: Option<f64>,
    /// Whether prompt chunks share steps with decode.
    pub chunked_prefill: Option<bool>,
    /// Maximum number of prompt tokens of one request in a step; `None`: no limit.
    pub long_prefill_token_threshold: Option<Count>,
    /// Share of prompt tokens in the prefix cache.
    pub prefix_hit: Option<f64>,
    /// Tokens drafted per step.
    pub draft_tokens: Option<Count>,
    /// Probability that the first drafted token is accepted.
    pub draft_acceptance: Option<f64>,
    /// `conversations.count`: concurrent conversations.
    pub conversations: Option<Count>,
    /// `conversations.turns`: turns per conversation.
    pub turns: Option<f64>,
    /// `conversations.shared_prefix`: tokens at the start of every prompt.
    pub shared_prefix: Option<Count>,
    /// `routing`: how requests are routed to replicas.
    pub routing: Option<Routing>,
    /// `kv_tiers`: GB per accelerator, and GB/s, of host memory, local disks and remote storage.
    pub kv_tiers: [(Option<f64>, Option<f64>); 3],
    /// Drafting method.
    pub draft_method: Option<DraftMethod>,
    /// Relative loss of acceptance per position.
    pub draft_decline: Option<f64>,
    /// Parameters of a draft model, in billions.
    pub draft_params_b: Option<f64>,
    /// Batch of a replica, sequences, above which nothing is drafted.
    pub draft_max_batch: Option<Count>,
    /// Accelerators dedicated to prefill; `None`: both phases on all accelerators.
    pub prefill_accelerators: Option<Count>,
}

/// Simulation options as stated in a file: length of a run, stragglers, failures; `None` if not stated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulationSpec {
    /// `simulation.replications`: independent runs.
    pub replications: Option<Count>,
    /// `simulation.requests`: requests per run; `None`: as many as the load needs.
    pub requests: Option<Count>,
    /// `simulation.steps`: optimizer steps per run.
    pub steps: Option<Count>,
    /// `simulation.jitter`: coefficient of variation of a rank's compute time.
    pub jitter: Option<f64>,
    /// `simulation.slow_nodes`: number of permanently slow nodes.
    pub slow_nodes: Option<Count>,
    /// `simulation.slow_factor`: slowdown of their compute time.
    pub slow_factor: Option<f64>,
    /// `simulation.node_mtbf_h`: mean time between failures of a node, h; `None`: no failures.
    pub node_mtbf_h: Option<f64>,
    /// `simulation.checkpoint_interval_s`: time between two checkpoints, s.
    pub checkpoint_interval_s: Option<f64>,
    /// `simulation.checkpoint_s`: time to write a checkpoint, s.
    pub checkpoint_s: Option<f64>,
    /// `simulation.checkpoint_async`: whether a checkpoint is written in the background, from a copy in host memory.
    pub checkpoint_async: Option<bool>,
    /// `simulation.restart_s`: time to recover from a failure, without lost work, s.
    pub restart_s: Option<f64>,
    /// `serving.arrivals`: arrival process.
    pub arrivals: Option<Arrivals>,
    /// `serving.arrival_cv`: coefficient of variation of the gaps between gamma-distributed arrivals.
    pub arrival_cv: Option<f64>,
    /// `sequence.prompt_cv`: coefficient of variation of prompt lengths.
    pub prompt_cv: Option<f64>,
    /// `sequence.generate_cv`: coefficient of variation of output lengths.
    pub generate_cv: Option<f64>,
    /// `serving.slo.ttft_ms`: TTFT objective, ms; `None`: no limit.
    pub slo_ttft_ms: Option<f64>,
    /// `serving.slo.tpot_ms`: TPOT objective, ms; `None`: no limit.
    pub slo_tpot_ms: Option<f64>,
    /// `serving.slo.e2e_ms`: end-to-end latency objective, ms; `None`: no limit.
    pub slo_e2e_ms: Option<f64>,
}
