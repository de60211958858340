//! Rules on parallelism in training.

use super::super::case::{divisor, floor_power, number, toggle, word};
use super::super::{Case, Changes, Rule};
use super::training;
use crate::engine::answer::training::STATE_BYTES;
use crate::estimate::Cause;
use crate::knob::Knob;
use atlas_core::plan::{PipelineSchedule, Sharding};

/// Sequence length from which context parallelism is tried: NVIDIA's recipe for Llama 3 70B uses cp 2 at 8,192
/// (Megatron-Bridge, recipes/llama/llama3.py), Llama 3 used it for longer sequences (arXiv 2407.21783, section 3.3.2).
const LONG_SEQUENCE: f64 = 8192.0;

/// Most chunks per pipeline stage to try: transfers grow with them.
const MAX_CHUNKS: f64 = 6.0;

/// Adds layouts with experts over 1, 4 and 16 scale-up domains, each with all, half and a quarter of the pipeline stages
/// (without stages: with two and four). Stages are interleaved.
fn expert_layouts(case: &Case<'_>, out: &mut Vec<Changes>) {
    let experts = f64::from(case.arch.experts);
    let stages = if case.pp > 1.0 { [4.0, 2.0, 1.0].map(|by| (case.pp / by).floor()) } else { [2.0, 4.0, 1.0] };
    for pp in stages {
        // Every chunk except the first and last needs at least one layer.
        let most = (((case.arch.depth() + 2.0) / pp).floor()).min(MAX_CHUNKS);
        let even = (2..=6_u32).rev().map(f64::from).find(|vpp| *vpp <= most && case.arch.layers % (pp * *vpp) == 0.0);
        let vpp = even.unwrap_or(most);
        if pp <= 1.0 || vpp <= 1.0 {
            continue;
        }
        for ep in [16.0, 4.0, 1.0].map(|domains| domains * floor_power(case.domain)) {
            if ep > experts || experts % ep != 0.0 || pp * ep > case.devices {
                continue;
            }
            let mut changes = case.layout(1.0, pp, 1.0);
            changes.retain(|(knob, _)| *knob != Knob::Vpp);
            for (knob, now, then) in [(Knob::Ep, case.ep, ep), (Knob::Vpp, case.vpp, vpp)] {
                if now != then {
                    changes.push(number(knob, then));
                }
            }
            out.push(changes);
        }
    }
}

pub(super) static RULES: &[Rule] = &[
    training(
        "use only as much model parallelism as memory requires",
        "model parallelism should be just large enough for the model states to fit; data parallelism takes the other \
         accelerators",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 2",
        |case, out| {
            // Reserve half of the memory for activations.
            let ranks = case.arch.params() * STATE_BYTES / (0.5 * case.device.mem_bytes);
            let ranks = floor_power(2.0 * ranks.max(0.5)).min(case.devices);
            let tp = floor_power(ranks.min(case.domain).min(8.0));
            let pp = (ranks / tp).ceil();
            if tp * pp < case.tp * case.pp * case.cp {
                out.push(case.layout(tp, pp, 1.0));
            }
        },
    ),
    training(
        "keep tensor parallelism within a node",
        "its all-reduces are on the critical path of every layer and need the fast links",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 1",
        |case, out| {
            if case.tp > case.domain {
                out.push(case.layout(case.domain, case.pp * case.tp / case.domain, case.cp));
                out.push(case.layout(case.domain, case.pp, case.cp));
            }
        },
    ),
    training(
        "reduce tensor parallelism",
        "each halving reduces all-reduce time and enlarges matrix multiplications; data parallelism uses the ranks \
         instead",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 2",
        |case, out| {
            if case.tp > 1.0 {
                out.push(case.layout((case.tp / 2.0).floor(), case.pp, case.cp));
                out.push(case.layout(1.0, case.pp, case.cp));
            }
        },
    ),
    training(
        "increase tensor parallelism within the node",
        "it shards weights and activations over fast links, so that less recomputation or sharding is needed",
        "Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3",
        |case, out| {
            if 2.0 * case.tp <= case.domain.min(case.devices) {
                out.push(case.layout(2.0 * case.tp, case.pp, case.cp));
            }
        },
    ),
    training(
        "use pipeline parallelism across nodes",
        "stages exchange only activations at their boundaries, the least traffic of all forms of model parallelism",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 1",
        |case, out| {
            if case.devices > case.domain || case.exceeds_memory() {
                out.push(case.layout(case.tp, 2.0 * case.pp, case.cp));
            }
            if case.tp > 1.0 && case.devices > case.domain {
                out.push(case.layout((case.tp / 2.0).floor(), 2.0 * case.pp, case.cp));
            }
        },
    ),
    training(
        "use fewer pipeline stages",
        "the bubble is (pp - 1) micro-batches long, so fewer stages have less idle time, if memory allows it",
        "Huang et al., GPipe, arXiv 1811.06965, section 2.3",
        |case, out| {
            if case.pp > 1.0 {
                out.push(case.layout(case.tp, (case.pp / 2.0).floor(), case.cp));
                out.push(case.layout(case.tp, 1.0, case.cp));
            }
        },
    ),
    training(
        "interleave pipeline stages",
        "vpp model chunks per stage divide the bubble by vpp and multiply transfers by vpp; some software overlaps \
         the expert all-to-all only between chunks",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 2.2; Megatron-Core, overlap_moe_expert_parallel_comm",
        |case, out| {
            let layers = (case.arch.layers / case.pp).floor();
            if case.pp > 1.0 && layers > 1.0 {
                let chunks = [divisor(layers, 2.0 * case.vpp), divisor(layers, 5.0), layers];
                out.extend(chunks.into_iter().filter(|vpp| *vpp > case.vpp).map(|vpp| vec![number(Knob::Vpp, vpp)]));
            }
        },
    ),
    training(
        "use the zero-bubble schedule",
        "weight gradients can be computed later than input gradients and then fill most of the bubble",
        "Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, table 2",
        |case, out| {
            let schedule = case.scenario.base.plan.schedule;
            if case.pp > 1.0 && !schedule.is_some_and(PipelineSchedule::splits_backward) {
                out.push(vec![word(Knob::PipelineSchedule, PipelineSchedule::ZeroBubble.name())]);
            }
        },
    ),
    training(
        "use context parallelism",
        "it shards the activations of long sequences (from 8k tokens) and overlaps the KV exchange with attention",
        "Liu et al., Ring Attention, arXiv 2310.01889; NVIDIA Megatron-Bridge, recipe of Llama 3 70B (cp 2 at 8k)",
        |case, out| {
            if case.sequence >= LONG_SEQUENCE {
                out.push(case.layout(case.tp, case.pp, 2.0 * case.cp));
                out.push(case.layout((case.tp / 2.0).floor(), case.pp, 2.0 * case.cp));
            }
        },
    ),
    training(
        "reduce context parallelism",
        "with short pieces of a sequence, attention is too short to hide the KV exchange",
        "Liu et al., Ring Attention, arXiv 2310.01889, section 3",
        |case, out| {
            if case.cp > 1.0 {
                out.push(case.layout(case.tp, case.pp, (case.cp / 2.0).floor()));
                out.push(case.layout(case.tp, 2.0 * case.pp, (case.cp / 2.0).floor()));
            }
        },
    ),
    training(
        "use expert parallelism",
        "whole experts on different ranks keep matrix multiplications large and need not be gathered or replicated",
        "Lepikhin et al., GShard, arXiv 2006.16668, section 3; DeepSeek-V3, arXiv 2412.19437, section 3.2",
        |case, out| {
            let max_ep = f64::from(case.arch.experts).min(case.dp * case.cp * case.tp);
            if case.arch.is_moe() {
                for ep in [2.0 * case.ep, floor_power(max_ep.min(case.domain))] {
                    if ep > case.ep && ep <= max_ep {
                        out.push(vec![number(Knob::Ep, ep)]);
                        if case.number(Knob::Etp) > 1.0 {
                            out.push(vec![number(Knob::Ep, ep), number(Knob::Etp, 1.0)]);
                        }
                    }
                }
            }
        },
    ),
    training(
        "combine expert parallelism across nodes with few, interleaved pipeline stages",
        "wide expert parallelism needs fewer stages, and interleaved chunks hide the all-to-all of one micro-batch \
         behind another; neither pays off alone",
        "NVIDIA Megatron-Core, MoE parallel folding, arXiv 2504.14960; DeepSeek-V3, arXiv 2412.19437, section 3.2",
        |case, out| {
            if case.arch.is_moe() && case.devices > case.domain {
                expert_layouts(case, out);
            }
        },
    ),
    training(
        "keep expert parallelism within the scale-up domain",
        "dispatch and combine are all-to-all and run at network speed beyond the scale-up domain",
        "DeepSeek-V3, arXiv 2412.19437, section 3.2.2 (tokens go to at most four nodes)",
        |case, out| {
            if case.arch.is_moe() && case.ep > case.domain {
                out.push(vec![number(Knob::Ep, divisor(f64::from(case.arch.experts), case.domain))]);
            } else if case.arch.is_moe() && case.ep > 1.0 {
                out.push(vec![number(Knob::Ep, (case.ep / 2.0).floor())]);
            }
        },
    ),
    training(
        "shard model states less",
        "ZeRO-1 and ZeRO-2 transfer as much as plain data parallelism, ZeRO-3 1.5 times as much",
        "Rajbhandari et al., ZeRO, arXiv 1910.02054, section 7",
        |case, out| match case.sharding {
            Sharding::Zero3 => {
                out.push(vec![word(Knob::Sharding, Sharding::Zero2.name())]);
                out.push(vec![word(Knob::Sharding, Sharding::Zero1.name())]);
            }
            Sharding::Zero2 => out.push(vec![word(Knob::Sharding, Sharding::Zero1.name())]),
            Sharding::None | Sharding::Zero1 => {}
        },
    ),
    training(
        "shard model states more",
        "sharding frees memory that every replica would use for the same states, for larger micro-batches or less \
         recomputation",
        "Rajbhandari et al., ZeRO, arXiv 1910.02054, section 5",
        |case, out| {
            if case.dp * case.cp > 1.0 {
                match case.sharding {
                    Sharding::None => out.push(vec![word(Knob::Sharding, Sharding::Zero1.name())]),
                    Sharding::Zero1 => out.push(vec![word(Knob::Sharding, Sharding::Zero2.name())]),
                    Sharding::Zero2 => out.push(vec![word(Knob::Sharding, Sharding::Zero3.name())]),
                    Sharding::Zero3 => {}
                }
            }
        },
    ),
    training(
        "use FSDP instead of model parallelism",
        "if a layer fits on one accelerator, fully sharded data parallelism needs no all-reduces per layer and no \
         pipeline",
        "Zhao et al., PyTorch FSDP, arXiv 2304.11277, section 5",
        |case, out| {
            if case.tp * case.pp > 1.0 && case.sharding != Sharding::Zero3 {
                let mut changes = case.layout(1.0, 1.0, case.cp);
                if !changes.is_empty() {
                    changes.push(word(Knob::Sharding, Sharding::Zero3.name()));
                    out.push(changes);
                }
            }
        },
    ),
    training(
        "shard within the node, replicate across nodes (HSDP)",
        "weights are gathered over the fast links, and only gradients cross the network",
        "Zhao et al., PyTorch FSDP, arXiv 2304.11277, section 3.2.2",
        |case, out| {
            let inside = divisor(case.dp, (case.domain / case.tp).max(1.0));
            let over = if case.number(Knob::Shard) > 0.0 { case.number(Knob::Shard) } else { case.dp };
            if case.sharding == Sharding::Zero3 && inside > 1.0 && inside < over {
                let twice = divisor(case.dp, 2.0 * inside);
                out.push(vec![number(Knob::Shard, inside)]);
                if twice > inside && twice < over {
                    out.push(vec![number(Knob::Shard, twice)]);
                }
            }
        },
    ),
    training(
        "use sequence parallelism",
        "norms and residuals are no longer replicated on every tensor-parallel rank, at the same traffic",
        "Korthikanti et al., arXiv 2205.05198, section 4.2.2",
        |case, out| {
            if case.tp > 1.0 && case.scenario.base.plan.sp == Some(false) {
                out.push(vec![toggle(Knob::Sp, true)]);
            }
        },
    ),
    training(
        "choose tp so that it divides the heads",
        "tensor parallelism shards attention by heads, and frameworks refuse an uneven split",
        "Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3",
        |case, out| {
            if case.arch.heads % case.tp != 0.0 {
                out.push(case.layout(divisor(f64::from(case.arch.heads), case.tp), case.pp, case.cp));
            }
        },
    ),
    training(
        "choose pp x vpp so that it divides the layers",
        "with uneven stages, all stages wait for the one with the most layers",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 2.2",
        |case, out| {
            let layers = case.arch.layers;
            if case.pp > 1.0 && layers % (case.pp * case.vpp) != 0.0 {
                let even = divisor(f64::from(layers), case.pp);
                out.push(case.layout(case.tp, even, case.cp));
                let chunks = divisor((layers / case.pp).floor(), case.vpp);
                if chunks != case.vpp && layers % case.pp == 0.0 {
                    out.push(vec![number(Knob::Vpp, chunks)]);
                }
            }
        },
    ),
    training(
        "use data parallelism between nodes",
        "gradients are reduced once per step and overlap with the backward pass; model parallelism sends activations \
         in every layer",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 1",
        |case, out| {
            if case.share(Cause::InterNode) > 0.1 && case.tp * case.pp * case.cp > 1.0 {
                let changes: Changes = case.layout(case.tp.min(case.domain), (case.pp / 4.0).ceil(), case.cp);
                out.push(changes);
            }
        },
    ),
];

#[cfg(test)]
mod tests {
    use crate::advice::{Objective, advise};
    use crate::engine::estimate;
    use crate::knob::Knob;

    use crate::testing;

    #[test]
    fn large_mixtures_are_advised_wide_expert_parallelism_with_interleaved_stages() {
        for precision in ["precision=fp8", "precision=bf16"] {
            let (parts, scenario) =
                testing::scenario_without_layout("h100-sxm-1024", "deepseek-v3-train", &[precision]);
            let all = advise(&scenario, &parts, &estimate(&scenario), Objective::Throughput);
            let advice = all.iter().find(|advice| {
                [Knob::Ep, Knob::Vpp].iter().all(|knob| advice.changes.iter().any(|(changed, _)| changed == knob))
            });
            assert!(advice.is_some_and(|advice| advice.gain > 0.3), "{precision}: {:?}", advice.map(|one| &one.text));
        }
    }
}
