//! How the model is cut over accelerators, in training.

use super::super::case::{divisor, floor_power, number, toggle, word};
use super::super::{Changes, Rule};
use super::training;
use crate::estimate::Cause;
use crate::knob::Knob;
use atlas_core::plan::{PipelineSchedule, Sharding};

/// Bytes of weights, gradients and Adam's states per parameter in mixed precision (ZeRO, arXiv 1910.02054, section
/// 3.1), with gradients kept in fp32.
const STATE_BYTES: f64 = 18.0;
/// Tokens of a sequence from which context parallelism is worth a look: NVIDIA's recipe for Llama 3 70B has cp 2 at 8,192
/// (Megatron-Bridge, recipes/llama/llama3.py), Llama 3 used it beyond (arXiv 2407.21783, section 3.3.2).
const LONG_SEQUENCE: f64 = 8192.0;

pub(super) static RULES: &[Rule] = &[
    training(
        "cut by the size of the model",
        "model parallelism should be just large enough that the model's states fit, and data parallelism take the rest",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 2",
        |case, out| {
            // Model states may take half of the memory; activations want the rest.
            let ranks = case.arch.params() * STATE_BYTES / (0.5 * case.device.mem_bytes);
            let ranks = floor_power(2.0 * ranks.max(0.5)).min(case.devices);
            let tp = floor_power(ranks.min(case.domain).min(8.0));
            out.push(case.layout(tp, (ranks / tp).ceil(), 1.0));
        },
    ),
    training(
        "tensor parallelism inside the node",
        "its all-reduces stand in the critical path of every layer, so they belong on the fast links",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 1",
        |case, out| {
            if case.tp > case.domain {
                out.push(case.layout(case.domain, case.pp * case.tp / case.domain, case.cp));
                out.push(case.layout(case.domain, case.pp, case.cp));
            }
        },
    ),
    training(
        "less tensor parallelism",
        "each halving saves all-reduces and leaves larger matrix products; data parallelism takes the ranks",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 2",
        |case, out| {
            if case.tp > 1.0 {
                out.push(case.layout((case.tp / 2.0).floor(), case.pp, case.cp));
                out.push(case.layout(1.0, case.pp, case.cp));
            }
        },
    ),
    training(
        "more tensor parallelism inside the node",
        "it divides weights and activations over the fast links, so that less need be recomputed or sharded",
        "Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3",
        |case, out| {
            if 2.0 * case.tp <= case.domain.min(case.devices) {
                out.push(case.layout(2.0 * case.tp, case.pp, case.cp));
            }
        },
    ),
    training(
        "pipeline across nodes",
        "stages exchange only the activations at their ends, the least traffic of all cuts of a model",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 1",
        |case, out| {
            if case.devices > case.domain || case.short_of_memory() {
                out.push(case.layout(case.tp, 2.0 * case.pp, case.cp));
            }
            if case.tp > 1.0 && case.devices > case.domain {
                out.push(case.layout((case.tp / 2.0).floor(), 2.0 * case.pp, case.cp));
            }
        },
    ),
    training(
        "fewer pipeline stages",
        "the bubble is (pp - 1) micro-batches long; a stage fewer is idle time less, where memory allows it",
        "Huang et al., GPipe, arXiv 1811.06965, section 2.3",
        |case, out| {
            if case.pp > 1.0 {
                out.push(case.layout(case.tp, (case.pp / 2.0).floor(), case.cp));
                out.push(case.layout(case.tp, 1.0, case.cp));
            }
        },
    ),
    training(
        "interleave the stages",
        "vpp model chunks of a stage shorten the bubble vpp times, for vpp times the transfers; some software overlaps the \
         exchange of experts only between chunks",
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
        "zero-bubble schedule",
        "weight gradients can be computed at any time: separate from input gradients, they fill most of the bubble",
        "Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, table 2",
        |case, out| {
            let schedule = case.scenario.base.plan.schedule;
            if case.pp > 1.0 && !schedule.is_some_and(PipelineSchedule::splits) {
                out.push(vec![word(Knob::PipelineSchedule, PipelineSchedule::ZeroBubble.name())]);
            }
        },
    ),
    training(
        "context parallelism from 8k tokens",
        "it divides the activations of a long sequence, and hides the exchange of keys and values behind attention",
        "Liu et al., Ring Attention, arXiv 2310.01889; NVIDIA Megatron-Bridge, recipe of Llama 3 70B (cp 2 at 8k)",
        |case, out| {
            if case.sequence >= LONG_SEQUENCE {
                out.push(case.layout(case.tp, case.pp, 2.0 * case.cp));
                out.push(case.layout((case.tp / 2.0).floor(), case.pp, 2.0 * case.cp));
            }
        },
    ),
    training(
        "less context parallelism",
        "short pieces of a sequence leave too little attention to hide the exchange of keys and values behind",
        "Liu et al., Ring Attention, arXiv 2310.01889, section 3",
        |case, out| {
            if case.cp > 1.0 {
                out.push(case.layout(case.tp, case.pp, (case.cp / 2.0).floor()));
                out.push(case.layout(case.tp, 2.0 * case.pp, (case.cp / 2.0).floor()));
            }
        },
    ),
    training(
        "experts spread over accelerators",
        "whole experts on different ranks keep their products large, and need not be gathered or replicated",
        "Lepikhin et al., GShard, arXiv 2006.16668, section 3; DeepSeek-V3, arXiv 2412.19437, section 3.2",
        |case, out| {
            let most = f64::from(case.arch.experts).min(case.dp * case.cp * case.tp);
            if case.arch.is_moe() {
                for ep in [2.0 * case.ep, floor_power(most.min(case.domain))] {
                    if ep > case.ep && ep <= most {
                        out.push(vec![number(Knob::Ep, ep)]);
                    }
                }
            }
        },
    ),
    training(
        "experts inside the fast domain",
        "dispatch and combine are all-to-all; beyond the fast links they run at the network's pace",
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
        "stages 1 and 2 of ZeRO move as much as plain data parallelism, stage 3 half as much again",
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
        "states that every replica repeats are memory wasted; freed, it serves larger micro-batches or less recomputation",
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
        "FSDP in place of model parallelism",
        "where a layer fits on one accelerator, sharded data parallelism needs neither all-reduces per layer nor a pipeline",
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
        "shard inside the node, replicate across (HSDP)",
        "weights are then gathered over the fast links, and only gradients cross the network",
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
        "sequence parallelism",
        "norms and residuals need not be repeated on every tensor-parallel rank, and the traffic stays the same",
        "Korthikanti et al., arXiv 2205.05198, section 4.2.2",
        |case, out| {
            if case.tp > 1.0 && case.scenario.base.plan.sp == Some(false) {
                out.push(vec![toggle(Knob::Sp, true)]);
            }
        },
    ),
    training(
        "heads divisible by tp",
        "every tensor-parallel rank computes whole heads; an uneven cut cannot run",
        "Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3",
        |case, out| {
            if case.arch.heads % case.tp != 0.0 {
                out.push(case.layout(divisor(f64::from(case.arch.heads), case.tp), case.pp, case.cp));
            }
        },
    ),
    training(
        "layers divisible by pp x vpp",
        "the stage with one layer more sets the pace, and the others wait for it",
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
        "cut between nodes by data, not by model",
        "gradients are reduced once a step and hide behind the backward pass; activations cross links in every layer",
        "Narayanan et al., SC 2021, arXiv 2104.04473, section 3, takeaway 1",
        |case, out| {
            if case.share(Cause::InterNode) > 0.1 && case.tp * case.pp * case.cp > 1.0 {
                let changes: Changes = case.layout(case.tp.min(case.domain), (case.pp / 4.0).ceil(), case.cp);
                out.push(changes);
            }
        },
    ),
];
