//! Rules on layouts and formats in serving.

use super::super::case::{floor_power, number, word};
use super::super::{Case, Changes, Rule};
use super::{min_concurrency_gain, serving, training};
use crate::knob::{Knob, Setting};
use atlas_core::plan::{DraftMethod, Format, MoeDispatcher};
use atlas_perf::accelerator::Precision;

const WIDE_EP_SOURCE: &str =
    "SGLang, Deploying DeepSeek with PD Disaggregation and Large-Scale Expert Parallelism on 96 H100 GPUs (2025)";

/// Whether weights are 16 bit or wider.
fn is_16_bit_or_wider(format: Format) -> bool {
    matches!(format, Format::Bf16 | Format::Fp16 | Format::Tf32 | Format::Fp32)
}

/// Weights and products in 8 bits instead of 16, if the device supports them.
fn eight_bits(case: &Case<'_>) -> Option<Changes> {
    let formats = [(Precision::Fp8, "fp8"), (Precision::Int8, "int8")];
    let (_, format) = formats.into_iter().find(|(format, _)| case.device.supports(*format))?;
    is_16_bit_or_wider(case.format).then(|| vec![word(Knob::Precision, format)])
}

/// Attention groups instead of tensor parallelism: over a replica, and over the scale-up domain.
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

/// Attention groups that share experts, in separate pools for prefill and decode, each of whole replicas. A quarter or
/// half of the accelerators prefill. Tokens are sent directly to their experts if the software can.
fn attention_groups_in_pools(case: &Case<'_>, out: &mut Vec<Changes>) {
    let traits = &case.scenario.active_software.serving;
    if !traits.pools || case.scenario.base.pools().is_some() {
        return;
    }
    let mut layouts = Vec::new();
    attention_groups(case, &mut layouts);
    layouts.dedup();
    for changes in layouts {
        let groups = changes.iter().find_map(|change| match change {
            (Knob::AttentionDp, Setting::Number(groups)) => Some(*groups),
            _ => None,
        });
        let replicas = groups.map_or(0.0, |groups| (case.devices / groups).floor());
        for share in [0.5, 0.25] {
            let prefill = (share * replicas).floor();
            let Some(groups) = groups.filter(|_| prefill >= 1.0 && prefill < replicas) else { continue };
            let mut changes = changes.clone();
            changes.push(number(Knob::PrefillAccelerators, prefill * groups));
            if traits.wide_ep {
                changes.push(word(Knob::MoeDispatcher, MoeDispatcher::DeepEp.name()));
            }
            out.push(changes);
        }
    }
}

/// Layouts with two, four and eight times the concurrency.
fn add_higher_concurrency(case: &Case<'_>, layouts: &[Changes], out: &mut Vec<Changes>) {
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
        "use replicas instead of tensor parallelism",
        "fewer ranks spend less time in all-reduces, so two replicas have more throughput than one with twice the ranks",
        "vLLM documentation, Parallelism and Scaling",
        |case, out| {
            if case.tp > 1.0 {
                out.push(case.layout((case.tp / 2.0).floor(), case.pp, 1.0));
                out.push(case.layout(1.0, case.pp, 1.0));
            }
        },
    ),
    serving(
        "increase tensor parallelism",
        "each rank reads only its shard of the weights, which lowers TPOT and leaves more memory for the KV cache",
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
        "use tensor instead of pipeline parallelism",
        "every token passes all pipeline stages in turn, whereas tensor-parallel ranks share the work of each layer",
        "vLLM documentation, Parallelism and Scaling",
        |case, out| {
            let tp = case.tp * case.pp;
            if case.pp > 1.0 && tp <= case.domain {
                out.push(case.layout(tp, 1.0, 1.0));
            }
        },
    ),
    serving(
        "use pipeline parallelism between nodes",
        "one transfer per stage over the network costs less than all-reduces in every layer",
        "vLLM documentation, Parallelism and Scaling",
        |case, out| {
            if case.tp > case.domain {
                out.push(case.layout(case.domain, case.pp * (case.tp / case.domain).ceil(), 1.0));
            }
        },
    ),
    serving(
        "choose tp so that it divides the heads",
        "tensor parallelism shards attention by heads, and engines refuse an uneven split",
        "Shoeybi et al., Megatron-LM, arXiv 1909.08053, section 3",
        |case, out| {
            if case.arch.heads % case.tp != 0.0 {
                out.push(case.layout(super::super::case::divisor(f64::from(case.arch.heads), case.tp), case.pp, 1.0));
            }
        },
    ),
    serving(
        "use expert instead of tensor parallelism for experts",
        "whole experts keep their matrix multiplications large, and each rank reads fewer of them",
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
        "quantize to fp8",
        "decode is bound by reading weights: half the bytes take half the time; the loss of accuracy is within \
         benchmark noise",
        "Kurtic et al., arXiv 2411.02355 (W8A8-FP is lossless over half a million evaluations)",
        |case, out| {
            if case.decodes() {
                out.extend(eight_bits(case));
            }
        },
    ),
    serving(
        "quantize to fp8 for prompts",
        "matrix multiplications of prompts are bound by compute, and run at twice the rate in 8 bits; the loss of \
         accuracy is within benchmark noise",
        "Kurtic et al., arXiv 2411.02355 (W8A8-FP is lossless over half a million evaluations)",
        |case, out| {
            if !case.decodes() {
                out.extend(eight_bits(case));
            }
        },
    ),
    serving(
        "quantize to fp4",
        "a quarter of the bytes of bf16 are read, and block-scaled fp4 multiplications run at four times its rate",
        "OCP Microscaling Formats specification 1.0; NVIDIA, Introducing NVFP4 (2025)",
        |case, out| {
            if case.device.supports(Precision::Fp4) && !matches!(case.format, Format::Fp4 | Format::Int4) {
                out.push(vec![word(Knob::Precision, "fp4")]);
            }
        },
    ),
    serving(
        "quantize weights to 4 bits",
        "at small batch, decode is bound by reading weights; dequantizing them costs less than reading four times the \
         bytes",
        "Lin et al., AWQ, arXiv 2306.00978; Frantar et al., Marlin, arXiv 2408.11743",
        |case, out| {
            if is_16_bit_or_wider(case.format) && !case.device.supports(Precision::Fp4) {
                out.push(vec![word(Knob::Precision, "int4")]);
            }
        },
    ),
    serving(
        "quantize the KV cache to fp8",
        "half the bytes per token leave memory for twice the sequences and halve KV reads in long contexts",
        "vLLM documentation, Quantized KV Cache; Liu et al., KIVI, arXiv 2402.02750",
        |case, out| {
            if case.scenario.base.serving_defaults.formats.kv_bytes > 1.0 {
                out.push(vec![word(Knob::KvPrecision, "fp8")]);
            }
        },
    ),
    serving(
        "use speculative decoding (MTP or EAGLE)",
        "until compute limits a step, verifying a few draft tokens costs little more than decoding one",
        "DeepSeek-V3, arXiv 2412.19437, section 5.4.3 (MTP); Li et al., EAGLE-3, arXiv 2503.01840",
        |case, out| {
            if case.number(Knob::DraftTokens) != 0.0 {
                return;
            }
            // Other models require a layer trained for them.
            let published = case.scenario.published_drafts.iter().map(|draft| draft.method);
            let mut methods: Vec<DraftMethod> = published.collect();
            match case.scenario.base.plan.serving.draft_method {
                Some(stated) => methods = vec![stated],
                None if methods.is_empty() => methods.push(DraftMethod::Eagle3),
                None => {}
            }
            // Software with a lower default limit for drafts keeps the present one if it is stated.
            let lower = case.scenario.active_software.serving.max_num_seqs_with_drafts;
            let present = case.number(Knob::MaxNumSeqs);
            let kept = lower.is_some_and(|limit| limit < present).then(|| number(Knob::MaxNumSeqs, present));
            for method in methods {
                let drafts = |tokens| {
                    let changes = [number(Knob::DraftTokens, tokens), word(Knob::DraftMethod, method.name())];
                    changes.into_iter().chain(kept.clone()).collect()
                };
                out.extend([1.0, 2.0, 4.0].map(drafts));
            }
        },
    ),
    serving(
        "use data-parallel attention",
        "attention ranks that hold whole sequences need no all-reduces and do not replicate the KV cache; experts \
         stay sharded over all ranks",
        "SGLang documentation, DP attention; vLLM documentation, Expert Parallel Deployment",
        attention_groups,
    ),
    Rule {
        worth: min_concurrency_gain,
        ..serving(
            "use data-parallel attention and more concurrent requests",
            "without replicated KV cache, memory holds several times the sequences, which share each read of the \
             experts",
            WIDE_EP_SOURCE,
            |case, out| {
                let mut layouts = Vec::new();
                attention_groups(case, &mut layouts);
                add_higher_concurrency(case, &layouts, out);
            },
        )
    },
    serving(
        "use data-parallel attention in separate pools for prefill and decode",
        "groups wait for the prompts of all others where prompts and decoding share steps; in a pool of their own, \
         prompts delay no tokens",
        WIDE_EP_SOURCE,
        attention_groups_in_pools,
    ),
    Rule {
        worth: min_concurrency_gain,
        ..serving(
            "use data-parallel attention in separate pools and more concurrent requests",
            "decode groups without prompts hold several times the sequences within the same time per token",
            WIDE_EP_SOURCE,
            |case, out| {
                let mut layouts = Vec::new();
                attention_groups_in_pools(case, &mut layouts);
                add_higher_concurrency(case, &layouts, out);
            },
        )
    },
    Rule {
        worth: min_concurrency_gain,
        ..serving(
            "use more, smaller replicas and more concurrent requests",
            "smaller replicas have fewer or no all-reduces, and pay off once each has enough requests for a large \
             batch",
            "vLLM documentation, Parallelism and Scaling; NVIDIA, TensorRT-LLM performance overview",
            |case, out| {
                if case.tp > 1.0 {
                    let layouts = [1.0, 2.0].map(|tp| case.layout(tp, case.pp, 1.0));
                    add_higher_concurrency(case, &layouts, out);
                }
            },
        )
    },
    serving(
        "quantize to 8 bits, one replica per accelerator",
        "8-bit weights fit on one accelerator where 16-bit weights had to be sharded, so no all-reduces are needed",
        "NVIDIA, TensorRT-LLM performance overview (Llama 3.3 70B fp8, tp 1); vLLM documentation, Parallelism and \
         Scaling",
        |case, out| {
            if case.tp * case.pp > 1.0 && is_16_bit_or_wider(case.format) && case.device.supports(Precision::Fp8) {
                let mut changes = case.layout(1.0, 1.0, 1.0);
                if !changes.is_empty() {
                    changes.push(word(Knob::Precision, "fp8"));
                    out.push(changes);
                }
            }
        },
    ),
    serving(
        "disable speculative decoding",
        "at large batch, verifying drafts that are rejected takes compute from other sequences",
        "Liu et al., Optimizing Speculative Decoding for Serving LLMs Using Goodput, arXiv 2406.14066",
        |case, out| {
            if case.number(Knob::DraftTokens) > 0.0 {
                out.push(vec![number(Knob::DraftTokens, 0.0)]);
            }
        },
    ),
    serving(
        "use continuous batching",
        "a static batch waits for its longest output; continuous batching replaces finished sequences at every step",
        "Yu et al., Orca, OSDI 2022; Kwon et al., vLLM, arXiv 2309.06180",
        |case, out| {
            if let Some(usual) =
                case.scenario.active_software.usual.filter(|_| !case.scenario.base.serving_defaults.continuous)
            {
                out.push(vec![word(Knob::Software, usual)]);
            }
        },
    ),
    // A training rule; it is here because it is the counterpart of the serving rule on experts per rank.
    training(
        "shard experts over fewer ranks",
        "experts sharded over many tensor-parallel ranks leave matrix multiplications too narrow to be efficient",
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

#[cfg(test)]
mod tests {
    use crate::advice::{Objective, advise};
    use crate::engine::estimate;
    use crate::knob::Knob;

    use crate::testing;

    #[test]
    fn large_mixtures_over_nodes_are_advised_attention_groups_in_pools() {
        for concurrency in ["concurrency=256", "concurrency=2048"] {
            let set = ["software=sglang", "prompt=2000", "generate=500", concurrency];
            let (parts, scenario) = testing::scenario_without_layout("h100-sxm-64", "deepseek-v3-serve", &set);
            let all = advise(&scenario, &parts, &estimate(&scenario), Objective::Throughput);
            let advice = all.iter().find(|advice| {
                let changes = |knob: Knob| advice.changes.iter().any(|(changed, _)| *changed == knob);
                changes(Knob::AttentionDp) && changes(Knob::PrefillAccelerators)
            });
            assert!(advice.is_some_and(|advice| advice.gain > 0.3), "{concurrency}: {:?}", advice.map(|one| &one.text));
        }
    }

    #[test]
    fn encoders_are_not_told_of_decoding() {
        let (parts, scenario) = testing::scenario("h100-sxm-8", "bge-large-embed", &[]);
        let all = advise(&scenario, &parts, &estimate(&scenario), Objective::Throughput);
        let quantized = all.iter().find(|advice| advice.changes.iter().any(|(knob, _)| *knob == Knob::Precision));
        assert!(quantized.is_some_and(|advice| !advice.rule.reason.contains("decode")));
    }
}
