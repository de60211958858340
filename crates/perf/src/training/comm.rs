//! Communication of one training step: per layer (tensor, context and expert parallelism), per micro-batch (pipeline
//! transfers, and weights under ZeRO-3), per step (gradients, weights).

use super::{Block, BlockKind, ContextExchange, Plan, Reshard, Sharding, TrainingInput, for_each_block};
use crate::arch::Attention;
use crate::collective as coll;
use crate::collective::{Fabric, Group};
use crate::constants::Constants;
use crate::constants::documented::ATTENTION_BACKWARD_FLOPS;
use crate::roofline;
use crate::training::memory::LocalParams;
use crate::traits::{ShardCopies, TokenSplit};
use atlas_core::count::Count;

/// The scale-up and scale-out links of this run.
pub fn fabric(i: &TrainingInput, c: &Constants) -> Fabric {
    Fabric::new(&i.accelerator, c, i.oversubscription)
}

/// Tensor-parallel communication of one layer over forward, backward and recomputation, s.
pub fn tensor(i: &TrainingInput, c: &Constants, f: &Fabric, plan: Plan) -> f64 {
    let exposed = if i.software.overlap_tensor { c.tensor_exposed } else { 1.0 };
    let passes = |block: &Block| block.share * (2.0 + block.recomputed(plan));
    let mut seconds = 0.0;
    for_each_block(i, |block| seconds += passes(block) * reduction(i, f, block));
    exposed * seconds
}

/// Whether the ranks of a tensor-parallel group exchange the input or output of a block. If each dispatches its own
/// tokens to whole experts (or to experts whose ranks exchange them, see [`expert`]), only a shared expert needs that.
fn reduces(i: &TrainingInput, kind: BlockKind) -> bool {
    i.tp > 1.0 && (kind != BlockKind::Mixture || i.arch.shared_ffn > 0.0 || i.software.token_split == TokenSplit::Norms)
}

/// Time of the tensor-parallel collectives of one block in one pass, s: an all-reduce (arXiv 1909.08053). With sequence
/// parallelism, it becomes a reduce-scatter and an all-gather, usually of the same volume.
#[must_use]
pub fn reduction(i: &TrainingInput, f: &Fabric, block: &Block) -> f64 {
    if !reduces(i, block.kind) {
        return 0.0;
    }
    let f = &f.among(f64::from(i.tp));
    let g = Group::strided(f64::from(i.tp), 1.0, i.domain);
    let element = block.slice.tokens * i.element_bytes();
    let output = element * i.arch.hidden;
    if i.sequence_parallel {
        coll::all_gather(f, g, element * gathered_width(i, block.kind)) + coll::reduce_scatter(f, g, output)
    } else {
        coll::all_reduce(f, g, output)
    }
}

/// Elements of a token that a block gathers under sequence parallelism: its input, or what latent attention computes of
/// it on the rank that holds the token (Megatron-Core from 0.14, `MLASelfAttention.linear_kv_down_proj`).
fn gathered_width(i: &TrainingInput, kind: BlockKind) -> f64 {
    match i.arch.attention {
        Attention::Latent { q_rank, kv_rank, rope, .. }
            if kind == BlockKind::Attention && i.software.token_split == TokenSplit::RoutingAndCompressions =>
        {
            q_rank.unwrap_or(i.arch.hidden) + kv_rank + rope
        }
        _ => f64::from(i.arch.hidden),
    }
}

/// Number of collectives that the host launches per layer and micro-batch.
#[must_use]
pub fn calls(i: &TrainingInput, plan: Plan) -> f64 {
    let of_block = |block: &Block| {
        let tensor = if reduces(i, block.kind) { 1.0 } else { 0.0 };
        // Dispatch and combine, each with a collective of the ranks that share an expert.
        let groups = [i.ep, i.etp].into_iter().filter(|ranks| *ranks > 1.0).count() as f64;
        let together = i.software.deduplicated_dispatch || i.software.token_split == TokenSplit::Norms;
        let groups = if together { groups.min(1.0) } else { groups };
        let expert = if block.kind == BlockKind::Mixture { 2.0 * groups } else { 0.0 };
        block.share * (2.0 + block.recomputed(plan)) * (tensor + expert)
    };
    let context = if i.cp > 1.0 { 2.0 + plan.full_share } else { 0.0 };
    let mut calls = context;
    for_each_block(i, |block| calls += of_block(block));
    calls
}

/// Exposed context-parallel communication of one layer, s. In a ring, keys and values are sent while each rank attends
/// to those it holds (arXiv 2310.01889, section 3), so attention overlaps with all steps but the last. All-gathers and
/// all-to-alls of heads run before attention. `attention` is the time of attention in both passes, s.
pub fn context(i: &TrainingInput, c: &Constants, f: &Fabric, plan: Plan, attention: f64) -> f64 {
    if i.cp <= 1.0 {
        return 0.0;
    }
    let moved = exchange(i, f);
    let ring = i.context_exchange == ContextExchange::Ring;
    let beside = if ring { attention * (i.cp - 1.0) / i.cp } else { 0.0 };
    let forward = 1.0 / (1.0 + ATTENTION_BACKWARD_FLOPS * c.attention_backward);
    let shown = |moved: f64, beside: f64| (moved - beside).max(0.0);
    let back = moved * backward_exchanges(i);
    (1.0 + plan.full_share) * shown(moved, forward * beside) + shown(back, (1.0 - forward) * beside)
}

/// Volume of the backward exchange relative to the forward exchange. Ring and all-gather: keys and values again, and
/// their gradients. All-to-all of heads and sequences: as in the forward pass. Recomputation repeats the forward
/// exchange.
#[must_use]
pub fn backward_exchanges(i: &TrainingInput) -> f64 {
    if i.context_exchange == ContextExchange::AllToAll { 1.0 } else { 2.0 }
}

/// Time of a layer's context-parallel exchange in the forward pass, s.
pub fn exchange(i: &TrainingInput, f: &Fabric) -> f64 {
    if i.cp <= 1.0 {
        return 0.0;
    }
    let g = Group::strided(f64::from(i.cp), f64::from(i.tp), i.domain);
    // In hybrid models, only some layers have keys and values. States of linear mixers are small.
    let element = i.arch.attention_share * i.micro * i.seq * i.element_bytes();
    if i.context_exchange == ContextExchange::AllToAll {
        // Queries, keys and values of a rank's tokens are sent to the ranks of their heads; outputs are sent back.
        let widths = (i.arch.q_width() + i.arch.v_width()) / i.tp + key_value_width(i);
        return coll::all_to_all(f, g, element / i.cp * widths, 1.0);
    }
    coll::all_gather(f, g, element * key_value_width(i))
}

/// Elements of a token's keys and values on one tensor-parallel rank, as attention reads them. Key-value heads are
/// replicated if there are fewer than ranks. Latent attention projects the compressed vector up first, so that keys are
/// as wide as queries (Megatron-Core, `MLASelfAttention.get_query_key_value_tensors`).
fn key_value_width(i: &TrainingInput) -> f64 {
    let a = &i.arch;
    match a.attention {
        Attention::Grouped => 2.0 * (a.kv_heads / i.tp).max(1.0) * a.head_dim,
        Attention::Latent { direct: true, .. } => a.kv_width(),
        Attention::Latent { .. } => (a.q_width() + a.v_width()) / i.tp,
    }
}

/// Expert-parallel communication of one MoE layer, s: dispatch and combine, forward and backward. A recomputed mixture
/// starts from its input, so that it repeats both.
pub fn expert(i: &TrainingInput, c: &Constants, f: &Fabric, plan: Plan) -> f64 {
    let (ep, etp) = (f64::from(i.ep), f64::from(i.etp));
    if ep * etp <= 1.0 || !i.arch.is_moe() {
        return 0.0;
    }
    let own = i.micro * i.seq / i.cp / if i.sequence_parallel { i.tp } else { Count::ONE };
    let bytes = own * i.arch.top_k * i.arch.expert_width() * i.element_bytes() * i.imbalance;
    // Expert groups have their own order of ranks, with `etp` instead of `tp` innermost (Megatron-Core,
    // `expert_decoder_rank_generator`; torchtitan folds the ranks of data, context and tensor parallelism). Their ranks
    // are neighbors therefore, whatever `tp` is.
    let one = if i.sequence_parallel && i.software.token_split == TokenSplit::Norms && etp > 1.0 {
        // The ranks that share an expert hold the same tokens, since the block's input is gathered.
        coll::all_to_all(f, Group::strided(ep, etp, i.domain), etp * bytes, 1.0)
    } else if i.software.deduplicated_dispatch {
        // A kernel sends each token to all ranks that share an expert (Megatron-Core, `MoEFlexTokenDispatcher`).
        let all = Group::strided(ep * etp, 1.0, i.domain);
        coll::all_to_all(f, all, etp * bytes, etp * i.arch.top_k)
    } else {
        // Ranks that share an expert gather the tokens that each has received, and reduce-scatter the outputs before
        // these are sent back (`MoEAlltoAllTokenDispatcher`).
        let shared = coll::all_gather(f, Group::strided(etp, 1.0, i.domain), etp * bytes);
        coll::all_to_all(f, Group::strided(ep, etp, i.domain), bytes, 1.0) + shared
    };
    (4.0 + 2.0 * plan.recomputed_mlps()) * one * expert_exposed(i, c)
}

/// Share of the expert exchange that does not overlap with another micro-batch. Bidirectional schedules, which run two
/// micro-batches side by side, are handled by [`exposed_expert_seconds`] instead.
#[must_use]
pub fn expert_exposed(i: &TrainingInput, c: &Constants) -> f64 {
    if i.software.overlap_experts && i.copies() <= 1.0 { c.expert_exposed.clamp(0.0, 1.0) } else { 1.0 }
}

/// Exposed part of a layer's expert communication. In bidirectional schedules, it overlaps with the layer's kernels of
/// the opposite direction (`beside` seconds; arXiv 2412.19437, section 3.2.1). Otherwise, all of `expert` is exposed.
#[must_use]
pub fn exposed_expert_seconds(i: &TrainingInput, c: &Constants, expert: f64, beside: f64) -> f64 {
    if i.copies() > 1.0 { (expert - c.overlap_share * beside).max(0.0) } else { expert }
}

/// Exposed pipeline transfers of one micro-batch through one stage, forward and backward, s. `hop` is the time of one
/// transfer.
pub(super) fn pipeline(i: &TrainingInput, c: &Constants, hop: f64) -> f64 {
    let exposed = if i.software.overlap_pipeline { c.pipeline_exposed } else { 1.0 };
    2.0 * i.vpp.max(Count::ONE) * hop * exposed
}

/// Time of one transfer from a stage to the next, s: between domains, and the mean over all stages.
pub(super) fn pipeline_hop_seconds(i: &TrainingInput, f: &Fabric) -> (f64, f64) {
    if i.pp <= 1.0 {
        return (0.0, 0.0);
    }
    // Each tensor-parallel rank sends its share, and the receivers all-gather it (arXiv 2104.04473, section 4.1).
    let bytes = i.micro * i.seq / i.cp * i.arch.hidden * i.element_bytes() / i.tp;
    let each = i.tp * i.cp * i.dp;
    let near = coll::point_to_point(f, bytes, true);
    if each * i.pp <= i.domain {
        return (near, near);
    }
    let far = coll::point_to_point(f, bytes, false);
    // Several whole stages can share a domain, so that only some transfers leave it.
    let together = if i.domain % each == 0.0 { i.domain / each } else { 1.0 };
    let leaving = ((i.pp / together).ceil() - 1.0) / (i.pp - 1.0);
    (far, near + leaving * (far - near))
}

/// Data-parallel communication of a step, s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct DataTraffic {
    /// Once per step, during the backward pass of the last micro-batch or the forward pass of the first.
    pub(super) per_step: f64,
    /// Part of `per_step` for gathering weights, needed by the first forward pass.
    pub(super) gather: f64,
    /// Part of `gather` for the weights updated by sharded optimizers.
    pub(super) update: f64,
    /// In every micro-batch, layer by layer: gradients (ZeRO-2), or gradients and weights (ZeRO-3).
    pub(super) per_micro: f64,
    /// Part of `per_micro` for gathering weights, half of it in each pass.
    pub(super) regather: f64,
}

impl DataTraffic {
    /// Traffic of a micro-batch in its forward and backward pass: weights are gathered in both.
    pub(super) fn by_pass(&self) -> [f64; 2] {
        let gathers = 0.5 * self.regather;
        [gathers, self.per_micro - gathers]
    }
}

/// Whether data-parallel traffic between `data` neighbors uses the same links as other traffic between `other`
/// neighbors: the network, or the scale-up links.
#[must_use]
pub(super) fn share_links(i: &TrainingInput, data: f64, other: f64) -> bool {
    let leaves = data > i.domain;
    leaves == (other > i.domain) && (leaves || !i.accelerator.generation.properties().links_per_dimension)
}

/// Bytes that a rank copies on the streams of the collectives: for every gathered weight of `bytes` bytes, and for every
/// reduced gradient. Each copy reads and writes memory.
fn bucket_copies(i: &TrainingInput, bytes: f64) -> [f64; 2] {
    if i.software.shard_copies != ShardCopies::Buckets {
        return [0.0; 2];
    }
    let reduced = i.reduced_bytes();
    // Into the bucket; converted, if the reduction has another format; ordered by rank; divided by their number.
    let converted = if reduced > 2.0 { 2.0 + reduced } else { 0.0 };
    [2.0 * bytes, 4.0 + converted + 4.0 * reduced]
}

/// Adds the traffic of a group of replicas of `params` weights, with `trained` parameters that are trained.
fn group_traffic(
    i: &TrainingInput,
    c: &Constants,
    f: &Fabric,
    [params, trained]: [f64; 2],
    g: Group,
    out: &mut DataTraffic,
) {
    if g.size <= 1.0 || params <= 0.0 {
        return;
    }
    let gradients = trained * i.reduced_bytes();
    let bytes = i.gathered_bytes();
    let (weights, updated) = (params * bytes, trained * bytes);
    match i.sharding {
        Sharding::None => out.per_step += coll::all_reduce(f, g, gradients),
        Sharding::Zero1 => {
            let gather = coll::all_gather(f, g, updated);
            out.per_step += coll::reduce_scatter(f, g, gradients) + gather;
            out.gather += gather;
            out.update += gather;
        }
        Sharding::Zero2 => {
            let gather = coll::all_gather(f, g, updated);
            out.per_step += gather;
            out.gather += gather;
            out.update += gather;
            // Only shards of the gradients are kept between micro-batches (arXiv 1910.02054, section 5.2), so each
            // micro-batch reduces its own.
            let scatter = coll::reduce_scatter(f, g, gradients);
            if i.reduces_once() {
                out.per_step += scatter;
            } else {
                out.per_micro += scatter;
            }
        }
        Sharding::Zero3 => {
            let shard = i.shard_ranks(g.size);
            let inner = Group { size: shard, local: g.local.min(shard), ..g };
            // Layer by layer, so the latency is paid once per layer.
            let calls = (i.arch.depth() / i.pp).max(1.0);
            let [apart, into] = bucket_copies(i, bytes);
            let copied = |bytes: f64| roofline::memory_seconds(&i.accelerator, c, bytes);
            let gather = calls * coll::all_gather(f, inner, weights / calls) + copied(params * apart);
            let scatter = calls * coll::reduce_scatter(f, inner, gradients / calls) + copied(trained * into);
            match i.resharding() {
                Reshard::EveryMicroBatch => {
                    out.regather += 2.0 * gather;
                    out.per_micro += 2.0 * gather;
                }
                Reshard::OncePerStep => {
                    out.per_step += gather;
                    out.gather += gather;
                }
            }
            if i.reduces_once() {
                out.per_step += scatter;
            } else {
                out.per_micro += scatter;
            }
            if shard < g.size {
                // The all-reduce runs between the groups over which states are sharded, which are placed one after
                // another.
                let apart = g.domain_stride * (shard / g.local).max(1.0);
                let outer = Group { size: g.size / shard, local: (g.local / shard).max(1.0), domain_stride: apart };
                out.per_step += coll::all_reduce(f, outer, gradients / shard);
            }
        }
    }
}

/// Time of the sum of the gradients of an embedding of which the first and the last stage have a copy: tied to the output
/// layer, or used by multi-token prediction. It runs after the gradients of the replicas are reduced (Megatron-Core,
/// `_allreduce_word_embedding_grads`), so that nothing overlaps with it.
#[must_use]
pub fn shared_embedding(i: &TrainingInput, f: &Fabric) -> f64 {
    let shared = i.pp > 1.0 && i.copies() <= 1.0 && (i.arch.tied || i.mtp_layers > 0.0);
    if !shared || i.arch.convolutions.is_some() {
        return 0.0;
    }
    let shards = match i.persistent_sharding() {
        Sharding::None | Sharding::Zero1 => 1.0,
        Sharding::Zero2 | Sharding::Zero3 => i.shard_ranks(i.dp * i.cp),
    };
    let bytes = LocalParams::of(i).trained(i).embedding * i.grad_bytes / shards;
    let ends = Group::strided(2.0, i.tp * i.cp * i.dp * (i.pp - 1.0), i.domain);
    if bytes > 0.0 { coll::all_reduce(f, ends, bytes) } else { 0.0 }
}

/// Data-parallel communication of a step: dense weights and experts over their own groups.
pub(super) fn data(i: &TrainingInput, c: &Constants, f: &Fabric, local: &LocalParams) -> DataTraffic {
    let mut out = DataTraffic::default();
    // Weights held by two devices of a bidirectional pipeline are reduced over both.
    let copies = i.copies();
    let dense = Group::strided(copies * i.dp * i.cp, f64::from(i.tp), i.domain);
    let trained = local.trained(i);
    let of_dense = [local.dense + local.embedding, trained.dense + trained.embedding];
    group_traffic(i, c, f, of_dense.map(|params| copies * params), dense, &mut out);
    let shards = (i.ep * i.etp).max(1.0);
    let replicas = copies * i.dp * i.cp * i.tp / shards;
    let of_experts = [local.experts, trained.experts].map(|params| copies * params);
    group_traffic(i, c, f, of_experts, Group::strided(replicas, shards, i.domain), &mut out);
    out
}

/// Share of a micro-batch's data-parallel traffic that gathers weights for one of its passes.
#[must_use]
pub fn gather_share(i: &TrainingInput, c: &Constants, f: &Fabric) -> f64 {
    let traffic = data(i, c, f, &LocalParams::of(i));
    0.5 * traffic.regather / traffic.per_micro.max(1e-15)
}
