//! The playbook on scenarios of every kind: its gains are correct, and the proposed configurations run.

use crate::common::plans;

use std::collections::BTreeSet;

use atlas_core::plan::Engine;
use atlas_plan::advice;
use atlas_plan::advice::{Advice, Changes, Objective, advise};
use atlas_plan::engine;
use atlas_plan::estimate::{Estimate, METRICS, Verdict};
use atlas_plan::explain::explain;
use atlas_plan::knob::{KNOBS, Knob, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use proptest::prelude::*;

/// Scenario without schedule, which advice ignores, with changes applied.
fn changed(parts: &Parts, scenario: &Scenario, changes: &Changes) -> (Scenario, Estimate) {
    let mut scenario = scenario.clone();
    scenario.phases.clear();
    for (knob, setting) in changes {
        scenario.set(*knob, setting, parts).unwrap();
    }
    let estimate = engine::estimate(&scenario);
    (scenario, estimate)
}

fn verdict(estimate: &Estimate) -> Verdict {
    estimate.detail.map(|detail| detail.verdict).unwrap_or_default()
}

#[test]
fn advice_gains_equal_the_estimate_with_its_changes_applied() {
    let library = plans::library();
    let (mut described, mut names) = (0, BTreeSet::new());
    for (parts, scenario) in plans::all(&library) {
        let estimate = engine::estimate(&scenario);
        for objective in Objective::ALL {
            let all = advise(&scenario, &parts, &estimate, objective);
            let metric = objective.metric(&scenario);
            let (plain, before) = changed(&parts, &scenario, &Changes::new());
            let runs = verdict(&before).fits();
            for pair in all.windows(2) {
                // Advice that depends on the traffic rather than on settings comes last.
                let traffic = |advice: &Advice| advice.changes.iter().any(|(knob, _)| *knob == Knob::PrefixHit);
                assert!(pair[0].gain >= pair[1].gain || traffic(&pair[1]));
                assert!(!traffic(&pair[0]) || traffic(&pair[1]));
            }
            for advice in &all {
                let (turned, after) = changed(&parts, &scenario, &advice.changes);
                let at =
                    format!("{} x {}: {} ({})", parts.target.name, parts.workload.name, advice.rule.name, advice.text);
                assert_eq!(Some(advice.after), metric.value(&after, &turned), "{at}");
                assert_eq!(Some(advice.before), metric.value(&before, &plain), "{at}");
                assert!(verdict(&after).fits(), "{at}");
                let tight = |estimate: &Estimate| estimate.detail.is_some_and(|detail| detail.memory.is_tight());
                assert!(!runs || tight(&before) || !tight(&after), "{at} leaves less free than a search does");
                assert_eq!(advice.fixes, !runs, "{at}");
                assert!(advice.fixes || advice.gain >= 0.005, "{at}");
                assert!(!advice.text.is_empty() && !advice.changes.is_empty());
                described += 1;
                names.insert(advice.rule.name);
            }
        }
    }
    assert!(names.len() >= 40 && described > 1000, "{described} by {}: {names:?}", names.len());
}

/// Scenarios with a mistake, each with the rule that must find it.
#[test]
fn each_known_mistake_is_found_by_its_rule() {
    let library = plans::library();
    let mut missed = Vec::new();
    for (target, workload, set, rule) in [
        ("h100x128", "train_70b", &[("tp", "16")][..], "use only as much model parallelism as memory requires"),
        ("h100x128", "train_8b", &[("cp", "4"), ("sharding", "zero1")], "reduce context parallelism"),
        ("h100x128", "train_70b", &[("sp", "off")], "use sequence parallelism"),
        ("h100x8", "train_8b", &[("tp", "3")], "choose tp so that it divides the heads"),
        ("h100x128", "train_70b", &[("pp", "3")], "choose pp x vpp so that it divides the layers"),
        ("h100x8", "train_8b", &[("prompt", "1100")], "use sequence lengths that are multiples of 128"),
        ("h100x8", "train_8b", &[("precision", "tf32")], "train in bf16"),
        ("h100x8", "serve_70b", &[("tp", "2"), ("pp", "4")], "use tensor instead of pipeline parallelism"),
        ("a100x64", "serve_70b", &[("tp", "16"), ("precision", "bf16")], "use pipeline parallelism between nodes"),
        (
            "h100x8",
            "serve_8b",
            &[("draft_tokens", "8"), ("draft_acceptance", "0.3"), ("concurrency", "1024")],
            "disable speculative decoding",
        ),
        ("h100x8", "serve_8b", &[("max_num_seqs", "8")], "allow more sequences per step"),
        (
            "h100x8",
            "serve_8b",
            &[("cuda_graphs", "off"), ("concurrency", "1"), ("tp", "8")],
            "use CUDA graphs for decode",
        ),
        ("h100x8", "serve_8b", &[("max_num_batched_tokens", "64")], "use larger prefill chunks"),
        ("rtx4090x2", "serve_8b", &[("tp", "2")], "consumer and workstation GPUs: quantize weights to 4 bits"),
        ("plain", "train_8b", &[], "enable GPUDirect RDMA"),
        ("plain", "train_8b", &[("virt", "sriov")], "use bare metal instead of SR-IOV"),
        ("plain", "train_8b", &[("fabric", "RoCE")], "use the fabric with the smallest factor"),
        ("plain", "train_70b", &[], "reduce model parallelism"),
        ("h100x8", "train_8b", &[("dp", "4")], "use the idle accelerators"),
        ("a100x64", "train_8b", &[], "use a non-blocking network"),
    ] {
        let (parts, scenario) = plans::one(&library, target, workload, set);
        let estimate = engine::estimate(&scenario);
        let all: Vec<_> =
            Objective::ALL.map(|o| advise(&scenario, &parts, &estimate, o)).into_iter().flatten().collect();
        let names: BTreeSet<&str> = all.iter().map(|advice| advice.rule.name).collect();
        if !names.contains(rule) {
            missed.push(format!("{target} x {workload} {set:?}: {rule} not among {names:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn every_advice_rule_is_unique_and_has_a_reason_and_a_source() {
    let mut seen = BTreeSet::new();
    for rule in advice::rules() {
        assert!(!rule.reason.is_empty() && rule.source.len() > 10, "{}", rule.name);
        assert!(!rule.reason.ends_with('.') && rule.reason.len() < 160, "{}", rule.name);
        seen.insert((rule.name, rule.reason));
    }
    assert!(seen.len() >= 25);
    assert_eq!(seen.len(), advice::rules().count());
}

#[test]
fn every_proposed_memory_fix_fits() {
    let library = plans::library();
    let mut fixed = 0;
    for (parts, scenario) in plans::all(&library) {
        let (plain, before) = changed(&parts, &scenario, &Changes::new());
        let Some(fit) = advice::fit::fit(&plain, &parts, &before) else {
            assert!(verdict(&before).fits());
            continue;
        };
        assert!(!verdict(&before).fits());
        if let Verdict::Memory { needs, has } = fit.verdict {
            assert_eq!(fit.excess_bytes, needs - has);
        }
        for fix in &fit.fixes {
            let (_, after) = changed(&parts, &scenario, &fix.changes);
            assert!(verdict(&after).fits(), "{} x {}: {}", parts.target.name, parts.workload.name, fix.text);
            fixed += 1;
        }
    }
    assert!(fixed > 50, "{fixed}");
}

#[test]
fn fixes_for_an_oversized_model_include_tp_and_lower_precision() {
    let library = plans::library();
    let (parts, scenario) = plans::one(&library, "h100x8", "serve_70b_one", &[]);
    let estimate = engine::estimate(&scenario);
    let fit = advice::fit::fit(&scenario, &parts, &estimate).unwrap();
    assert!(fit.excess_bytes > 50e9, "{}", fit.excess_bytes);
    let knobs: Vec<Knob> = fit.fixes.iter().map(|fix| fix.changes[0].0).collect();
    assert!(knobs.contains(&Knob::Tp) && knobs.contains(&Knob::Precision), "{knobs:?}");
    let advice = advise(&scenario, &parts, &estimate, Objective::Throughput);
    assert!(advice[0].fixes);
}

#[test]
fn fixes_for_a_long_sequence_include_recomputation() {
    let library = plans::library();
    let (parts, scenario) = plans::one(&library, "h100x8", "train_long", &[]);
    let estimate = engine::estimate(&scenario);
    let fit = advice::fit::fit(&scenario, &parts, &estimate).unwrap();
    assert!(!fit.fixes.is_empty() && fit.fixes.iter().all(|fix| fix.fixes));
    // Partial recomputation is enough, so no fix needs more than one change.
    let more =
        |(knob, setting): &(Knob, Setting)| *knob == Knob::Recompute && *setting != Setting::Choice("none".into());
    assert!(fit.fixes.iter().any(|fix| fix.changes.len() == 1 && more(&fix.changes[0])), "{:?}", fit.fixes);
}

#[test]
fn latency_advice_never_raises_concurrency_and_throughput_changes_it() {
    let library = plans::library();
    let (parts, scenario) = plans::one(&library, "h100x8", "serve_8b", &[("concurrency", "64")]);
    let estimate = engine::estimate(&scenario);
    let first = |objective| advise(&scenario, &parts, &estimate, objective);
    let (rate, latency) = (first(Objective::Throughput), first(Objective::Latency));
    assert!(rate.iter().any(|advice| advice.changes[0].0 == Knob::Concurrency));
    let concurrency = |all: &[advice::Advice]| {
        all.iter().find(|advice| advice.changes[0].0 == Knob::Concurrency).map(|advice| advice.changes[0].1.clone())
    };
    if let Some(Setting::Number(fewer)) = concurrency(&latency) {
        assert!(fewer < 64.0);
    }
}

/// Advice for throughput as computed by `atlas advise`.
fn shipped(target: &str, workload: &str, set: &[(&str, &str)]) -> Vec<advice::Advice> {
    let library = atlas_config::library::Library::load(&atlas_document::Sources::built_in(), None);
    let (parts, scenario) = plans::one(&library, target, workload, set);
    advise(&scenario, &parts, &engine::estimate(&scenario), Objective::Throughput)
}

fn names(all: &[advice::Advice]) -> Vec<&'static str> {
    all.iter().map(|advice| advice.rule.name).collect()
}

#[test]
fn dominated_advice_is_omitted() {
    let library = plans::library();
    for (parts, scenario) in plans::all(&library) {
        let estimate = engine::estimate(&scenario);
        let all = advise(&scenario, &parts, &estimate, Objective::Throughput);
        for (i, worse) in all.iter().enumerate() {
            for better in all.iter().take(i) {
                let more = better.changes.iter().all(|change| worse.changes.contains(change));
                assert!(!more, "{} x {}: {} and {}", parts.target.name, parts.workload.name, better.text, worse.text);
                let part = worse.changes.len() < better.changes.len()
                    && worse.changes.iter().all(|change| better.changes.contains(change));
                let nearly = !better.fixes && part && better.gain < worse.gain + 0.005;
                assert!(!nearly, "{} x {}: {} and {}", parts.target.name, parts.workload.name, better.text, worse.text);
            }
        }
    }
    // The larger micro-batch loses a fifth of the gain of fp8 alone.
    let all = shipped("h100-sxm-128", "llama3.1-70b-train", &[]);
    assert_eq!(names(&all)[0], "train in fp8");
    assert!(!names(&all).iter().any(|name| name.contains("fp8 with a larger micro-batch")), "{:?}", names(&all));
}

#[test]
fn advice_never_changes_workload_traffic_properties() {
    let library = plans::library();
    for (parts, scenario) in plans::all(&library) {
        let estimate = engine::estimate(&scenario);
        for advice in Objective::ALL.map(|o| advise(&scenario, &parts, &estimate, o)).iter().flatten() {
            let traffic = [Knob::PrefixHit, Knob::Generate, Knob::DraftAcceptance];
            assert!(!advice.changes.iter().any(|(knob, _)| traffic.contains(knob)), "{}", advice.text);
        }
    }
}

#[test]
fn nothing_is_advised_that_the_software_cannot_run() {
    let library = plans::library();
    for (parts, scenario) in plans::all(&library) {
        if !scenario.software_supports(&scenario.base) {
            continue;
        }
        let estimate = engine::estimate(&scenario);
        for advice in advise(&scenario, &parts, &estimate, Objective::Throughput) {
            let (after, _) = changed(&parts, &scenario, &advice.changes);
            assert!(
                after.software_supports(&after.base),
                "{} x {}: {}",
                parts.target.name,
                parts.workload.name,
                advice.text
            );
        }
    }
    // Megatron-Core supports neither ZeRO-2 with pipeline parallelism nor zero-bubble schedules; torchtitan supports
    // both.
    let with = |software: &str| {
        let set = [("software", software), ("pp_schedule", "1f1b"), ("vpp", "1"), ("sharding", "zero1"), ("pp", "8")];
        let all = shipped("h100-sxm-128", "llama3.1-70b-train", &set);
        all.iter().any(|advice| advice.rule.name == "use the zero-bubble schedule")
    };
    assert!(!with("megatron-core") && with("torchtitan"));
}

#[test]
fn advice_includes_the_standard_expert_optimizations() {
    // Large mixture-of-experts models: attention groups beside shared experts, speculative decoding, 4-bit floating
    // point.
    let all = shipped("b200-8", "deepseek-v3-serve", &[("concurrency", "1024")]);
    let groups = "use data-parallel attention and more concurrent requests";
    assert!(names(&all)[0] == groups && all[0].gain > 1.0, "{}", all[0].text);
    for name in ["use speculative decoding (MTP or EAGLE)", "quantize to fp4"] {
        assert!(names(&all).contains(&name), "{:?}", names(&all));
    }
    // 70B in fp8 on 141 GB: smaller replicas, as far as the default memory headroom of a search allows.
    let all = shipped("h200-sxm-8", "llama3.1-70b-serve", &[]);
    let tp = all[0].changes.iter().find(|(knob, _)| *knob == Knob::Tp).map(|(_, value)| value.clone());
    assert_eq!((tp, all[0].gain > 0.5), (Some(Setting::Number(2.0)), true), "{:?}", names(&all));
    // In bf16: W8A8 ranks above everything else that keeps the load.
    let all = shipped("h200-sxm-8", "llama3.1-70b-serve", &[("precision", "bf16")]);
    assert!(names(&all).iter().any(|name| name.contains("fp8") || name.contains("8-bit")), "{:?}", names(&all));
    // Full recomputation although only a little memory is missing.
    let all = shipped("h100-sxm-128", "llama3.1-70b-train", &[("recompute", "full")]);
    let partial = all.iter().find(|advice| advice.rule.name == "recompute only as much as memory requires");
    assert!(partial.is_some_and(|advice| advice.gain > 0.1), "{:?}", names(&all));
    // Long sequences: context parallelism, as in NVIDIA's recipes.
    let all = shipped("h100-sxm-128", "llama3.1-70b-train", &[("prompt", "16384")]);
    let longer = all.iter().find(|advice| advice.rule.name == "use context parallelism");
    assert!(longer.is_some_and(|advice| advice.gain > 0.05), "{:?}", names(&all));
    // Long prompts that delay decode: separate pools for prefill and decode.
    let set = [("prompt", "8192"), ("generate", "256"), ("concurrency", "128")];
    let all = shipped("h100-sxm-64", "llama3.1-70b-serve", &set);
    let apart = all.iter().find(|advice| advice.rule.name == "disaggregate prefill and decode");
    assert!(apart.is_some_and(|advice| advice.gain > 0.2), "{:?}", names(&all));
}

#[test]
fn single_nodes_get_no_network_advice_and_no_oversized_layout() {
    let all = shipped("NVIDIA_H100_8x_NVLink", "deepseek-v3-serve", &[]);
    assert!(!names(&all).contains(&"enable GPUDirect RDMA"), "{:?}", names(&all));
    // 655 GB of weights on 80 GB accelerators.
    assert!(!all.iter().any(|advice| advice.changes.iter().any(|(knob, _)| *knob == Knob::Tp)), "{:?}", names(&all));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn fixes_run_and_explanations_add_up_for_random_knobs(
        target in 0usize..11,
        workload in 0usize..15,
        turned in proptest::collection::vec((0usize..KNOBS.len(), 0.0f64..1.0), 0..6),
    ) {
        let library = plans::library();
        let (target, workload) = (&library.targets()[target], &library.workloads()[workload]);
        let parts = Parts::of(&library, target, workload).unwrap();
        let mut scenario = Scenario::from_files(&parts);
        for (knob, at) in turned {
            let knob = KNOBS[knob].knob;
            if let Some(setting) = plans::setting(knob, at).filter(|_| knob != Knob::Engine) {
                scenario.set(knob, &setting, &parts).unwrap();
            }
        }
        prop_assume!(scenario.check(&parts).is_ok());
        let estimate = engine::estimate(&scenario);
        for advice in advise(&scenario, &parts, &estimate, Objective::Throughput) {
            let (_, after) = changed(&parts, &scenario, &advice.changes);
            prop_assert!(verdict(&after).fits(), "{}", advice.text);
        }
        let (plain, before) = changed(&parts, &scenario, &Changes::new());
        for fix in advice::fit::fit(&plain, &parts, &before).map(|fit| fit.fixes).unwrap_or_default() {
            prop_assert!(scenario.engine == Engine::Analytical);
            let (_, after) = changed(&parts, &scenario, &fix.changes);
            prop_assert!(verdict(&after).fits(), "{}", fix.text);
        }
        for metric in METRICS.iter().filter(|metric| metric.applies_to(&scenario)) {
            let value = metric.value(&estimate, &scenario).unwrap();
            let tree = explain(&scenario, &parts, &estimate, metric).unwrap();
            prop_assert!(tree.value == value || (tree.value - value).abs() <= 1e-9 * value.abs() || value.is_nan());
            for term in tree.walk() {
                let Some(equation) = &term.equation else { continue };
                let computed = equation.value(&term.terms);
                let same = computed == term.value || (computed - term.value).abs() <= 1e-9 * term.value.abs();
                prop_assert!(same || !term.value.is_finite(), "{}: {} = {computed}", metric.name, term.symbol);
            }
        }
    }
}
