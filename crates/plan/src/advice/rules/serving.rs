//! How a model is cut and in which formats it is served.

use super::super::case::{floor_power, number, word};
use super::super::{Case, Changes, Rule};
use super::{serving, training, up_to_the_knee};
use crate::knob::Knob;
use atlas_core::plan::Format;
use atlas_perf::accelerator::Precision;

/// Whether weights are 16 bit or wider.
fn wide(format: Format) -> bool {
    matches!(format, Format::Bf16 | Format::Fp16 | Format::Tf32 | Format::Fp32)
}

/// Attention groups instead of tensor parallelism: over a replica, and over the fast domain.
fn attention_groups(case: &Case<'_>, out: &mut Vec<Changes>) {
    if !case.arch.is_moe() || case.scenario.base.groups() > 1.0 {
        return;
    }
    for groups in [case.replica(), floor_power(case.domain.min(case.devices))] {
        let mut changes = case.layout(1.0, 1.0, 1.0);
        let dp = (case.devices / groups).floor().max(1.0);
        changes.retain(|(knob, _)| !matches!(knob, Knob::Dp | Knob::Concurrency));
        if case.scenario.base.plan.dp.is_some() {
            changes.push(number(Knob::Dp, dp));
        }
        changes.push(number(Knob::AttentionDp, groups));
        changes.push(number(Knob::Ep, floor_power(groups.min(f64::from(case.arch.experts)))));
        case.keep_load(&mut changes, dp, case.micro);
        if groups > 1.0 {
            out.push(changes);
        }
    }
}

/// Layouts with two, four and eight times the requests in flight.
fn with_more_requests(case: &Case<'_>, layouts: &[Changes], out: &mut Vec<Changes>) {
    if case.open_load() {
        return;
    }
    for times in [2.0, 4.0, 8.0] {
        for layout in layouts.iter().filter(|layout| !layout.is_empty()) {
            let mut changes = layout.clone();
            changes.retain(|(knob, _)| *knob != Knob::Concurrency);
            changes.push(number(Knob::Concurrency, times * case.concurrency()));
            out.push(changes);
        }
    }
}

pub(super) static RULES: &[Rule] = &[
    serving(
        "replicas in place of tensor parallelism",
        "a model that fits needs no all-reduces; as many replicas serve more than as many ranks",
        "vLLM documentation, Parallelism and Scaling",
        |case, out| {
            if case.tp > 1.0 {
                out.push(case.layout((case.tp / 2.0).floor(), case.pp, 1.0));
                out.push(case.layout(1.0, case.pp, 1.0));
            }
        },
    ),
    serving(
        "more tensor parallelism",
        "ranks read the weights side by side: each token comes sooner, and more memory is left for the KV cache",
        "Pope et al., Efficiently Scaling Transformer Inference, arXiv 2211.05102, section 3",
        |case, out| {
            for tp in [2.0 * case.tp, floor_power(case.domain.min(case.devices)).min(8.0 * case.tp)] {
                if tp > case.tp && tp <= case.domain.min(case.devices) {
                    out.push(case.layout(tp, case.pp, 1.0));
                }
            }
        },
    ),
    serving(
        "tensor parallelism in place of a pipeline",
        "stages add their times to every token; ranks inside the fast domain divide them",
        "vLLM documentation, Parallelism and Scaling",
        |case, out| {
            let tp = case.tp * case.pp;
            if case.pp > 1.0 && tp <= case.domain {
                out.push(case.layout(tp, 1.0, 1.0));
            }
        },
    ),
    serving(
        "pipeline between nodes",
        "an all-reduce per layer over the network costs more than one hand-over per stage",
        "vLLM documentation, Parallelism and Scaling",
        |case, out| {
            if case.tp > case.domain {
                out.push(case.layout(case.domain, case.pp * (case.tp / case.domain).ceil(), 1.0));
            }
        },
    ),
    serving(
        "heads divisible by tp",
        "every tensor-parallel rank serves whole heads; an uneven cut cannot run",
        "Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3",
        |case, out| {
            if case.arch.heads % case.tp != 0.0 {
                out.push(case.layout(super::super::case::divisor(f64::from(case.arch.heads), case.tp), case.pp, 1.0));
            }
        },
    ),
    serving(
        "whole experts on each rank",
        "experts that are not sliced keep their products large, and each rank reads fewer of them",
        "DeepSeek-V3, arXiv 2412.19437, section 3.4",
        |case, out| {
            if case.arch.is_moe() && case.ep <= 1.0 && case.tp > 1.0 {
                out.push(vec![number(Knob::Ep, case.tp)]);
            } else if case.ep > 1.0 {
                out.push(vec![number(Knob::Ep, 1.0)]);
            }
        },
    ),
    serving(
        "weights in fp8",
        "decoding reads every weight at each step; half the bytes are half the time, at a loss within the noise of tasks",
        "Kurtic et al., arXiv 2411.02355 (W8A8-FP is lossless over half a million evaluations)",
        |case, out| {
            if wide(case.format) && case.device.has(Precision::Fp8) {
                out.push(vec![word(Knob::Precision, "fp8")]);
            } else if wide(case.format) && case.device.has(Precision::Int8) {
                out.push(vec![word(Knob::Precision, "int8")]);
            }
        },
    ),
    serving(
        "weights in 4-bit floating point",
        "matrix units that multiply block-scaled fp4 read a quarter of the bytes and compute at four times the 16-bit rate",
        "OCP Microscaling Formats specification 1.0; NVIDIA, Introducing NVFP4 (2025)",
        |case, out| {
            if case.device.has(Precision::Fp4) && !matches!(case.format, Format::Fp4 | Format::Int4) {
                out.push(vec![word(Knob::Precision, "fp4")]);
            }
        },
    ),
    serving(
        "4-bit weights at small batch",
        "while decoding is bound by reading weights, unpacking them costs less than reading four times as much",
        "Lin et al., AWQ, arXiv 2306.00978; Frantar et al., Marlin, arXiv 2408.11743",
        |case, out| {
            if wide(case.format) && !case.device.has(Precision::Fp4) {
                out.push(vec![word(Knob::Precision, "int4")]);
            }
        },
    ),
    serving(
        "KV cache in fp8",
        "half the bytes per token are twice the sequences in memory, and half the reading in long contexts",
        "vLLM documentation, Quantized KV Cache; Liu et al., KIVI, arXiv 2402.02750",
        |case, out| {
            if case.scenario.base.served.formats.kv_bytes > 1.0 {
                out.push(vec![word(Knob::KvPrecision, "fp8")]);
            }
        },
    ),
    serving(
        "speculative decoding: MTP or EAGLE drafts",
        "verifying a few drafted tokens costs little more than decoding one while weights are waited for; acceptance is assumed",
        "DeepSeek-V3, arXiv 2412.19437, section 5.4.3 (MTP); Li et al., EAGLE-3, arXiv 2503.01840",
        |case, out| {
            if case.number(Knob::DraftTokens) == 0.0 {
                out.extend([1.0, 2.0, 4.0].map(|tokens| vec![number(Knob::DraftTokens, tokens)]));
            }
        },
    ),
    serving(
        "data-parallel attention with shared experts",
        "ranks that hold whole sequences need no all-reduces and repeat no keys and values, while experts stay spread over all",
        "SGLang documentation, DP attention; vLLM documentation, Expert Parallel Deployment",
        attention_groups,
    ),
    Rule {
        worth: up_to_the_knee,
        ..serving(
            "data-parallel attention, and the requests that it has room for",
            "keys and values that are not repeated leave memory for several times the sequences, which share each read of experts",
            "SGLang, Deploying DeepSeek with PD Disaggregation and Large-Scale Expert Parallelism on 96 H100 GPUs (2025)",
            |case, out| {
                let mut layouts = Vec::new();
                attention_groups(case, &mut layouts);
                with_more_requests(case, &layouts, out);
            },
        )
    },
    Rule {
        worth: up_to_the_knee,
        ..serving(
            "whole replicas, and the requests that they have room for",
            "replicas pay off once each has a batch of its own: without all-reduces more requests are nearly free",
            "vLLM documentation, Parallelism and Scaling; NVIDIA, TensorRT-LLM performance overview",
            |case, out| {
                if case.tp > 1.0 {
                    let layouts = [1.0, 2.0].map(|tp| case.layout(tp, case.pp, 1.0));
                    with_more_requests(case, &layouts, out);
                }
            },
        )
    },
    serving(
        "8-bit weights, one replica per accelerator",
        "in 8 bit the model fits where 16-bit weights had to be cut, and whole replicas need no all-reduces",
        "NVIDIA, TensorRT-LLM performance overview (Llama 3.3 70B fp8, tp 1); vLLM documentation, Parallelism and Scaling",
        |case, out| {
            if case.tp * case.pp > 1.0 && wide(case.format) && case.device.has(Precision::Fp8) {
                let mut changes = case.layout(1.0, 1.0, 1.0);
                if !changes.is_empty() {
                    changes.push(word(Knob::Precision, "fp8"));
                    out.push(changes);
                }
            }
        },
    ),
    serving(
        "no speculation at large batch",
        "drafts that are rejected take compute from sequences that wait for it",
        "Liu et al., Optimizing Speculative Decoding for Serving LLMs Using Goodput, arXiv 2406.14066",
        |case, out| {
            if case.number(Knob::DraftTokens) > 0.0 {
                out.push(vec![number(Knob::DraftTokens, 0.0)]);
            }
        },
    ),
    serving(
        "a server with continuous batching",
        "a static batch waits for its longest answer; continuous batching replaces what has ended at every step",
        "Yu et al., Orca, OSDI 2022; Kwon et al., vLLM, arXiv 2309.06180",
        |case, out| {
            if let Some(usual) = case.scenario.in_force.usual.filter(|_| !case.scenario.base.served.continuous) {
                out.push(vec![word(Knob::Software, usual)]);
            }
        },
    ),
    // Training's counterpart of the rule on small ranks: kept here, since it is about the same slices.
    training(
        "fewer, larger slices of experts",
        "experts cut over tensor-parallel ranks leave products too narrow for the matrix units",
        "DeepSeek-V3, arXiv 2412.19437, section 3.2 (no tensor parallelism with 64-way expert parallelism)",
        |case, out| {
            let ep = floor_power(case.domain.min(case.arch.experts.into()));
            if case.arch.is_moe() && case.tp > 1.0 && ep > case.ep {
                let mut changes = case.layout(1.0, case.pp, case.cp);
                if !changes.is_empty() {
                    changes.push(number(Knob::Ep, ep));
                    out.push(changes);
                }
            }
        },
    ),
];
