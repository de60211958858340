//! Comparison with published results of LoRA training with frozen 4-bit weights.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::engine::estimate;
use crate::estimate::{Estimate, MemoryPart, Verdict};
use crate::knob::{Knob, KnobValues as _, Setting};
use crate::scenario::Scenario;
use crate::testing;

fn answered(target: &str, workload: &str, set: &[&str]) -> Estimate {
    let parts = testing::parts(target, workload);
    let overrides = testing::overrides(set);
    estimate(&Scenario::resolve(&parts, &overrides).unwrap())
}

const ONE: [&str; 8] = ["num_nodes=1", "trained=lora", "tp=1", "pp=1", "vpp=1", "dp=1", "microbatch=1", "global=16"];

#[test]
fn qlora_70b_memory_matches_the_published_value() {
    // LLaMA 65B needs less than 48 GB instead of more than 780 GB with all weights trained (arXiv 2305.14314,
    // abstract); Llama 2 70B has 6 % more weights.
    let of = |set: &[&str]| {
        answered(
            "rtx-pro-6000-8",
            "llama2-70b-dp16-tp4-pp2",
            &[&ONE[..], &["prompt=512", "recompute=full"], set].concat(),
        )
    };
    let (packed, plain) = (of(&["precision=int4"]), of(&[]));
    assert_eq!(packed.detail.unwrap().verdict, Verdict::Fits);
    let gb = packed.total.peak_mem_gb;
    assert!((40.0..53.0).contains(&gb), "{gb} GB");
    assert!(matches!(plain.detail.unwrap().verdict, Verdict::Memory { .. }));
}

#[test]
fn qlora_slowdown_and_memory_saving_match_published_values() {
    // Llama 2 7B on one A100, short instructions: 21.33 GB and 6,686 s with 16-bit weights, 14.18 GB and 10,060 s in 4
    // bit (Lightning AI, Finetuning LLMs with LoRA and QLoRA, 2023; from memory).
    let of = |set: &[&str]| answered("a100-sxm-80gb-8", "llama2-7b-dp8", &[&ONE[..], &["prompt=256"], set].concat());
    let (packed, plain) = (of(&["precision=int4"]), of(&["precision=bf16"]));
    let slower = plain.total.tokens_per_sec / packed.total.tokens_per_sec;
    assert!((1.05..1.6).contains(&slower), "{slower}");
    let saved = plain.total.peak_mem_gb - packed.total.peak_mem_gb;
    assert!((6.0..11.0).contains(&saved), "{saved} GB");
    // With more tokens per unpacking, its relative cost is lower.
    let long = |set: &[&str]| answered("a100-sxm-80gb-8", "llama2-7b-dp8", &[&ONE[..], &["prompt=4096"], set].concat());
    let relative = long(&["precision=bf16"]).total.tokens_per_sec / long(&["precision=int4"]).total.tokens_per_sec;
    assert!(relative < slower && relative > 1.0, "{relative} {slower}");
}

#[test]
fn int4_is_refused_for_trained_weights_but_not_for_qlora() {
    let refused = answered("h100-sxm-8", "llama2-7b-dp8", &["precision=int4", "compute=bf16"]);
    let described = refused.detail.unwrap().verdict.describe();
    assert!(described.contains("int4"), "{described}");
    let shipped = answered("h100-sxm-8", "llama3-70b-qlora", &[]);
    assert_eq!(shipped.detail.unwrap().verdict, Verdict::Fits);
}

fn gb(estimate: &Estimate, part: MemoryPart) -> f64 {
    let parts = &estimate.detail.as_ref().unwrap().memory.parts;
    parts.part(part) * 1e-9
}

#[test]
fn adapter_memory_follows_from_rank_and_targets() {
    let of = |set: &[&str]| answered("h100-sxm-8", "llama3-70b-qlora", set);
    // 0.207 billion parameters of rank 16 on seven matrices of 80 layers, with 12 bytes of states and master weights.
    let usual = gb(&of(&[]), MemoryPart::Optimizer);
    assert!((usual - 0.207 * 12.0).abs() < 0.01, "{usual} GB");
    assert!((gb(&of(&["r=64"]), MemoryPart::Optimizer) / usual - 4.0).abs() < 1e-6);
    let attention = gb(&of(&["lora_targets=attention"]), MemoryPart::Optimizer);
    assert!((attention - 0.0655 * 12.0).abs() < 0.01, "{attention} GB");
}

#[test]
fn frozen_weights_take_the_stated_bits() {
    let of = |set: &[&str]| answered("h100-sxm-8", "llama3-70b-qlora", set);
    let weights = |set: &[&str]| gb(&of(set), MemoryPart::Weights);
    // 68.5 billion parameters of layers; embedding and output layer stay in 16 bit.
    let [two, four, eight] = ["weight_bits=2", "weight_bits=4.5", "weight_bits=8.5"].map(|set| weights(&[set]));
    assert!((four - two - 68.5 * 2.5 / 8.0).abs() < 0.1 && (eight - four - 68.5 * 4.0 / 8.0).abs() < 0.1);
    let q8 = weights(&["precision=q8_0"]);
    assert!((q8 - eight).abs() < 0.5, "{q8} {eight}");
    // Weights of 16 bits are not packed.
    assert!((weights(&["weight_bits=16"]) - weights(&["precision=bf16"])).abs() < 1e-9);
}

#[test]
fn checkpoints_of_adapters_are_not_checkpoints_of_the_model() {
    let written = |set: &[(Knob, &str)]| {
        let parts = testing::parts("h100-sxm-8", "llama3-70b-qlora");
        let set = set.iter().map(|(knob, word)| (*knob, knob.parse(word, &[]).unwrap())).collect();
        match Scenario::resolve(&parts, &set).unwrap().get(Knob::Checkpoint) {
            Setting::Number(seconds) => seconds,
            other => panic!("{other}"),
        }
    };
    let (adapters, model) = (written(&[]), written(&[(Knob::Trained, "all"), (Knob::Precision, "bf16")]));
    // 16-bit weights, their fp32 copies and two moments; the model is trained with fp32 weights only.
    assert!((adapters / 14.0 / (model / 12.0) - 0.207 / 70.6).abs() < 1e-4, "{adapters} s, {model} s");
}
