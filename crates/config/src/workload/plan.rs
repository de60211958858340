//! How a workload is run: batch, sharding, formats, serving load. Every field is optional; files of the original format
//! have none of them.

use super::SimulationSpec;
use crate::read_field::{ReadField as _, word};
use atlas_core::field::Knob;
use atlas_core::plan::{
    AttentionKernel, ContextExchange, CpuOffload, DraftMethod, Format, GraphCapture, KvTransfer, LoadKind, LoraTargets,
    MoeCapacity, MoeDispatcher, Optimizer, PipelineSchedule, Recompute, Routing, Sharding, SharedExperts, Trained,
    stored_bits,
};
use atlas_document::Node;
use atlas_document::decode::Fields;

/// The plan as written; `None` where the file is silent.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PlanSpec {
    /// `batch.micro`: sequences of a micro-batch.
    pub micro: Option<f64>,
    /// `batch.global`: sequences of an optimizer step.
    pub global: Option<f64>,
    /// `parallelism.cp`: context-parallel ranks.
    pub cp: Option<f64>,
    /// `parallelism.ep`: expert-parallel ranks.
    pub ep: Option<f64>,
    /// `parallelism.vpp`: model chunks of each pipeline stage.
    pub vpp: Option<f64>,
    /// `parallelism.first_layers`: layers of the first pipeline stage.
    pub first_layers: Option<f64>,
    /// `parallelism.last_layers`: layers of the last pipeline stage.
    pub last_layers: Option<f64>,
    /// `parallelism.sp`: sequence parallelism.
    pub sp: Option<bool>,
    /// `parallelism.dp`: absent means that replicas fill the target.
    pub dp: Option<f64>,
    /// `sharding`.
    pub sharding: Option<Sharding>,
    /// `shard`: ranks that states are sharded over (HSDP).
    pub shard: Option<f64>,
    /// `recompute`.
    pub recompute: Option<Recompute>,
    /// `pipeline_schedule`.
    pub schedule: Option<PipelineSchedule>,
    /// `overlap`: communication runs beside computation.
    pub overlap: Option<bool>,
    /// `expert_imbalance`: load of the busiest expert-parallel rank over the mean.
    pub imbalance: Option<f64>,
    /// `recompute.layers`: layers that are recomputed in full.
    pub recompute_layers: Option<f64>,
    /// `recompute.reserve`: share of device memory that planned recomputation leaves free.
    pub recompute_reserve: Option<f64>,
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
    pub mtp_layers: Option<f64>,
    /// `parallelism.etp`: tensor-parallel ranks inside an expert.
    pub etp: Option<f64>,
    /// `parallelism.attention_dp`: data-parallel attention groups inside a serving replica.
    pub attention_dp: Option<f64>,
    /// `runtime_tuning`: what this run switches on or off against the defaults of its software.
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
    /// `overlap_tensor`: tensor-parallel communication runs beside its matrix products.
    pub overlap_tensor: Option<bool>,
    /// `overlap_pipeline`: pipeline transfers run beside the next micro-batch.
    pub overlap_pipeline: Option<bool>,
    /// `overlap_data`: gradient and parameter communication runs beside computation.
    pub overlap_data: Option<bool>,
}

/// One pool of a disaggregated deployment: `workers` replicas of this layout. What is absent is as in `parallelism`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PoolSpec {
    /// Replicas.
    pub workers: Option<f64>,
    /// Tensor-parallel ranks.
    pub tp: Option<f64>,
    /// Pipeline stages.
    pub pp: Option<f64>,
    /// Expert-parallel ranks.
    pub ep: Option<f64>,
    /// Data-parallel attention groups.
    pub attention_dp: Option<f64>,
}

impl PoolSpec {
    fn read(fields: &mut Fields<'_>) -> PoolSpec {
        // The table has the fields of the prefill pool; the decode pool has the same ones.
        PoolSpec {
            workers: fields.number_of(Knob::PrefillWorkers).or(Some(1.0)),
            tp: fields.number_of(Knob::PrefillTp),
            pp: fields.number_of(Knob::PrefillPp),
            ep: fields.number_of(Knob::PrefillEp),
            attention_dp: fields.number_of(Knob::PrefillAttentionDp),
        }
    }
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
    pub run_requests: Option<f64>,
    /// `beams` of beam search.
    pub beams: Option<f64>,
    /// `context_ranks`: ranks that share the KV cache of a sequence in decode (`decode_context_parallel_size`).
    pub context_ranks: Option<f64>,
    /// `recv_interval`: decode steps between two looks at the queue (SGLang's `scheduler_recv_interval`).
    pub recv_interval: Option<f64>,
    /// `overlap_scheduling`: the next step is scheduled while the accelerator computes.
    pub overlap_scheduling: Option<bool>,
    /// `reserve_output`: a sequence is admitted only when its whole output fits.
    pub reserve_output: Option<bool>,
    /// `python_executor`: scheduler and sampler of a compiled runtime run in Python.
    pub python_executor: Option<bool>,
    /// `compiled_batch`: batch size that graphs of fixed shape were compiled for.
    pub compiled_batch: Option<f64>,
    /// `sequence.generate_max`: longest output, tokens.
    pub generate_max: Option<f64>,
    /// `sequence.generate_spread`: longest usual output over the mean.
    pub generate_spread: Option<f64>,
    /// `pools`: apart where the prefill pool has workers.
    pub pools: PoolsSpec,
    /// `kv_transfer`: over what keys and values travel between the pools.
    pub kv_transfer: Option<KvTransfer>,
    /// `redundant_experts`: copies of busy experts in a layer.
    pub redundant_experts: Option<f64>,
    /// `two_batch_overlap`: one half of a batch computes while the other's tokens travel.
    pub two_batch_overlap: Option<bool>,
    /// `shared_experts`: how experts that every token passes run.
    pub shared_experts: Option<SharedExperts>,
    /// Requests in flight, of all replicas together.
    pub concurrency: Option<f64>,
    /// Requests per second, of all replicas together; replaces the concurrency.
    pub request_rate: Option<f64>,
    /// Most sequences in one step of a replica.
    pub max_num_seqs: Option<f64>,
    /// Most tokens in one step of a replica.
    pub max_num_batched_tokens: Option<f64>,
    /// Share of device memory that the engine may use.
    pub gpu_memory_utilization: Option<f64>,
    /// Prompt chunks share steps with decoding.
    pub chunked_prefill: Option<bool>,
    /// Share of prompt tokens found in the prefix cache.
    pub prefix_hit: Option<f64>,
    /// Tokens drafted per step.
    pub draft_tokens: Option<f64>,
    /// Probability that the first drafted token is accepted.
    pub draft_acceptance: Option<f64>,
    /// `conversations.count`: conversations under way at once.
    pub conversations: Option<f64>,
    /// `conversations.turns`: turns of each.
    pub turns: Option<f64>,
    /// `conversations.shared_prefix`: tokens that all prompts begin with.
    pub shared_prefix: Option<f64>,
    /// `routing`: which replica a request goes to.
    pub routing: Option<Routing>,
    /// `kv_tiers`: gigabytes for each accelerator, and gigabytes per second, of host memory, local disks and remote stores.
    pub kv_tiers: [(Option<f64>, Option<f64>); 3],
    /// What drafts.
    pub draft_method: Option<DraftMethod>,
    /// Share of the acceptance that each position loses.
    pub draft_decline: Option<f64>,
    /// Parameters of a draft model, in billions.
    pub draft_params_b: Option<f64>,
    /// Sequences of a replica beyond which nothing is drafted.
    pub draft_max_batch: Option<f64>,
    /// Accelerators that do nothing but prefill; absent or 0: both phases on all.
    pub prefill_accelerators: Option<f64>,
}

impl PlanSpec {
    /// Reads the top level of a workload's entry. [`PlanSpec::parallelism`] and [`PlanSpec::precision`] read these sections.
    pub(super) fn read(fields: &mut Fields<'_>) -> PlanSpec {
        let mut plan = PlanSpec::default();
        fields.map("batch", |batch| {
            plan.micro = batch.number("micro", Knob::Microbatch.spec().bounds());
            plan.global = batch.number_of(Knob::Global);
        });
        plan.sharding = fields.word_of(Knob::Sharding, Sharding::named);
        plan.shard = fields.number_of(Knob::Shard);
        plan.mtp_layers = fields.number_of(Knob::MtpLayers);
        match fields.peek("recompute") {
            Some(node) if node.entries().is_some() => {
                fields.map("recompute", |recompute| {
                    plan.recompute = word(recompute, "mode", Recompute::named, Recompute::NAMES);
                    plan.recompute_reserve = recompute.number_of(Knob::RecomputeReserve);
                    plan.recompute_layers = recompute.number_of(Knob::RecomputeLayers);
                });
            }
            _ => plan.recompute = fields.word_of(Knob::Recompute, Recompute::named),
        }
        plan.trained = fields.word_of(Knob::Trained, Trained::named);
        plan.lora_targets = fields.word_of(Knob::LoraTargets, LoraTargets::named);
        plan.cpu_offload = fields.word_of(Knob::CpuOffload, CpuOffload::named);
        plan.optimizer = optimizer(fields);
        plan.schedule = fields.word_of(Knob::PipelineSchedule, PipelineSchedule::named);
        plan.overlap = fields.flag_of(Knob::Overlap);
        plan.imbalance = fields.number_of(Knob::ExpertImbalance);
        plan.train_tokens = fields.number_of(Knob::TrainTokens);
        let simulation = &mut plan.simulation;
        let serving = fields.map("serving", |serving| {
            simulation.serving(serving);
            ServingSpec::read(serving)
        });
        plan.serving = serving.unwrap_or_default();
        fields.map("simulation", |section| plan.simulation.section(section));
        plan
    }

    /// Reads the optional ranks of `parallelism`.
    pub(super) fn parallelism(&mut self, p: &mut Fields<'_>) {
        self.cp = p.number_of(Knob::Cp);
        self.cp_comm_type = p.word_of(Knob::CpCommType, ContextExchange::named);
        self.ep = p.number_of(Knob::Ep);
        self.vpp = p.number_of(Knob::Vpp);
        self.first_layers = p.number_of(Knob::FirstLayers);
        self.last_layers = p.number_of(Knob::LastLayers);
        self.sp = p.flag_of(Knob::Sp);
        self.etp = p.number_of(Knob::Etp);
        self.attention_dp = p.number_of(Knob::AttentionDp);
    }

    /// Reads the formats of `precision`. An unknown format is a warning: only records keep it, and the calibrated
    /// model does not read formats.
    pub(super) fn precision(&mut self, p: &mut Fields<'_>) {
        self.weight_bits = p.number_of(Knob::WeightBits);
        let mut bits = self.weight_bits;
        let mut format = |key| {
            let written = p.text(key)?;
            if key == "weights"
                && let Some(stored) = stored_bits(&written)
            {
                bits = bits.or(Some(stored));
                return Some(Format::Int4);
            }
            let known = Format::named(&written);
            if known.is_none() {
                let message =
                    format!("found \"{written}\", which only records keep; known are {}", Format::NAMES.join(", "));
                p.warn(key, message, None);
            }
            known
        };
        (self.format, self.kv) = (format(Knob::Precision.spec().key()), format(Knob::KvPrecision.spec().key()));
        (self.compute, self.gradient_format) =
            (format(Knob::Compute.spec().key()), format(Knob::GradientFormat.spec().key()));
        self.experts = format(Knob::ExpertPrecision.spec().key());
        let states = format("optimizer");
        // Activations narrower than 16 bits can only be those that are multiplied (W4A8); wider ones say nothing, since
        // activations between layers are kept in 16 bits in W8A8 and W4A4 deployments too.
        let narrow = |format: &Format| matches!(format, Format::Fp8 | Format::Mxfp8 | Format::Int8 | Format::Fp4);
        self.compute = self.compute.or(format("activations").filter(narrow));
        self.weight_bits = bits;
        if let Some(states) = states {
            let optimizer = self.optimizer.unwrap_or(Optimizer::Adam);
            match optimizer.with_states(states) {
                Some(found) if found == optimizer => {}
                Some(found) => self.optimizer = Some(found),
                None => {
                    let message = format!(
                        "found \"{}\" with optimizer {}, whose states this program knows in one format only",
                        states.name(),
                        optimizer.name()
                    );
                    p.warn("optimizer", message, Some("leave it out".to_owned()));
                }
            }
        }
    }
}

impl ServingSpec {
    fn read(fields: &mut Fields<'_>) -> ServingSpec {
        let draft = |s: &mut Fields<'_>| ServingSpec {
            draft_tokens: s.number_of(Knob::DraftTokens),
            draft_acceptance: s.number_of(Knob::DraftAcceptance),
            draft_method: s.word_of(Knob::DraftMethod, DraftMethod::named),
            draft_decline: s.number_of(Knob::DraftDecline),
            draft_params_b: s.number_of(Knob::DraftParams),
            draft_max_batch: s.number_of(Knob::DraftMaxBatch),
            ..ServingSpec::default()
        };
        let drafted = fields.map("speculative", draft).unwrap_or_default();
        let talk = fields.map("conversations", |talk| {
            (talk.number_of(Knob::Conversations), talk.number_of(Knob::Turns), talk.number_of(Knob::SharedPrefix))
        });
        let talk = talk.unwrap_or_default();
        // Read as the software of the workload.
        fields.text("engine");
        ServingSpec {
            load: fields.word_of(Knob::Load, LoadKind::named),
            run_requests: fields.number_of(Knob::RunRequests),
            beams: fields.number_of(Knob::Beams),
            context_ranks: fields.number_of(Knob::ContextRanks),
            recv_interval: fields.number_of(Knob::RecvInterval),
            overlap_scheduling: fields.flag_of(Knob::OverlapScheduling),
            reserve_output: fields.flag_of(Knob::ReserveOutput),
            python_executor: fields.flag_of(Knob::PythonExecutor),
            compiled_batch: fields.number_of(Knob::CompiledBatch),
            generate_max: None,
            generate_spread: None,
            pools: fields
                .map("pools", |pools| {
                    let prefill = pools.map("prefill", PoolSpec::read);
                    if prefill.is_none() {
                        pools.missing("prefill");
                    }
                    let decode = pools.map("decode", PoolSpec::read).unwrap_or_default();
                    PoolsSpec { prefill: prefill.unwrap_or_default(), decode }
                })
                .unwrap_or_default(),
            kv_transfer: fields.word_of(Knob::KvTransfer, KvTransfer::named),
            redundant_experts: fields.number_of(Knob::RedundantExperts),
            two_batch_overlap: fields.flag_of(Knob::TwoBatchOverlap),
            shared_experts: fields.word_of(Knob::SharedExperts, SharedExperts::named),
            concurrency: fields.number_of(Knob::Concurrency),
            request_rate: fields.number_of(Knob::RequestRate),
            max_num_seqs: fields.number_of(Knob::MaxNumSeqs),
            max_num_batched_tokens: fields.number_of(Knob::MaxNumBatchedTokens),
            gpu_memory_utilization: fields.number_of(Knob::GpuMemoryUtilization),
            chunked_prefill: fields.flag_of(Knob::ChunkedPrefill),
            prefix_hit: fields.number_of(Knob::PrefixHit),
            prefill_accelerators: fields.number_of(Knob::PrefillAccelerators),
            conversations: talk.0,
            turns: talk.1,
            shared_prefix: talk.2,
            routing: fields.word_of(Knob::Routing, Routing::named),
            kv_tiers: fields
                .map("kv_tiers", |tiers| {
                    [
                        (Knob::KvHostGb, Knob::KvHostGbps),
                        (Knob::KvSsdGb, Knob::KvSsdGbps),
                        (Knob::KvRemoteGb, Knob::KvRemoteGbps),
                    ]
                    .map(|(room, rate)| (tiers.number_of(room), tiers.number_of(rate)))
                })
                .unwrap_or_default(),
            ..drafted
        }
    }
}

/// The optimizer, written as a name or, as in files of the original format, as a mapping that names it.
fn optimizer(fields: &mut Fields<'_>) -> Option<Optimizer> {
    let node = fields.node("optimizer")?;
    let written = match node.text() {
        Some(text) => text,
        None => ["name", "type", "algorithm"].iter().find_map(|key| node.get(key).and_then(Node::text))?,
    };
    let found = Optimizer::named(written);
    if found.is_none() {
        let message =
            format!("found \"{written}\", which only records keep; known are {}", Optimizer::NAMES.join(", "));
        fields.warn("optimizer", message, None);
    }
    found
}

impl Switches {
    /// Reads the switches of `runtime_tuning`.
    pub(super) fn read(fields: &mut Fields<'_>) -> Switches {
        Switches {
            attention_kernel: fields.word_of(Knob::AttentionKernel, AttentionKernel::named),
            graph_capture: fields.word_of(Knob::GraphCapture, GraphCapture::named),
            compiled: fields.flag_of(Knob::Compiled),
            moe_dispatcher: fields.word_of(Knob::MoeDispatcher, MoeDispatcher::named),
            moe_capacity: fields.word_of(Knob::MoeCapacity, MoeCapacity::named),
            overlap_tensor: fields.flag_of(Knob::OverlapTensor),
            overlap_pipeline: fields.flag_of(Knob::OverlapPipeline),
            overlap_data: fields.flag_of(Knob::OverlapData),
        }
    }
}
