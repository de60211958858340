//! Tests that no knob and no field of a target is accepted and ignored: each changes the estimate, or a note or the
//! verdict explains why it does not.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use super::{KNOBS, Knob, Setting, Spec, ValueType};
use crate::engine::{estimate, notes};
use crate::knob::{KnobValues as _, Overrides};
use crate::scenario::{Parts, Scenario};
use crate::testing;
use atlas_config::{Mode, Target};
use atlas_core::plan::Engine;
use atlas_document::Diagnostics;

/// Starting points of the tests: target, workload, and settings that make further knobs effective.
const TRAINING: [(&str, &str, &[&str]); 10] = [
    ("h100-sxm-128", "llama3.1-70b-train", &[]),
    ("h100-sxm-128", "llama3.1-70b-train", &["sharding=zero3", "trained=lora", "recompute=full", "vpp=1"]),
    ("h100-sxm-8", "llama3-70b-qlora", &[]),
    ("h100-sxm-64", "llama3.1-8b-train", &["cpu_offload=optimizer", "software=deepspeed"]),
    ("gb200-nvl72-4", "deepseek-v3-train", &[]),
    ("h100-sxm-64", "mixtral-8x7b-train", &["tp=2"]),
    ("h100-sxm-64", "mixtral-8x7b-train", &["pp=1", "vpp=1", "sharding=zero3", "overlap=off"]),
    ("h100-sxm-64", "llama3.1-8b-train", &["rack_kw=30", "cp=2"]),
    ("h100-sxm-8", "qwen2.5-vl-7b-train", &[]),
    ("h100-sxm-64", "llama3.1-8b-train", &["precision=fp8"]),
];
const SERVING: [(&str, &str, &[&str]); 15] = [
    ("h100-sxm-8", "llama3.1-70b-serve", &[]),
    ("h100-sxm-8", "llama3.1-70b-serve", &["draft_tokens=3", "draft_method=draft-model", "generate_spread=2"]),
    ("h100-sxm-8", "llama3.1-70b-serve", &["load=open", "request_rate=4"]),
    ("h100-sxm-8", "llama3.1-8b-serve", &["load=burst", "run_requests=512", "generate_spread=2"]),
    ("l4-8", "llama3.1-8b-serve", &["concurrency=512"]),
    ("h100-sxm-64", "deepseek-v3-serve", &["tp=8", "ep=16", "attention_dp=2", "software=sglang"]),
    ("h100-sxm-8", "llama3.1-8b-serve", &["software=tensorrt-llm"]),
    ("h100-sxm-8", "gpt-oss-120b-serve", &["prefill_accelerators=4"]),
    ("h100-sxm-64", "llama3.1-8b-serve", &["rack_kw=30"]),
    ("h100-sxm-8", "qwen2.5-vl-7b-serve", &[]),
    (
        "h100-sxm-8",
        "llama3.1-8b-serve",
        &["conversations=2000", "turns=6", "prompt=8192", "generate=256", "kv_host_gb=4000", "routing=prefix"],
    ),
    (
        "h100-sxm-8",
        "llama3.1-8b-serve",
        &["conversations=2000", "turns=6", "prompt=8192", "generate=256", "kv_ssd_gb=4000", "routing=prefix"],
    ),
    // A low concurrency, at which host launches matter.
    ("h100-sxm-8", "llama3.1-8b-serve", &["concurrency=1", "tp=8"]),
    (
        "h100-sxm-8",
        "llama3.1-8b-serve",
        &[
            "conversations=20000",
            "turns=6",
            "shared_prefix=512",
            "prompt=8192",
            "generate=256",
            "kv_host_gb=200",
            "kv_host_gbps=1",
            "kv_ssd_gb=1000",
            "kv_ssd_gbps=1",
            "kv_remote_gb=4000",
            "kv_remote_gbps=1",
        ],
    ),
    (
        "gb200-nvl72",
        "deepseek-v3-serve",
        &["software=sglang", "tp=1", "attention_dp=8", "ep=8", "dp=2", "moe_dispatcher=deepep", "prefill_workers=2"],
    ),
];
/// Starting points for knobs that only simulations use.
const SIMULATED: [(&str, &str, &[&str]); 6] = [
    ("h100-sxm-8", "llama3.1-8b-serve", &["concurrency=32", "generate=64", "prompt=256"]),
    (
        "h100-sxm-8",
        "llama3.1-8b-serve",
        &["request_rate=20", "generate=64", "prompt=256", "arrivals=gamma", "arrival_cv=2"],
    ),
    ("h100-sxm-8", "llama3.1-8b-serve", &["software=sglang", "request_rate=20", "generate=64", "prompt=256"]),
    ("h100-sxm-8", "llama3.1-8b-serve", &["request_rate=20", "generate=64", "prompt=6000", "prompt_cv=1"]),
    ("h100-sxm-64", "llama3.1-70b-train", &["slow_nodes=1", "global=64"]),
    ("h100-sxm-64", "llama3.1-70b-train", &["node_mtbf_h=100", "jitter=0.1", "global=64"]),
];

/// Everything that an estimate reports, except notes that a value is not stated.
pub(super) fn description(parts: &Parts, overrides: &Overrides) -> String {
    match Scenario::resolve(parts, overrides) {
        Err(refused) => refused.to_string(),
        Ok(scenario) => {
            let estimate = estimate(&scenario);
            let owned: Vec<Option<f64>> = crate::estimate::METRICS
                .iter()
                .filter(|metric| metric.applies_to(&scenario))
                .map(|metric| metric.value(&estimate, &scenario))
                .collect();
            let notes: Vec<String> =
                notes::notes(&scenario, &estimate).into_iter().filter(|note| !note.starts_with("assumed")).collect();
            format!("{owned:?} {estimate:?} {notes:?}")
        }
    }
}

/// Settings to try instead of the one in effect.
fn tried(spec: &Spec, now: &Setting) -> Vec<Setting> {
    match (spec.kind, now) {
        (ValueType::Toggle, _) => vec![Setting::Toggle(true), Setting::Toggle(false)],
        (ValueType::Choice(words), _) => words.iter().map(|word| Setting::Choice((*word).into())).collect(),
        (ValueType::Software, _) => {
            ["vllm@0.6.0", "megatron-core@0.8.0"].map(|name| Setting::Choice(name.into())).to_vec()
        }
        (ValueType::Seed, _) => vec![Setting::Seed(7)],
        (ValueType::Number { bounds, .. }, Setting::Number(value)) => {
            let near =
                [2.0 * value, 0.5 * value, value + 1.0, value - 1.0, 2.0, 4.0, 16.0, 0.05, 0.3, 0.7, 100.0, 4096.0];
            let rounded = near.map(|value| if bounds.whole { value.round() } else { value });
            rounded.into_iter().filter(|value| bounds.contains(*value)).map(Setting::Number).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether some setting of the knob changes the report, from any of the starting points.
fn has_effect(spec: &Spec, engine: Engine, places: &[(&str, &str, &[&str])]) -> bool {
    places.iter().any(|(target, workload, set)| {
        let parts = testing::parts(target, workload);
        let base = testing::with_engine(engine, set);
        let scenario = Scenario::resolve(&parts, &base).unwrap();
        if !scenario.uses(spec.knob) {
            return false;
        }
        let before = description(&parts, &base);
        tried(spec, &scenario.get(spec.knob)).into_iter().filter(|setting| *setting != scenario.get(spec.knob)).any(
            |setting| {
                let mut changed = base.clone();
                changed.insert(spec.knob, setting);
                description(&parts, &changed) != before
            },
        )
    })
}

#[test]
fn every_knob_changes_the_answer_in_every_mode_in_which_it_is_offered() {
    let mut ignored = Vec::new();
    for spec in &KNOBS {
        for (mode, places) in [("training", &TRAINING[..]), ("serving", &SERVING[..])] {
            let offered = places.first().is_some_and(|(target, workload, _)| {
                let parts = testing::parts(target, workload);
                spec.affects(Scenario::from_files(&parts).mode(), Engine::Analytical)
            });
            if offered && !has_effect(spec, Engine::Analytical, places) {
                ignored.push(format!("{} in {mode}", spec.name));
            }
        }
        // Knobs that the closed form does not use.
        let simulated = spec.engines.contains(&Engine::Event) && !spec.engines.contains(&Engine::Analytical);
        if simulated && !has_effect(spec, Engine::Event, &SIMULATED) {
            ignored.push(format!("{} in simulations", spec.name));
        }
    }
    assert!(ignored.is_empty(), "accepted and ignored: {}", ignored.join(", "));
}

/// Settings of other knobs with which further knobs become effective: smaller, split or sharded differently, or under
/// other loads.
const TRAINED: [&[&str]; 9] = [
    &[],
    &["prompt=256", "microbatch=1", "tp=2"],
    &["prompt=256", "microbatch=1", "cuda_graphs=off", "compiled=off"],
    &["microbatch=64"],
    &["num_nodes=2", "dp=16"],
    &["num_nodes=8", "ep=32"],
    &["sharding=zero3", "overlap=off"],
    &["pp=2"],
    &["recompute=none"],
];
const SERVED: [&[&str]; 11] = [
    &[],
    &["concurrency=1"],
    &["concurrency=1", "tp=8", "dp=1"],
    &["concurrency=8192"],
    &["request_rate=1"],
    &["load=burst", "run_requests=64"],
    &["prompt=300"],
    &["turns=6", "prompt=8192", "generate=128"],
    &["num_nodes=4", "tp=16", "dp=1"],
    &["prompt=32768", "concurrency=512"],
    &["cuda_graphs=off", "concurrency=1"],
];

/// Knobs that have an effect only if host launches or memory are the limit, which is not the case for every pair. That
/// they have an effect somewhere is tested above.
const AT_A_LIMIT: [Knob; 5] =
    [Knob::CudaGraphs, Knob::GraphCapture, Knob::Compiled, Knob::RecomputeReserve, Knob::MoeCapacity];

#[test]
fn every_knob_listed_for_a_shipped_pair_changes_an_answer() {
    let mut ignored = Vec::new();
    for workload in testing::LIBRARY.workloads() {
        for target in ["h100-sxm-8", "h100-sxm-128", "m3-ultra-1"] {
            let Ok(parts) = Parts::find(&testing::LIBRARY, target, &workload.name) else { continue };
            let base = testing::with_engine(Engine::Analytical, &[]);
            let Ok(scenario) = Scenario::resolve(&parts, &base) else { continue };
            let places = match scenario.mode() {
                Mode::Training => &TRAINED[..],
                Mode::Inference => &SERVED[..],
            };
            let listed = |spec: &&Spec| scenario.uses(spec.knob) && !AT_A_LIMIT.contains(&spec.knob);
            for spec in KNOBS.iter().filter(listed) {
                let shown =
                    places.iter().any(|set| has_effect(spec, Engine::Analytical, &[(target, &workload.name, set)]));
                if !shown {
                    ignored.push(format!("{} of {} on {target}", spec.name, workload.name));
                }
            }
        }
    }
    assert!(ignored.is_empty(), "listed and without effect:\n{}", ignored.join("\n"));
}

#[test]
fn knobs_without_effect_are_unlisted_and_the_reason_is_noted() {
    for (target, workload, set, knob, why) in [
        ("h100-sxm-8", "llama3.1-70b-serve", "ep=4", Knob::Ep, "the model has no experts"),
        ("h100-sxm-8", "llama3.1-8b-train", "moe_capacity=dropped", Knob::MoeCapacity, "the model has no experts"),
        ("h100-sxm-8", "llama3.1-8b-train", "vpp=4", Knob::Vpp, "set pp"),
        ("h100-sxm-8", "llama3.1-8b-train", "image_size=448", Knob::ImageSize, "the model has no vision encoder"),
        ("h100-sxm-8", "llama3.1-8b-train", "concurrency=64", Knob::Concurrency, "this is training"),
        ("h100-sxm-8", "llama3.1-70b-serve", "draft_decline=0.1", Knob::DraftDecline, "set draft_tokens"),
        ("h100-sxm-8", "gpt-oss-120b-serve", "two_batch_overlap=on", Knob::TwoBatchOverlap, "set attention_dp"),
        ("h100-sxm-64", "llama3.1-70b-train", "jitter=0.1", Knob::Jitter, "set engine to event"),
        ("h100-sxm-64", "llama3.1-70b-train", "node_mtbf_h=1000", Knob::NodeMtbf, "set engine to event"),
        ("h100-sxm-8", "llama3.1-70b-serve", "slo_ttft_ms=100", Knob::SloTtft, "set engine to event"),
        ("h100-sxm-8", "llama3.1-70b-serve", "sharding=zero3", Knob::Sharding, "this is inference"),
        ("h100-sxm-8", "llama3.1-70b-serve", "train_tokens=2e12", Knob::TrainTokens, "this is inference"),
        ("h100-sxm-64", "llama3.1-70b-train", "gpudirect_rdma=on", Knob::GpudirectRdma, "semi-empirical engine"),
        ("h100-sxm-64", "llama3.1-70b-train", "virt=sriov", Knob::Virt, "semi-empirical engine"),
    ] {
        let parts = testing::parts(target, workload);
        let stated = testing::with_engine(Engine::Analytical, &[set]);
        assert!(!Scenario::resolve(&parts, &stated).unwrap().uses(knob), "{set}");
        let described = description(&parts, &stated);
        assert!(described.contains(why) && described.contains("has no effect"), "{set}: {described}");
    }
    for (set, knob) in [("pp=2", Knob::Vpp), ("tp=2", Knob::Sp), ("trained=lora", Knob::LoraRank)] {
        let parts = testing::parts("h100-sxm-8", "llama3.1-8b-train");
        assert!(
            Scenario::resolve(&parts, &testing::with_engine(Engine::Analytical, &[set])).unwrap().uses(knob),
            "{set}"
        );
    }
}

#[test]
fn settings_noted_as_without_effect_have_none() {
    let mut effective = Vec::new();
    for (target, workload, set) in [
        ("b200-8", "deepseek-v3-serve", "moe_dispatcher=deepep"),
        ("b200-8", "deepseek-v3-serve", "two_batch_overlap=on"),
        ("h100-sxm-8", "llama3.1-70b-serve", "recv_interval=8"),
    ] {
        for software in ["software=sglang", "software=vllm"] {
            let parts = testing::parts(target, workload);
            let answered = |set: &[&str]| {
                let scenario = Scenario::resolve(&parts, &testing::with_engine(Engine::Analytical, set)).unwrap();
                let estimate = estimate(&scenario);
                let notes = notes::notes(&scenario, &estimate).join("; ");
                (estimate.total, notes)
            };
            let (plain, _) = answered(&[software]);
            let (stated, notes) = answered(&[software, set]);
            let name = set.split('=').next().unwrap();
            if (plain == stated) != notes.contains(&format!("{name} has no effect")) {
                effective.push(format!("{target} {workload} {software} {set}: {notes}"));
            }
        }
    }
    assert!(effective.is_empty(), "{}", effective.join("\n"));
}

#[test]
fn restating_a_shown_value_changes_nothing() {
    let mut changed = Vec::new();
    let more = [("h100-sxm-1024", "deepseek-v3-train"), ("h100-sxm-8", "gpt-oss-120b-serve")];
    let plain = TRAINING.iter().chain(&SERVING).filter(|(_, _, set)| set.is_empty()).map(|(t, w, _)| (*t, *w));
    for (target, workload) in plain.chain(more) {
        let parts = testing::parts(target, workload);
        let scenario = Scenario::resolve(&parts, &Overrides::new()).unwrap();
        let before = estimate(&scenario).total;
        for knob in Knob::all().filter(|knob| scenario.uses(*knob) && *knob != Knob::Seed) {
            let shown = scenario.get(knob).to_string();
            // Derived values may be outside the range that can be set: none at all, or a fraction.
            let Ok(setting) = knob.parse(&shown, parts.fabrics()) else { continue };
            let restated = Scenario::resolve(&parts, &Overrides::from([(knob, setting)]));
            let after = restated.map(|scenario| estimate(&scenario).total);
            let same = |a: f64, b: f64| (a - b).abs() <= 1e-3 * a.abs();
            let kept = after.as_ref().is_ok_and(|after| {
                same(before.tokens_per_sec, after.tokens_per_sec)
                    && same(before.peak_mem_gb, after.peak_mem_gb)
                    && before.latency.zip(after.latency).is_none_or(|(a, b)| same(a.p50, b.p50))
            });
            if !kept {
                changed.push(format!("{target} {workload} {}={shown}: {before:?} {after:?}", knob.name()));
            }
        }
    }
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn stated_settings_without_effect_are_noted_even_if_they_are_defaults() {
    let mut silent = Vec::new();
    for (target, workload, set, name) in [
        ("h100-sxm-8", "llama3.1-70b-serve", &["load=open"][..], "no request_rate"),
        ("h100-sxm-8", "llama3.1-70b-serve", &["microbatch=7"], "microbatch"),
        ("h100-sxm-8", "llama3.1-70b-serve", &["expert_precision=fp4"], "expert_precision"),
        ("h100-sxm-8", "llama3.1-70b-serve", &["cuda_graphs=off"], "cuda_graphs"),
        ("h100-sxm-8", "llama3.1-70b-serve", &["cuda_graphs=on"], "cuda_graphs"),
        ("h100-sxm-8", "llama3.1-70b-serve", &["noise=on"], "noise"),
        ("h100-sxm-8", "llama3.1-70b-serve", &["train_tokens=1e12"], "train_tokens"),
        ("h100-sxm-8", "llama3.1-70b-serve", &["conversations=1000"], "conversations"),
        ("h100-sxm-8", "llama3.1-70b-serve", &["optimizer=adam"], "optimizer"),
        ("h100-sxm-64", "llama3.1-8b-train", &["noise=on"], "noise"),
        ("h100-sxm-64", "llama3.1-8b-train", &["host_memory_gb=10"], "host_memory_gb"),
        ("h100-sxm-64", "llama3.1-8b-train", &["tp=1", "overlap_tensor=off"], "overlap_tensor"),
        ("h100-sxm-8", "llama3.1-8b-train", &["software=megatron-core", "compiled=on"], "compiled"),
        ("h100-sxm-8", "resnet50-train", &["prompt=300"], "prompt"),
        ("h100-sxm-8", "resnet50-train", &["recompute=full"], "recompute"),
        ("h100-sxm-8", "resnet50-train", &["attention_kernel=unfused"], "attention_kernel"),
    ] {
        let parts = testing::parts(target, workload);
        let noted = |set: &[&str]| {
            let scenario = Scenario::resolve(&parts, &testing::with_engine(Engine::Analytical, set)).unwrap();
            notes::notes(&scenario, &estimate(&scenario))
        };
        let said = |notes: &[String]| {
            notes.iter().any(|note| note.contains(name) && (note.contains("no effect") || note.contains("is open")))
        };
        if said(&noted(&[])) || !said(&noted(set)) {
            silent.push(format!("{target} {workload} {set:?}: {:?}", noted(set)));
        }
    }
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn a_compiler_fuses_what_the_software_does_not_fuse_itself() {
    let parts = testing::parts("h100-sxm-8", "llama3.1-8b-train");
    let step = |set: &[&str]| {
        let scenario = Scenario::resolve(&parts, &testing::with_engine(Engine::Analytical, set)).unwrap();
        estimate(&scenario).total.step_time_ms.unwrap()
    };
    // torchtitan, arXiv 2410.06511, 8B on 8 H100: 6,258 tok/s without torch.compile, 6,674 with it (from memory).
    let slower = step(&["software=torchtitan", "compiled=off"]) / step(&["software=torchtitan", "compiled=on"]);
    assert!((1.02..1.15).contains(&slower), "{slower}");
    assert_eq!(step(&["software=torchtitan", "compiled=on"]), step(&["software=torchtitan"]));
    // It has fused kernels of its own.
    assert_eq!(step(&["software=megatron-core", "compiled=off"]), step(&["software=megatron-core", "compiled=on"]));
}

/// Target for the fields below.
const TARGET: &str = "
- name: here
  vendor: NVIDIA
  accelerator: nvidia-h100-sxm-80gb
  accelerators_per_node: 8
  num_nodes: 32
  memory_gb_per_accel: 80
  interconnect: { type: NVLink 4, bw_GBps: 900, domain_size: 8 }
  network: { type: IB, Gbps_per_accel: 400, topology: fat-tree, oversubscription: 4 }
  cost: { hourly_usd: 40, basis: on-demand, energy_included: true, energy_watts_node: 10200, pue: 1.2, usd_per_kwh: 0.1,
    peak_usd_per_kwh: 0.2, peak_hours: 8, kg_co2e_per_kwh: 0.4, power_cap: 600, clock_share: 0.9, rack_kw: 40,
    nodes_per_rack: 4, capex_usd_node: 250000, network_share: 0.2, spares_share: 0.02, staff_usd_node_year: 2000, usd_per_kw_month: 150,
    capital_cost: 0.08, amortization_years: 4, utilization: 0.8 }
";

/// Every field of a target other than descriptive text, with another value.
const FIELDS: [(&str, &str); 32] = [
    ("accelerator: nvidia-h100-sxm-80gb", "accelerator: nvidia-h200-sxm"),
    ("accelerators_per_node: 8", "accelerators_per_node: 4"),
    ("num_nodes: 32", "num_nodes: 64"),
    ("memory_gb_per_accel: 80", "memory_gb_per_accel: 96"),
    ("bw_GBps: 900", "bw_GBps: 450"),
    ("domain_size: 8", "domain_size: 4"),
    ("Gbps_per_accel: 400", "Gbps_per_accel: 100"),
    ("topology: fat-tree", "topology: torus"),
    ("topology: fat-tree", "topology: dragonfly"),
    ("topology: fat-tree", "topology: rail"),
    ("oversubscription: 4", "oversubscription: 8"),
    ("hourly_usd: 40", "hourly_usd: 50"),
    ("energy_watts_node: 10200", "energy_watts_node: 12000"),
    ("pue: 1.2", "pue: 1.5"),
    ("usd_per_kwh: 0.1", "usd_per_kwh: 0.2"),
    ("kg_co2e_per_kwh: 0.4", "kg_co2e_per_kwh: 0.1"),
    ("capex_usd_node: 250000", "capex_usd_node: 300000"),
    ("amortization_years: 4", "amortization_years: 5"),
    ("utilization: 0.8", "utilization: 0.5"),
    ("basis: on-demand", "basis: reserved"),
    ("energy_included: true", "energy_included: false"),
    ("peak_usd_per_kwh: 0.2", "peak_usd_per_kwh: 0.3"),
    ("peak_hours: 8", "peak_hours: 12"),
    ("power_cap: 600", "power_cap: 400"),
    ("clock_share: 0.9", "clock_share: 0.7"),
    ("rack_kw: 40", "rack_kw: 30"),
    ("nodes_per_rack: 4", "nodes_per_rack: 5"),
    ("network_share: 0.2", "network_share: 0.3"),
    ("spares_share: 0.02", "spares_share: 0.05"),
    ("staff_usd_node_year: 2000", "staff_usd_node_year: 4000"),
    ("usd_per_kw_month: 150", "usd_per_kw_month: 200"),
    ("capital_cost: 0.08", "capital_cost: 0.12"),
];

/// Decodes a target. Returns it with the diagnostics.
fn target(text: &str) -> (Arc<Target>, String) {
    let mut diagnostics = Diagnostics::new();
    let node = atlas_document::parse::parse(&"here.yaml".into(), text, &mut diagnostics).unwrap();
    let entry = node.items().and_then(|items| items.first()).unwrap();
    let target = Target::decode(&"here.yaml".into(), entry, &mut diagnostics).unwrap();
    (Arc::new(target), diagnostics.to_string())
}

#[test]
fn every_field_of_a_target_changes_the_answer_or_is_warned_of() {
    let answer = |text: &str| {
        let (target, described) = target(text);
        let description: Vec<String> =
            ["llama3.1-8b-train", "deepseek-v3-train", "deepseek-v3-serve", "deepseek-v3-wide-ep"]
                .map(|workload| {
                    let workload = testing::LIBRARY.workload(workload).unwrap();
                    let parts = Parts::of(&testing::LIBRARY, &target, workload).unwrap();
                    description(&parts, &Overrides::new())
                })
                .to_vec();
        format!("{described} {description:?}")
    };
    let before = answer(TARGET);
    let ignored: Vec<&str> =
        FIELDS.iter().filter(|(from, to)| answer(&TARGET.replace(from, to)) == before).map(|(_, to)| *to).collect();
    assert!(ignored.is_empty(), "accepted and ignored: {}", ignored.join(", "));
}

#[test]
fn precision_preset_expands_to_weight_compute_and_bit_settings() {
    let parts = testing::parts("h100-sxm-8", "llama3.1-70b-serve");
    let of = |set: &[&str]| description(&parts, &testing::with_engine(Engine::Analytical, set));
    assert_eq!(of(&["precision=W8A8"]), of(&["precision=fp8"]));
    assert_eq!(of(&["precision=w8a16"]), of(&["precision=fp8", "compute=bf16"]));
    assert_eq!(of(&["precision=w4a16"]), of(&["precision=awq"]));
    assert_eq!(of(&["precision=w4a8"]), of(&["precision=int4", "compute=fp8"]));
    assert_eq!(of(&["precision=q4_k_m"]), of(&["precision=int4", "weight_bits=4.85"]));
    let refused = Knob::Precision.parse("w3a3", &[]).unwrap_err().to_string();
    assert!(refused.contains("w8a16") && refused.contains("nvfp4"), "{refused}");
}
