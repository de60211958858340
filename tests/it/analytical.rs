//! The analytical engine on scenarios from files and knobs, and invariants of every estimate.

use std::path::Path;

use atlas_config::library::Library;
use atlas_core::plan::Engine;
use atlas_document::Sources;
use atlas_plan::engine::estimate;
use atlas_plan::engine::notes::notes;
use atlas_plan::estimate::{Cause, Estimate, METRICS, Metric, Verdict};
use atlas_plan::knob::{Knob, KnobValues as _, Overrides, Setting};
use atlas_plan::scenario::{Parts, Scenario};
use proptest::prelude::*;

fn library() -> Library {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/analytical");
    let (targets, workloads) = (Some(data.join("targets.yaml")), Some(data.join("workloads.yaml")));
    let library = Library::load(&Sources { targets, workloads, ..Sources::built_in() }, None);
    assert!(!library.problems().has_errors(), "{}", library.problems());
    library
}

fn parts(target: &str, workload: &str) -> Parts {
    Parts::find(&library(), target, workload).unwrap()
}

fn answer(parts: &Parts, knobs: &[(Knob, &str)]) -> (Scenario, Estimate) {
    let set = |(knob, text): &(Knob, &str)| (*knob, knob.parse(text, parts.fabrics()).unwrap());
    let overrides: Overrides = knobs.iter().map(set).collect();
    let scenario = Scenario::resolve(parts, &overrides).unwrap();
    let estimate = estimate(&scenario);
    (scenario, estimate)
}

fn metric(name: &str, (scenario, estimate): &(Scenario, Estimate)) -> f64 {
    Metric::named(name).unwrap().value(estimate, scenario).unwrap()
}

/// Invariants of every estimate.
fn sound(scenario: &Scenario, estimate: &Estimate) {
    let detail = estimate.detail.unwrap();
    let sums = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs());
    if scenario.phases.is_empty()
        && let Some(training) = detail.training
    {
        assert!(sums(detail.time.total() * 1e3, estimate.total.step_time_ms.unwrap()));
        assert!(sums(training.tokens_per_step / detail.time.total(), estimate.total.tokens_per_sec));
        assert!(training.mfu > 0.0 && training.mfu_causal <= training.mfu);
        assert!(training.hfu >= training.mfu_causal && training.hfu <= 1.0);
    }
    assert!(sums(Cause::ALL.iter().map(|cause| detail.limits.share(*cause)).sum(), 1.0));
    assert!(detail.time.parts().all(|(_, seconds)| seconds >= 0.0), "{:?}", detail.time);
    assert!(detail.memory.parts.parts().all(|(_, bytes)| bytes >= 0.0), "{:?}", detail.memory);
    assert!(detail.memory.upper >= detail.memory.total() * (1.0 - 1e-12));
    assert!(!matches!(detail.verdict, Verdict::Memory { .. }) || detail.memory.excess() > 0.0);
    for metric in METRICS.iter().filter(|metric| metric.applies_to(scenario)) {
        let value = metric.value(estimate, scenario).unwrap();
        assert!(!value.is_nan() && value >= 0.0, "{} is {value}", metric.name);
        if let Some((low, high)) = metric.interval(estimate, scenario).filter(|_| value.is_finite()) {
            assert!(low <= value && value <= high, "{}: {low} {value} {high}", metric.name);
        }
    }
}

#[test]
fn engine_defaults_to_the_target_and_the_engine_knob_overrides_it() {
    let parts = parts("h100x8", "llama3_8b_train");
    let (scenario, estimate) = answer(&parts, &[]);
    assert_eq!(scenario.engine, Engine::Analytical);
    assert!(estimate.detail.is_some());
    let mut overruled = Overrides::new();
    overruled.insert(Knob::Engine, Setting::Choice("semi-empirical".into()));
    // The catalog has a profile for this vendor, so the predecessor's model works, too.
    let scenario = Scenario::resolve(&parts, &overruled).unwrap();
    assert!(atlas_plan::engine::estimate(&scenario).detail.is_none());
    // Without a profile, the error names what is missing.
    let amd = Parts::find(&library(), "mi300x8", "llama3_8b_train").unwrap();
    let complaint = Scenario::resolve(&amd, &overruled).unwrap_err().to_string();
    assert!(complaint.contains("semi-empirical engine needs a profile"), "{complaint}");
}

#[test]
fn analytical_engine_names_the_missing_accelerator_field() {
    let library = Library::load(&Sources::built_in(), None);
    let parts = Parts::find(&library, "GROQ_LPU_NODE", "gpt5_1t_train").unwrap();
    let overrides = Overrides::from([(Knob::Engine, Setting::Choice("analytical".into()))]);
    let complaint = Scenario::resolve(&parts, &overrides).unwrap_err().to_string();
    assert!(complaint.contains("`accelerator:`"), "{complaint}");
}

#[test]
fn estimates_are_valid_and_near_published_throughput() {
    let train = answer(&parts("h100x8", "llama3_8b_train"), &[]);
    sound(&train.0, &train.1);
    // 8B in bf16 with FSDP: published runs on eight H100 achieve 8 to 13 thousand tokens/s per accelerator.
    assert!((8e3..13e3).contains(&metric("tokens_per_sec_per_accel", &train)));
    let serve = answer(&parts("h100x8", "llama3_70b_serve"), &[]);
    sound(&serve.0, &serve.1);
    assert!((10.0..40.0).contains(&metric("tpot_ms", &serve)));
    assert!(train.1.detail.unwrap().verdict.fits() && serve.1.detail.unwrap().verdict.fits());
}

#[test]
fn replicas_fill_the_target_unless_their_number_is_stated() {
    let parts = parts("h100x8", "llama3_8b_train");
    let dp = |knobs: &[(Knob, &str)]| answer(&parts, knobs).0.base.shape.dp;
    assert_eq!(dp(&[]), 8.0);
    assert_eq!(dp(&[(Knob::Tp, "2")]), 4.0);
    assert_eq!(dp(&[(Knob::Tp, "2"), (Knob::NumNodes, "4")]), 16.0);
    assert_eq!(dp(&[(Knob::Tp, "2"), (Knob::Dp, "2")]), 2.0);
}

#[test]
fn infeasible_scenarios_return_a_verdict_with_the_cause() {
    let verdict =
        |workload: &str, knobs: &[(Knob, &str)]| answer(&parts("h100x8", workload), knobs).1.detail.unwrap().verdict;
    assert!(matches!(verdict("llama3_8b_train", &[(Knob::Dp, "16")]), Verdict::Accelerators { needs: 16.0, has: 8.0 }));
    assert!(matches!(verdict("llama3_8b_train", &[(Knob::Global, "100")]), Verdict::Indivisible { .. }));
    assert!(matches!(
        verdict("llama3_8b_train", &[(Knob::Sharding, "none"), (Knob::Recompute, "none")]),
        Verdict::Memory { .. }
    ));
    assert!(matches!(verdict("llama3_70b_serve", &[(Knob::RequestRate, "1000")]), Verdict::Overload { .. }));
    assert!(matches!(
        verdict("llama3_70b_serve", &[(Knob::Tp, "1"), (Knob::Precision, "bf16")]),
        Verdict::Memory { .. }
    ));
}

#[test]
fn schedule_is_estimated_per_phase_and_totals_are_time_weighted() {
    let (scenario, estimate) = answer(&parts("h100x8", "llama3_70b_day"), &[]);
    let [quiet, spike, long] = &estimate.phases[..] else { panic!("{:?}", estimate.phases) };
    let wait = |figures: &atlas_plan::estimate::Metrics| figures.queue.unwrap().wait.p99;
    assert!(wait(spike) > 10.0 * wait(quiet), "an overload piles up");
    assert!(long.latency.unwrap().ttft > quiet.latency.unwrap().ttft, "eight times the prompt");
    assert!(spike.tokens_per_sec > quiet.tokens_per_sec);
    let serving = estimate.detail.unwrap().serving.unwrap();
    assert!(
        (serving.ttft_ms.mean - estimate.total.latency.unwrap().ttft).abs() < 0.5 * serving.ttft_ms.mean,
        "the day's, waiting included"
    );
    assert!(serving.ttft_ms.p99 > serving.ttft_ms.mean);
    let minutes: f64 = estimate.phases.iter().map(|phase| phase.minutes).sum();
    let mean: f64 = estimate.phases.iter().map(|phase| phase.tokens_per_sec * phase.minutes).sum::<f64>() / minutes;
    assert!((mean - estimate.total.tokens_per_sec).abs() < 1e-9 * mean);
    // The phase with long prompts keeps its own prompt length, whatever the knob is set to.
    let shorter = answer(&parts("h100x8", "llama3_70b_day"), &[(Knob::Prompt, "512")]);
    assert_eq!(shorter.0.phases[2].shape.prompt, 8192.0);
    assert_eq!(shorter.0.phases[0].shape.prompt, 512.0);
    sound(&scenario, &estimate);
}

#[test]
fn latency_of_a_schedule_is_that_of_its_requests() {
    let library = Library::load(&Sources::built_in(), None);
    let parts = Parts::find(&library, "h100-sxm-8", "llama3.1-70b-day").unwrap();
    let (scenario, estimate) = answer(&parts, &[]);
    let phases: Vec<_> = estimate.phases.iter().map(|phase| (phase.queue.unwrap(), phase.minutes)).collect();
    let all: f64 = phases.iter().map(|(queue, minutes)| queue.arrival_rate * minutes).sum();
    let mean: f64 = phases.iter().map(|(queue, minutes)| queue.arrival_rate * minutes * queue.latency.ttft).sum();
    let total = estimate.total.latency.unwrap();
    assert!((total.ttft - mean / all).abs() < 1e-9 * total.ttft);
    // One request in eight arrives in the peak, so the percentiles above lie in its upper half.
    let (peak, _) = phases[1];
    assert!(peak.arrival_rate * 120.0 / all > 0.1);
    assert!(
        total.p95 > peak.latency.p50 && total.p99 > phases[0].0.latency.p99 && total.p99 < peak.latency.p99,
        "{total:?}"
    );
    let serving = estimate.detail.unwrap().serving.unwrap();
    assert_eq!(serving.tokens_per_sec_per_user, 1e3 / serving.tpot_ms.mean);
    assert!((serving.e2e_ms.p99 - total.p99).abs() < 1e-9 * total.p99);
    sound(&scenario, &estimate);
}

#[test]
fn costs_scale_with_prices_and_speed_with_bandwidth_and_prefix_hits() {
    let parts = parts("h100x8", "llama3_70b_serve");
    let base = answer(&parts, &[(Knob::UsdPerKwh, "0.1"), (Knob::HourlyUsd, "10")]);
    let double = answer(&parts, &[(Knob::UsdPerKwh, "0.2"), (Knob::HourlyUsd, "20")]);
    assert!((metric("dollar_per_1m_tokens", &double) / metric("dollar_per_1m_tokens", &base) - 2.0).abs() < 1e-12);
    let mut before = 0.0;
    for gbps in ["100", "200", "400", "800"] {
        let nodes = [(Knob::NumNodes, "4"), (Knob::NetworkGbps, gbps), (Knob::Global, "128")];
        let rate = metric("tokens_per_sec", &answer(&self::parts("h100x8", "llama3_8b_train"), &nodes));
        assert!(rate >= before, "a faster network is never slower");
        before = rate;
    }
    let mut before = f64::INFINITY;
    for hit in ["0", "0.25", "0.5", "1"] {
        let ttft = metric("ttft_ms", &answer(&parts, &[(Knob::PrefixHit, hit)]));
        assert!(ttft <= before, "what is cached need not be computed");
        before = ttft;
    }
}

/// Any sequence of knobs with any values that the registry allows.
fn turned() -> impl Strategy<Value = Vec<(Knob, f64, usize)>> {
    let knob = prop::sample::select(Knob::all().collect::<Vec<_>>());
    prop::collection::vec((knob, 0.0..1.0, 0usize..16), 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_knob_settings_give_a_valid_estimate(workload in prop::sample::select(vec!["llama3_8b_train", "llama3_70b_serve"]), turns in turned()) {
        use atlas_plan::knob::ValueType;
        let parts = parts("h100x8", workload);
        let mut scenario = Scenario::from_files(&parts);
        for (knob, at, choice) in turns {
            let setting = match knob.spec().kind {
                ValueType::Toggle => Setting::Toggle(choice % 2 == 0),
                ValueType::Choice(words) => Setting::Choice(words[choice % words.len()].into()),
                ValueType::Number { bounds, .. } => {
                    // Uniform over the orders of magnitude.
                    let high = bounds.max.min(1e9).max(bounds.min + 1e-9);
                    let value = bounds.min + ((high - bounds.min + 1.0).powf(at) - 1.0);
                    Setting::Number(if bounds.whole { value.round() } else { value }.clamp(bounds.min, bounds.max))
                }
                ValueType::Fabric | ValueType::Software | ValueType::Seed => continue,
            };
            // Owners pay for their energy, whatever is set.
            let owned = scenario.get(Knob::PriceBasis) == Setting::Choice("owned".into());
            if knob == Knob::Engine || (knob == Knob::EnergyIncluded && owned) { continue; }
            scenario.set(knob, &setting, &parts).unwrap();
            match (scenario.get(knob), &setting) {
                (Setting::Number(got), Setting::Number(put)) => prop_assert!((got - put).abs() <= 1e-6 * (1.0 + put)),
                (got, put) => prop_assert_eq!(&got, put, "{}", knob.name()),
            }
        }
        let answer = estimate(&scenario);
        sound(&scenario, &answer);
    }
}

#[test]
fn efficient_frontier_points_trade_per_user_speed_for_throughput() {
    let parts = parts("h100x8", "llama3_70b_serve");
    let start = Scenario::from_files(&parts);
    let points = atlas_plan::search::frontier::frontier(&start, &parts, 65_536.0).unwrap();
    assert!(points.len() > 5);
    let efficient: Vec<_> = points.iter().filter(|point| point.efficient).collect();
    assert!(efficient.len() > 3);
    for pair in efficient.windows(2) {
        assert!(pair[1].serving.tokens_per_sec_per_user < pair[0].serving.tokens_per_sec_per_user);
        assert!(pair[1].estimate.total.tokens_per_sec > pair[0].estimate.total.tokens_per_sec);
    }
}

#[test]
fn memory_size_unknown_for_the_package_is_reported_and_replaced() {
    let used = |accelerator: &str, stated: f64| {
        let mut parts = parts("h100x8", "llama3_70b_serve");
        let sheet = library().catalog().accelerator(accelerator).unwrap();
        let target = std::sync::Arc::make_mut(&mut parts.target);
        target.memory_gb_per_accel = stated;
        parts.accelerator = Some(sheet);
        let (scenario, estimate) = answer(&parts, &[]);
        let reported = notes(&scenario, &estimate).iter().any(|note| note.starts_with("memory_gb_per_accel"));
        (scenario.machine.unwrap().device.mem_bytes / 1e9, scenario.memory_gb_per_accel, reported)
    };
    // A target copied from an H100's, with a wrong memory capacity.
    assert_eq!(used("nvidia-b200", 80.0), (180.0, 180.0, true));
    assert_eq!(used("amd-mi300x", 80.0), (192.0, 192.0, true));
    // Capacity as reported by a tool for the same accelerator, and boards whose memory is separate from the chip.
    assert_eq!(used("nvidia-b200", 192.0), (192.0, 192.0, false));
    assert_eq!(used("nvidia-rtx-4090", 48.0), (48.0, 48.0, false));
    assert_eq!(used("apple-m3-ultra", 96.0), (96.0, 96.0, false));
}

#[test]
fn default_global_batch_is_a_multiple_of_the_pipeline_stages() {
    let step = |knobs: &[(Knob, &str)]| {
        let mut parts = parts("h100x8", "llama3_8b_train");
        let workload = std::sync::Arc::make_mut(&mut parts.workload);
        (workload.plan.global, workload.plan.micro) = (None, None);
        let (scenario, estimate) = answer(&parts, knobs);
        let notes = notes(&scenario, &estimate);
        let assumed = notes.iter().find(|note| note.contains("global batch")).unwrap().clone();
        (scenario.global(&scenario.base), estimate.detail.unwrap().verdict.fits(), assumed)
    };
    let stages = [(Knob::Pp, "4"), (Knob::Tp, "1"), (Knob::Prompt, "8192"), (Knob::Microbatch, "1")];
    let (global, fits, assumed) = step(&stages);
    // Four million tokens are 512 sequences of 8192 tokens.
    assert_eq!((global, fits), (512.0, true));
    assert!(
        assumed.ends_with("global batch 512, about four million tokens, a multiple of the pipeline stages"),
        "{assumed}"
    );
    // Interleaved stages require a multiple of the number of stages; long sequences still have one micro-batch per
    // stage.
    let (global, fits, _) = step(&[&stages[..], &[(Knob::Vpp, "2"), (Knob::NumNodes, "3")]].concat());
    assert_eq!((global % (4.0 * 6.0), fits), (0.0, true));
    let (global, ..) = step(&[(Knob::Pp, "4"), (Knob::Tp, "2"), (Knob::Prompt, "4000000"), (Knob::Microbatch, "1")]);
    assert_eq!(global, 4.0);
    let (global, _, assumed) = step(&[(Knob::Pp, "1"), (Knob::Tp, "1"), (Knob::Microbatch, "1")]);
    assert_eq!(global, 8.0);
    assert!(assumed.ends_with("one micro-batch per replica"), "{assumed}");
}

#[test]
fn default_serving_layout_uses_the_fewest_tp_ranks_that_fit_the_weights() {
    let layout = |accelerator: &str, knobs: &[(Knob, &str)]| {
        let mut parts = parts("h100x8", "llama3_70b_serve");
        let sheet = library().catalog().accelerator(accelerator).unwrap();
        std::sync::Arc::make_mut(&mut parts.target).memory_gb_per_accel = sheet.memory.gb;
        parts.accelerator = Some(sheet);
        let workload = std::sync::Arc::make_mut(&mut parts.workload);
        (workload.plan.tp, workload.plan.pp, workload.plan.dp) = (None, None, None);
        let (scenario, estimate) = answer(&parts, knobs);
        let noted = notes(&scenario, &estimate).iter().any(|note| note.contains("the fewest ranks with room"));
        let shape = &scenario.base.shape;
        assert_eq!(noted, scenario.has_default_layout(&scenario.base) && shape.tp * shape.pp > 1.0);
        (f64::from(shape.tp), f64::from(shape.dp), estimate.detail.unwrap().verdict.fits())
    };
    let bf16 = (Knob::Precision, "bf16");
    // 141 GB of weights need four accelerators of 80 GB or two of 192 GB; in fp8, set by a knob afterwards, half as
    // many.
    assert_eq!(layout("nvidia-h100-sxm-80gb", &[bf16]), (4.0, 2.0, true));
    assert_eq!(layout("amd-mi300x", &[bf16]), (2.0, 4.0, true));
    assert_eq!(layout("nvidia-h100-sxm-80gb", &[(Knob::Precision, "fp8")]), (2.0, 4.0, true));
    // Pipeline stages only if a node is not enough: 16 accelerators for 405B in bf16.
    let mut large =
        Parts::find(&Library::load(&Sources::built_in(), None), "h100-sxm-64", "llama3.1-70b-serve").unwrap();
    let workload = std::sync::Arc::make_mut(&mut large.workload);
    (workload.plan.tp, workload.plan.pp, workload.plan.dp) = (None, None, None);
    large.model = library().catalog().model("llama3.1-405b").ok();
    let (scenario, estimate) = answer(&large, &[bf16]);
    let shape = &scenario.base.shape;
    assert_eq!([shape.tp, shape.pp, shape.dp].map(f64::from), [8.0, 2.0, 4.0]);
    assert!(estimate.detail.unwrap().verdict.fits());
    // Stated values are kept.
    assert_eq!(layout("nvidia-h100-sxm-80gb", &[bf16, (Knob::Tp, "1")]), (1.0, 2.0, true));
    let mut parts = parts("h100x8", "llama3_70b_serve");
    let workload = std::sync::Arc::make_mut(&mut parts.workload);
    (workload.plan.tp, workload.plan.pp) = (None, None);
    let (scenario, _) = answer(&parts, &[(Knob::Engine, "benchboard"), (Knob::Precision, "bf16")]);
    assert_eq!(scenario.base.shape.tp, 1.0);
}

#[test]
fn default_training_layout_uses_the_fewest_ranks_that_fit_the_states() {
    let library = Library::load(&Sources::built_in(), None);
    let layout = |target: &str, workload: &str, model: &str, knobs: &[(Knob, &str)]| {
        let mut parts = Parts::find(&library, target, workload).unwrap();
        let workload = std::sync::Arc::make_mut(&mut parts.workload);
        let plan = &mut workload.plan;
        (plan.tp, plan.pp, plan.dp, plan.ep, plan.vpp, plan.cp) = (None, None, None, None, None, None);
        (plan.first_layers, plan.last_layers, plan.sharding, plan.recompute) = (None, None, None, None);
        parts.model = library.catalog().model(model).ok();
        let (scenario, estimate) = answer(&parts, &[&[(Knob::Precision, "bf16")], knobs].concat());
        let (shape, ep) = (&scenario.base.shape, scenario.base.ep());
        assert_eq!(scenario.get(Knob::Ep), Setting::Number(ep.into()));
        let noted =
            notes(&scenario, &estimate).iter().any(|note| note.contains("the fewest ranks that hold the model"));
        assert_eq!(noted, scenario.has_default_layout(&scenario.base) && shape.tp * shape.pp * ep > 1.0);
        let fits = estimate.detail.unwrap().verdict.fits();
        ([shape.tp, shape.pp, ep, shape.dp].map(f64::from), fits)
    };
    let dense = "llama3.1-70b-train";
    // 8B with a sharded optimizer takes 7.5 bytes per parameter; 70B needs a node, 405B pipeline stages of one node
    // each.
    assert_eq!(layout("h100-sxm-8", dense, "llama3.1-8b", &[]), ([1.0, 1.0, 1.0, 8.0], true));
    assert_eq!(layout("h100-sxm-64", dense, "llama3.1-70b", &[]), ([8.0, 1.0, 1.0, 8.0], true));
    assert_eq!(layout("h100-sxm-1024", dense, "llama3.1-405b", &[]), ([8.0, 8.0, 1.0, 16.0], true));
    // Expert parallelism is chosen before anything else.
    let (ranks, fits) = layout("h100-sxm-1024", "deepseek-v3-train", "deepseek-v3", &[]);
    assert_eq!((ranks, fits), ([1.0, 16.0, 8.0, 64.0], true));
    // Software that shards everything over all replicas needs no other parallelism.
    let sharded = layout("h100-sxm-64", dense, "llama3.1-70b", &[(Knob::Software, "torchtitan")]);
    assert_eq!(sharded, ([1.0, 1.0, 1.0, 64.0], true));
    // Stated values are kept: a sharding instead of other parallelism, or one degree, from which the others follow.
    let whole = layout("h100-sxm-64", dense, "llama3.1-70b", &[(Knob::Sharding, "none")]);
    assert_eq!(whole, ([1.0, 1.0, 1.0, 64.0], false));
    assert_eq!(layout("h100-sxm-64", dense, "llama3.1-70b", &[(Knob::Pp, "1")]), ([8.0, 1.0, 1.0, 8.0], true));
    let (ranks, _) = layout("h100-sxm-64", dense, "llama3.1-70b", &[(Knob::Dp, "16")]);
    assert!(ranks[0] * ranks[1] <= 4.0, "{ranks:?}");
}

#[test]
fn ep_larger_than_tp_turns_dp_replicas_into_attention_groups() {
    let resolved = |software: &str, knobs: &[(Knob, &str)]| {
        let library = Library::load(&Sources::built_in(), None);
        let parts = Parts::find(&library, "h200-sxm-64", "deepseek-v3-serve").unwrap();
        let knobs = [&[(Knob::Software, software)], knobs].concat();
        let (scenario, _) = answer(&parts, &knobs);
        let layout = scenario.base.decode_layout();
        [layout.tp, layout.attention_dp, layout.dp].map(f64::from)
    };
    // `vllm serve --data-parallel-size 16 --enable-expert-parallel` counts attention groups of all replicas together.
    let stated = [(Knob::Tp, "1"), (Knob::Ep, "16"), (Knob::Dp, "16")];
    assert_eq!(resolved("vllm", &stated), [1.0, 16.0, 1.0]);
    let groups = (Knob::AttentionDp, "16");
    assert_eq!(resolved("vllm", &[stated[0], stated[1], (Knob::Dp, "1"), groups]), [1.0, 16.0, 1.0]);
    assert_eq!(resolved("vllm", &[(Knob::Tp, "2"), (Knob::Ep, "16"), (Knob::Dp, "32")]), [2.0, 8.0, 4.0]);
    // Without `dp`, or with groups that do not divide it, the replicas are complete ones.
    assert_eq!(resolved("vllm", &stated[..2]), [1.0, 1.0, 64.0]);
    assert_eq!(resolved("vllm", &[(Knob::Tp, "1"), (Knob::Ep, "16"), (Knob::Dp, "24")]), [1.0, 1.0, 24.0]);
}

#[test]
fn software_defaults_to_one_the_target_supports_and_others_get_a_note() {
    let library = Library::load(&Sources::built_in(), None);
    let named = |target: &str, workload: &str, software: Option<&str>| {
        let mut parts = Parts::find(&library, target, workload).unwrap();
        std::sync::Arc::make_mut(&mut parts.workload).software = software.map(Into::into);
        let (scenario, estimate) = answer(&parts, &[]);
        let notes = notes(&scenario, &estimate);
        let caution = notes.into_iter().find(|note| note.contains("accelerators: the estimate")).unwrap_or_default();
        (scenario.software_name().split('@').next().unwrap().to_owned(), caution)
    };
    let serves = |target: &str| named(target, "llama3.1-8b-serve", None);
    for (target, software) in [("h100-sxm-8", "vllm"), ("mi300x-8", "vllm"), ("m3-ultra-1", "llama.cpp")] {
        assert_eq!(serves(target), (software.to_owned(), String::new()), "{target}");
    }
    let trains = |target: &str| named(target, "llama3.1-8b-train", None);
    for (target, software) in [
        ("h100-sxm-8", "megatron-core"),
        ("tpu-v5p-128", "maxtext"),
        ("trn2-16", "neuronx-distributed"),
        ("gaudi3-8", "deepspeed"),
    ] {
        assert_eq!(trains(target), (software.to_owned(), String::new()), "{target}");
    }
    let (software, caution) = named("m3-ultra-1", "llama3.1-8b-serve", Some("vllm"));
    assert_eq!(software, "vllm");
    assert!(caution.ends_with("set software to llama.cpp, which does"), "{caution}");
}

#[test]
fn checkpoint_resolved_to_a_model_is_noted_with_its_weight_format() {
    let library = Library::load(&Sources::built_in(), None);
    let note = |name: &str| {
        let mut parts = Parts::find(&library, "h100-sxm-8", "llama3.1-8b-serve").unwrap();
        let workload = std::sync::Arc::make_mut(&mut parts.workload);
        (workload.model, workload.plan.format) = (Some(name.to_owned()), None);
        parts.model = Some(library.catalog().model(name).unwrap());
        let (scenario, estimate) = answer(&parts, &[]);
        let found = notes(&scenario, &estimate).into_iter().find(|note| note.contains(" is read as "));
        (found, scenario.base.serving_defaults.formats.dense_bytes)
    };
    let eight = Some("model Qwen/Qwen3-32B-FP8 is read as qwen3-32b with fp8 weights".to_owned());
    assert_eq!(note("Qwen/Qwen3-32B-FP8").0, eight);
    assert!(note("Qwen/Qwen3-32B-FP8").1 < 0.6 * note("qwen3-32b").1);
    assert_eq!(note("Qwen/Qwen3-32B").0, None);
}

#[test]
fn few_surplus_replicas_idle_when_they_do_not_divide_the_global_batch() {
    let replicas = |accelerators: u32, global: &str| {
        let mut parts = parts("h100x8", "llama3_8b_train");
        std::sync::Arc::make_mut(&mut parts.target).accelerators_per_node = accelerators.into();
        let (scenario, estimate) = answer(&parts, &[(Knob::Global, global), (Knob::Microbatch, "1")]);
        let idle =
            notes(&scenario, &estimate).iter().any(|note| note.contains("accelerators are used; the rest are idle"));
        (f64::from(scenario.base.shape.dp), idle)
    };
    assert_eq!(replicas(8, "64"), (8.0, false));
    assert_eq!(replicas(9, "64"), (8.0, true));
    // With 13 replicas, neither 12 nor 13 divides 64: all are kept, and the layout is rejected as stated.
    assert_eq!(replicas(13, "64"), (13.0, false));
}
