//! How workloads are run, as stated: batch, layout, formats, serving load, simulation. Every field is optional;
//! files of the original format have none of them. The table of fields says where each is written.

use crate::count::Count;
use crate::plan::{
    Arrivals, AttentionKernel, ContextExchange, CpuOffload, DraftMethod, Format, GraphCapture, KvTransfer, LoadKind,
    LoraTargets, MoeCapacity, MoeDispatcher, Optimizer, PipelineSchedule, Recompute, Routing, Sharding, SharedExperts,
    Trained,
};

/// Share of device memory that stays free by default: half of the error that the memory model has in nine of ten measured
/// runs is on the unsafe side (`atlas validate`).
pub const HEADROOM: f64 = 0.05;

/// The plan as written; `None` for fields that the file does not state.
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
    /// `parallelism.vpp`: model chunks of each pipeline stage.
    pub vpp: Option<Count>,
    /// `parallelism.first_layers`: layers of the first pipeline stage.
    pub first_layers: Option<Count>,
    /// `parallelism.last_layers`: layers of the last pipeline stage.
    pub last_layers: Option<Count>,
    /// `parallelism.sp`: sequence parallelism.
    pub sp: Option<bool>,
    /// `parallelism.tp`: absent means as few ranks as the weights need.
    pub tp: Option<Count>,
    /// `parallelism.pp`: absent means one stage, or as many as the weights need beyond a fast domain.
    pub pp: Option<Count>,
    /// `parallelism.dp`: absent means that replicas fill the target.
    pub dp: Option<Count>,
    /// `sharding`.
    pub sharding: Option<Sharding>,
    /// `shard`: ranks that states are sharded over (HSDP).
    pub shard: Option<Count>,
    /// `recompute`.
    pub recompute: Option<Recompute>,
    /// `pipeline_schedule`.
    pub schedule: Option<PipelineSchedule>,
    /// `overlap`: communication runs alongside computation.
    pub overlap: Option<bool>,
    /// `expert_imbalance`: load of the busiest expert-parallel rank over the mean.
    pub imbalance: Option<f64>,
    /// `recompute.layers`: layers that are recomputed in full.
    pub recompute_layers: Option<Count>,
    /// `recompute.reserve`: share of device memory that planned recomputation leaves free.
    pub recompute_reserve: Option<f64>,
    /// `sequence.images`: images of a request or a sequence.
    pub images: Option<f64>,
    /// `sequence.image_size`: side of an image, pixels.
    pub image_size: Option<Count>,
    /// `freeze_vision`: the vision encoder is not trained.
    pub freeze_vision: Option<bool>,
    /// `optimizer`.
    pub optimizer: Option<Optimizer>,
    /// `trained`: which weights are trained.
    pub trained: Option<Trained>,
    /// `lora_targets`: which linear layers have adapters.
    pub lora_targets: Option<LoraTargets>,
    /// `cpu_offload`: what is kept in host memory.
    pub cpu_offload: Option<CpuOffload>,
    /// `parallelism.cp_comm_type`: what ranks that share a sequence exchange.
    pub cp_comm_type: Option<ContextExchange>,
    /// `mtp_layers`: layers that learn to predict further tokens.
    pub mtp_layers: Option<Count>,
    /// `parallelism.etp`: tensor-parallel ranks inside an expert.
    pub etp: Option<Count>,
    /// `parallelism.attention_dp`: data-parallel attention groups inside a serving replica.
    pub attention_dp: Option<Count>,
    /// `runtime_tuning`: options of this run that override the defaults of its software.
    pub switches: Switches,
    /// `precision.gradients`: the format in which gradients are kept and reduced.
    pub gradient_format: Option<Format>,
    /// `precision.compute`: the format of matrix products, where it differs from what the software does with such weights.
    pub compute: Option<Format>,
    /// Bits per weight of formats that are described by their size (GGUF, EXL2).
    pub weight_bits: Option<f64>,
    /// `precision.weights`: the format of the weights.
    pub format: Option<Format>,
    /// `precision.experts`: the format of the weights of experts, where it differs from the other weights.
    pub experts: Option<Format>,
    /// `precision.kv`: the format of the KV cache.
    pub kv: Option<Format>,
    /// Steps are replayed as captured graphs (`runtime_tuning.cuda_graphs`, where the serving software decides else).
    pub graphs: Option<bool>,
    /// `train_tokens`: tokens of the whole training run.
    pub train_tokens: Option<f64>,
    /// `serving`.
    pub serving: ServingSpec,
    /// `simulation`, and the fields of `serving` and `sequence` that only simulations use.
    pub simulation: SimulationSpec,
}

/// Switches of the software that a run sets explicitly; `None` keeps the default of the release.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Switches {
    /// `attention_kernel`.
    pub attention_kernel: Option<AttentionKernel>,
    /// `graph_capture`.
    pub graph_capture: Option<GraphCapture>,
    /// `compiled`: the model is compiled (torch.compile, XLA).
    pub compiled: Option<bool>,
    /// `moe_dispatcher`.
    pub moe_dispatcher: Option<MoeDispatcher>,
    /// `moe_capacity`.
    pub moe_capacity: Option<MoeCapacity>,
    /// `overlap_tensor`: tensor-parallel communication runs alongside its matrix products.
    pub overlap_tensor: Option<bool>,
    /// `overlap_pipeline`: pipeline transfers run alongside the next micro-batch.
    pub overlap_pipeline: Option<bool>,
    /// `overlap_experts`: tokens travel between experts while another micro-batch is computed.
    pub overlap_experts: Option<bool>,
    /// `overlap_data`: gradient and parameter communication runs alongside computation.
    pub overlap_data: Option<bool>,
}

/// One pool of a disaggregated deployment: `workers` replicas of this layout. Absent fields are as in `parallelism`.
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
}

/// `serving.pools`: prefill and decode on separate accelerators.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PoolsSpec {
    /// Replicas that prefill.
    pub prefill: PoolSpec,
    /// Replicas that decode.
    pub decode: PoolSpec,
}

/// `serving`: load and scheduler, under vLLM's names.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ServingSpec {
    /// `load`: how requests are offered; absent: closed loop, or open loop with a request rate.
    pub load: Option<LoadKind>,
    /// `run_requests`: requests of the whole run; absent: the load never ends.
    pub run_requests: Option<Count>,
    /// `beams` of beam search.
    pub beams: Option<Count>,
    /// `context_ranks`: ranks that share the KV cache of a sequence in decode (`decode_context_parallel_size`).
    pub context_ranks: Option<Count>,
    /// `recv_interval`: decode steps between two polls of the queue (SGLang's `scheduler_recv_interval`).
    pub recv_interval: Option<Count>,
    /// `overlap_scheduling`: the next step is scheduled while the accelerator computes.
    pub overlap_scheduling: Option<bool>,
    /// `reserve_output`: a sequence is admitted only when its whole output fits.
    pub reserve_output: Option<bool>,
    /// `python_executor`: scheduler and sampler of a compiled runtime run in Python.
    pub python_executor: Option<bool>,
    /// `compiled_batch`: batch size that graphs of fixed shape were compiled for.
    pub compiled_batch: Option<Count>,
    /// `sequence.generate_max`: longest output, tokens.
    pub generate_max: Option<Count>,
    /// `sequence.generate_spread`: longest usual output over the mean.
    pub generate_spread: Option<f64>,
    /// `pools`: separate if the prefill pool has workers.
    pub pools: PoolsSpec,
    /// `kv_transfer`: link over which keys and values travel between the pools.
    pub kv_transfer: Option<KvTransfer>,
    /// `redundant_experts`: copies of busy experts in a layer.
    pub redundant_experts: Option<Count>,
    /// `two_batch_overlap`: one half of a batch computes while the other's tokens travel.
    pub two_batch_overlap: Option<bool>,
    /// `shared_experts`: how experts that every token passes run.
    pub shared_experts: Option<SharedExperts>,
    /// Requests in flight, of all replicas together.
    pub concurrency: Option<Count>,
    /// Requests per second, of all replicas together; replaces the concurrency.
    pub request_rate: Option<f64>,
    /// Most sequences in one step of a replica.
    pub max_num_seqs: Option<Count>,
    /// Most tokens in one step of a replica.
    pub max_num_batched_tokens: Option<Count>,
    /// Share of device memory that the engine may use.
    pub gpu_memory_utilization: Option<f64>,
    /// Prompt chunks share steps with decoding.
    pub chunked_prefill: Option<bool>,
    /// Most prompt tokens of one request in a step; absent: no limit.
    pub long_prefill_token_threshold: Option<Count>,
    /// Share of prompt tokens found in the prefix cache.
    pub prefix_hit: Option<f64>,
    /// Tokens drafted per step.
    pub draft_tokens: Option<Count>,
    /// Probability that the first drafted token is accepted.
    pub draft_acceptance: Option<f64>,
    /// `conversations.count`: conversations under way at once.
    pub conversations: Option<Count>,
    /// `conversations.turns`: turns of each.
    pub turns: Option<f64>,
    /// `conversations.shared_prefix`: tokens that all prompts begin with.
    pub shared_prefix: Option<Count>,
    /// `routing`: which replica a request goes to.
    pub routing: Option<Routing>,
    /// `kv_tiers`: gigabytes for each accelerator, and gigabytes per second, of host memory, local disks and remote stores.
    pub kv_tiers: [(Option<f64>, Option<f64>); 3],
    /// Drafting method.
    pub draft_method: Option<DraftMethod>,
    /// Share of the acceptance that each position loses.
    pub draft_decline: Option<f64>,
    /// Parameters of a draft model, in billions.
    pub draft_params_b: Option<f64>,
    /// Sequences of a replica above which speculation is off.
    pub draft_max_batch: Option<Count>,
    /// Accelerators for prefill only; absent: both phases on all.
    pub prefill_accelerators: Option<Count>,
}

/// How a workload is simulated, as written: length of a run, stragglers, failures; `None` for fields that the file does not state.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SimulationSpec {
    /// `simulation.replications`: independent runs.
    pub replications: Option<Count>,
    /// `simulation.requests`: requests of a run; absent: as many as the load needs.
    pub requests: Option<Count>,
    /// `simulation.steps`: optimizer steps of a run.
    pub steps: Option<Count>,
    /// `simulation.jitter`: standard deviation of one rank's pass over its mean.
    pub jitter: Option<f64>,
    /// `simulation.slow_nodes`: nodes that are slow all the time.
    pub slow_nodes: Option<Count>,
    /// `simulation.slow_factor`: time of their passes over the others'.
    pub slow_factor: Option<f64>,
    /// `simulation.node_mtbf_h`: mean time between failures of a node, h; absent: nodes do not fail.
    pub node_mtbf_h: Option<f64>,
    /// `simulation.checkpoint_interval_s`: work between two checkpoints.
    pub checkpoint_interval_s: Option<f64>,
    /// `simulation.checkpoint_s`: what a checkpoint costs.
    pub checkpoint_s: Option<f64>,
    /// `simulation.checkpoint_async`: a checkpoint is written while work goes on, from a copy in host memory.
    pub checkpoint_async: Option<bool>,
    /// `simulation.restart_s`: what a failure costs besides lost work.
    pub restart_s: Option<f64>,
    /// `serving.arrivals`: how requests come.
    pub arrivals: Option<Arrivals>,
    /// `serving.arrival_cv`: standard deviation of gamma arrivals' gaps over their mean.
    pub arrival_cv: Option<f64>,
    /// `sequence.prompt_cv`: spread of the prompts' lengths.
    pub prompt_cv: Option<f64>,
    /// `sequence.generate_cv`: spread of the outputs' lengths.
    pub generate_cv: Option<f64>,
    /// `serving.slo.ttft_ms`; absent: no limit.
    pub slo_ttft_ms: Option<f64>,
    /// `serving.slo.tpot_ms`; absent: no limit.
    pub slo_tpot_ms: Option<f64>,
    /// `serving.slo.e2e_ms`; absent: no limit.
    pub slo_e2e_ms: Option<f64>,
}
