//! Tests that values which contradict each other, the model, the hardware or the software are refused or noted.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::Knob;
use super::effects::description;
use crate::engine::{estimate, notes};
use crate::estimate::Verdict;
use crate::knob::KnobValues as _;
use crate::scenario::Scenario;
use crate::testing;
use atlas_core::plan::Engine;

#[test]
fn settings_that_contradict_each_other_or_the_hardware_are_refused() {
    for (workload, set, verdict) in [
        ("llama3.1-70b-serve", "generate_max=8", "outputs have 1024 tokens on average (generate), but at most 8"),
        ("llama3.1-8b-serve", "compute=int4", "does not support int4"),
        ("bge-large-embed", "compute=int4", "does not support int4"),
    ] {
        let parts = testing::parts("h100-sxm-8", workload);
        let scenario = Scenario::resolve(&parts, &testing::with_engine(Engine::Analytical, &[set])).unwrap();
        let answer = estimate(&scenario);
        let described = answer.detail.unwrap().verdict.describe();
        assert!(described.contains(verdict), "{set}: {described}");
        let fix = crate::advice::fit::fit(&scenario, &parts, &answer).unwrap();
        assert!(!fix.fixes.is_empty(), "{set}");
    }
}

#[test]
fn more_slow_nodes_than_the_job_has_are_refused() {
    let parts = testing::parts("h100-sxm-64", "llama3.1-8b-train");
    let verdict = |slow: &str| {
        let set = testing::with_engine(Engine::Event, &["steps=2", slow]);
        estimate(&Scenario::resolve(&parts, &set).unwrap()).detail.unwrap().verdict
    };
    assert_eq!(verdict("slow_nodes=8"), Verdict::Fits);
    assert_eq!(verdict("slow_nodes=9").describe(), "slow_nodes is 9, but the job has 8 nodes");
}

#[test]
fn impossible_values_are_refused_with_the_numbers() {
    for (target, workload, set, refusal) in [
        (
            "h100-sxm-64",
            "llama3.1-70b-train",
            &["recompute_layers=200"][..],
            "recompute_layers is 200, but the model has 80 layers",
        ),
        (
            "h100-sxm-128",
            "llama3.1-70b-train",
            &["rack_kw=10", "nodes_per_rack=4"],
            "4 nodes draw 16.1 kW even at the lowest power cap, but a rack has 10.0 kW",
        ),
        ("h100-sxm-8", "llama3.1-8b-serve", &["prompt=200000"], "exceed the model's maximum of 131072"),
    ] {
        let parts = testing::parts(target, workload);
        let scenario = Scenario::resolve(&parts, &testing::with_engine(Engine::Analytical, set)).unwrap();
        let answer = estimate(&scenario);
        let described = answer.detail.unwrap().verdict.describe();
        assert!(described.contains(refusal), "{set:?}: {described}");
        let fix = crate::advice::fit::fit(&scenario, &parts, &answer).unwrap();
        assert!(!fix.fixes.is_empty(), "{set:?}");
    }
    let one = ["tp=1", "pp=1", "vpp=1", "cp=1", "precision=bf16", "global=16", "software=deepspeed"];
    let offloaded = |target, workload, set: &[&str]| {
        let parts = testing::parts(target, workload);
        let all = testing::with_engine(Engine::Analytical, &[&one, set].concat());
        let scenario = Scenario::resolve(&parts, &all).unwrap();
        let answer = estimate(&scenario);
        (answer.detail.unwrap(), notes::notes(&scenario, &answer).join("; "))
    };
    let parameters = ["cpu_offload=parameters"];
    let (detail, _) = offloaded("gh200-1", "llama3.1-405b-train", &parameters);
    assert!(
        matches!(detail.verdict, Verdict::HostMemory { needs, has } if (6.4e12..6.6e12).contains(&needs) && has == 480e9)
    );
    let (detail, _) = offloaded("gh200-1", "llama3.1-405b-train", &["cpu_offload=parameters", "host_memory_gb=8000"]);
    assert!(!matches!(detail.verdict, Verdict::HostMemory { .. }));
    // One memory: offloading frees nothing.
    let (plain, _) = offloaded("gb10-1", "llama3.1-8b-train", &[]);
    let (unified, notes) = offloaded("gb10-1", "llama3.1-8b-train", &["cpu_offload=optimizer"]);
    assert_eq!(plain.memory.upper, unified.memory.upper);
    assert!(!unified.verdict.fits() && notes.contains("share one memory"), "{notes}");
    assert!(Knob::NetworkGbps.parse("0", &[]).is_err());
}

#[test]
fn training_may_extend_the_context_of_a_model() {
    let parts = testing::parts("h100-sxm-64", "llama3.1-8b-train");
    let set = testing::with_engine(Engine::Analytical, &["prompt=262144", "cp=8", "global=64"]);
    let scenario = Scenario::resolve(&parts, &set).unwrap();
    let answer = estimate(&scenario);
    assert!(answer.detail.unwrap().verdict.fits(), "{}", answer.detail.unwrap().verdict.describe());
    let notes = notes::notes(&scenario, &answer);
    assert!(notes.iter().any(|note| note.contains("longer than the 131072 of the model")), "{notes:?}");
}

#[test]
fn settings_that_the_training_software_lacks_are_noted() {
    let notes = |set: &[&str]| {
        let parts = testing::parts("h100-sxm-64", "llama3.1-8b-train");
        description(&parts, &testing::with_engine(Engine::Analytical, set))
    };
    let pipeline = ["vpp=1", "pp=2", "global=64", "sharding=zero1"];
    for (software, set, lacks) in [
        ("megatron-core", &["pp_schedule=zero-bubble"][..], Some("pp_schedule zero-bubble")),
        ("megatron-core", &["cpu_offload=parameters"], Some("cpu_offload parameters")),
        ("megatron-core", &["cpu_offload=optimizer"], None),
        ("megatron-core@0.9.0", &["cpu_offload=optimizer"], Some("cpu_offload optimizer")),
        ("megatron-core", &["gradient_format=fp8"], Some("gradient_format fp8")),
        ("hf-trainer", &[], Some("pipeline stages (pp 2)")),
        ("hf-trainer@4.38.0", &["tp=8"], Some("tensor parallelism (tp 8)")),
        ("pytorch-ddp", &["pp=1", "sharding=zero3"], Some("sharding zero3")),
        ("deepspeed", &["tp=2", "sharding=zero3"], Some("sharding zero3 with pipeline stages")),
        ("deepspeed", &["tp=2", "sharding=zero1"], None),
    ] {
        let software = format!("software={software}");
        let all: Vec<&str> = [&pipeline[..], &[software.as_str()], set].concat();
        let described = notes(&all);
        assert_eq!(described.contains("does not support"), lacks.is_some(), "{all:?}: {described}");
        assert!(lacks.is_none_or(|lacks| described.contains(lacks)), "{all:?}: {described}");
    }
}

#[test]
fn unsupported_expert_overlap_is_noted_without_vpp() {
    let parts = testing::parts("h800-sxm-2048", "deepseek-v3-train");
    let of = |set: &[&str]| description(&parts, &testing::with_engine(Engine::Analytical, set));
    let layout = ["pp=16", "ep=64", "dp=128", "overlap_experts=on"];
    assert!(of(&[&layout[..], &["vpp=1"]].concat()).contains("only between model chunks (vpp above 1)"));
    assert!(!of(&[&layout[..], &["vpp=3"]].concat()).contains("only between model chunks"));
}

#[test]
fn deepep_dispatch_is_supported_over_links_and_not_over_pcie() {
    let layout = ["tp=1", "attention_dp=4", "ep=4", "moe_dispatcher=deepep"];
    for (target, links) in [("h100-sxm-8", true), ("rtx-4090-8", false)] {
        let parts = testing::parts(target, "gpt-oss-120b-serve");
        let stated = testing::with_engine(Engine::Analytical, &layout);
        let scenario = Scenario::resolve(&parts, &stated).unwrap();
        assert_eq!(scenario.software_supports(&scenario.base), links, "{target}");
        assert_eq!(description(&parts, &stated).contains("connected by PCIe"), !links, "{target}");
        let gathered = Scenario::resolve(&parts, &testing::with_engine(Engine::Analytical, &layout[..3])).unwrap();
        assert!(gathered.software_supports(&gathered.base), "{target}");
    }
}
