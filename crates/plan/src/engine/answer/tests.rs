//! Tests of both engines on built-in targets and workloads.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::engine::{estimate, notes};
use crate::estimate::{Cause, Estimate, MemoryPart, MetricId, Serving, TimePart, Verdict};
use crate::knob::{Knob, Setting};
use crate::scenario::Scenario;
use crate::testing;
use atlas_core::count::Count;
use atlas_core::plan::{Engine, Format};
use atlas_perf::serving::HostOverlap;
use atlas_perf::traits::ExpertProducts;

fn answered(engine: Engine, pair: (&str, &str), set: &[&str]) -> (Scenario, Estimate) {
    let parts = testing::parts(pair.0, pair.1);
    let overrides = testing::with_engine(engine, set);
    let scenario = Scenario::resolve(&parts, &overrides).unwrap();
    let estimate = estimate(&scenario);
    (scenario, estimate)
}

fn serving(engine: Engine, pair: (&str, &str), set: &[&str]) -> (Estimate, Serving) {
    let (_, estimate) = answered(engine, pair, set);
    let serving = estimate.detail.unwrap().serving.unwrap();
    (estimate, serving)
}

fn near(a: f64, b: f64, share: f64) -> bool {
    (a / b - 1.0).abs() <= share
}

#[test]
fn closed_form_and_events_agree_within_the_interval_on_shipped_pairs() {
    for pair in [
        ("h100-sxm-8", "llama3.1-8b-serve"),
        ("l40s-8", "llama3.1-8b-serve"),
        ("tpu-v6e-8", "llama3.1-8b-serve"),
        ("trn2-16", "llama3.1-8b-serve"),
        ("h100-sxm-8", "llama3.1-70b-serve"),
        ("h200-sxm-8", "llama3.1-70b-serve"),
        ("b200-8", "llama3.1-70b-serve"),
        ("mi300x-8", "llama3.1-70b-serve"),
        ("h200-sxm-8", "llama3.1-405b-serve"),
        ("mi300x-8", "llama3.1-405b-serve"),
        ("h200-sxm-8", "deepseek-v3-serve"),
        ("mi300x-8", "deepseek-v3-serve"),
        ("b200-8", "deepseek-v3-serve"),
        ("h100-sxm-8", "gpt-oss-120b-serve"),
        ("b200-8", "gpt-oss-120b-serve"),
    ] {
        let (closed, described) = serving(Engine::Analytical, pair, &[]);
        let (events, seen) = serving(Engine::Event, pair, &[]);
        let (rate, simulated) = (closed.total.tokens_per_sec, events.total.tokens_per_sec);
        // Simulated requests of equal length stay in lockstep and share the launches of their prompts, which limit
        // DeepSeek on MI300X. The closed form assumes that half of them are mixed.
        assert!(near(rate, simulated, 0.18), "{pair:?}: {rate} and {simulated} tokens/s");
        let (ttft, first) = (described.ttft_ms.mean, seen.ttft_ms.mean);
        // Narrower than the interval, which is widened for configurations that were never measured.
        let (low, high) = (described.ttft_interval.low.max(0.6), described.ttft_interval.high.min(1.7));
        assert!(first >= low * ttft && first <= high * ttft, "{pair:?}: TTFT {ttft} and {first} ms");
        let (tpot, each) = (described.tpot_ms.mean, seen.tpot_ms.mean);
        assert!(near(tpot, each, 0.23), "{pair:?}: TPOT {tpot} and {each} ms");
    }
}

#[test]
fn closed_form_and_events_agree_on_token_times_up_to_saturation() {
    let pair = ("h200-sxm-8", "llama3.1-70b-serve");
    let capacity = serving(Engine::Analytical, pair, &["request_rate=1"]).1.capacity_requests_per_sec;
    for load in [0.2, 0.5, 0.8, 0.9, 0.95] {
        let rate = format!("request_rate={}", load * capacity);
        let closed = serving(Engine::Analytical, pair, &[&rate]).1;
        let events = serving(Engine::Event, pair, &[&rate]).1;
        let (tpot, each) = (closed.tpot_ms.mean, events.tpot_ms.mean);
        assert!(near(tpot, each, 0.15), "{load} of capacity: TPOT {tpot} and {each} ms");
    }
}

#[test]
fn open_load_with_concurrency_caps_requests_in_flight() {
    let pair = ("h200-sxm-8", "llama3.1-70b-serve");
    let capped = ["load=open", "concurrency=32", "request_rate=6"];
    let closed = serving(Engine::Analytical, pair, &capped);
    let events = serving(Engine::Event, pair, &capped);
    let open = serving(Engine::Analytical, pair, &["load=open", "request_rate=6"]);
    for (described, which) in [(&closed.1, "closed form"), (&events.1, "events")] {
        assert!(2.0 * described.batch <= 32.5, "{which}: {} sequences on each of two replicas", described.batch);
        assert!(described.requests_per_sec < 0.6 * open.1.requests_per_sec, "{which}: {}", described.requests_per_sec);
        assert!(
            described.ttft_ms.mean.is_finite() && described.ttft_ms.mean < 1000.0,
            "{which}: {}",
            described.ttft_ms.mean
        );
    }
    assert!(near(closed.0.total.tokens_per_sec, events.0.total.tokens_per_sec, 0.05));
    // Below the limit nothing is held back.
    let few = ["load=open", "concurrency=256", "request_rate=2"];
    let free = serving(Engine::Analytical, pair, &few);
    assert!(near(free.1.requests_per_sec, 2.0, 1e-9));
    let (scenario, estimate) = answered(Engine::Analytical, pair, &capped);
    let described = notes::notes(&scenario, &estimate);
    assert!(described.iter().any(|note| note.contains("held back")), "{described:?}");
}

#[test]
fn replicas_without_a_request_draw_idle_power() {
    let pair = ("h100-sxm-8", "llama3.1-8b-serve");
    let watts = |engine, set: &[&str]| answered(engine, pair, set).1.total.node_power_w;
    let one = ["concurrency=1"];
    let (closed, events) = (watts(Engine::Analytical, &one), watts(Engine::Event, &one));
    assert!(near(closed, events, 0.02), "{closed} and {events} W");
    assert!(closed < 0.7 * watts(Engine::Analytical, &["concurrency=256"]), "{closed} W");
}

#[test]
fn unsupported_settings_are_refused_with_the_reason() {
    for (pair, set, expected) in [
        (("v100-sxm-8", "llama3.1-8b-serve"), &["precision=fp8"][..], "the software has no kernels for fp8"),
        (
            ("a100-sxm-80gb-8", "llama3.1-8b-serve"),
            &["precision=fp8", "compute=fp8"],
            "the accelerator does not support fp8",
        ),
        (("tpu-v6e-8", "llama3.1-8b-serve"), &["precision=tf32"], "the accelerator does not support tf32"),
        (("tpu-v5p-128", "llama3.1-8b-serve"), &["precision=fp32"], "the accelerator does not support fp32"),
        (("rtx-4090-8", "llama3.1-8b-serve"), &["software=llama.cpp", "precision=fp8"], "no kernels for fp8"),
        (("a100-sxm-80gb-8", "llama2-7b-dp8"), &["precision=int8"], "the software has no kernels for int8"),
        (("h100-sxm-128", "llama3.1-70b-train"), &["precision=int8"], "the software has no kernels for int8"),
        (("h100-sxm-8", "llama3.1-70b-serve"), &["prompt=200000"], "exceed the model's maximum of 131072"),
        (("h100-sxm-8", "bge-large-embed"), &["prompt=0"], "prompt is 0: expected at least 1 token"),
        (("h100-sxm-8", "llama3.1-8b-serve"), &["prompt=0"], "prompt is 0: expected at least 1 token"),
        (("h100-sxm-8", "llama3.1-8b-train"), &["prompt=0"], "prompt is 0: expected at least 1 token"),
        (("h100-sxm-8", "llama3.1-70b-serve"), &["prefill_accelerators=2"], "a replica needs 4"),
        (("h100-sxm-8", "llama3.1-8b-serve"), &["kv_precision=int4"], "software does not support a KV cache in int4"),
        (("h100-sxm-8", "llama3.1-8b-serve"), &["kv_precision=tf32"], "software does not support a KV cache in tf32"),
        (("h100-sxm-8", "llama3.1-8b-serve"), &["kv_precision=fp4"], "accelerator does not support a KV cache in fp4"),
        (("h100-sxm-8", "llama3.1-70b-serve"), &["prefill_accelerators=6"], "possible: 4"),
        (("h100-sxm-8", "llama3.1-70b-serve"), &["prefill_accelerators=8"], "possible: 4"),
        (("h100-sxm-8", "llama3.1-70b-serve"), &["tp=2", "prefill_accelerators=3"], "possible: 2 or 4"),
        (("h100-sxm-8", "llama3.1-70b-serve"), &["tp=2", "prefill_accelerators=7"], "possible: 6"),
        (("h200-sxm-8", "deepseek-v3-serve"), &["prefill_accelerators=4"], "a replica needs 8"),
    ] {
        let (_, estimate) = answered(Engine::Analytical, pair, set);
        let described = estimate.detail.unwrap().verdict.describe();
        assert!(described.contains(expected), "{pair:?} {set:?}: {described}");
    }
    // Weights alone may be in a narrow format: they are unpacked.
    let (_, estimate) = answered(Engine::Analytical, ("a100-sxm-80gb-8", "llama3.1-8b-serve"), &["precision=fp8"]);
    assert_eq!(estimate.detail.unwrap().verdict, Verdict::Fits);
}

#[test]
fn graphs_of_a_fixed_shape_run_no_more_sequences_than_they_hold() {
    let pair = ("h100-sxm-8", "llama3.1-8b-serve");
    for engine in [Engine::Analytical, Engine::Event] {
        let running = |set: &str| serving(engine, pair, &[set]).1.batch;
        assert!(running("compiled_batch=4") <= 4.0, "{engine:?}: {}", running("compiled_batch=4"));
        assert!(running("compiled_batch=64") > 4.0, "{engine:?}: {}", running("compiled_batch=64"));
    }
}

#[test]
fn model_chunks_of_a_single_stage_have_no_effect() {
    let pair = ("gb200-nvl72", "gpt-oss-120b-train");
    let step = |vpp| answered(Engine::Analytical, pair, &[vpp]).1.total.step_time_ms.unwrap();
    assert_eq!(step("vpp=4"), step("vpp=1"));
}

#[test]
fn a_prefill_pool_that_limits_throughput_is_named() {
    let pair = ("h100-sxm-128", "deepseek-v3-wide-ep");
    let of = |set: &[&str]| serving(Engine::Analytical, pair, set).0.detail.unwrap().limits;
    let limited = of(&["prompt=4000", "concurrency=8192"]);
    assert!(limited.describe().starts_with("the prefill pool limits throughput; decode is bound by"), "{limited:?}");
    assert!(!of(&["concurrency=64"]).prefill_pool);
}

#[test]
fn sequences_of_separate_pools_are_simulated_on_the_decode_replicas() {
    let pair = ("h100-sxm-8", "llama3.1-70b-serve");
    let cache = |engine| serving(engine, pair, &["prefill_accelerators=4"]).0.detail.unwrap().memory;
    let [closed, events] = [Engine::Analytical, Engine::Event].map(cache);
    let [closed, events] = [closed, events].map(|memory| memory.parts.part(MemoryPart::KvCache));
    assert!(near(closed, events, 0.03), "{closed} {events}");
}

#[test]
fn burst_load_is_simulated_as_burst_arrivals() {
    let ttft = |set: &[&str]| {
        let (_, estimate) = answered(Engine::Event, ("h100-sxm-8", "llama3.1-8b-serve"), set);
        estimate.detail.unwrap().serving.unwrap().ttft_ms.mean
    };
    let backlog = ttft(&["load=burst", "run_requests=512"]);
    assert_eq!(backlog, ttft(&["arrivals=burst", "requests=512"]));
    // 64 prompts of 1,024 tokens on each replica take more than a second.
    assert!(backlog > 500.0, "{backlog} ms");
}

#[test]
fn fp16_replaces_bf16_on_v100_with_a_note() {
    let (scenario, estimate) = answered(Engine::Analytical, ("v100-sxm-8", "llama3.1-8b-serve"), &[]);
    assert_eq!(scenario.get(Knob::Precision), Setting::Choice("fp16".into()));
    assert!(estimate.total.tokens_per_sec > 100.0);
    let described = notes::notes(&scenario, &estimate);
    assert!(described.iter().any(|note| note.contains("does not support bf16: using fp16")), "{described:?}");
}

#[test]
fn int8_weights_that_the_software_unpacks_are_noted() {
    let described = |target, set: &[&str]| {
        let (scenario, estimate) = answered(Engine::Analytical, (target, "llama3.1-8b-serve"), set);
        notes::notes(&scenario, &estimate).join("\n").contains("has no int8 GEMMs for this accelerator")
    };
    // vLLM's W8A8 kernels do not run on compute capability 10.0 and above.
    for (target, unpacked) in [("b200-8", true), ("rtx-5090-4", true), ("h100-sxm-8", false)] {
        assert_eq!(described(target, &["software=vllm", "precision=int8"]), unpacked, "{target}");
        assert!(!described(target, &["software=vllm", "precision=fp8"]), "{target}");
    }
    assert!(!described("b200-8", &["software=sglang", "precision=int8"]));
}

#[test]
fn mfu_above_the_best_published_is_noted() {
    let described = |pair, set: &[&str]| {
        let (scenario, estimate) = answered(Engine::Analytical, pair, set);
        (estimate.detail.unwrap().training.unwrap(), notes::notes(&scenario, &estimate).join("\n"))
    };
    let (_, apple) = described(("m3-ultra-1", "llama3.1-8b-train"), &["precision=fp16"]);
    assert!(apple.contains("no published training run on this family"), "{apple}");
    let (training, usual) = described(("h100-sxm-8", "llama3.1-8b-train"), &[]);
    assert!(training.mfu_causal < 0.61 && !usual.contains("above the best"), "{usual}");
    assert!(training.mfu_causal <= training.mfu && training.hfu <= 1.0);
    for set in [&[][..], &["prompt=65536"], &["prompt=131072"]] {
        for target in ["tpu-v5p-128", "a100-sxm-80gb-64", "h100-sxm-64"] {
            let (training, text) = described((target, "llama3.1-8b-train"), set);
            assert!(training.hfu <= 1.0, "{target} {set:?}: {}", training.hfu);
            let best = if target.starts_with("tpu") {
                0.70
            } else if target.starts_with("a100") {
                0.63
            } else {
                0.61
            };
            assert_eq!(training.mfu_causal > best, text.contains("above the best"), "{target} {set:?}: {text}");
        }
    }
}

#[test]
fn unsupported_vendor_software_pair_is_noted() {
    let says = |pair, set: &[&str]| {
        let (scenario, estimate) = answered(Engine::Analytical, pair, set);
        notes::notes(&scenario, &estimate).iter().any(|note| note.contains("the estimate assumes equivalent software"))
    };
    assert!(says(("tpu-v5p-128", "llama3.1-70b-train"), &["software=megatron-core"]));
    assert!(says(("m3-ultra-1", "gpt-oss-120b-serve"), &["tp=1", "software=vllm"]));
    assert!(!says(("m3-ultra-1", "gpt-oss-120b-serve"), &["tp=1", "software=llama.cpp"]));
    assert!(!says(("h100-sxm-128", "llama3.1-70b-train"), &["software=megatron-core"]));
    // A plug-in provides support for TPUs.
    assert!(!says(("tpu-v6e-8", "llama3.1-70b-serve"), &["software=vllm"]));
}

#[test]
fn fused_all_reduce_norm_lowers_tpot_only_for_moe_tp_within_a_node() {
    let gain = |target: &str, workload: &str, set: &[&str]| {
        let of = |release: &str| {
            let software = format!("software=sglang@{release}");
            let set = [&["concurrency=1", software.as_str()], set].concat();
            serving(Engine::Analytical, (target, workload), &set).1.tpot_ms.mean
        };
        of("0.5.6") / of("0.5.8")
    };
    let sliced = gain("h100-sxm-8", "gpt-oss-120b-serve", &["tp=8"]);
    assert!((1.01..1.1).contains(&sliced), "{sliced}");
    // Not applicable: dense models, attention groups, replicas without all-reduce, and replicas that span two nodes.
    for (target, workload, set) in [
        ("h100-sxm-8", "llama3.1-70b-serve", &["tp=8"][..]),
        ("h100-sxm-8", "gpt-oss-120b-serve", &["tp=1", "attention_dp=8", "ep=8"]),
        ("h100-sxm-8", "gpt-oss-120b-serve", &["tp=1"]),
        ("h100-sxm-64", "gpt-oss-120b-serve", &["tp=16"]),
    ] {
        assert_eq!(gain(target, workload, set), 1.0, "{target} {workload} {set:?}");
    }
}

#[test]
fn experts_run_in_triton_where_the_software_has_no_compiled_kernel_for_their_format() {
    let experts = |target: &str, set: &[&str]| {
        let pair = (target, "deepseek-v3-serve");
        answered(Engine::Analytical, pair, set).0.base.serving_defaults.expert_products
    };
    let [triton, grouped] = [ExpertProducts::Triton, ExpertProducts::Grouped];
    for (target, software, precision, expected) in [
        ("h200-sxm-8", "vllm@0.9.0", "fp8", triton),
        ("h200-sxm-8", "vllm@0.11.0", "fp8", grouped),
        ("h200-sxm-8", "vllm@0.11.0", "bf16", triton),
        ("h200-sxm-8", "sglang@0.5.6", "fp8", triton),
        ("h200-sxm-8", "vllm@0.11.0", "int4", grouped),
        ("h200-sxm-8", "tensorrt-llm@1.0.0", "bf16", grouped),
        ("b200-8", "sglang@0.5.5", "fp8", triton),
        ("b200-8", "sglang@0.5.6", "fp8", grouped),
        ("b200-8", "sglang@0.5.5", "nvfp4", grouped),
    ] {
        let set = [format!("software={software}"), format!("precision={precision}")];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        assert_eq!(experts(target, &set), expected, "{target} {set:?}");
    }
}

#[test]
fn superchips_offload_over_their_own_link_and_memory() {
    let time = |target, workload| {
        let set = ["software=deepspeed", "cpu_offload=optimizer", "tp=1", "pp=1", "global=64"];
        let (_, estimate) = answered(Engine::Analytical, (target, workload), &set);
        let detail = estimate.detail.unwrap();
        (detail.time.part(TimePart::Offload), detail.verdict)
    };
    // 8 billion weights on one accelerator: 28 bytes each are read and written by the host (12 bytes of states in and out,
    // gradient 4, weight 2 with rounding), at 512 GB/s instead of 614/8.
    let (superchip, verdict) = time("gh200-1", "llama3.1-8b-train");
    assert_eq!(verdict, Verdict::Fits);
    assert!((0.3..1.5).contains(&superchip), "{superchip} s");
}

#[test]
fn a_conversation_has_one_request_in_flight() {
    let pair = ("h200-sxm-8", "llama3.1-70b-serve");
    let talk = ["turns=4", "prompt=4096", "generate=256", "conversations=2"];
    for engine in [Engine::Analytical, Engine::Event] {
        let rate = |more: &str| {
            let (scenario, estimate) = answered(engine, pair, &[&talk[..], &[more]].concat());
            (estimate.total.tokens_per_sec, notes::notes(&scenario, &estimate))
        };
        let (two, none) = rate("concurrency=2");
        let (limited, noted) = rate("concurrency=32");
        assert_eq!(two, limited);
        assert!(noted.iter().any(|note| note.contains("2 of 32 requests are in flight")), "{noted:?}");
        assert!(!none.iter().any(|note| note.contains("in flight")), "{none:?}");
    }
}

#[test]
fn encoders_have_no_figures_of_generation() {
    let of_generation = [MetricId::MaxConcurrency, MetricId::TpotMs, MetricId::ItlP99Ms, MetricId::TokensPerSecPerUser];
    for (workload, generates) in [("bge-large-embed", false), ("llama3.1-8b-serve", true)] {
        let (scenario, _) = answered(Engine::Analytical, ("h100-sxm-8", workload), &[]);
        assert!(of_generation.iter().all(|id| id.metric().applies_to(&scenario) == generates), "{workload}");
    }
}

#[test]
fn a_checkpoint_with_quantized_weights_keeps_their_format_in_the_workload_of_another_model() {
    let format = |workload: &str| {
        let (scenario, _) = answered(Engine::Analytical, ("h100-sxm-8", workload), &[]);
        scenario.format(&scenario.base)
    };
    assert_eq!(format("llama3.1-8b-serve:model=gpt-oss-20b"), Format::Fp4);
    assert_eq!(format("llama3.1-8b-serve:model=deepseek-v3"), Format::Fp8);
    assert_eq!(format("llama3.1-8b-serve:model=qwen3-8b"), Format::Bf16);
    assert_eq!(format("llama3.1-70b-serve:model=qwen3-8b"), Format::Fp8);
}

#[test]
fn vllm_unpacks_int8_weights_on_blackwell() {
    let compute = |target: &str| {
        let set = ["precision=int8", "software=vllm"];
        let (scenario, _) = answered(Engine::Analytical, (target, "llama3.1-8b-serve"), &set);
        scenario.compute(&scenario.base)
    };
    assert_eq!(["h100-sxm-8", "l40s-8"].map(compute), [Format::Int8; 2]);
    assert_eq!(["b200-8", "rtx-5090-4", "gb10-1"].map(compute), [Format::Bf16; 3]);
}

#[test]
fn nvfp4_is_refused_where_matrix_units_apply_only_mx_scales() {
    for workload in ["llama3.1-70b-serve", "llama3.1-8b-train"] {
        let verdict = |target: &str, format: &str| {
            let (_, estimate) = answered(Engine::Analytical, (target, workload), &[format]);
            estimate.detail.unwrap().verdict
        };
        let refused = Verdict::Format { format: "nvfp4", instead: "mxfp4" };
        assert_eq!(verdict("mi355x-8", "precision=nvfp4"), refused, "{workload}");
        for (target, format) in
            [("mi355x-8", "precision=mxfp4"), ("b200-8", "precision=nvfp4"), ("mi355x-8", "precision=fp8")]
        {
            assert_ne!(verdict(target, format), refused, "{workload} {target} {format}");
        }
    }
}

#[test]
fn nvfp4_checkpoints_are_refused_like_the_precision_nvfp4() {
    let verdict = |target: &str, model: &str, set: &[&str]| {
        let workload = format!("llama3.1-70b-serve:model={model}");
        let (_, estimate) = answered(Engine::Analytical, (target, &workload), set);
        estimate.detail.unwrap().verdict
    };
    let refused = Verdict::Format { format: "nvfp4", instead: "mxfp4" };
    for model in ["nvidia/Llama-3.3-70B-Instruct-FP4", "RedHatAI/Llama-3.3-70B-Instruct-NVFP4"] {
        assert_eq!(verdict("mi355x-8", model, &[]), refused, "{model}");
        assert!(verdict("b200-8", model, &[]).fits() && verdict("mi355x-8", model, &["precision=mxfp4"]).fits());
    }
    assert!(verdict("mi355x-8", "amd/Llama-3.3-70B-Instruct-MXFP4", &[]).fits());
}

#[test]
fn littles_law_holds_for_few_long_prompts_in_a_pipeline() {
    for concurrency in [1.0, 2.0, 4.0] {
        let in_flight = format!("concurrency={concurrency}");
        let set = ["tp=4", "pp=2", "prompt=16384", "generate=128", &in_flight];
        let rates = [Engine::Analytical, Engine::Event].map(|engine| {
            let (_, seen) = serving(engine, ("h100-sxm-8", "llama3.1-70b-serve"), &set);
            let found = seen.requests_per_sec * seen.e2e_ms.mean / 1000.0;
            assert!(found < 1.03 * concurrency, "{}: {found} of {concurrency}", engine.name());
            seen.requests_per_sec
        });
        assert!(near(rates[0], rates[1], 0.1), "{concurrency}: {rates:?}");
    }
}

#[test]
fn expert_ranks_beyond_the_replica_are_noted() {
    let noted = |pair, set: &[&str]| {
        let (scenario, estimate) = answered(Engine::Analytical, pair, set);
        notes::notes(&scenario, &estimate).iter().any(|note| note.starts_with("ep "))
    };
    assert!(noted(("b200-8", "deepseek-v3-serve"), &["tp=8", "ep=64"]));
    assert!(noted(("h100-sxm-1024", "deepseek-v3-wide-ep"), &["attention_dp=32"]));
    assert!(!noted(("b200-8", "deepseek-v3-serve"), &["tp=8", "ep=8"]));
    assert!(!noted(("h100-sxm-1024", "deepseek-v3-wide-ep"), &[]));
}

#[test]
fn pipeline_stages_limit_overlapped_scheduling_to_the_software_that_supports_both() {
    let overlap = |software: &str, layout: &str| {
        let set = [format!("software={software}"), layout.to_owned(), "draft_tokens=0".to_owned()];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let (scenario, _) = answered(Engine::Analytical, ("h100-sxm-8", "llama3.1-70b-serve"), &set);
        scenario.host_overlap(&scenario.base)
    };
    for (software, beside) in [
        ("sglang@0.5.23", HostOverlap::FrontEnd),
        ("vllm@0.14.0", HostOverlap::FrontEnd),
        ("vllm@0.15.0", HostOverlap::Scheduling),
    ] {
        assert_eq!(overlap(software, "tp=8"), HostOverlap::Scheduling, "{software}");
        assert_eq!(overlap(software, "pp=2"), beside, "{software}");
    }
    assert_eq!(overlap("vllm@0.6.0", "tp=8"), HostOverlap::FrontEnd);
    assert_eq!(overlap("vllm@0.6.0", "pp=2"), HostOverlap::None);
}

#[test]
fn gradients_are_reduced_in_the_last_of_several_micro_batches_where_the_software_defers_it() {
    let gradients = |software: &str, global: &str| {
        let set = [software, global, "sharding=zero3", "tp=1", "pp=1", "vpp=1", "cp=1", "microbatch=1"];
        let (_, estimate) = answered(Engine::Analytical, ("h100-sxm-8", "llama3.1-8b-train"), &set);
        let memory = estimate.detail.unwrap().memory;
        memory.parts.part(MemoryPart::Gradients)
    };
    // Sums in the format of the reduction on every rank, against shards of the gradients.
    let all = 8.03e9;
    assert!(near(gradients("software=nemo-automodel@0.7.0", "global=64"), 4.0 * all, 0.02));
    assert!(near(gradients("software=nemo-automodel@0.7.0", "global=8"), 2.0 * all / 8.0, 0.02));
    assert!(near(gradients("software=hf-trainer", "global=64"), 2.0 * all, 0.02));
    assert!(near(gradients("software=hf-trainer", "global=8"), 4.0 * all / 8.0, 0.02));
    assert!(near(gradients("software=deepspeed", "global=64"), 2.0 * all / 8.0, 0.02));
}

#[test]
fn default_layout_splits_layers_where_the_software_does() {
    let mut parts = testing::parts("rtx-4090-8", "llama3.1-70b-serve");
    let plan = &mut std::sync::Arc::make_mut(&mut parts.workload).plan;
    (plan.tp, plan.format) = (None, Some(Format::Int4));
    let layout = |software: &str| {
        let shape = Scenario::resolve(&parts, &testing::overrides(&[software])).unwrap().base.shape;
        (shape.tp.get(), shape.pp.get())
    };
    let (tp, pp) = layout("software=vllm");
    assert!(tp > 1 && pp == 1);
    assert_eq!(layout("software=llama.cpp"), (1, tp));
    assert_eq!(layout("software=llama.cpp@b1283"), (tp, 1), "rows were split before layers");
}

#[test]
fn prefill_pool_that_cannot_hold_the_weights_is_refused() {
    let set = ["prefill_workers=8", "prefill_tp=1", "tp=8", "dp=7", "precision=bf16", "concurrency=64"];
    for engine in [Engine::Analytical, Engine::Event] {
        let (_, found) = answered(engine, ("h100-sxm-64", "llama3.1-70b-serve"), &set);
        let detail = found.detail.unwrap();
        assert!(matches!(detail.verdict, Verdict::Memory { .. }), "{:?}", detail.verdict);
        // All weights of the model in 16 bit.
        assert!(detail.memory.total() > 140e9, "{}", detail.memory.total());
    }
}

#[test]
fn stated_prefill_workers_draw_as_much_power_as_the_same_accelerators_of_a_pool() {
    let power = |split: &[&str]| {
        let set = [&["tp=4", "concurrency=512", "prompt=4000", "generate=200"], split].concat();
        let pair = ("h100-sxm-64", "llama3.1-70b-serve");
        let (_, found) = answered(Engine::Analytical, pair, &set);
        (found.total.node_power_w, found.total.hbm_bw_util)
    };
    let stated = power(&["prefill_workers=8", "prefill_tp=4", "dp=8"]);
    let shared = power(&["prefill_accelerators=32"]);
    assert!(near(stated.0, shared.0, 1e-9) && near(stated.1, shared.1, 1e-9), "{stated:?} {shared:?}");
}

#[test]
fn both_engines_run_no_more_requests_at_once_than_a_run_has() {
    let pair = ("h100-sxm-8", "llama3.1-70b-serve");
    let of = |engine, set: &[&str]| {
        let (estimate, serving) = serving(engine, pair, set);
        (estimate.total.tokens_per_sec, serving.batch)
    };
    let set = ["concurrency=128", "run_requests=8"];
    let (closed, events) = (of(Engine::Analytical, &set), of(Engine::Event, &set));
    assert!(near(closed.1, events.1, 0.01), "{closed:?} {events:?}");
    // The closed form subtracts a drain at the end of the run.
    assert!((0.7..1.03).contains(&(closed.0 / events.0)), "{closed:?} {events:?}");
    assert_eq!(closed, of(Engine::Analytical, &["concurrency=8", "run_requests=8"]));
}

#[test]
fn beams_count_as_sequences_except_where_the_limit_counts_requests() {
    let pair = ("h100-sxm-8", "llama3.1-8b-serve");
    let base = ["tp=1", "dp=8", "concurrency=2048", "prompt=500", "generate=200"];
    let of = |engine, set: &[&str]| serving(engine, pair, &[&base[..], set].concat()).1.batch;
    for engine in [Engine::Analytical, Engine::Event] {
        let batch = of(engine, &["beams=4", "max_num_seqs=64"]);
        assert!(near(batch, 16.0, 0.05), "{engine:?}: {batch}");
    }
    let requests = of(Engine::Analytical, &["beams=4", "max_num_seqs=64", "software=tensorrt-llm"]);
    assert!(near(requests, 64.0, 0.05), "{requests}");
}

#[test]
fn sglang_divides_stated_limits_among_attention_groups() {
    let pair = ("h200-sxm-8", "deepseek-v3-serve");
    let base = ["tp=1", "attention_dp=8", "ep=8", "concurrency=1024", "max_num_seqs=128"];
    let batch = |software: &str| serving(Engine::Analytical, pair, &[&base[..], &[software]].concat()).1.batch;
    let (sglang, vllm) = (batch("software=sglang"), batch("software=vllm"));
    assert!(near(sglang, 128.0, 0.01), "{sglang}");
    assert!(vllm > 900.0, "{vllm}");
    // Releases before that limit every group.
    assert!(batch("software=sglang@0.4.3") > 900.0);
}

#[test]
fn a_job_without_progress_names_the_checkpoint_interval_if_that_is_the_cause() {
    let failing = ["node_mtbf_h=24", "checkpoint_interval_s=36000"];
    let (_, estimate) = answered(Engine::Event, ("h100-sxm-128", "llama3.1-70b-train"), &failing);
    let verdict = estimate.detail.unwrap().verdict;
    let text = verdict.describe();
    assert!(text.contains("fails every 90.00 min, but checkpoints are 10.00 h apart"), "{text}");
    let Verdict::NoProgress { best, .. } = verdict else { panic!("{verdict:?}") };
    assert!(best > 120.0 && best < 1800.0, "{best}");
}

#[test]
fn communication_is_attributed_to_the_fabric_that_its_group_spans() {
    for engine in [Engine::Analytical, Engine::Event] {
        let of = |set: &[&str]| {
            let base = ["concurrency=64", "prompt=1000", "generate=100"];
            let (_, found) = answered(engine, ("h100-sxm-64", "llama3.1-70b-serve"), &[&base[..], set].concat());
            let limits = found.detail.unwrap().limits;
            (limits.share(Cause::IntraNode), limits.share(Cause::InterNode))
        };
        // The all-reduces of both pools stay inside a node.
        let (inside, between) = of(&["tp=8", "prefill_accelerators=32"]);
        assert!(inside > 0.05 && between == 0.0, "{engine:?}: {inside} {between}");
        // Only the transfers between stages leave it.
        let (inside, between) = of(&["tp=8", "pp=2", "dp=1"]);
        assert!(between > 0.0 && inside > 10.0 * between, "{engine:?}: {inside} {between}");
        let (inside, between) = of(&["tp=16", "dp=1"]);
        assert!(inside == 0.0 && between > 0.05, "{engine:?}: {inside} {between}");
    }
}

#[test]
fn four_bit_weights_have_the_scales_of_their_checkpoints() {
    let weights = |pair: (&str, &str), set: &[&str]| {
        let (_, found) = answered(Engine::Analytical, pair, set);
        found.detail.unwrap().memory.parts.part(MemoryPart::Weights)
    };
    let pair = ("b200-8", "llama3.1-70b-serve");
    let of = |precision: &str| weights(pair, &["tp=1", "dp=8", precision]);
    // 68.5 billion weights of layers at 4.5 bits, and 2.1 of embedding and output layer at 16.
    assert!(near(of("precision=nvfp4"), 42.7e9, 0.005), "{}", of("precision=nvfp4"));
    assert!(near(of("precision=mxfp4"), 40.5e9, 0.005), "{}", of("precision=mxfp4"));
    // Checkpoints for these devices are NVFP4, except of models that are published in MXFP4.
    assert_eq!(of("precision=fp4"), of("precision=nvfp4"));
    let pair = ("b200-8", "gpt-oss-120b-serve");
    assert_eq!(weights(pair, &["precision=fp4"]), weights(pair, &["precision=mxfp4"]));
    let pair = ("mi355x-8", "llama3.1-70b-serve");
    assert_eq!(weights(pair, &["precision=fp4"]), weights(pair, &["precision=mxfp4"]));
}

#[test]
fn larger_blocks_of_the_kv_cache_take_more_memory_for_short_sequences() {
    let pair = ("h100-sxm-8", "llama3.1-8b-serve");
    let lengths = ["prompt=40", "generate=20", "concurrency=64"];
    let parts = testing::parts(pair.0, pair.1);
    let used = |block: u32| {
        let mut scenario = Scenario::resolve(&parts, &testing::with_engine(Engine::Event, &lengths)).unwrap();
        scenario.base.serving_defaults.kv_block = Count::new(block);
        estimate(&scenario).detail.unwrap().simulated.unwrap().serving.unwrap().kv
    };
    // Sequences of 50 tokens on average take one block of 64 or three to four of 16.
    let [tokens, small, large] = [1, 16, 64].map(used);
    assert!(
        (1.05..1.25).contains(&(small / tokens)) && (1.2..1.4).contains(&(large / tokens)),
        "{tokens} {small} {large}"
    );
    let block = |target, software: &str| {
        let parts = testing::parts(target, "llama3.1-70b-serve");
        let set = testing::with_engine(Engine::Event, &[&format!("software={software}")]);
        Scenario::resolve(&parts, &set).unwrap().base.serving_defaults.kv_block.get()
    };
    for (software, tokens) in [("vllm", 16), ("lmdeploy", 64), ("deepspeed-mii", 128), ("sglang@0.5.10", 1)] {
        assert_eq!(block("h100-sxm-8", software), tokens, "{software}");
    }
    assert_eq!(["sglang@0.5.6", "sglang@0.5.10"].map(|software| block("b200-8", software)), [1, 64]);
}
