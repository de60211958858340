//! Settings that a scenario states, so that none is silently dropped.

use atlas_config::Mode;
use atlas_core::count::Count;
use atlas_core::plan::{
    ContextExchange, CpuOffload, KvTransfer, LoadKind, MoeDispatcher, PipelineSchedule, Routing, SharedExperts, Trained,
};
use atlas_plan::knob::Knob;
use atlas_plan::scenario::Scenario;

/// Software settings that files or knobs state, with their effective values. Knobs that describe hardware, prices, data
/// or the analysis are not settings of a tool.
pub(crate) fn settings(scenario: &Scenario) -> Vec<(Knob, String)> {
    let (phase, plan) = (&scenario.base, &scenario.base.plan);
    let (switches, serving) = (&plan.switches, &plan.serving);
    let many = |count: Option<Count>| count.is_some_and(|count| count > Count::ONE);
    let some = |count: Option<Count>| count.is_some_and(|count| count > Count::ZERO);
    let room = |gigabytes: Option<f64>| gigabytes.is_some_and(|gigabytes| gigabytes > 0.0);
    let workers = some(serving.pools.prefill.workers);
    let [host, ssd, remote] = serving.kv_tiers.map(|(size, _)| size);
    let shared = [
        (Knob::Tp, phase.shape.tp > 1.0),
        (Knob::Pp, phase.shape.pp > 1.0),
        (Knob::Ep, many(plan.ep)),
        (Knob::Precision, plan.format.is_some()),
        (Knob::Images, plan.images.is_some_and(|images| images > 0.0)),
    ];
    let training = [
        (Knob::Vpp, many(plan.vpp)),
        (Knob::Cp, many(plan.cp)),
        (Knob::Etp, plan.etp.is_some_and(|ranks| ranks > Count::ONE || phase.shape.tp > Count::ONE)),
        (Knob::CpCommType, many(plan.cp) && plan.cp_comm_type.is_some_and(|kind| kind != ContextExchange::Ring)),
        (Knob::MtpLayers, some(plan.mtp_layers)),
        (Knob::FirstLayers, some(plan.first_layers) && phase.shape.pp > 1.0),
        (Knob::LastLayers, some(plan.last_layers) && phase.shape.pp > 1.0),
        (Knob::Sp, plan.sp.is_some()),
        (Knob::Sharding, plan.sharding.is_some()),
        (Knob::Shard, some(plan.shard)),
        (
            Knob::PipelineSchedule,
            plan.schedule.is_some_and(|schedule| schedule != PipelineSchedule::OneForwardOneBackward),
        ),
        (Knob::Global, plan.global.is_some()),
        (Knob::Microbatch, scenario.micro_stated),
        (Knob::Compute, plan.compute.is_some()),
        (Knob::GradientFormat, plan.gradient_format.is_some()),
        (Knob::Bf16Layers, some(plan.bf16_layers) && scenario.uses(Knob::Bf16Layers)),
        (Knob::Optimizer, plan.optimizer.is_some()),
        (Knob::Trained, plan.trained.is_some_and(|trained| trained != Trained::All)),
        (Knob::LoraTargets, plan.lora_targets.is_some()),
        (Knob::LoraRank, plan.lora_rank.is_some()),
        (Knob::WeightBits, plan.weight_bits.is_some() && scenario.uses(Knob::WeightBits)),
        (Knob::FreezeVision, plan.freeze_vision == Some(true) && scenario.uses(Knob::FreezeVision)),
        (Knob::CpuOffload, plan.cpu_offload.is_some_and(|offload| offload != CpuOffload::None)),
        (Knob::Recompute, plan.recompute.is_some()),
        (Knob::RecomputeLayers, some(plan.recompute_layers)),
        (Knob::Overlap, plan.overlap.is_some()),
        (Knob::OverlapTensor, switches.overlap_tensor.is_some()),
        (Knob::OverlapPipeline, switches.overlap_pipeline.is_some()),
        (Knob::OverlapExperts, switches.overlap_experts.is_some()),
        (Knob::OverlapData, switches.overlap_data.is_some()),
        (Knob::AttentionKernel, switches.attention_kernel.is_some()),
        (Knob::GraphCapture, switches.graph_capture.is_some()),
        (Knob::CudaGraphs, plan.graphs == Some(true) && switches.graph_capture.is_none()),
        (Knob::Compiled, switches.compiled.is_some()),
        (Knob::MoeDispatcher, switches.moe_dispatcher.is_some()),
        (Knob::MoeCapacity, switches.moe_capacity.is_some()),
    ];
    let serving = [
        (Knob::AttentionDp, many(plan.attention_dp)),
        (Knob::ContextRanks, many(serving.context_ranks)),
        (Knob::KvPrecision, plan.kv.is_some()),
        (Knob::ExpertPrecision, plan.experts.is_some()),
        (Knob::Compute, plan.compute.is_some()),
        (Knob::WeightBits, plan.weight_bits.is_some()),
        (Knob::CudaGraphs, plan.graphs.is_some()),
        (Knob::MaxNumSeqs, serving.max_num_seqs.is_some()),
        (Knob::MaxNumBatchedTokens, serving.max_num_batched_tokens.is_some()),
        (Knob::GpuMemoryUtilization, serving.gpu_memory_utilization.is_some()),
        (Knob::ChunkedPrefill, serving.chunked_prefill.is_some()),
        (Knob::LongPrefillTokenThreshold, some(serving.long_prefill_token_threshold)),
        (Knob::OverlapScheduling, serving.overlap_scheduling.is_some()),
        (Knob::RecvInterval, many(serving.recv_interval)),
        (Knob::ReserveOutput, serving.reserve_output.is_some()),
        (Knob::PythonExecutor, serving.python_executor.is_some()),
        (Knob::CompiledBatch, some(serving.compiled_batch)),
        (Knob::Beams, many(serving.beams)),
        (Knob::DraftTokens, some(serving.draft_tokens)),
        (Knob::DraftMethod, some(serving.draft_tokens) && serving.draft_method.is_some()),
        (Knob::DraftMaxBatch, some(serving.draft_max_batch)),
        (Knob::PrefillWorkers, workers && scenario.base.pools().is_some()),
        (Knob::PrefillAccelerators, !workers && scenario.base.pools().is_some()),
        (Knob::KvHostGb, room(host)),
        (Knob::KvSsdGb, room(ssd)),
        (Knob::KvRemoteGb, room(remote)),
        (Knob::Routing, phase.shape.dp > 1.0 && serving.routing.is_some_and(|way| way != Routing::Least)),
        (Knob::MoeDispatcher, switches.moe_dispatcher.is_some_and(|dispatcher| dispatcher != MoeDispatcher::AllToAll)),
        (Knob::RedundantExperts, some(serving.redundant_experts)),
        (Knob::TwoBatchOverlap, serving.two_batch_overlap == Some(true)),
        (Knob::SharedExperts, serving.shared_experts == Some(SharedExperts::Fused)),
        (Knob::KvTransfer, serving.kv_transfer == Some(KvTransfer::ScaleUp)),
        (Knob::Load, serving.load.is_some_and(|load| !matches!(load, LoadKind::Closed | LoadKind::Open))),
    ];
    let own: &[(Knob, bool)] = match scenario.mode() {
        Mode::Training => &training,
        Mode::Inference => &serving,
    };
    let stated = shared.iter().chain(own).filter(|(_, stated)| *stated);
    stated.map(|(knob, _)| (*knob, format!("{} = {}", knob.name(), scenario.get(*knob)))).collect()
}
