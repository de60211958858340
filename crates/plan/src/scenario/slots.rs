//! Where a plan keeps the numbers of knobs.

use super::Phase;
use crate::knob::Knob;

/// One of the places beside device memory.
fn tier(phase: &mut Phase, place: usize) -> &mut (Option<f64>, Option<f64>) {
    let [host, ssd, remote] = &mut phase.plan.serving.kv_tiers;
    match place {
        0 => host,
        1 => ssd,
        _ => remote,
    }
}

/// Where a plan keeps a number.
pub(super) fn number_slot(knob: Knob) -> Option<fn(&mut Phase) -> &mut Option<f64>> {
    Some(match knob {
        Knob::Global => |phase| &mut phase.plan.global,
        Knob::ExpertImbalance => |phase| &mut phase.plan.imbalance,
        Knob::Vpp => |phase| &mut phase.plan.vpp,
        Knob::FirstLayers => |phase| &mut phase.plan.first_layers,
        Knob::LastLayers => |phase| &mut phase.plan.last_layers,
        Knob::MtpLayers => |phase| &mut phase.plan.mtp_layers,
        Knob::Cp => |phase| &mut phase.plan.cp,
        Knob::Ep => |phase| &mut phase.plan.ep,
        Knob::Etp => |phase| &mut phase.plan.etp,
        Knob::AttentionDp => |phase| &mut phase.plan.attention_dp,
        Knob::ContextRanks => |phase| &mut phase.plan.serving.context_ranks,
        Knob::WeightBits => |phase| &mut phase.plan.weight_bits,
        Knob::RecomputeLayers => |phase| &mut phase.plan.recompute_layers,
        Knob::RecomputeReserve => |phase| &mut phase.plan.recompute_reserve,
        Knob::GenerateMax => |phase| &mut phase.plan.serving.generate_max,
        Knob::GenerateSpread => |phase| &mut phase.plan.serving.generate_spread,
        Knob::RunRequests => |phase| &mut phase.plan.serving.run_requests,
        Knob::RecvInterval => |phase| &mut phase.plan.serving.recv_interval,
        Knob::CompiledBatch => |phase| &mut phase.plan.serving.compiled_batch,
        Knob::Beams => |phase| &mut phase.plan.serving.beams,
        Knob::Shard => |phase| &mut phase.plan.shard,
        Knob::TrainTokens => |phase| &mut phase.plan.train_tokens,
        Knob::Concurrency => |phase| &mut phase.plan.serving.concurrency,
        Knob::RequestRate => |phase| &mut phase.plan.serving.request_rate,
        Knob::MaxNumSeqs => |phase| &mut phase.plan.serving.max_num_seqs,
        Knob::MaxNumBatchedTokens => |phase| &mut phase.plan.serving.max_num_batched_tokens,
        Knob::GpuMemoryUtilization => |phase| &mut phase.plan.serving.gpu_memory_utilization,
        Knob::PrefixHit => |phase| &mut phase.plan.serving.prefix_hit,
        Knob::DraftTokens => |phase| &mut phase.plan.serving.draft_tokens,
        Knob::DraftAcceptance => |phase| &mut phase.plan.serving.draft_acceptance,
        Knob::DraftDecline => |phase| &mut phase.plan.serving.draft_decline,
        Knob::DraftParams => |phase| &mut phase.plan.serving.draft_params_b,
        Knob::DraftMaxBatch => |phase| &mut phase.plan.serving.draft_max_batch,
        Knob::PrefillAccelerators => |phase| &mut phase.plan.serving.prefill_accelerators,
        Knob::Conversations => |phase| &mut phase.plan.serving.conversations,
        Knob::Turns => |phase| &mut phase.plan.serving.turns,
        Knob::SharedPrefix => |phase| &mut phase.plan.serving.shared_prefix,
        Knob::KvHostGb => |phase| &mut tier(phase, 0).0,
        Knob::KvHostGbps => |phase| &mut tier(phase, 0).1,
        Knob::KvSsdGb => |phase| &mut tier(phase, 1).0,
        Knob::KvSsdGbps => |phase| &mut tier(phase, 1).1,
        Knob::KvRemoteGb => |phase| &mut tier(phase, 2).0,
        Knob::KvRemoteGbps => |phase| &mut tier(phase, 2).1,
        Knob::PrefillWorkers => |phase| &mut phase.plan.serving.pools.prefill.workers,
        Knob::PrefillTp => |phase| &mut phase.plan.serving.pools.prefill.tp,
        Knob::PrefillPp => |phase| &mut phase.plan.serving.pools.prefill.pp,
        Knob::PrefillEp => |phase| &mut phase.plan.serving.pools.prefill.ep,
        Knob::PrefillAttentionDp => |phase| &mut phase.plan.serving.pools.prefill.attention_dp,
        Knob::RedundantExperts => |phase| &mut phase.plan.serving.redundant_experts,
        Knob::Replications => |phase| &mut phase.plan.simulation.replications,
        Knob::Requests => |phase| &mut phase.plan.simulation.requests,
        Knob::Steps => |phase| &mut phase.plan.simulation.steps,
        Knob::ArrivalCv => |phase| &mut phase.plan.simulation.arrival_cv,
        Knob::PromptCv => |phase| &mut phase.plan.simulation.prompt_cv,
        Knob::GenerateCv => |phase| &mut phase.plan.simulation.generate_cv,
        Knob::SloTtft => |phase| &mut phase.plan.simulation.slo_ttft_ms,
        Knob::SloTpot => |phase| &mut phase.plan.simulation.slo_tpot_ms,
        Knob::SloE2e => |phase| &mut phase.plan.simulation.slo_e2e_ms,
        Knob::Jitter => |phase| &mut phase.plan.simulation.jitter,
        Knob::SlowNodes => |phase| &mut phase.plan.simulation.slow_nodes,
        Knob::SlowFactor => |phase| &mut phase.plan.simulation.slow_factor,
        Knob::NodeMtbf => |phase| &mut phase.plan.simulation.node_mtbf_h,
        Knob::CheckpointInterval => |phase| &mut phase.plan.simulation.checkpoint_interval_s,
        Knob::Checkpoint => |phase| &mut phase.plan.simulation.checkpoint_s,
        Knob::Restart => |phase| &mut phase.plan.simulation.restart_s,
        _ => return None,
    })
}
