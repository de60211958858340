//! Communication of one training step: per layer (tensor, context, expert parallel), per micro-batch (pipeline, and
//! weights under ZeRO-3), per step (gradients, weights).

use super::{ContextExchange, Plan, Reshard, Sharding, TrainingInput};
use crate::collective as coll;
use crate::collective::{Fabric, Group};
use crate::constants::Constants;
use crate::memory::LocalParams;
use atlas_core::count::Count;

/// The scale-up and scale-out links that collectives of this run use.
pub fn fabric(i: &TrainingInput, c: &Constants) -> Fabric {
    Fabric::new(&i.accelerator, c, i.oversubscription)
}

/// Tensor-parallel seconds of one layer, forward, backward and recomputation together.
pub fn tensor(i: &TrainingInput, c: &Constants, f: &Fabric, plan: Plan) -> f64 {
    if i.tp <= 1.0 {
        return 0.0;
    }
    let f = &f.among(f64::from(i.tp));
    let g = Group::strided(f64::from(i.tp), 1.0, i.domain);
    let bytes = i.micro * 0.5 * i.reduced_tokens() / i.cp * i.arch.hidden * 2.0;
    // Two all-reduces a pass (arXiv 1909.08053); with sequence parallelism each becomes a
    // reduce-scatter and an all-gather of the same volume.
    let one = if i.sequence_parallel {
        coll::all_gather(f, g, bytes) + coll::reduce_scatter(f, g, bytes)
    } else {
        coll::all_reduce(f, g, bytes)
    };
    let passes = 4.0 + 2.0 * plan.full_share;
    let exposed = if i.software.overlap_tensor { c.tensor_exposed } else { 1.0 };
    passes * one * exposed
}

/// Context-parallel seconds of one layer. Keys and values that travel round a ring do so while each rank attends to those
/// that it has (arXiv 2310.01889, section 3), so that all but the last of its steps hide them; what is gathered or exchanged
/// for heads comes before attention. `attention` are the seconds of both passes.
pub fn context(i: &TrainingInput, c: &Constants, f: &Fabric, plan: Plan, attention: f64) -> f64 {
    if i.cp <= 1.0 {
        return 0.0;
    }
    let moved = exchange(i, f);
    let ring = i.context_exchange == ContextExchange::Ring;
    let beside = if ring { attention * (i.cp - 1.0) / i.cp } else { 0.0 };
    let forward = 1.0 / (1.0 + 2.5 * c.attention_backward);
    let shown = |moved: f64, beside: f64| (moved - beside).max(0.0);
    let back = moved * backward_exchanges(i);
    (1.0 + plan.full_share) * shown(moved, forward * beside) + shown(back, (1.0 - forward) * beside)
}

/// How often the backward pass moves what the forward pass does: keys and values again, and their gradients; heads and
/// sequences change places as often as forward. Recomputing moves what forward does.
#[must_use]
pub fn backward_exchanges(i: &TrainingInput) -> f64 {
    if i.context_exchange == ContextExchange::AllToAll { 1.0 } else { 2.0 }
}

/// Seconds in which a layer's forward pass moves what its ranks exchange.
pub fn exchange(i: &TrainingInput, f: &Fabric) -> f64 {
    if i.cp <= 1.0 {
        return 0.0;
    }
    let g = Group::strided(f64::from(i.cp), f64::from(i.tp), i.domain);
    if i.context_exchange == ContextExchange::AllToAll {
        // Queries, keys and values of a rank's tokens go to the ranks of their heads; outputs come back.
        let widths = i.arch.q_width() + i.arch.kv_width().min(2.0 * i.arch.q_width()) + i.arch.v_width();
        let own = i.arch.attention_share * i.micro * i.seq / i.cp * widths / i.tp * 2.0;
        return coll::all_to_all(f, g, own, 1.0);
    }
    // Hybrids have keys and values in few layers; states of linear mixers are small.
    let kv = i.arch.attention_share * i.micro * i.seq * i.arch.kv_width().min(2.0 * i.arch.q_width()) / i.tp * 2.0;
    coll::all_gather(f, g, kv)
}

/// Expert-parallel seconds of one MoE layer: dispatch and combine, forward and backward.
pub fn expert(i: &TrainingInput, c: &Constants, f: &Fabric, plan: Plan) -> f64 {
    let ranks = i.ep * i.etp;
    if ranks <= 1.0 || !i.arch.is_moe() {
        return 0.0;
    }
    let g = Group::strided(ranks, if i.etp > 1.0 { 1.0 } else { f64::from(i.tp).min(i.domain) }, i.domain);
    let own = i.micro * i.seq / i.cp / if i.sequence_parallel { i.tp } else { Count::ONE };
    let bytes = own * i.arch.top_k * i.arch.expert_width() * 2.0 * i.imbalance;
    let passes = 4.0 + 2.0 * plan.full_share;
    let copies = if i.software.deduplicated_dispatch { i.arch.top_k } else { Count::ONE };
    passes * coll::all_to_all(f, g, bytes, f64::from(copies)) * expert_exposed(i, c)
}

/// Share of the expert exchange that the software does not hide behind another micro-batch. Schedules that run two
/// micro-batches of opposite ways side by side hide it otherwise, see [`expert_shown`].
#[must_use]
pub fn expert_exposed(i: &TrainingInput, c: &Constants) -> f64 {
    if i.software.overlap_experts && i.copies() <= 1.0 { c.expert_exposed.clamp(0.0, 1.0) } else { 1.0 }
}

/// What of a layer's expert traffic shows: all of it, or where passes of opposite ways run side by side what their kernels
/// (`beside`, seconds of the layer) do not hide (arXiv 2412.19437, section 3.2.1).
#[must_use]
pub fn expert_shown(i: &TrainingInput, c: &Constants, expert: f64, beside: f64) -> f64 {
    if i.copies() > 1.0 { (expert - c.overlap_share * beside).max(0.0) } else { expert }
}

/// Pipeline transfers of one micro-batch through one stage, forward and backward, as far as other passes do not hide them.
pub(super) fn pipeline(i: &TrainingInput, c: &Constants, hop: f64) -> f64 {
    let exposed = if i.software.overlap_pipeline { c.pipeline_exposed } else { 1.0 };
    2.0 * i.vpp.max(Count::ONE) * hop * exposed
}

/// Seconds of one transfer from a stage to the next: between domains, and on average over all stages.
pub(super) fn hops(i: &TrainingInput, f: &Fabric) -> (f64, f64) {
    if i.pp <= 1.0 {
        return (0.0, 0.0);
    }
    // Each tensor-parallel rank sends its share, and the receivers gather (arXiv 2104.04473, section 4.1).
    let bytes = i.micro * i.seq / i.cp * i.arch.hidden * 2.0 / i.tp;
    let each = i.tp * i.cp * i.dp;
    let near = coll::point_to_point(f, bytes, true);
    if each * i.pp <= i.domain {
        return (near, near);
    }
    let far = coll::point_to_point(f, bytes, false);
    // Whole stages share a domain, so that only some steps leave it.
    let together = if i.domain % each == 0.0 { i.domain / each } else { 1.0 };
    let leaving = ((i.pp / together).ceil() - 1.0) / (i.pp - 1.0);
    (far, near + leaving * (far - near))
}

/// Data-parallel traffic of a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct DataTraffic {
    /// Once a step, alongside the last micro-batch's backward or the first one's forward.
    pub(super) per_step: f64,
    /// Of it, gathering the weights that sharded optimizer states have updated.
    pub(super) gather: f64,
    /// Every micro-batch, layer by layer (ZeRO-3).
    pub(super) per_micro: f64,
}

fn group_traffic(i: &TrainingInput, f: &Fabric, params: f64, g: Group, out: &mut DataTraffic) {
    if g.size <= 1.0 || params <= 0.0 {
        return;
    }
    let gradients = params * i.trained * i.reduced_bytes();
    let weights = params * i.packed_bytes.unwrap_or(2.0);
    match i.sharding {
        Sharding::None => out.per_step += coll::all_reduce(f, g, gradients),
        Sharding::Zero1 => {
            let gather = coll::all_gather(f, g, weights * i.trained);
            out.per_step += coll::reduce_scatter(f, g, gradients) + gather;
            out.gather += gather;
        }
        Sharding::Zero2 => {
            let gather = coll::all_gather(f, g, weights * i.trained);
            out.per_step += coll::reduce_scatter(f, g, gradients) + gather;
            out.gather += gather;
        }
        Sharding::Zero3 => {
            let shard = i.shard_ranks(g.size);
            let inner = Group { size: shard, local: g.local.min(shard), ..g };
            // Layer by layer, so that the latency counts every time.
            let calls = (i.arch.depth() / i.pp).max(1.0);
            let gather = calls * coll::all_gather(f, inner, weights / calls);
            let scatter = calls * coll::reduce_scatter(f, inner, gradients / calls);
            match i.resharding() {
                Reshard::EveryMicroBatch => out.per_micro += 2.0 * gather + scatter,
                Reshard::OncePerStep => out.per_step += gather + scatter,
            }
            if shard < g.size {
                // Groups of sharded states lie behind one another.
                let apart = g.apart * (shard / g.local).max(1.0);
                let outer = Group { size: g.size / shard, local: (g.local / shard).max(1.0), apart };
                out.per_step += coll::all_reduce(f, outer, gradients / shard);
            }
        }
    }
}

/// Data-parallel traffic, dense weights and experts over their own groups.
pub(super) fn data(i: &TrainingInput, f: &Fabric, local: &LocalParams) -> DataTraffic {
    let mut out = DataTraffic::default();
    // Weights that two devices of a pipeline hold are reduced over both.
    let copies = i.copies();
    let dense = Group::strided(copies * i.dp * i.cp, f64::from(i.tp), i.domain);
    group_traffic(i, f, copies * (local.dense + local.embedding), dense, &mut out);
    let shards = (i.ep * i.etp).max(1.0);
    let replicas = copies * i.dp * i.cp * i.tp / shards;
    group_traffic(i, f, copies * local.experts, Group::strided(replicas, shards, i.domain), &mut out);
    out
}
